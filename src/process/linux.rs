//! Linux: `/proc` and pidfds.

mod descriptors;
mod handle;
mod identity;
mod procfs;
mod scan;

pub use descriptors::{OWN_DESCRIPTORS, close_on_exec};
pub use handle::{Handle, Watch};
pub use identity::{current, host, identify, life};
pub use scan::{ancestors, autogroup, children, descendants, holders, members, note, with_token};
