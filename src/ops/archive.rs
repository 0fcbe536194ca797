//! Archiving a run (rule L19): the archive is written, synced, read back and compared while the run is where it was, and
//! gets its name; only then the run is removed, by the same steps as a deleted one. Whoever is killed in between leaves
//! the run, or the run and a good archive, and the next archive goes on from there.

use super::remove::{Cleared, Ground, NotRemoved, clear, enter, sub, take};
use crate::run::archive::{self, ArchiveError, Opened};
use crate::run::id::RunId;
use crate::run::store::place;
use crate::run::write::RunLock;
use std::path::PathBuf;

/// A run that is in an archive, and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archived {
    /// The archive.
    pub file: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of the archive, in hex digits.
    pub sha256: String,
}

/// Archives a run that is proven dead.
///
/// # Errors
/// [`NotRemoved`] says where the run is.
pub fn archive(ground: &Ground<'_>, id: &RunId) -> Result<Archived, NotRemoved> {
    let lock = enter(ground, id)?;
    let cleared = clear(ground, &lock)?;
    let (mut opened, made) = in_archive(ground, &lock, &cleared).map_err(not_archived)?;
    let (bytes, sha256) = opened.digest().map_err(not_archived)?;
    let file = opened.path().to_owned();
    match take(ground, &lock, cleared) {
        Ok(()) => Ok(Archived { file, bytes, sha256 }),
        Err(e) => {
            if let NotRemoved::Refused(_) = e
                && made
            {
                // The run is where it was, and may go on changing: an archive of it would be in the way of the next.
                opened.remove("archive.withdraw").map_err(not_archived)?;
            }
            Err(e)
        }
    }
}

/// The archive of the run as it is now, and whether it was made just now: one that an interrupted archive has left is
/// as good, if it holds the same.
fn in_archive(
    ground: &Ground<'_>,
    lock: &RunLock,
    cleared: &Cleared,
) -> Result<(Opened, bool), ArchiveError> {
    let runs = sub(ground.project, place::RUNS)?;
    match archive::open(ground.project.dir(), lock.id())? {
        Some(mut there) => {
            there.compare(&cleared.run, &runs)?;
            Ok((there, false))
        }
        None => Ok((archive::write(ground.project, lock, &cleared.run, &cleared.entries)?, true)),
    }
}

fn not_archived(e: ArchiveError) -> NotRemoved {
    match e {
        ArchiveError::Store(e) => NotRemoved::Store(e),
        ArchiveError::Tree(e) => NotRemoved::Tree(e),
        e @ ArchiveError::Special(_) => {
            NotRemoved::NotArchived(format!("{e}; loopmux delete removes the run without an archive"))
        }
        e @ (ArchiveError::Differs { .. } | ArchiveError::Foreign { .. }) => {
            NotRemoved::NotArchived(format!("{e}; an archive is never overwritten: move that file away"))
        }
        e @ ArchiveError::File { .. } => NotRemoved::NotArchived(e.to_string()),
    }
}
