//! Unix: a lock belongs to an open file, and to whoever inherited a descriptor of it.

use super::{Dir, File, Lease, RunId, TakeError, io, probe, take};

pub(super) const LEASE_IS_MADE_AT_LAUNCH: bool = true;

pub(super) fn take_lease(dir: &Dir, name: &str) -> Result<File, TakeError> {
    let file = dir.open_or_create_lock(name)?;
    take(&file)?;
    Ok(file)
}

/// The lock is the directory's own.
pub(super) fn open_maker(staged: &Dir, _locks: &Dir, _id: &RunId) -> io::Result<File> {
    staged.open_lock(".")
}

pub(super) fn probe_maker(staged: &Dir, _locks: &Dir, _id: &RunId) -> Lease {
    probe(staged, ".")
}

/// Opening a file tells nothing about who has it locked.
pub(super) fn is_held(_e: &io::Error) -> bool {
    false
}

#[derive(Debug)]
pub(super) struct Waiter(File);

impl Waiter {
    pub(super) fn open(dir: &Dir, name: &str) -> io::Result<Self> {
        dir.open_lock(name).map(Self)
    }

    /// Sleeps in the kernel. It takes the lock shared, for a moment, and gives it up.
    pub(super) fn until_free(&self, _wanted: impl Fn() -> bool) -> io::Result<()> {
        self.0.lock_shared()
    }
}
