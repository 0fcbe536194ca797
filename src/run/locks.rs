//! Locks: a held one means a living process, because the kernel drops it with its last descriptor.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

use super::dir::Dir;
use super::id::RunId;
use crate::at;
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
        match at::try_lock(file) {
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

/// Takes the lease of an attempt, and makes its file where it is not there.
///
/// # Errors
/// [`TakeError::Held`], or what the operating system says.
pub fn take_lease(dir: &Dir, name: &str) -> Result<File, TakeError> {
    system::take_lease(dir, name)
}

/// Whether the file of a lease is made at the launch. Else the keeper makes it, and without one there was no keeper.
pub const LEASE_IS_MADE_AT_LAUNCH: bool = system::LEASE_IS_MADE_AT_LAUNCH;

/// Opens the lock of whoever stages a run, for taking it.
///
/// # Errors
/// As the operating system says.
pub fn open_maker(staged: &Dir, locks: &Dir, id: &RunId) -> io::Result<File> {
    system::open_maker(staged, locks, id)
}

/// Looks at the lock of whoever stages a run.
pub fn probe_maker(staged: &Dir, locks: &Dir, id: &RunId) -> Lease {
    system::probe_maker(staged, locks, id)
}

/// Looks at a lock file without keeping anything.
pub fn probe(dir: &Dir, name: &str) -> Lease {
    let file = match dir.open_lock(name) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Lease::NoFile,
        Err(e) if system::is_held(&e) => return Lease::Held,
        Err(e) => {
            return Lease::Unknown(Why::new(format!("cannot open {}: {e}", dir.path().join(name).display())));
        }
    };
    match at::try_lock_shared(&file) {
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

/// Waits for a lock file to be free, without keeping anything.
#[derive(Debug)]
pub struct Waiter(system::Waiter);

impl Waiter {
    /// Opens what is waited for.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(dir: &Dir, name: &str) -> io::Result<Self> {
        system::Waiter::open(dir, name).map(Self)
    }

    /// Returns once nobody held it, or where nobody wants to know any more.
    ///
    /// # Errors
    /// It cannot be told.
    pub fn until_free(&self, wanted: impl Fn() -> bool) -> io::Result<()> {
        self.0.until_free(wanted)
    }
}
