//! Settling what an interrupted removal left in `trash/` (rule L19): an erasure that was decided is finished, everything
//! else is put back.

use crate::run::archive;
use crate::run::id::RunId;
use crate::run::store::place;
use crate::run::trash::{self, Doomed, Entry};
use crate::run::write::{ProjectWrite, RunLock, StoreError};
use crate::verdict::Observation;

/// What became of one entry of `trash/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The run is in `runs/` again.
    PutBack(RunId),
    /// Its erasure, decided before, is finished.
    Erased(RunId),
    /// It stays where it is, for this reason.
    Left(RunId, String),
}

/// Settles the entries of one run, whose lock is held.
///
/// # Errors
/// They cannot be listed.
pub fn settle_run(project: &ProjectWrite, lock: &RunLock) -> Result<Vec<Settled>, StoreError> {
    let mine = entries(project)?.into_iter().filter(|e| e.id == *lock.id());
    Ok(mine.filter_map(|entry| settle(project, lock, &entry)).collect())
}

/// Settles all entries of a project, and removes archives that were only begun. One whose run somebody works with is that
/// one's.
///
/// # Errors
/// They cannot be listed.
pub fn settle_all(project: &ProjectWrite) -> Result<Vec<Settled>, StoreError> {
    if let Ok(archives) = project.dir().sub(place::ARCHIVE) {
        archive::sweep(project, None, &archives);
    }
    let mut all = Vec::new();
    for entry in entries(project)? {
        match project.try_lock_run(&entry.id) {
            Ok(Some(lock)) => all.extend(settle(project, &lock, &entry)),
            Ok(None) => {}
            Err(e) => all.push(Settled::Left(entry.id, e.to_string())),
        }
    }
    Ok(all)
}

fn entries(project: &ProjectWrite) -> Result<Vec<Entry>, StoreError> {
    match trash::entries(project.dir(), place::TRASH) {
        Observation::Known(entries) => Ok(entries),
        Observation::Absent => Ok(Vec::new()),
        Observation::Unknown(why) => Err(StoreError::Unreadable(why)),
    }
}

/// `None` where whoever had the lock before has settled it.
fn settle(project: &ProjectWrite, lock: &RunLock, entry: &Entry) -> Option<Settled> {
    let id = entry.id.clone();
    let trash = project.dir().sub(place::TRASH);
    if let Ok(trash) = trash
        && let Observation::Absent = trash.has(&entry.name)
    {
        return None;
    }
    let settled = if entry.erasing {
        match Doomed::take_up(project, lock, entry) {
            Ok(Ok(doomed)) => doomed.erase().map(|()| Settled::Erased(id.clone())).map_err(|e| e.to_string()),
            Ok(Err(held)) => Err(held.to_string()),
            Err(e) => Err(e.to_string()),
        }
    } else {
        trash::put_back(project, lock, entry)
            .map(|()| Settled::PutBack(id.clone()))
            .map_err(|e| e.to_string())
    };
    Some(settled.unwrap_or_else(|why| Settled::Left(id, why)))
}
