//! Taking away what somebody who was killed left behind: files that have no name yet, and environments with their
//! secrets.

use super::environment;
use crate::observe::{AttemptView, RunView};
use crate::run::dir::WriteError;
use crate::run::files::name;
use crate::run::store::{AttemptRead, RunRead};
use crate::run::write::{ProjectWrite, StoreError};
use crate::verdict::{Lease, Life, Observation};

/// What only a keeper writes. Whoever explains a hang-up may outlive the keeper, so its file is not among them.
const A_KEEPERS: [&str; 6] =
    [name::START, name::SPAWNED, name::EXIT, name::REFUSED, name::LEFTOVERS, name::EMPTIED];

/// Removes the environment of an attempt that has ended, by proof, and the unfinished files of a keeper that is gone.
/// What cannot be removed stays for the removal of the run.
pub fn tidy(read: &AttemptRead, view: &AttemptView) {
    if !view.verdict.is_end() {
        return;
    }
    let nobody_writes = view.evidence.keeper == Life::Gone && view.evidence.lease == Lease::Free;
    let unfinished =
        || if nobody_writes { read.dir().remove_unfinished(&A_KEEPERS) } else { Ok::<(), WriteError>(()) };
    if let Err(e) = environment::forget(read.dir()).and_then(|()| unfinished()) {
        tracing::debug!("left where it is: {e}");
    }
}

/// The same for all attempts of a run; and where no engine drives it, the environments of engines that never came to
/// theirs. A keeper that comes late starts nothing without one.
///
/// # Errors
/// The run lock is held, and something is there to be removed.
pub fn tidy_run(project: &ProjectWrite, run: &RunRead, view: &RunView) -> Result<(), StoreError> {
    for attempt in view.attempts.known().map_or(&[][..], Vec::as_slice) {
        if let Observation::Known(read) = run.attempt(attempt.n) {
            tidy(&read, attempt);
        }
    }
    let left = environment::of_engines(run.dir())?;
    if left.is_empty() {
        return Ok(());
    }
    let _lock = project.lock_run(run.id())?;
    // Under the run lock no engine can begin: what is free now stays free.
    if run.engine_lock() == Lease::Free {
        for dir in left {
            environment::forget(&dir)?;
        }
    }
    Ok(())
}
