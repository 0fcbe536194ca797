//! `loopmux delete`.

use super::args::DeleteArgs;
use super::removal::{self, Named, QuarantinedRun, RemovalReport, RemovedRun};
use super::{Context, Outcome};
use crate::ops::delete::{Deleted, delete, stop_first};
use crate::ops::remove::Ground;
use crate::ops::stop::How;
use crate::run::id::RunId;
use crate::run::store::place;

/// Executes the command.
///
/// # Errors
/// What was not deleted, and why; what was is in the report beside it.
pub fn execute(ctx: &Context, args: &DeleteArgs) -> Outcome {
    act(ctx, args).map_err(|e| e.beside(&RemovalReport::default()))
}

fn act(ctx: &Context, args: &DeleteArgs) -> Outcome {
    let settings = ctx.settings()?;
    removal::check(&args.runs)?;
    let yard = removal::enter(ctx)?;
    let named = removal::named(ctx, yard.as_ref(), &args.runs)?;
    let mut report = RemovalReport::default();
    let Some(yard) = yard else { return removal::finish(ctx, &report, Vec::new()) };
    let runs: Vec<RunId> = named
        .iter()
        .filter_map(|n| match n {
            Named::Run(id) => Some(id.clone()),
            Named::Finished(_) => None,
        })
        .collect();
    if args.force
        && let Some(code) = removal::leave_window(ctx, &yard, "delete", &runs)?
    {
        return Ok(code);
    }
    let open = removal::opener(ctx)?;
    let ground = Ground { project: &yard.project, state: &yard.state, open: &open };
    let how = How { grace: args.grace.unwrap_or(settings.grace.value), force: false, graceful: false };
    let mut errors = Vec::new();
    for one in named {
        let id = match one {
            Named::Finished(id) => {
                report.removed.push(RemovedRun { run: id.to_string() });
                continue;
            }
            Named::Run(id) => id,
        };
        let stopped = if args.force { stop_first(&ground, &yard.read, &id, how) } else { Ok(()) };
        match stopped.and_then(|()| delete(&ground, &id, args.unproven)) {
            Ok(Deleted::Removed) => report.removed.push(RemovedRun { run: id.to_string() }),
            Ok(Deleted::Quarantined(name)) => {
                let dir = yard.read.path().join(place::QUARANTINE).join(name).display().to_string();
                report.quarantined.push(QuarantinedRun { run: id.to_string(), dir });
            }
            Err(e) => errors.push(report.keep(&id, "deleted", &e)),
        }
    }
    removal::finish(ctx, &report, errors)
}
