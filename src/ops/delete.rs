//! Deleting a run (rules L1, L5, L23): what is proven dead goes, what is alive is stopped first if that was asked, and
//! what is unknown is put aside if that was asked. Nothing erases what is not proven dead.

use super::cleanup::{What, cleanup};
use super::look;
use super::refusal::{Refusal, WayOut};
use super::remove::{self, Ground, NotRemoved, clear, enter, take};
use super::stop::{self, How, StopError};
use crate::run::id::RunId;
use crate::run::journal::{self, Event};
use crate::run::store::ProjectRead;
use crate::run::trash;
use crate::run::write::{RunLock, StoreError};
use crate::verdict::Observation;

/// What became of a run that was to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It is gone.
    Removed,
    /// It was put aside, under this name.
    Quarantined(String),
}

/// Deletes a run that is proven dead. With `unproven` one that is neither proven dead nor seen alive is moved to
/// quarantine.
///
/// # Errors
/// [`NotRemoved`] says where the run is.
pub fn delete(ground: &Ground<'_>, id: &RunId, unproven: bool) -> Result<Deleted, NotRemoved> {
    let lock = enter(ground, id)?;
    match clear(ground, &lock) {
        Ok(cleared) => {
            take(ground, &lock, cleared)?;
            Ok(Deleted::Removed)
        }
        Err(NotRemoved::Refused(refusal)) if unproven && !refusal.is_certain() => {
            put_aside(ground, &lock, &refusal).map(Deleted::Quarantined)
        }
        Err(e) => Err(e),
    }
}

fn put_aside(ground: &Ground<'_>, lock: &RunLock, why: &Refusal) -> Result<String, NotRemoved> {
    let Some(run) = remove::open(ground.project, lock.id())? else {
        return Err(NotRemoved::Gone(lock.id().clone()));
    };
    let proof = look::look(&run).prove_unheld(&run)?;
    let text = why.facts.iter().map(super::refusal::Fact::line).collect::<Vec<_>>().join("; ");
    if let Err(e) = journal::append(run.dir(), &Event::new("delete", "quarantined").text(text)) {
        tracing::debug!("{e}");
    }
    let trashed = trash::take_aside(ground.project, lock, run, proof)?;
    // A keeper may have taken its lease in between, and nobody looks for a live run in quarantine.
    match look::look(trashed.run()).prove_unheld(trashed.run()) {
        Ok(proof) => Ok(trashed.quarantine(ground.project, proof)?),
        Err(refusal) => {
            remove::put_back(trashed, &refusal)?;
            Err(refusal.into())
        }
    }
}

/// Stops a run before an act that would move it, and gives what stands against that act afterwards.
///
/// # Errors
/// Something survived, could not be told, or the stop could not be carried out.
pub fn stop_first(ground: &Ground<'_>, read: &ProjectRead, id: &RunId, how: How) -> Result<(), NotRemoved> {
    let Observation::Known(run) = read.run(id) else { return Err(NotRemoved::Gone(id.clone())) };
    let mux = run.file().known().and_then(|file| (ground.open)(&file.mux).ok());
    let report = stop::stop(ground.project, read, id, how, mux.as_deref(), &|| ()).map_err(|e| match e {
        StopError::NotThere(_) => NotRemoved::Gone(id.clone()),
        // What cannot be read cannot be stopped: the look that follows says so.
        StopError::Store(StoreError::Unreadable(why)) => {
            let mut refusal = Refusal::new();
            refusal.fact(false, why.to_string(), None);
            refusal.way_out(WayOut::Unproven);
            refusal.into()
        }
        StopError::Store(e) | StopError::Unrecorded(e) => NotRemoved::Store(e),
        StopError::Write(e) => NotRemoved::from(e),
    })?;
    let mut refusal = Refusal::new();
    for survivor in report.survived {
        refusal.fact(true, format!("survived the stop ({}):", survivor.why), Some(survivor.process));
    }
    for why in report.unknown {
        refusal.fact(false, why, None);
    }
    if !refusal.is_empty() {
        return Err(refusal.into());
    }
    // A parked window would forbid the removal. That it could not be closed is said by the look that follows.
    cleanup(ground, read, None, What { dry_run: false, only: Some(id) })?;
    Ok(())
}
