//! Windows: handles, which pin a number for as long as they are open, and named jobs.
//!
//! A process is told apart by its creation time. Its kernel session and its open files are told to nobody here; that
//! something belongs to an attempt is what the attempt's job says. Seen under Wine only.

mod asked;
mod handle;
mod identity;
mod job;
mod scan;
mod sys;

pub use asked::Asked;
pub use handle::{Handle, Watch};
pub use identity::{current, host, identify, life, started_by};
pub use job::Job;
pub use scan::{ancestors, autogroup, children, descendants, members, note, with_token};

/// Nothing limits that here but memory.
pub fn most_files() -> Option<u64> {
    None
}

/// There are no signals here.
pub fn signal_name(_signal: i32) -> Option<&'static str> {
    None
}
