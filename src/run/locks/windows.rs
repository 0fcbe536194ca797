//! Windows: a lease is a file that was opened without sharing it. Locks proper are not inherited here, and do for the
//! rest.

use super::{Dir, File, Lease, RunId, TakeError, at, io, probe};
use std::ffi::OsStr;
use std::time::Duration;

/// An existing file could not be opened while somebody looks at it; a new one is nobody else's.
pub(super) const LEASE_IS_MADE_AT_LAUNCH: bool = false;

/// How often a lease is looked at by whoever waits for it: nothing here waits for a file to be shared again.
const TURN: Duration = Duration::from_millis(20);

pub(super) fn take_lease(dir: &Dir, name: &str) -> Result<File, TakeError> {
    match dir.at().lease(OsStr::new(name)) {
        Ok(file) => Ok(file),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(TakeError::Held),
        Err(e) => Err(e.into()),
    }
}

/// A directory has no lock here, and an open file in it would hold it in place: the lock lies beside the run lock.
pub(super) fn open_maker(_staged: &Dir, locks: &Dir, id: &RunId) -> io::Result<File> {
    locks.open_or_create_lock(&maker(id))
}

/// A missing one is nobody's: whoever stages takes it before anything else.
pub(super) fn probe_maker(_staged: &Dir, locks: &Dir, id: &RunId) -> Lease {
    match probe(locks, &maker(id)) {
        Lease::NoFile => Lease::Free,
        other => other,
    }
}

fn maker(id: &RunId) -> String {
    format!("{id}.maker")
}

pub(super) fn is_held(e: &io::Error) -> bool {
    at::is_held(e)
}

#[derive(Debug)]
pub(super) struct Waiter {
    dir: Dir,
    name: String,
}

impl Waiter {
    pub(super) fn open(dir: &Dir, name: &str) -> io::Result<Self> {
        Ok(Self { dir: dir.sub(".")?, name: name.to_owned() })
    }

    pub(super) fn until_free(&self, wanted: impl Fn() -> bool) -> io::Result<()> {
        while wanted() {
            match probe(&self.dir, &self.name) {
                Lease::Free => return Ok(()),
                // Not there yet: its keeper makes it.
                Lease::Held | Lease::NoFile => std::thread::sleep(TURN),
                Lease::Unknown(why) => return Err(io::Error::other(why.to_string())),
            }
        }
        Ok(())
    }
}
