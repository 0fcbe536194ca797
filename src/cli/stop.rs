//! `loopmux stop`.

use super::args::StopArgs;
use super::{CliError, Context, ErrorCode, Outcome, page, removal};
use crate::backends;
use crate::ops::end::Survivor;
use crate::ops::inside;
use crate::ops::stop::{How, Report, StopError, stop};
use crate::run::write::{ProjectWrite, StoreError};
use schemars::JsonSchema;
use serde::Serialize;

/// `data` of the report.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct StopReport {
    /// The runs that were asked to stop, with their status now.
    pub runs: Vec<StoppedRun>,
    /// Whoever was alive and is gone.
    pub gone: Vec<ProcessLine>,
    /// Whoever is still alive.
    pub survived: Vec<ProcessLine>,
    /// What could not be told.
    pub unknown: Vec<UnknownLine>,
}

/// One run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StoppedRun {
    /// Its id.
    pub id: String,
    /// Its status now.
    pub status: crate::verdict::Status,
    /// It was over before.
    pub already: bool,
}

/// One process.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProcessLine {
    /// The run.
    pub run: String,
    /// The process.
    pub pid: u32,
    /// Its command line.
    pub command: String,
    /// Why it counts, or why it could not be ended.
    pub why: String,
}

/// Something that could not be told.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UnknownLine {
    /// The run.
    pub run: String,
    /// What.
    pub why: String,
}

/// Executes the command.
///
/// # Errors
/// What went wrong, with the contract's code.
pub fn execute(ctx: &Context, args: &StopArgs) -> Outcome {
    let settings = ctx.settings()?;
    removal::check(&args.runs)?;
    removal::enter(ctx)?;
    let targets = args.runs.iter().map(|r| ctx.run(r)).collect::<Result<Vec<_>, _>>()?;
    let store = ctx.write_store()?;
    let grace = args.grace.unwrap_or(settings.grace.value);
    let how = How { grace, force: args.force, graceful: args.graceful };
    // A stop from inside one of these runs would wait for itself, or die before it reports.
    if let Some((read, _)) = targets.first()
        && let Some(copy) =
            inside::leave(&read.path().join("reports"), "stop", targets.iter().map(|(_, run)| run))
                .map_err(|e| CliError::new(ErrorCode::Io, e.to_string()))?
    {
        return from_copy(ctx, copy);
    }
    let mut report = StopReport::default();
    let mut failed: Option<CliError> = None;
    for (read, run) in &targets {
        let id = run.id();
        let mux = match run.file().known() {
            Some(file) => backends::open(settings, &file.mux)
                .inspect_err(|why| {
                    ctx.out().note(&format!("warning: {why}; the window is left to its program"))
                })
                .ok(),
            None => None,
        };
        let begins = || {
            if !ctx.out().json() {
                ctx.out().note(&format!("stopping {id}"));
            }
        };
        let project: ProjectWrite = store.project_by_key(read.key())?;
        match stop(&project, read, id, how, mux.as_deref(), &begins) {
            Ok(one) => add(&mut report, one),
            Err(e) => failed = Some(from_stop(&e, id.as_str())),
        }
    }
    if let Some(error) = failed {
        if !ctx.out().json() {
            ctx.out().bytes(text(&report).as_bytes())?;
        }
        return Err(error.with_data(&report));
    }
    ctx.out().report(&report, text)?;
    Ok(match (report.survived.is_empty(), report.unknown.is_empty()) {
        (true, true) => 0,
        (false, _) => ErrorCode::Survived.exit(),
        (true, false) => ErrorCode::Unknown.exit(),
    })
}

/// The copy goes on outside. If this process outlives the stop, it passes the copy's report on.
fn from_copy(ctx: &Context, copy: inside::Copy) -> Outcome {
    ctx.out().note(&format!("stopping the run of this window; the result goes to {}", copy.file.display()));
    let file = copy.file.clone();
    let (text, code) = copy
        .wait()
        .map_err(|e| CliError::new(ErrorCode::Io, format!("cannot read {}: {e}", file.display())))?;
    ctx.out().bytes(text.as_bytes())?;
    Ok(code)
}

fn add(report: &mut StopReport, one: Report) {
    let run = one.run.to_string();
    let line = |s: Survivor| ProcessLine {
        run: run.clone(),
        pid: s.process.id.pid,
        command: s.process.command,
        why: s.why,
    };
    report.gone.extend(one.gone.into_iter().map(line));
    let line = |s: Survivor| ProcessLine {
        run: run.clone(),
        pid: s.process.id.pid,
        command: s.process.command,
        why: s.why,
    };
    report.survived.extend(one.survived.into_iter().map(line));
    report.unknown.extend(one.unknown.into_iter().map(|why| UnknownLine { run: run.clone(), why }));
    report.runs.push(StoppedRun { id: run, status: one.status, already: one.already });
}

fn text(report: &StopReport) -> String {
    let mut out = String::new();
    // Of several runs, each line says which one it is about.
    let of = |run: &str| if report.runs.len() > 1 { format!("{run}  ") } else { String::new() };
    for run in &report.runs {
        let word = if run.already { "was over already" } else { "now" };
        out.push_str(&format!("{}  {word}: {}\n", run.id, run.status));
    }
    for (title, lines) in [("gone", &report.gone), ("survived", &report.survived)] {
        for line in lines {
            let command = page::shown(&line.command);
            let (of, why) = (of(&line.run), page::shown(&line.why));
            out.push_str(&format!("  {title:<9} {of}{:<8} `{command}` ({why})\n", line.pid));
        }
    }
    for line in &report.unknown {
        out.push_str(&format!("  unknown   {}{}\n", of(&line.run), page::shown(&line.why)));
    }
    let mut alive: Vec<&str> = report.survived.iter().map(|line| line.run.as_str()).collect();
    alive.dedup();
    if !alive.is_empty() {
        out.push_str(&format!(
            "  next      end the survivors by hand, or loopmux stop --force {}\n",
            alive.join(" ")
        ));
    }
    out
}

fn from_stop(e: &StopError, id: &str) -> CliError {
    let code = match e {
        StopError::NotThere(_) => ErrorCode::NotFound,
        StopError::Store(StoreError::Busy { .. }) => ErrorCode::Busy,
        StopError::Store(StoreError::Newer(_)) => ErrorCode::UnsupportedSchema,
        StopError::Store(_) | StopError::Write(_) | StopError::Unrecorded(_) => ErrorCode::Io,
    };
    let what = match e {
        StopError::Unrecorded(_) => "everything of it has ended, and its record could not be written",
        _ => "it could not be stopped",
    };
    CliError::new(code, format!("run {id}: {what}: {e}"))
}
