//! `loopmux resume`.

use super::args::ResumeArgs;
use super::{CliError, Context, ErrorCode, Outcome, removal, run};
use crate::backends;
use crate::engine::Notice;
use crate::engine::begin;
use crate::run::id::RunId;
use crate::run::newer::newer;
use crate::run::write::StoreError;
use crate::verdict::Observation;
use serde_json::json;

/// Executes the command.
///
/// # Errors
/// What went wrong, with the contract's code.
pub fn execute(ctx: &Context, args: &ResumeArgs) -> Outcome {
    removal::check(std::slice::from_ref(&args.run))?;
    removal::enter(ctx)?;
    let (read, target) = ctx.run(&args.run)?;
    let id = target.id().clone();
    let file = match target.file() {
        Observation::Known(file) => file,
        Observation::Absent => {
            return Err(CliError::new(ErrorCode::RefusedUnknown, format!("run {id} has no run.json")));
        }
        Observation::Unknown(why) => {
            return Err(match newer(target.dir()) {
                Some(file) => StoreError::from(file).into(),
                None => CliError::new(ErrorCode::RefusedUnknown, why.to_string()),
            });
        }
    };
    let mux = backends::open(ctx.settings()?, &file.mux)
        .map_err(|why| CliError::new(ErrorCode::MuxMissing, why).hint("see: loopmux mux"))?;
    backends::check(&*mux)?;
    let project = ctx.write_store()?.project_by_key(read.key())?;
    let caller = std::env::vars_os().collect();
    if args.detach {
        let argv = run::engine_command(&id, ctx.root()?, &["--resume"])?;
        begin::detach_resume(&project, &target, &file, &*mux, argv, (caller, args.env.clone()))?;
        say(ctx, &id);
        ctx.out()
            .report(&json!({ "run": { "id": id.as_str(), "name": file.name } }), |_| format!("{id}\n"))?;
        return Ok(0);
    }
    begin::resume(&project, &target, &file, &*mux, (caller, args.env.clone()), |notice| {
        if matches!(notice, Notice::Launched { .. }) {
            say(ctx, &id);
        }
        run::tell(ctx, &id, &file.mux, notice);
    })?;
    run::end(ctx, &id)
}

/// The one thing that an attempt of a resumed run has not from the run's beginning: where it was typed.
fn say(ctx: &Context, id: &RunId) {
    if !ctx.out().json() {
        ctx.out().note(&format!("resuming {id} with the environment of this shell"));
    }
}
