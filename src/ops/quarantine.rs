//! Erasing a quarantined run (rule L23): a person has confirmed it, and a look once more sees nobody who holds it. What
//! cannot be known of it, its files say, stays unknown: that is what the person decides.

use super::look;
use super::refusal::Refusal;
use super::remove::{Ground, NotRemoved, sub};
use crate::run::id::RunId;
use crate::run::store::place;
use crate::run::trash::{self, Doomed, Entry};
use crate::run::tree;
use crate::run::write::StoreError;
use crate::verdict::Observation;

/// The quarantined runs of a project.
///
/// # Errors
/// They cannot be listed.
pub fn quarantined(project: &crate::run::dir::Dir) -> Result<Vec<Entry>, StoreError> {
    match trash::entries(project, place::QUARANTINE) {
        Observation::Known(entries) => Ok(entries),
        Observation::Absent => Ok(Vec::new()),
        Observation::Unknown(why) => Err(StoreError::Unreadable(why)),
    }
}

/// Erases a quarantined run. The caller has the person's confirmation.
///
/// # Errors
/// Something is seen to hold it, or lies in it that is mounted there.
pub fn erase(ground: &Ground<'_>, id: &RunId) -> Result<(), NotRemoved> {
    let project = ground.project;
    let lock = project.lock_run_or_make(id)?;
    let entry = quarantined(project.dir())?.into_iter().find(|e| e.id == *id);
    let Some(entry) = entry else { return Err(NotRemoved::Gone(id.clone())) };
    let run = trash::open(project.dir(), place::QUARANTINE, &entry)?;
    let proof = look::look(&run).prove_unheld(&run)?;
    // Whoever else owns something in it was told to the person who confirmed. What is mounted in it is not its.
    if let Err(e) = tree::survey(run.dir(), &sub(project, place::QUARANTINE)?) {
        let mut refusal = Refusal::new();
        refusal.fact(false, e.to_string(), None);
        return Err(refusal.into());
    }
    let doomed = Doomed::from_quarantine(project, &lock, &entry, run, proof)?;
    doomed.erase().map_err(NotRemoved::PartlyErased)
}
