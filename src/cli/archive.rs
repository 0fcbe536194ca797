//! `loopmux archive`, `archive --list`.

use super::args::ArchiveArgs;
use super::page::shown;
use super::removal::{self, ArchivedRun, Named, RemovalReport, RemovedRun};
use super::{CliError, Context, ErrorCode, Outcome};
use crate::ops::archive::archive;
use crate::ops::delete::stop_first;
use crate::ops::remove::Ground;
use crate::ops::stop::How;
use crate::run::id::RunId;
use crate::verdict::Observation;

/// Executes the command.
///
/// # Errors
/// What was not archived, and why; what was is in the report beside it.
pub fn execute(ctx: &Context, args: &ArchiveArgs) -> Outcome {
    act(ctx, args).map_err(|e| e.beside(&RemovalReport::default()))
}

fn act(ctx: &Context, args: &ArchiveArgs) -> Outcome {
    if args.list {
        return list(ctx);
    }
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
        && let Some(code) = removal::leave_window(ctx, &yard, "archive", &runs)?
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
                report.add_finished(&yard, &id);
                continue;
            }
            Named::Run(id) => id,
        };
        let stopped = if args.force { stop_first(&ground, &yard.read, &id, how) } else { Ok(()) };
        match stopped.and_then(|()| archive(&ground, &id)) {
            Ok(done) => report.add_archived(&id, done),
            Err(e) => errors.push(report.keep(&id, "archived", &e)),
        }
    }
    removal::finish(ctx, &report, errors)
}

impl RemovalReport {
    /// Adds a run that was archived.
    pub(super) fn add_archived(&mut self, id: &RunId, done: crate::ops::archive::Archived) {
        self.archived.push(ArchivedRun {
            run: id.to_string(),
            file: done.file.display().to_string(),
            bytes: Some(done.bytes),
            sha256: Some(done.sha256),
        });
        self.removed.push(RemovedRun { run: id.to_string() });
    }

    /// Adds a run whose interrupted removal was finished: it is in an archive if one has its id.
    fn add_finished(&mut self, yard: &removal::Yard, id: &RunId) {
        self.removed.push(RemovedRun { run: id.to_string() });
        if let Ok(Some(mut opened)) = crate::run::archive::open(yard.project.dir(), id)
            && let Ok((bytes, sha256)) = opened.digest()
        {
            let file = opened.path().display().to_string();
            self.archived.push(ArchivedRun {
                run: id.to_string(),
                file,
                bytes: Some(bytes),
                sha256: Some(sha256),
            });
        }
    }
}

/// Shows the archives. Their bytes are not read, so their digests are not told.
fn list(ctx: &Context) -> Outcome {
    let archives = match ctx.runs()?.map(|read| crate::run::archive::list(read.dir())) {
        None | Some(Observation::Absent) => Vec::new(),
        Some(Observation::Known(archives)) => archives,
        Some(Observation::Unknown(why)) => return Err(CliError::new(ErrorCode::Io, why.to_string())),
    };
    let archived = archives.into_iter().map(|a| ArchivedRun {
        run: a.id.to_string(),
        file: a.path.display().to_string(),
        bytes: Some(a.bytes),
        sha256: None,
    });
    let report = RemovalReport { archived: archived.collect(), ..RemovalReport::default() };
    ctx.out().report(&report, |r| {
        let line =
            |a: &ArchivedRun| format!("{}  {}  {}\n", a.run, a.bytes.unwrap_or_default(), shown(&a.file));
        r.archived.iter().map(line).collect()
    })?;
    if report.archived.is_empty() && !ctx.out().json() {
        ctx.out().note("no archives in this project");
    }
    Ok(0)
}
