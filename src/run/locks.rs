//! Locks: a held one means a living process, because the kernel drops it with its last descriptor.

use super::dir::Dir;
use crate::verdict::{Lease, Why};
use std::fs::{File, TryLockError};
use std::io;
use std::time::{Duration, Instant};

/// How long a taker tries before it believes that a lock is held: observers hold it shared for a moment.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// A lock that could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// Another process holds it.
    #[error("it is held by another process")]
    Held,
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Takes a lock exclusively, trying for [`PATIENCE`]. It falls with the last descriptor of `file`; it is never
/// unlocked, because an unlock through any inherited copy frees it for all.
///
/// # Errors
/// [`TakeError::Held`], or what the operating system says.
pub fn take(file: &File) -> Result<(), TakeError> {
    take_within(file, PATIENCE)
}

/// As [`take`], with another patience.
///
/// # Errors
/// As [`take`].
pub fn take_within(file: &File, patience: Duration) -> Result<(), TakeError> {
    let end = Instant::now() + patience;
    let mut pause = Duration::from_micros(200);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() >= end => return Err(TakeError::Held),
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            Err(TryLockError::Error(e)) => return Err(TakeError::Io(e)),
        }
    }
}

/// Looks at a lock file without keeping anything.
pub fn probe(dir: &Dir, name: &str) -> Lease {
    let file = match dir.open_lock(name) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Lease::NoFile,
        Err(e) => {
            return Lease::Unknown(Why::new(format!("cannot open {}: {e}", dir.path().join(name).display())));
        }
    };
    match file.try_lock_shared() {
        Ok(()) => Lease::Free,
        Err(TryLockError::WouldBlock) => Lease::Held,
        Err(TryLockError::Error(e)) => {
            Lease::Unknown(Why::new(format!("cannot probe {}: {e}", dir.path().join(name).display())))
        }
    }
}

/// Waits until a lock file is there and nobody holds it, looking in small steps, at most for `patience`. Gives the
/// last look: anything but [`Lease::Free`] means that the wait was in vain.
pub fn wait_free(dir: &Dir, name: &str, patience: Duration) -> Lease {
    let end = Instant::now() + patience;
    let mut pause = Duration::from_micros(500);
    loop {
        let seen = probe(dir, name);
        match seen {
            Lease::Held | Lease::NoFile if Instant::now() < end => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            _ => return seen,
        }
    }
}
