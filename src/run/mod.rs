//! The run store: ids, layout, file formats, locks, and reading and writing them.
//!
//! Reading and writing are different types: an observer holds a store that cannot write.

pub mod dir;
pub mod files;
pub mod locks;
pub mod text;
