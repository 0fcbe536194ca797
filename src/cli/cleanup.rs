//! `loopmux cleanup`.

use super::args::CleanupArgs;
use super::page::shown;
use super::{CliError, Context, ErrorCode, Outcome, removal};
use crate::backends;
use crate::ops::cleanup::{self, What};
use crate::ops::remove::Ground;
use crate::run::files::MuxRef;
use loopmux_mux::ReplyClass;
use schemars::JsonSchema;
use serde::Serialize;

/// `data` of `cleanup --json`.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CleanupReport {
    /// Windows that are gone, by a fresh look.
    pub ended: Vec<WindowLine>,
    /// With `--dry-run`: windows that would be ended.
    pub would_end: Vec<WindowLine>,
    /// Mux sessions that were left alone.
    pub kept: Vec<KeptLine>,
    /// Windows that are still there.
    pub survived: Vec<WindowLine>,
    /// Windows of which nobody can tell.
    pub unverifiable: Vec<KeptLine>,
}

/// A window of ours.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WindowLine {
    /// Its mux session.
    pub session: String,
    /// Its pane.
    pub pane: String,
    /// The socket of its server.
    pub socket: String,
    /// Its run.
    pub run: String,
    /// What it is.
    pub what: String,
}

/// A mux session that was left alone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KeptLine {
    /// Its name.
    pub session: String,
    /// The socket of its server.
    pub socket: String,
    /// The run that it is of, or whose name it bears.
    pub run: Option<String>,
    /// Why.
    pub reason: String,
}

/// Executes the command.
///
/// # Errors
/// Something survived, could not be verified, or could not be asked; the report stands beside it.
pub fn execute(ctx: &Context, args: &CleanupArgs) -> Outcome {
    act(ctx, args).map_err(|e| e.beside(&CleanupReport::default()))
}

fn act(ctx: &Context, args: &CleanupArgs) -> Outcome {
    let settings = ctx.settings()?;
    let selected = backends::select(settings)?;
    let reference: MuxRef = backends::reference(&*selected.mux, None);
    let Some(read) = ctx.runs()? else {
        ctx.out().report(&CleanupReport::default(), text)?;
        return Ok(0);
    };
    let store = ctx.write_store()?;
    let project = store.project_by_key(read.key())?;
    let open = removal::opener(ctx)?;
    let ground = Ground { project: &project, state: store.state_id(), open: &open };
    let done =
        cleanup::cleanup(&ground, &read, Some(&reference), What { dry_run: args.dry_run, only: None })?;
    let unasked = done.unasked.clone();
    let report = CleanupReport::from(done);
    match problem(&report, &unasked) {
        None => {
            ctx.out().report(&report, text)?;
            Ok(0)
        }
        Some(error) => {
            if !ctx.out().json() {
                ctx.out().text(&text(&report))?;
            }
            Err(error.with_data(&report))
        }
    }
}

fn problem(report: &CleanupReport, unasked: &[(String, loopmux_mux::Trouble)]) -> Option<CliError> {
    if !report.survived.is_empty() {
        let message =
            format!("{} windows are still there after they were asked to end", report.survived.len());
        return Some(CliError::new(ErrorCode::Survived, message).hint("see: loopmux mux ls"));
    }
    if let Some((_, trouble)) = unasked.first() {
        let code = match trouble.class {
            ReplyClass::Incompatible => ErrorCode::MuxIncompatible,
            _ => ErrorCode::MuxUnreachable,
        };
        let error = CliError::new(code, format!("the multiplexer could not be asked: {trouble}"));
        return Some(error.hint("nothing was ended there; see: loopmux mux, loopmux doctor"));
    }
    if !report.unverifiable.is_empty() {
        let message = format!("nobody can tell what became of {} windows", report.unverifiable.len());
        return Some(CliError::new(ErrorCode::Unknown, message));
    }
    None
}

impl From<cleanup::Report> for CleanupReport {
    fn from(done: cleanup::Report) -> Self {
        let windows = |list: Vec<cleanup::Window>| list.into_iter().map(WindowLine::from).collect();
        let kept = |list: Vec<cleanup::Kept>| list.into_iter().map(KeptLine::from).collect();
        Self {
            ended: windows(done.ended),
            would_end: windows(done.would_end),
            kept: kept(done.kept),
            survived: windows(done.survived),
            unverifiable: kept(done.unverifiable),
        }
    }
}

impl From<cleanup::Window> for WindowLine {
    fn from(w: cleanup::Window) -> Self {
        Self { session: w.session, pane: w.pane, socket: w.socket, run: w.run, what: w.why }
    }
}

impl From<cleanup::Kept> for KeptLine {
    fn from(k: cleanup::Kept) -> Self {
        Self { session: k.session, socket: k.socket, run: k.run, reason: k.reason }
    }
}

fn text(report: &CleanupReport) -> String {
    let mut out = String::new();
    for (title, list) in
        [("ended", &report.ended), ("would end", &report.would_end), ("survived", &report.survived)]
    {
        for w in list {
            out.push_str(&format!(
                "{title:<13} {}  {}, {} of run {}\n",
                shown(&w.session),
                w.pane,
                w.what,
                w.run
            ));
        }
    }
    for (title, list) in [("kept", &report.kept), ("unverifiable", &report.unverifiable)] {
        for k in list {
            out.push_str(&format!("{title:<13} {}  {}\n", shown(&k.session), shown(&k.reason)));
        }
    }
    if out.is_empty() {
        out.push_str("nothing to clean up\n");
    }
    out
}
