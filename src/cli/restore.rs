//! `loopmux restore`.

use super::args::RestoreArgs;
use super::{CliError, Context, ErrorCode, Outcome, removal};
use crate::ops::remove::Ground;
use crate::ops::restore::{From as Source, NotRestored, restorable, restore};
use crate::run::id::RunId;
use crate::run::write::StoreError;
use schemars::JsonSchema;
use serde::Serialize;

/// `data` of `restore --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RestoreReport {
    /// Runs that are among the runs again.
    pub restored: Vec<RestoredRun>,
}

/// A run that is among the runs again.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RestoredRun {
    /// Its id.
    pub run: String,
    /// Where it was.
    pub from: RestoredFrom,
}

/// Where a run was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RestoredFrom {
    /// In quarantine.
    Quarantine,
    /// In its archive.
    Archive,
}

/// Executes the command.
///
/// # Errors
/// There is nothing of that id, or it cannot be brought back.
pub fn execute(ctx: &Context, args: &RestoreArgs) -> Outcome {
    removal::check(std::slice::from_ref(&args.id))?;
    let Some(yard) = removal::enter(ctx)? else { return Err(nothing(&args.id)) };
    let id = which(&args.id, &restorable(yard.project.dir())?)?;
    let open = removal::opener(ctx)?;
    let ground = Ground { project: &yard.project, state: &yard.state, open: &open };
    let from = match restore(&ground, &id).map_err(|e| error(&id, &e))? {
        Source::Quarantine => RestoredFrom::Quarantine,
        Source::Archive => RestoredFrom::Archive,
    };
    let report = RestoreReport { restored: vec![RestoredRun { run: id.to_string(), from }] };
    ctx.out().report(&report, |_| {
        let from = match from {
            RestoredFrom::Quarantine => "from quarantine",
            RestoredFrom::Archive => "from its archive",
        };
        format!("restored      {id}  {from}\n")
    })?;
    Ok(0)
}

/// The one id that a reference means: exactly, else by its beginning or end.
pub(super) fn which(reference: &str, ids: &[RunId]) -> Result<RunId, CliError> {
    if let Some(id) = ids.iter().find(|id| id.as_str() == reference) {
        return Ok(id.clone());
    }
    let part = |id: &&RunId| id.as_str().starts_with(reference) || id.as_str().ends_with(reference);
    let hits: Vec<&RunId> = ids.iter().filter(part).collect();
    match hits[..] {
        [] => Err(nothing(reference)),
        [one] => Ok(one.clone()),
        _ => {
            let error = CliError::new(
                ErrorCode::Ambiguous,
                format!("{} means {} runs", super::page::shown(reference), hits.len()),
            );
            let error = error.hint("say which by its id").detail("reference", reference);
            Err(hits.iter().fold(error, |e, id| e.note(id.as_str())))
        }
    }
}

fn nothing(reference: &str) -> CliError {
    let message =
        format!("there is neither an archive nor a quarantined run {}", super::page::shown(reference));
    CliError::new(ErrorCode::NotFound, message)
        .hint("see: loopmux archive --list, loopmux list --quarantined")
}

fn error(id: &RunId, e: &NotRestored) -> CliError {
    let code = match e {
        NotRestored::There(_) => ErrorCode::RefusedUnknown,
        NotRestored::Nothing(_) => ErrorCode::NotFound,
        NotRestored::Store(StoreError::Busy { .. }) => ErrorCode::Busy,
        NotRestored::Store(StoreError::Unreadable(_)) => ErrorCode::RefusedUnknown,
        NotRestored::Store(_) | NotRestored::Archive(_) => ErrorCode::Io,
    };
    CliError::new(code, format!("run {id} was not restored: {e}"))
}
