//! Giving up a launch that is not known to have started (rule L14): the marker first, then a conditional kill,
//! then another look. Only that look says whether it started after all.

use super::end::kill_window;
use super::tidy::tidy;
use crate::observe::{AttemptView, attempt_on_disk};
use crate::run::dir::WriteError;
use crate::run::files::name;
use crate::run::store::AttemptRead;
use crate::verdict::Verdict;
use loopmux_mux::Multiplexer;

/// Gives the launch up. A keeper that took the lease before the marker was there may still start: the verdict
/// that is returned then says so, and the caller ends the attempt like any other.
///
/// # Errors
/// The marker cannot be written; nothing was given up then.
pub fn give_up(read: &AttemptRead, mux: Option<&dyn Multiplexer>) -> Result<AttemptView, WriteError> {
    match read.dir().create_empty(name::CANCELLED) {
        Ok(_) | Err(WriteError::Exists(_)) => {}
        Err(e) => return Err(e),
    }
    let view = attempt_on_disk(read);
    if let Some(mux) = mux
        && matches!(view.verdict, Verdict::Launching | Verdict::NeverStarted { .. })
    {
        // Whatever it answers: a killed client's request may still be carried out later, and the keeper then
        // finds the marker.
        let reply = kill_window(read, &view, mux);
        tracing::debug!("the window of the launch that was given up: {reply:?}");
    }
    let view = attempt_on_disk(read);
    tidy(read, &view);
    Ok(view)
}
