//! `loopmux engine`: drives a staged run from its window. Its output is for whoever looks into that window.

use super::args::EngineArgs;
use super::{CliError, Context, ErrorCode, Outcome, outcome};
use crate::backends;
use crate::engine::Notice;
use crate::engine::begin;
use crate::observe::{self, Looks};
use crate::ops::environment;
use crate::run::dir::Dir;
use crate::run::files::{RunFile, name};
use crate::run::id::RunId;
use crate::run::write::StoreError;
use crate::verdict::Observation;
use loopmux_mux::Multiplexer;

/// Executes the command.
///
/// # Errors
/// What went wrong, with the contract's code.
pub fn execute(ctx: &Context, args: &EngineArgs) -> Outcome {
    let id = RunId::parse(&args.run).map_err(|e| CliError::new(ErrorCode::Usage, e.to_string()))?;
    let store = ctx.write_store()?;
    let project = store.project_by_key(&ctx.key()?)?;
    let say = |notice: &Notice| match notice {
        Notice::Launched { session, .. } => ctx.out().note(&format!("launched in mux session {session}")),
        Notice::Started { .. } => ctx.out().note("running"),
        Notice::Stopping(why) => ctx.out().note(&format!("stopping ({why:?})")),
        Notice::Trouble(text) => ctx.out().note(&format!("warning: {text}")),
    };
    let environment = environment::split(std::env::vars_os());
    if args.resume {
        let (_, read) = ctx.run(id.as_str())?;
        let file = asked(read.dir(), &id)?;
        let mux = backend(ctx, &file)?;
        begin::resume(&project, &read, &file, &*mux, environment, say)?;
    } else {
        let staged = project.open_staged(&id)?;
        let file = asked(staged.dir(), &id)?;
        let mux = backend(ctx, &file)?;
        begin::drive(&project, staged, &file, &*mux, environment, say)?;
    }
    let run = match ctx.store()?.project(project.key()).known().map(|p| p.run(&id)) {
        Some(Observation::Known(run)) => run,
        _ => return Err(CliError::new(ErrorCode::Io, format!("the directory of run {id} is gone"))),
    };
    let view = observe::run(&run, &mut Looks::none());
    // The window may be gone by now; the record is written.
    let _ = outcome::print(ctx, std::slice::from_ref(&view));
    Ok(outcome::exit_of(&view))
}

/// What the run was asked to do.
fn asked(run: &Dir, id: &RunId) -> Result<RunFile, CliError> {
    match run.read_json(name::RUN) {
        Observation::Known(file) => Ok(file),
        Observation::Absent => Err(CliError::new(ErrorCode::Io, format!("run {id} has no {}", name::RUN))),
        Observation::Unknown(why) => Err(StoreError::Unreadable(why).into()),
    }
}

fn backend(ctx: &Context, file: &RunFile) -> Result<Box<dyn Multiplexer>, CliError> {
    let title = file.name.clone().unwrap_or_else(|| file.work.agent());
    ctx.out().note(&format!("engine of run {}  {}", file.id, super::page::shown(&title)));
    backends::recorded(&file.mux).map_err(|why| CliError::new(ErrorCode::MuxMissing, why))
}
