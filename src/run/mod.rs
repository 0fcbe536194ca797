//! The run store: ids, layout, file formats, locks, and reading and writing them.
//!
//! Reading and writing are different types: an observer holds a [`store::ReadStore`], which cannot write.

pub mod archive;
pub mod dir;
pub mod files;
pub mod fskind;
pub mod id;
pub mod journal;
pub mod locks;
pub mod newer;
pub mod output;
pub mod record;
pub mod store;
pub mod text;
pub mod trash;
pub mod tree;
pub mod write;
