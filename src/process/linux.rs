//! Linux: `/proc` and pidfds.

mod handle;
mod identity;
mod procfs;
mod scan;

pub use handle::{Handle, Watch};
pub use identity::{current, host, identify, life};
pub use scan::{ancestors, autogroup, children, descendants, holders, members, note, with_token};
