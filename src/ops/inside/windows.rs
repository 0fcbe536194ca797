//! Windows: nothing leaves a job, and the lease does not tell who holds it.

use crate::run::store::AttemptRead;
use std::io;
use std::process::{Child, Command};

/// Handles have no names here by which the lease could be found among them. Whoever has it is in the job, whose token
/// tells it.
pub(super) fn holds_lease(_attempt: &AttemptRead) -> bool {
    false
}

/// Nothing that is started from here would be outside the job.
///
/// # Errors
/// Always.
pub(super) fn spawn_outside(_command: &mut Command) -> io::Result<Child> {
    let why =
        "a run cannot be stopped from inside its own window on Windows yet; stop it from another terminal";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}
