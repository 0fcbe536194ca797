//! Waiting without polling: an inbox that others poke after they wrote a file, and sources that tell when a process
//! ends.
//!
//! The file is the truth and the poke only saves waiting: one that is lost costs a second, never an answer.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::Files;
#[cfg(target_os = "macos")]
pub use macos::Files;
#[cfg(unix)]
pub use unix::{AsSource, Inbox, Latch, Reader, Ringer, Source, latch, poke, poke_named, wait};
#[cfg(windows)]
pub use windows::{AsSource, Files, Inbox, Latch, Reader, Ringer, Source, latch, poke, poke_named, wait};

use std::time::Duration;

/// How often whoever waits looks for itself, for the poke that was lost.
pub const SAFETY: Duration = Duration::from_secs(1);

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woke {
    /// The source at this place of the list.
    By(usize),
    /// A signal.
    Interrupted,
    /// Nothing within the time.
    Timeout,
}

/// Whether a source has something to tell right now.
pub fn is_ready(source: Source<'_>) -> bool {
    matches!(wait(&[source], Some(Duration::ZERO)), Ok(Woke::By(_)))
}
