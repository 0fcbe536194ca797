//! `loopmux wait`.

use super::args::WaitArgs;
use super::{CliError, Context, ErrorCode, Outcome, outcome};
use crate::observe::{self, Looks, RunView};
use crate::ops::end::LeaseWait;
use crate::process::{Handle, Opened};
use crate::run::files::name;
use crate::run::store::RunRead;
use crate::verdict::{Cause, EngineSeen, Life, Observation, Verdict, exit_code_of_all};
use crate::wake::{self, AsSource, Source};
use std::time::{Duration, Instant};

/// How long the keeper may take to say what went away, after a loss is proven.
const CAUSE_PATIENCE: Duration = Duration::from_secs(1);

/// Executes the command.
///
/// # Errors
/// What went wrong, with the contract's code.
pub fn execute(ctx: &Context, args: &WaitArgs) -> Outcome {
    let runs: Vec<RunRead> =
        args.runs.iter().map(|r| ctx.run(r).map(|(_, run)| run)).collect::<Result<_, _>>()?;
    let end = args.timeout.map(|t| Instant::now() + t);
    let mut waits: Vec<Sleeper> = runs.iter().map(|_| Sleeper::default()).collect();
    loop {
        let views: Vec<RunView> = runs.iter().map(|run| observe::run(run, &mut Looks::none())).collect();
        let over: Vec<bool> =
            views.iter().zip(&mut waits).map(|(v, w)| is_over(v) && !w.may_hear_the_cause(v)).collect();
        let enough = if args.any { over.contains(&true) } else { !over.contains(&false) };
        if enough {
            let done: Vec<RunView> =
                views.into_iter().zip(over).filter(|(_, o)| *o).map(|(v, _)| v).collect();
            outcome::print(ctx, &done)?;
            return Ok(exit_code_of_all(done.iter().map(outcome::exit_of)));
        }
        let left = end.map(|e| e.saturating_duration_since(Instant::now()));
        if left.is_some_and(|l| l.is_zero()) {
            let open: Vec<&str> =
                views.iter().zip(&over).filter(|(_, o)| !**o).map(|(v, _)| v.id.as_str()).collect();
            return Err(CliError::new(ErrorCode::TimedOut, format!("not over in time: {}", open.join(", "))));
        }
        for ((sleeper, view), run) in waits.iter_mut().zip(&views).zip(&runs) {
            sleeper.follow(view, run);
        }
        let sources: Vec<_> =
            waits.iter().zip(&over).filter(|(_, o)| !**o).flat_map(|(s, _)| s.sources()).collect();
        let limit = left.map_or(wake::SAFETY, |l| l.min(wake::SAFETY));
        if let Err(e) = wake::wait(&sources, Some(limit)) {
            tracing::warn!("cannot wait for events: {e}");
            std::thread::sleep(limit);
        }
    }
}

/// A run is over when its status is final, or when nobody drives it and nothing of it is alive.
fn is_over(view: &RunView) -> bool {
    if view.status.row().is_final {
        return true;
    }
    match (&view.engine.seen, view.verdict()) {
        (EngineSeen::Running, _) => false,
        (_, Some(Verdict::Running { .. })) => false,
        (EngineSeen::Gone, _) => true,
        // Nobody can tell whether it is driven: that will not change by waiting.
        (EngineSeen::Unknown(_), _) => true,
    }
}

/// What one run is waited for by: its engine's process, or, of an orphan, its keeper's and its lease.
#[derive(Default)]
struct Sleeper {
    process: Option<Handle>,
    lease: Option<LeaseWait>,
    lost: Option<Instant>,
}

impl Sleeper {
    /// A loss is proven before its keeper has been told what went away: without an engine, whose record has waited for
    /// it, this process waits a moment.
    fn may_hear_the_cause(&mut self, view: &RunView) -> bool {
        let untold = view.latest().is_some_and(|latest| {
            matches!(latest.verdict, Verdict::Lost { cause: Cause::Unexplained, .. })
                && latest.evidence.keeper == Life::Alive
        });
        untold
            && !view.record.known().is_some_and(|r| r.status.row().is_final)
            && self.lost.get_or_insert_with(Instant::now).elapsed() < CAUSE_PATIENCE
    }

    fn follow(&mut self, view: &RunView, run: &RunRead) {
        let driven = view.engine.seen == EngineSeen::Running;
        let whom = if driven { view.engine.process.as_ref() } else { view.latest().and_then(|a| a.keeper()) };
        if self.process.as_ref().map(Handle::identity) != whom {
            self.process = whom.and_then(|id| match Handle::open(id) {
                Opened::Handle(handle) => Some(handle),
                Opened::Gone | Opened::Unknown(_) => None,
            });
        }
        // A process that has ended goes on telling it, and would end every sleep at once.
        if self.process.as_ref().is_some_and(|p| wake::is_ready(p.as_source())) {
            self.process = None;
        }
        if !driven
            && self.lease.is_none()
            && let Some(latest) = view.latest()
            && let Observation::Known(attempt) = run.attempt(latest.n)
        {
            self.lease = Some(LeaseWait::start(attempt.dir(), name::LEASE));
        }
        if self.lease.as_ref().and_then(LeaseWait::source).is_some_and(wake::is_ready) {
            self.lease = None;
        }
    }

    fn sources(&self) -> impl Iterator<Item = Source<'_>> {
        let process = self.process.as_ref().map(AsSource::as_source);
        process.into_iter().chain(self.lease.as_ref().and_then(LeaseWait::source))
    }
}
