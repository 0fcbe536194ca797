//! An act on a run from inside that run (rule L17): it would wait for itself, or die with the window before it
//! reports. So it goes on in a copy of itself that has left the window: a session of its own, none of our
//! descriptors, none of the run's names; and it registers with the keeper, which does not wait for it.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

use crate::at;
use crate::observe::attempt_on_disk;
use crate::process;
use crate::run::dir::{Dir, WriteError};
use crate::run::files::{HandoverFile, SCHEMA, name};
use crate::run::store::{AttemptRead, RunRead};
use crate::verdict::Observation;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Set in the copy: it has left already.
const LEFT: &str = "LOOPMUX_LEFT_WINDOW";

/// Names of the run that the copy must not carry: it would be found by them, and ended.
const NAMES: [&str; 4] = ["LOOPMUX_RUN", "LOOPMUX_ATTEMPT", "LOOPMUX_TOKEN", "LOOPMUX_RESULT"];

/// The copy that goes on outside.
#[derive(Debug)]
pub struct Copy {
    /// Where its report goes.
    pub file: PathBuf,
    child: Child,
}

impl Copy {
    /// Waits for the copy, if this process lives that long, and gives what it wrote and its exit code.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn wait(mut self) -> io::Result<(String, u8)> {
        let status = self.child.wait()?;
        let code = status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(1);
        Ok((std::fs::read_to_string(&self.file)?, code))
    }
}

/// Leaves the window if this process is inside one of `runs`; `None` where it is outside, or is the copy, which
/// then registers with the keepers.
///
/// # Errors
/// The copy could not be started, or could not register; nothing was ended.
pub fn leave<'r>(
    reports: &Path,
    act: &str,
    runs: impl Iterator<Item = &'r RunRead>,
) -> Result<Option<Copy>, LeaveError> {
    let copy = std::env::var_os(LEFT).is_some();
    let mut inside = None;
    for run in runs {
        for attempt in attempts(run) {
            if !copy && surrounds(&attempt) {
                inside = Some(run.id().clone());
            } else if copy && is_ancestor(&attempt) {
                register(attempt.dir())?;
            }
        }
    }
    let Some(id) = inside else { return Ok(None) };
    let file = reports.join(format!("{id}.{act}.txt"));
    let start = |source| LeaveError::Start { file: file.clone(), source };
    std::fs::DirBuilder::new().recursive(true).create(reports).map_err(start)?;
    let out = at::new_private_file().open(&file).map_err(start)?;
    let mut command = Command::new(std::env::current_exe().map_err(start)?);
    command.args(std::env::args_os().skip(1)).env(LEFT, "1").stdin(Stdio::null());
    command.stdout(out.try_clone().map_err(start)?).stderr(out);
    for name in NAMES {
        command.env_remove(name);
    }
    let child = system::spawn_outside(&mut command).map_err(start)?;
    Ok(Some(Copy { file, child }))
}

/// Whether this process is inside one of the attempts of a run.
pub fn is_inside(run: &RunRead) -> bool {
    attempts(run).iter().any(surrounds)
}

/// A copy that could not leave.
#[derive(Debug, thiserror::Error)]
pub enum LeaveError {
    /// It was not started.
    #[error("cannot go on outside this window (report in {}): {source}", .file.display())]
    Start {
        /// Where its report would go.
        file: PathBuf,
        /// What came back.
        source: io::Error,
    },
    /// It could not tell the keeper.
    #[error("cannot register with the keeper: {0}")]
    Register(#[from] WriteError),
}

fn attempts(run: &RunRead) -> Vec<AttemptRead> {
    let numbers = match run.attempt_numbers() {
        Observation::Known(numbers) => numbers,
        Observation::Absent | Observation::Unknown(_) => Vec::new(),
    };
    numbers
        .into_iter()
        .filter_map(|n| match run.attempt(n) {
            Observation::Known(attempt) => Some(attempt),
            Observation::Absent | Observation::Unknown(_) => None,
        })
        .collect()
}

/// Ancestry is exact while the keeper lives; token and descriptor are for when it does not.
fn surrounds(attempt: &AttemptRead) -> bool {
    is_ancestor(attempt) || carries_token(attempt) || system::holds_lease(attempt)
}

fn is_ancestor(attempt: &AttemptRead) -> bool {
    let view = attempt_on_disk(attempt);
    view.keeper().is_some_and(|keeper| process::ancestors().contains(keeper))
}

fn carries_token(attempt: &AttemptRead) -> bool {
    match (std::env::var("LOOPMUX_TOKEN"), attempt.launch()) {
        (Ok(mine), Observation::Known(launch)) => mine == launch.tags.token,
        _ => false,
    }
}

fn register(attempt: &Dir) -> Result<(), WriteError> {
    attempt.replace(name::HANDOVER, &HandoverFile { schema: SCHEMA, stopper: process::current() })
}
