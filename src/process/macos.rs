//! macOS: `libproc` and kqueue. Written from Apple's headers, and compiled; it has not been run.
//!
//! What is weaker than on Linux: no handle pins a number, so a signal is sent right after the identity was looked
//! at; other users' processes show little; and nothing adopts orphans, so descendants are those that still have
//! their parents.

mod handle;
mod identity;
mod scan;
mod sys;

pub use handle::{Handle, Watch};
pub use identity::{current, host, identify, life};
pub use scan::{ancestors, autogroup, children, descendants, holders, members, note, with_token};
pub use sys::{OWN_DESCRIPTORS, close_on_exec};
