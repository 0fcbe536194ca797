//! `loopmux clean`: runs past the retention, and quarantined runs.

use super::args::CleanArgs;
use super::removal::{self, KeptRun, RemovalReport, RemovedRun, Yard};
use super::{CliError, Context, ErrorCode, Outcome, gather, restore};
use crate::ops::archive::archive;
use crate::ops::clean::{Retention, plan};
use crate::ops::delete::stop_first;
use crate::ops::quarantine::{erase, quarantined};
use crate::ops::remove::{Ground, NotRemoved, remove, would};
use crate::ops::stop::How;
use crate::run::files::now_ms;
use crate::run::id::RunId;
use crate::run::store::place;
use std::io::{BufRead, IsTerminal, Write};

/// How many of the newest runs stay where nothing else is asked.
pub const RETAIN: usize = 20;

/// Executes the command.
///
/// # Errors
/// Runs that a guard kept, or that could not be removed; what was done is in the report beside it.
pub fn execute(ctx: &Context, args: &CleanArgs) -> Outcome {
    act(ctx, args).map_err(|e| e.beside(&RemovalReport::default()))
}

fn act(ctx: &Context, args: &CleanArgs) -> Outcome {
    ctx.settings()?;
    removal::check(args.quarantine.as_slice())?;
    let yard = if args.dry_run { removal::look(ctx)? } else { removal::enter(ctx)? };
    let Some(yard) = yard else {
        return match &args.quarantine {
            Some(id) => Err(not_quarantined(id)),
            None => removal::finish(ctx, &RemovalReport::default(), Vec::new()),
        };
    };
    let open = removal::opener(ctx)?;
    let ground = Ground { project: &yard.project, state: &yard.state, open: &open };
    match &args.quarantine {
        Some(reference) => one_of_quarantine(ctx, args, &yard, &ground, reference),
        None => past_retention(ctx, args, &yard, &ground),
    }
}

fn past_retention(ctx: &Context, args: &CleanArgs, yard: &Yard, ground: &Ground<'_>) -> Outcome {
    // With an age alone the age decides.
    let newest = args.retain.unwrap_or(if args.older_than.is_some() { 0 } else { RETAIN });
    let views = gather::runs(&yard.read, None)?;
    let plan = plan(&views, Retention { newest, younger: args.older_than }, now_ms());
    let mut report = RemovalReport::default();
    let kept = plan.kept.into_iter().map(|(id, reason)| KeptRun {
        run: id.to_string(),
        reason,
        code: None,
        holders: Vec::new(),
    });
    report.kept.extend(kept);
    let mut errors = Vec::new();
    let progress = Progress::new(ctx, plan.past.len());
    for (n, id) in plan.past.iter().enumerate() {
        progress.at(n, id);
        if let Err(e) = one(args, ctx, yard, ground, id, &mut report) {
            errors.push(report.keep(id, if args.hard { "deleted" } else { "archived" }, &e));
        }
    }
    progress.done();
    removal::finish_clean(ctx, &report, errors)
}

fn one(
    args: &CleanArgs,
    ctx: &Context,
    yard: &Yard,
    ground: &Ground<'_>,
    id: &RunId,
    report: &mut RemovalReport,
) -> Result<(), NotRemoved> {
    if args.dry_run {
        would(ground, id)?;
        let would = if args.hard { &mut report.would_remove } else { &mut report.would_archive };
        would.push(RemovedRun { run: id.to_string() });
        return Ok(());
    }
    if args.force && !runs_around(yard, id) {
        let grace = ctx.settings().map_or(std::time::Duration::from_secs(5), |s| s.grace.value);
        stop_first(ground, &yard.read, id, How { grace, force: false, graceful: false })?;
    }
    if args.hard {
        remove(ground, id)?;
        report.removed.push(RemovedRun { run: id.to_string() });
    } else {
        let done = archive(ground, id)?;
        report.add_archived(id, done);
    }
    Ok(())
}

/// A clean from inside a run leaves that run alone: it is live, and the guard says so.
fn runs_around(yard: &Yard, id: &RunId) -> bool {
    match yard.read.run(id) {
        crate::verdict::Observation::Known(run) => crate::ops::inside::is_inside(&run),
        crate::verdict::Observation::Absent | crate::verdict::Observation::Unknown(_) => false,
    }
}

fn one_of_quarantine(
    ctx: &Context,
    args: &CleanArgs,
    yard: &Yard,
    ground: &Ground<'_>,
    reference: &str,
) -> Outcome {
    let entries = quarantined(yard.project.dir())?;
    let ids: Vec<RunId> = entries.iter().map(|e| e.id.clone()).collect();
    let id = restore::which(reference, &ids).map_err(|e| match e.code {
        ErrorCode::NotFound => not_quarantined(reference),
        _ => e,
    })?;
    let mut report = RemovalReport::default();
    if args.dry_run {
        report.would_remove.push(RemovedRun { run: id.to_string() });
        return removal::finish_clean(ctx, &report, Vec::new());
    }
    let dir =
        entries.iter().find(|e| e.id == id).map(|e| yard.read.path().join(place::QUARANTINE).join(&e.name));
    if !args.yes && !confirmed(ctx, &id, dir.as_deref())? {
        let message = format!("not confirmed: run {id} stays in quarantine");
        return Err(CliError::new(ErrorCode::RefusedUnknown, message));
    }
    let mut errors = Vec::new();
    match erase(ground, &id) {
        Ok(()) => report.removed.push(RemovedRun { run: id.to_string() }),
        Err(e) => errors.push(report.keep(&id, "erased", &e)),
    }
    removal::finish_clean(ctx, &report, errors)
}

/// Asks a person; where there is none, `--yes` must say it.
fn confirmed(ctx: &Context, id: &RunId, dir: Option<&std::path::Path>) -> Result<bool, CliError> {
    let (mut input, mut asks) = (std::io::stdin().lock(), std::io::stderr());
    if ctx.out().json() || !std::io::stdin().is_terminal() || !asks.is_terminal() {
        let message = format!("run {id} was never proven dead, and is erased only after a confirmation");
        return Err(CliError::new(ErrorCode::Usage, message).hint("to confirm it:  --yes"));
    }
    let dir = dir.map(|d| format!(" ({})", d.display())).unwrap_or_default();
    let question = format!("run {id}{dir} was never proven dead; erase it for ever? [y/N] ");
    asks.write_all(question.as_bytes()).and_then(|()| asks.flush())?;
    let mut answer = String::new();
    input
        .read_line(&mut answer)
        .map_err(|e| CliError::new(ErrorCode::Io, format!("cannot read an answer: {e}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn not_quarantined(reference: &str) -> CliError {
    let message = format!("there is no quarantined run {}", super::page::shown(reference));
    CliError::new(ErrorCode::NotFound, message).hint("see: loopmux list --quarantined")
}

/// One line that changes, on a terminal and nowhere else.
struct Progress {
    total: Option<usize>,
}

impl Progress {
    fn new(ctx: &Context, total: usize) -> Self {
        let shown = !ctx.out().json() && !ctx.global().quiet && std::io::stderr().is_terminal();
        Self { total: shown.then_some(total) }
    }

    fn at(&self, n: usize, id: &RunId) {
        if let Some(total) = self.total {
            self.say(&format!("\r\x1b[K{}/{total} {id}", n + 1));
        }
    }

    fn done(&self) {
        if self.total.is_some() {
            self.say("\r\x1b[K");
        }
    }

    fn say(&self, text: &str) {
        // A terminal that went away does not stop the work.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
