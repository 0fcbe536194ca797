//! `loopmux run`.

use super::args::RunArgs;
use super::{CliError, Context, ErrorCode, Outcome, outcome};
use crate::backends::{self, Unusable};
use crate::config::Flags;
use crate::engine::begin::{self, Asked, BeginError, Until};
use crate::engine::{EngineError, Notice};
use crate::observe::{self, Looks, RunView};
use crate::ops::control::ControlError;
use crate::run::files::MuxRef;
use crate::run::id::RunId;
use crate::verdict::Observation;
use loopmux_mux::CreateError;
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Executes the command.
///
/// # Errors
/// What went wrong, with the contract's code.
pub fn execute(ctx: &Context, args: &RunArgs) -> Outcome {
    let park = match (args.park, args.no_park) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    let flags = Flags { size: args.size, grace: args.grace, park, ..Flags::default() };
    let settings = ctx.settings_with(flags)?;
    if args.command.first().is_some_and(|program| program.is_empty()) {
        return Err(CliError::new(ErrorCode::Usage, "the command is empty")
            .hint("is a variable behind the dashes empty?  loopmux run -- CMD"));
    }
    let root = project_root(ctx)?;
    let selected = backends::select(&settings)?;
    // Two questions of some milliseconds each: one to another program, one to the disk.
    let (probe, store) = std::thread::scope(|both| {
        let probe = both.spawn(|| backends::check(&*selected.mux));
        let store = ctx.write_store();
        (probe.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), store)
    });
    let mux = backends::reference(&*selected.mux, probe?.version);
    let store = store.map_err(unlaunched)?;
    let asked = Asked {
        name: args.name.clone(),
        argv: args.command.clone(),
        cwd: directory(args.cwd.as_deref())?,
        timeout: args.timeout,
        grace: settings.grace.value,
        park: settings.park.value,
        size: (settings.size.value.columns, settings.size.value.rows),
        extra: args.env.clone(),
    };
    let project = store.project(&root).map_err(|e| unlaunched(e.into()))?;
    let (staged, file) =
        begin::stage(&store, &project, &root, &asked, mux).map_err(|e| unlaunched(e.into()))?;
    let id = file.id.clone();
    let caller: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    if args.detach || args.attach {
        let argv = engine_command(&id, &root, &[])?;
        let until = if args.attach { Until::Begun } else { Until::Published };
        begin::detach(&project, &staged, &file, &*selected.mux, argv, (caller, asked.extra), until)?;
        if args.attach {
            return attach(ctx, &id);
        }
        ctx.out()
            .report(&json!({ "run": { "id": id.as_str(), "name": file.name } }), |_| format!("{id}\n"))?;
        return Ok(0);
    }
    let say = |notice: &Notice| tell(ctx, &id, &file.mux, notice);
    begin::drive(&project, staged, &file, &*selected.mux, (caller, asked.extra), say)?;
    end(ctx, &id)
}

/// Reports the end, as a fresh look has it.
pub(super) fn end(ctx: &Context, id: &RunId) -> Outcome {
    let view = look(ctx, id)?;
    outcome::print(ctx, std::slice::from_ref(&view))?;
    let code = outcome::exit_of(&view);
    let interrupted =
        matches!(&view.stop, Observation::Known(s) if s.why == crate::run::files::StopWhy::Interrupt);
    Ok(if interrupted && view.status == crate::verdict::Status::Stopped { 130 } else { code })
}

/// Goes to the window of a run that was just begun; when the terminal comes back, tells where the run stands.
fn attach(ctx: &Context, id: &RunId) -> Outcome {
    let view = look(ctx, id)?;
    if view.status.row().active {
        let project = ctx.runs()?.ok_or_else(|| gone(id))?;
        let way = super::attach::find(ctx, &project, id)?;
        way.check_terminal()?;
        let status = way.command().status().map_err(|e| {
            CliError::new(ErrorCode::MuxUnreachable, format!("the window cannot be shown: {e}"))
        })?;
        if !status.success() {
            ctx.out().note(&format!("warning: the window was not shown ({status})"));
        }
    }
    let view = look(ctx, id)?;
    outcome::print(ctx, std::slice::from_ref(&view))?;
    Ok(if view.status.row().active { 0 } else { outcome::exit_of(&view) })
}

fn look(ctx: &Context, id: &RunId) -> Result<RunView, CliError> {
    match ctx.runs()?.map(|p| p.run(id)) {
        Some(Observation::Known(run)) => Ok(observe::run(&run, &mut Looks::none())),
        _ => Err(gone(id)),
    }
}

fn gone(id: &RunId) -> CliError {
    CliError::new(ErrorCode::Io, format!("the directory of run {id} is gone"))
}

/// Tells a person, or whoever reads the stream, what happens.
pub(super) fn tell(ctx: &Context, id: &RunId, mux: &MuxRef, notice: &Notice) {
    let out = ctx.out();
    if out.json() {
        let event = match notice {
            Notice::Launched { attempt, session, .. } => {
                json!({ "event": "launched", "run": id.as_str(), "attempt": attempt, "session": session })
            }
            Notice::Started { attempt } => {
                json!({ "event": "started", "run": id.as_str(), "attempt": attempt })
            }
            Notice::Stopping(why) => json!({ "event": "stopping", "run": id.as_str(), "why": why }),
            Notice::Trouble(text) => json!({ "event": "trouble", "run": id.as_str(), "text": text }),
        };
        // A reader that went away does not end the run.
        let _ = out.event(&event, |_| String::new());
        return;
    }
    match notice {
        Notice::Launched { session, server_version, .. } => {
            out.note(&format!("run {id} in mux session {session}"));
            let skew = server_version
                .as_ref()
                .and_then(|server| backends::skew(&mux.backend, mux.version.as_deref()?, server));
            if let Some(skew) = skew {
                out.note(&format!("warning: {skew}"));
            }
        }
        Notice::Started { .. } => out.note(&format!("running; loopmux attach {} shows it", id.short())),
        Notice::Stopping(_) => out.note("stopping; once more to insist"),
        Notice::Trouble(text) => out.note(&format!("warning: {text}")),
    }
}

/// The state directory cannot carry the run.
fn unlaunched(error: CliError) -> CliError {
    error.hint("nothing was launched; what the state directory lacks: loopmux doctor")
}

/// The project's root: it must be there to run anything in it.
fn project_root(ctx: &Context) -> Result<PathBuf, CliError> {
    let root = ctx.root()?;
    if root.is_dir() {
        return Ok(root.to_owned());
    }
    Err(CliError::new(ErrorCode::Usage, format!("the project {} is no directory", root.display()))
        .hint("give an existing one with --project DIR"))
}

fn directory(asked: Option<&Path>) -> Result<PathBuf, CliError> {
    let here = std::env::current_dir()
        .map_err(|e| CliError::new(ErrorCode::Usage, format!("the current directory cannot be used: {e}")))?;
    let path = asked.map_or_else(|| here.clone(), |dir| here.join(dir));
    match crate::config::canonical(&path) {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => Err(CliError::new(ErrorCode::Usage, format!("--cwd {} is no directory", path.display()))),
        Err(e) => {
            Err(CliError::new(ErrorCode::Usage, format!("--cwd {} cannot be used: {e}", path.display())))
        }
    }
}

/// The command of a detached engine, with `options` of its own.
pub(super) fn engine_command(id: &RunId, root: &Path, options: &[&str]) -> Result<Vec<OsString>, CliError> {
    let me = std::env::current_exe()
        .map_err(|e| CliError::new(ErrorCode::Io, format!("cannot find the path of this program: {e}")))?;
    let mut words = vec![me.into(), "engine".into(), "--project".into(), root.into()];
    words.extend(options.iter().map(OsString::from));
    words.extend(["--".into(), id.as_str().into()]);
    Ok(words)
}

impl From<Unusable> for CliError {
    fn from(e: Unusable) -> Self {
        let code = match &e {
            Unusable::Missing { .. } => ErrorCode::MuxMissing,
            Unusable::NotHere { .. } | Unusable::Incompatible { .. } => ErrorCode::MuxIncompatible,
            Unusable::Socket { .. } => ErrorCode::Config,
        };
        Self::new(code, e.to_string()).hint("see: loopmux mux, loopmux doctor")
    }
}

impl From<BeginError> for CliError {
    fn from(e: BeginError) -> Self {
        match e {
            BeginError::Store(e) => e.into(),
            BeginError::Engine(EngineError::Store(e)) | BeginError::Control(ControlError::Store(e)) => {
                e.into()
            }
            BeginError::Write(e) | BeginError::Control(ControlError::Write(e)) => {
                Self::new(ErrorCode::Io, e.to_string())
            }
            BeginError::Control(ControlError::Unanswered(trouble)) => Self::new(
                ErrorCode::MuxUnreachable,
                format!("cannot look for the control session: {trouble}"),
            )
            .hint("nothing was launched; see: loopmux mux, loopmux doctor"),
            BeginError::Control(ControlError::Create(e)) => {
                let code = match &e {
                    CreateError::Refused(_) => ErrorCode::LaunchFailed,
                    CreateError::MayAppear(_) => ErrorCode::MuxUnreachable,
                };
                Self::new(code, format!("the engine's window was not made: {e}")).hint("see: loopmux doctor")
            }
            BeginError::NotResumable { id, obstacle } => {
                let code =
                    if obstacle.is_certain() { ErrorCode::RefusedAlive } else { ErrorCode::RefusedUnknown };
                Self::new(code, format!("run {id} cannot be resumed: {obstacle}"))
                    .hint(format!("see: loopmux status {}", id.short()))
            }
            e @ (BeginError::NoEngine { .. } | BeginError::Keeper(_)) => {
                Self::new(ErrorCode::LaunchFailed, e.to_string())
            }
            e @ (BeginError::Engine(_) | BeginError::Io { .. }) => Self::new(ErrorCode::Io, e.to_string()),
        }
    }
}
