//! `loopmux attach`: a person's way to a run's window.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(unix)]
use unix::replace_this_process;
#[cfg(windows)]
use windows::replace_this_process;

use super::args::AttachArgs;
use super::error::{CliError, ErrorCode, Outcome};
use super::page::{self, shown};
use super::refs::Refs;
use super::{Context, gather, words};
use crate::backends;
use crate::observe::{self, AttemptView, RunView};
use crate::run::id::RunId;
use crate::run::store::ProjectRead;
use crate::verdict::{MuxObject, Observation, ServerSeen};
use loopmux_mux::{AttachPlan, TagScope};
use schemars::JsonSchema;
use serde::Serialize;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::Command;

/// `data` of `attach --json`, which goes nowhere and says how to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AttachReport {
    /// The run.
    pub run: String,
    /// The attempt.
    pub attempt: u32,
    /// What would be done.
    pub how: How,
    /// Program and arguments.
    pub command: Vec<String>,
}

/// How a person gets to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// The terminal becomes a client.
    Attach,
    /// The client around this process moves.
    Switch,
}

/// Executes the command.
///
/// # Errors
/// There is no such run, no window of it, or no way from here.
pub fn execute(ctx: &Context, args: &AttachArgs) -> Outcome {
    let (project, id) = match &args.run {
        Some(reference) => ctx.resolve(reference)?,
        None => the_active_one(ctx)?,
    };
    let way = find(ctx, &project, &id)?;
    if ctx.out().json() {
        let command = way.words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
        let report = AttachReport { run: id.to_string(), attempt: way.attempt, how: way.how, command };
        ctx.out().report(&report, |_| String::new())?;
        return Ok(0);
    }
    way.check_terminal()?;
    let mut command = way.command();
    match way.how {
        How::Attach => {
            let e = replace_this_process(&mut command);
            Err(not_executed(&command, &e))
        }
        How::Switch => {
            let status = command.status().map_err(|e| not_executed(&command, &e))?;
            if status.success() {
                return Ok(0);
            }
            let said =
                format!("this terminal's client was not moved: {}: {status}", shown(&typed(&way.words)));
            Err(CliError::new(ErrorCode::MuxUnreachable, said))
        }
    }
}

/// A way to the window of a run.
#[derive(Debug)]
pub struct Way {
    attempt: u32,
    how: How,
    words: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl Way {
    /// What is to be executed, with this terminal.
    pub fn command(&self) -> Command {
        let mut words = self.words.iter();
        let mut command = Command::new(words.next().cloned().unwrap_or_default());
        command.args(words).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// A client needs a terminal; one that only moves another client does not.
    ///
    /// # Errors
    /// There is none.
    pub fn check_terminal(&self) -> Result<(), CliError> {
        if self.how == How::Switch || (std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
            return Ok(());
        }
        Err(CliError::new(ErrorCode::Usage, "attach needs a terminal, and this is none")
            .hint(format!("in a terminal: {}", typed(&self.words))))
    }
}

/// The way to the window of a run's latest attempt, by the recorded pane on the recorded server.
///
/// # Errors
/// There is no window, or no way from here, or nobody can tell.
pub fn find(ctx: &Context, project: &ProjectRead, id: &RunId) -> Result<Way, CliError> {
    let gone = || CliError::new(ErrorCode::NotFound, format!("run {id} is gone"));
    let mut view = gather::run(project, id).ok_or_else(gone)?;
    observe::explain(&mut view, &mut gather::looks(ctx)?);
    let short = Refs::of_project(project).of(id);
    let Some(latest) = view.latest() else {
        let error =
            CliError::new(ErrorCode::NotFound, format!("run {short} has no window: no attempt was made"));
        return Err(unreadable(&view).unwrap_or(error));
    };
    let (Some(pane), Some(launch)) = (&latest.pane, latest.launch.known()) else {
        return Err(no_window(latest, &short));
    };
    let carries_token = [TagScope::Pane, TagScope::Window]
        .iter()
        .filter_map(|at| pane.tags(*at))
        .any(|tags| *tags == launch.tags);
    if !carries_token {
        return Err(CliError::new(
            ErrorCode::RefusedUnknown,
            format!("pane {} of run {short} no longer carries its token", pane.pane),
        )
        .hint("see: loopmux mux ls"));
    }
    let mux = backends::open(ctx.settings()?, &launch.mux)
        .map_err(|why| CliError::new(ErrorCode::MuxMissing, why))?;
    let (how, words) = match mux.attach_plan(&pane.pane, &pane.session, mux.here().as_ref()) {
        AttachPlan::Attach(words) => (How::Attach, words),
        AttachPlan::Switch(words) => (How::Switch, words),
        AttachPlan::Refused { why, instead } => {
            let command: Vec<String> = instead.iter().map(|w| w.to_string_lossy().into_owned()).collect();
            return Err(CliError::new(ErrorCode::MuxUnreachable, why)
                .hint(format!("in another terminal: {}", typed(&instead)))
                .detail("command", command));
        }
    };
    Ok(Way { attempt: latest.n, how, words, environment: mux.environment() })
}

fn unreadable(view: &RunView) -> Option<CliError> {
    match &view.attempts {
        Observation::Unknown(why) => Some(CliError::new(ErrorCode::Unknown, why.to_string())),
        Observation::Known(_) | Observation::Absent => None,
    }
}

/// Why there is no window to go to.
fn no_window(latest: &AttemptView, short: &str) -> CliError {
    let verdict = shown(&words::verdict(latest));
    if latest.verdict.is_end() {
        let what = format!("run {short} has no window any more: {verdict}");
        return CliError::new(ErrorCode::NotFound, what).hint(format!("what it wrote: loopmux logs {short}"));
    }
    let session = shown(&words::session(latest));
    match (&latest.evidence.server, &latest.evidence.window) {
        (ServerSeen::Gone, _) | (_, MuxObject::Absent) => CliError::new(
            ErrorCode::RefusedAlive,
            format!("the window of run {short} is gone, so it cannot be shown: {verdict}"),
        )
        .note(format!("session: {session}"))
        .hint(format!("to end it:  loopmux stop {short}")),
        _ => CliError::new(
            ErrorCode::MuxUnreachable,
            format!("cannot find the window of run {short}: {session}"),
        )
        .note(verdict)
        .hint("see: loopmux mux, loopmux doctor"),
    }
}

/// Without a reference: the one run that is active.
fn the_active_one(ctx: &Context) -> Result<(ProjectRead, RunId), CliError> {
    let nothing = || {
        CliError::new(ErrorCode::NotFound, "no run of this project is active")
            .hint("say which: loopmux attach RUN; see: loopmux list")
    };
    let project = ctx.runs()?.ok_or_else(nothing)?;
    let views = gather::runs(&project, None)?;
    let refs = Refs::of_all(&views);
    let active: Vec<&RunView> = views.iter().filter(|v| is_active(v)).collect();
    match active.as_slice() {
        [] => Err(nothing()),
        [one] => Ok((project, one.id.clone())),
        many => {
            let mut error = CliError::new(ErrorCode::Ambiguous, format!("{} runs are active", many.len()))
                .hint("say which: loopmux attach RUN");
            let mut candidates = Vec::new();
            for view in many {
                let name = view.file.known().and_then(|f| f.name.clone());
                let short = refs.of(&view.id);
                let line = format!("{short}  {}", name.as_deref().map(shown).unwrap_or_default());
                error = error.note(line.trim_end());
                candidates.push(serde_json::json!({ "id": view.id.as_str(), "name": name }));
            }
            Err(error.detail("candidates", candidates))
        }
    }
}

fn is_active(view: &RunView) -> bool {
    let lives = view.latest().is_some_and(|a| !a.verdict.is_end());
    lives && !view.status.row().is_final
}

fn typed(words: &[OsString]) -> String {
    words.iter().map(|w| page::quoted(&w.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

fn not_executed(command: &Command, e: &std::io::Error) -> CliError {
    let program = command.get_program().to_string_lossy();
    CliError::new(ErrorCode::MuxMissing, format!("cannot execute {}: {e}", shown(&program)))
}
