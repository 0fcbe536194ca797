//! The evidence about one run.

use super::attempt::{AttemptView, attempt_in_brief, attempt_on_disk};
use super::mux::{Look, Looks};
use crate::run::files::{RunFile, StopFile};
use crate::run::id::RunId;
use crate::run::record::Record;
use crate::run::store::{AttemptRead, RunRead};
use crate::verdict::{
    EngineSeen, Lease, Leftovers, Observation, RecordSeen, Status, Verdict, Why, derive_status,
};

/// The engine of a run.
#[derive(Clone, Debug)]
pub struct EngineView {
    /// Its lock.
    pub seen: EngineSeen,
    /// Its process as it recorded itself.
    pub process: Option<crate::process::Identity>,
}

/// Everything seen of one run.
#[derive(Debug)]
pub struct RunView {
    /// Its id.
    pub id: RunId,
    /// What was asked.
    pub file: Observation<RunFile>,
    /// The engine's lock, read before everything else: what ended before a later read stays ended.
    pub engine: EngineView,
    /// All attempts, ascending, or why they could not be listed.
    pub attempts: Observation<Vec<AttemptView>>,
    /// The record, read last.
    pub record: Observation<Record>,
    /// The stop request.
    pub stop: Observation<StopFile>,
    /// The status that follows.
    pub status: Status,
}

impl RunView {
    /// The latest attempt.
    pub fn latest(&self) -> Option<&AttemptView> {
        self.attempts.known().and_then(|a| a.last())
    }

    /// The verdict on the latest attempt.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.latest().map(|a| &a.verdict)
    }

    /// Something still runs after an attempt's end.
    pub fn has_leftovers(&self) -> bool {
        self.attempts.known().is_some_and(|attempts| {
            attempts.iter().any(|a| a.verdict.is_end() && matches!(a.verdict.leftovers(), Leftovers::Some))
        })
    }
}

/// What can be said of a run whose directory cannot be opened: nothing, and why.
pub fn unreadable(id: &RunId, why: &Why) -> RunView {
    RunView {
        id: id.clone(),
        file: Observation::Unknown(why.clone()),
        engine: EngineView { seen: EngineSeen::Unknown(why.clone()), process: None },
        attempts: Observation::Unknown(why.clone()),
        record: Observation::Unknown(why.clone()),
        stop: Observation::Unknown(why.clone()),
        status: Status::Unknown,
    }
}

/// Adds the multiplexer's word on the latest attempt to a view that was gathered without it. Many runs are read first
/// and explained then. A look that was taken meanwhile may be older than a window that it lacks; it is taken once more
/// then, so that nothing is told from it that was not so after the run was read.
pub fn explain(view: &mut RunView, looks: &mut Looks<'_>) {
    if let (Observation::Known(file), Observation::Known(attempts)) = (&view.file, &mut view.attempts)
        && let Some(latest) = attempts.last_mut()
    {
        super::mux::explain(latest, &looks.at(&file.mux));
        if !latest.verdict.is_end()
            && latest.pane.is_none()
            && let Some(look) = looks.later(&file.mux)
        {
            super::mux::explain(latest, &look);
        }
    }
}

/// Gathers the evidence about a run. The multiplexer is asked only where `looks` does, about the latest attempt.
pub fn run(read: &RunRead, looks: &mut Looks<'_>) -> RunView {
    gather(read, looks, attempt_on_disk)
}

/// The same by disk and kernel alone, for a listing: without what neither verdict nor row needs.
pub fn run_in_brief(read: &RunRead) -> RunView {
    gather(read, &mut Looks::none(), attempt_in_brief)
}

fn gather(read: &RunRead, looks: &mut Looks<'_>, attempt: fn(&AttemptRead) -> AttemptView) -> RunView {
    let seen = match read.engine_lock() {
        Lease::Held => EngineSeen::Running,
        Lease::Free => EngineSeen::Gone,
        Lease::NoFile => EngineSeen::Unknown(Why::new("engine.lock is missing")),
        Lease::Unknown(why) => EngineSeen::Unknown(why),
    };
    let file = read.file();
    let attempts = gather_attempts(read, looks, file.known(), attempt);
    let stop = read.stop();
    let record = read.record();
    let latest = match &attempts {
        Observation::Known(list) => list.last().map(|a| a.verdict.clone()),
        Observation::Absent => None,
        Observation::Unknown(why) => Some(Verdict::Unknown { why: why.clone() }),
    };
    let seen_record = match (&record, &file) {
        (Observation::Known(r), Observation::Known(f)) => {
            let more_to_decide = f.work.more_to_decide() || r.launch_is_due();
            Observation::Known(RecordSeen { status: r.status, more_to_decide })
        }
        // Without its own file nobody knows whether more is to be decided; a final record says enough.
        (Observation::Known(r), _) if r.status.row().is_final => {
            Observation::Known(RecordSeen { status: r.status, more_to_decide: true })
        }
        (Observation::Known(_), Observation::Absent) => Observation::unknown("run.json is missing"),
        (Observation::Absent, _) => Observation::Absent,
        (Observation::Known(_), Observation::Unknown(why)) | (Observation::Unknown(why), _) => {
            Observation::Unknown(why.clone())
        }
    };
    let status = derive_status(&seen_record, &seen, latest.as_ref());
    let process = record.known().and_then(|r| r.engine.clone());
    RunView {
        id: read.id().clone(),
        file,
        engine: EngineView { seen, process },
        attempts,
        record,
        stop,
        status,
    }
}

fn gather_attempts(
    read: &RunRead,
    looks: &mut Looks<'_>,
    file: Option<&RunFile>,
    attempt: fn(&AttemptRead) -> AttemptView,
) -> Observation<Vec<AttemptView>> {
    let numbers = match read.attempt_numbers() {
        Observation::Known(numbers) => numbers,
        Observation::Absent => return Observation::Known(Vec::new()),
        Observation::Unknown(why) => return Observation::Unknown(why),
    };
    let last = numbers.last().copied();
    let mut views = Vec::with_capacity(numbers.len());
    for n in numbers {
        match read.attempt(n) {
            Observation::Known(a) => {
                let look = match file {
                    Some(file) if Some(n) == last => looks.at(&file.mux),
                    _ => Look::NotAsked,
                };
                let mut view = attempt(&a);
                super::mux::explain(&mut view, &look);
                views.push(view);
            }
            Observation::Absent => {}
            Observation::Unknown(why) => return Observation::Unknown(why),
        }
    }
    Observation::Known(views)
}
