//! Bringing a run back, from quarantine or from its archive (rule L19). An archive goes only once its run is there again
//! and was compared with it.

use super::recover;
use super::remove::{self, Ground, NotRemoved, sub};
use crate::run::archive::{self, ArchiveError};
use crate::run::id::RunId;
use crate::run::journal::{self, Event};
use crate::run::store::place;
use crate::run::trash::{self, Entry};
use crate::run::write::{ProjectWrite, RunLock, StoreError};
use crate::verdict::Observation;

/// Where a run was brought back from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// From quarantine, as it was.
    Quarantine,
    /// From its archive.
    Archive,
}

/// A run that was not brought back.
#[derive(Debug, thiserror::Error)]
pub enum NotRestored {
    /// It is among the runs already.
    #[error("run {0} is there already, and differs from what would be restored")]
    There(RunId),
    /// Neither an archive nor a quarantined run has that id.
    #[error("there is neither an archive nor a quarantined run {0}")]
    Nothing(RunId),
    /// The state directory could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The archive cannot be unpacked. It is where it was.
    #[error("{0}")]
    Archive(ArchiveError),
}

/// The ids of everything that could be brought back.
///
/// # Errors
/// They cannot be listed.
pub fn restorable(project: &crate::run::dir::Dir) -> Result<Vec<RunId>, StoreError> {
    let mut ids: Vec<RunId> = Vec::new();
    match trash::entries(project, place::QUARANTINE) {
        Observation::Known(entries) => ids.extend(entries.into_iter().map(|e| e.id)),
        Observation::Absent => {}
        Observation::Unknown(why) => return Err(StoreError::Unreadable(why)),
    }
    match archive::list(project) {
        Observation::Known(archives) => ids.extend(archives.into_iter().map(|a| a.id)),
        Observation::Absent => {}
        Observation::Unknown(why) => return Err(StoreError::Unreadable(why)),
    }
    ids.sort();
    ids.dedup();
    Ok(ids)
}

/// Brings a run back.
///
/// # Errors
/// [`NotRestored`]; what would have been restored is where it was.
pub fn restore(ground: &Ground<'_>, id: &RunId) -> Result<From, NotRestored> {
    let project = ground.project;
    let lock = project.lock_run_or_make(id)?;
    recover::settle_run(project, &lock)?;
    let from = match quarantined(project, id)? {
        Some(entry) => {
            if there(project, &lock)? {
                return Err(NotRestored::There(id.clone()));
            }
            trash::restore(project, &lock, &entry)?;
            From::Quarantine
        }
        None => {
            unpack(ground, &lock)?;
            From::Archive
        }
    };
    if let Ok(Some(run)) = remove::open(project, id) {
        let text = match from {
            From::Quarantine => "from quarantine",
            From::Archive => "from its archive",
        };
        if let Err(e) = journal::append(run.dir(), &Event::new("restore", "restored").text(text)) {
            tracing::debug!("{e}");
        }
    }
    Ok(from)
}

fn unpack(ground: &Ground<'_>, lock: &RunLock) -> Result<(), NotRestored> {
    let (project, id) = (ground.project, lock.id());
    let opened = archive::open(project.dir(), id).map_err(NotRestored::Archive)?;
    let Some(mut opened) = opened else { return Err(NotRestored::Nothing(id.clone())) };
    archive::sweep(project, Some(lock), &sub(project, place::ARCHIVE)?);
    if there(project, lock)? {
        // A restore that was interrupted before it removed the archive, or an archive before it removed the run.
        let run = match remove::open(project, id) {
            Ok(Some(run)) => run,
            Ok(None) | Err(_) => return Err(NotRestored::There(id.clone())),
        };
        match opened.compare(&run, &sub(project, place::RUNS)?) {
            Ok(()) => {}
            Err(ArchiveError::Differs { .. }) => return Err(NotRestored::There(id.clone())),
            Err(e) => return Err(NotRestored::Archive(e)),
        }
    } else {
        opened.unpack(project, lock).map_err(NotRestored::Archive)?;
    }
    opened.remove("archive.unlink").map_err(NotRestored::Archive)
}

/// The quarantined run of that id. There is one at most: a run that is put aside is nowhere else.
fn quarantined(project: &ProjectWrite, id: &RunId) -> Result<Option<Entry>, NotRestored> {
    match trash::entries(project.dir(), place::QUARANTINE) {
        Observation::Known(entries) => Ok(entries.into_iter().find(|e| e.id == *id)),
        Observation::Absent => Ok(None),
        Observation::Unknown(why) => Err(StoreError::Unreadable(why).into()),
    }
}

fn there(project: &ProjectWrite, lock: &RunLock) -> Result<bool, NotRestored> {
    match sub(project, place::RUNS)?.has(lock.id().as_str()) {
        Observation::Known(()) => Ok(true),
        Observation::Absent => Ok(false),
        Observation::Unknown(why) => Err(StoreError::Unreadable(why).into()),
    }
}

impl std::convert::From<NotRemoved> for NotRestored {
    fn from(e: NotRemoved) -> Self {
        match e {
            NotRemoved::Store(e) => Self::Store(e),
            other => Self::Store(StoreError::Unreadable(crate::verdict::Why::new(other.to_string()))),
        }
    }
}
