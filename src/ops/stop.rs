//! Stopping a run (rules L5, L6, L7): the request is written first, so that no engine launches anything more; then
//! every attempt that may live is ended; then everything is looked at again, and only that look is reported.

use super::end::{Ended, Manner, Survivor, end_attempt};
use super::give_up::give_up;
use super::tidy::tidy_run;
use crate::observe::{self, Looks, RunView, sweep};
use crate::process::{self, Handle, Opened, Signal};
use crate::run::dir::WriteError;
use crate::run::files::{SCHEMA, StopFile, StopWhy, now_ms};
use crate::run::id::{RunId, short_hash};
use crate::run::journal::Event;
use crate::run::record::{Change, Outcome};
use crate::run::store::{ProjectRead, RunRead};
use crate::run::write::{ProjectWrite, StoreError};
use crate::verdict::{EngineSeen, Lease, Observation, Status, Verdict};
use crate::wake;
use loopmux_mux::Multiplexer;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a launch under way may take to become one thing or the other.
pub const LAUNCH_PATIENCE: Duration = Duration::from_secs(20);

/// How long an engine may take to notice that its attempt is over, and to write it down.
const ENGINE_PATIENCE: Duration = Duration::from_secs(10);

/// How to stop.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// How long the agent CLI may take after it was asked.
    pub grace: Duration,
    /// Insist at once.
    pub force: bool,
    /// Let the running attempt come to its own end, and start nothing after it.
    pub graceful: bool,
}

/// What a stop did, by a fresh look.
#[derive(Debug)]
pub struct Report {
    /// Which run.
    pub run: RunId,
    /// Nothing ran, and nothing was done.
    pub already: bool,
    /// Whoever was alive and is gone.
    pub gone: Vec<Survivor>,
    /// Whoever is still alive.
    pub survived: Vec<Survivor>,
    /// What could not be told.
    pub unknown: Vec<String>,
    /// The run's status now.
    pub status: Status,
}

/// A stop that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// There is no such run, or it cannot be opened.
    #[error("{0}")]
    NotThere(String),
    /// The state directory could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A launch could not be given up.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Everything has ended, by proof, and only the record of it could not be written.
    #[error("{0}")]
    Unrecorded(StoreError),
}

/// The name of the socket that the engine of a run waits at.
pub fn engine_inbox(run_dir: &Path) -> String {
    format!("e-{}", short_hash(run_dir.as_os_str().as_encoded_bytes()))
}

/// Stops a run. `begins` is called where there is something to stop.
///
/// # Errors
/// [`StopError`]. Whatever was ended by then stays ended; the next stop goes on.
pub fn stop(
    project: &ProjectWrite,
    read: &ProjectRead,
    id: &RunId,
    how: How,
    mux: Option<&dyn Multiplexer>,
    begins: &dyn Fn(),
) -> Result<Report, StopError> {
    let run = open(read, id)?;
    let before = observe::run(&run, &mut Looks::none());
    if nothing_lives(&before) && before.status.row().is_final && nobody_is_left(&run, &before) {
        tidy_run(project, &run, &before)?;
        let status = before.status;
        return Ok(Report {
            run: id.clone(),
            already: true,
            gone: vec![],
            survived: vec![],
            unknown: vec![],
            status,
        });
    }
    begins();
    request(project, &before, StopWhy::Stop).map_err(|e| match e {
        // A removal was faster.
        StoreError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            StopError::NotThere(format!("there is no run {id} any more"))
        }
        e => e.into(),
    })?;
    if how.graceful {
        wait_for_engine(&run, None);
    }
    let mut report = Report {
        run: id.clone(),
        already: false,
        gone: Vec::new(),
        survived: Vec::new(),
        unknown: Vec::new(),
        status: before.status,
    };
    settle_launch(project, &run, mux)?;
    if let Observation::Known(numbers) = run.attempt_numbers() {
        for n in numbers {
            match run.attempt(n) {
                Observation::Known(attempt) => {
                    let manner = Manner {
                        grace: how.grace,
                        force: how.force,
                        mux,
                        wake: Vec::new(),
                        urgent: &|| false,
                        spared: &[std::process::id()],
                    };
                    add(&mut report, n, end_attempt(&attempt, &manner));
                }
                Observation::Absent => {}
                Observation::Unknown(why) => report.unknown.push(format!("attempt {n}: {why}")),
            }
        }
    }
    end_engine(&run, how.force, &mut report);
    if was_removed(project, &run)? {
        return Err(StopError::NotThere(format!("run {id} was removed while it was being stopped")));
    }
    let after = observe::run(&run, &mut Looks::none());
    if let Observation::Known(_) = read.run(id) {
        begun_again(&after, &mut report);
    }
    report.status = match record(project, &run, &after, &mut report) {
        Err(e) if nothing_lives(&after) && report.survived.is_empty() && report.unknown.is_empty() => {
            return Err(StopError::Unrecorded(e));
        }
        other => other?,
    };
    tidy_run(project, &run, &after)?;
    Ok(report)
}

fn open(read: &ProjectRead, id: &RunId) -> Result<RunRead, StopError> {
    match read.run(id) {
        Observation::Known(run) => Ok(run),
        Observation::Absent => Err(StopError::NotThere(format!("there is no run {id}"))),
        Observation::Unknown(why) => Err(StopError::NotThere(why.to_string())),
    }
}

/// By proof: no engine, no lease, and no launch that could still start.
fn nothing_lives(view: &RunView) -> bool {
    let attempts_ended = match &view.attempts {
        Observation::Known(attempts) => attempts
            .iter()
            .all(|a| a.verdict.is_end() && matches!(a.evidence.lease, Lease::Free | Lease::NoFile)),
        Observation::Absent => true,
        Observation::Unknown(_) => false,
    };
    attempts_ended && view.engine.seen == EngineSeen::Gone
}

/// A free lease alone does not say that no descendant is left: where the keeper did not, the processes do.
fn nobody_is_left(run: &RunRead, view: &RunView) -> bool {
    let attempts = view.attempts.known().map_or(&[][..], Vec::as_slice);
    attempts.iter().all(|a| {
        let said = matches!(a.evidence.emptied, Observation::Known(()))
            || matches!(a.verdict, Verdict::NeverStarted { .. });
        said || match run.attempt(a.n) {
            Observation::Known(read) => sweep(&read, a).answer() == Observation::Absent,
            Observation::Absent | Observation::Unknown(_) => false,
        }
    })
}

/// Writes the request, unless the run is over, and wakes the engine.
///
/// # Errors
/// As the operating system says.
pub fn request(project: &ProjectWrite, view: &RunView, why: StopWhy) -> Result<(), StoreError> {
    let lock = project.lock_run(&view.id)?;
    let run = project.run(&lock)?;
    let stop = StopFile { schema: SCHEMA, by: process::current(), why, at_ms: now_ms() };
    run.request_stop(&lock, &stop)?;
    run.journal(&Event::new("stop", "stop-requested"))?;
    drop(lock);
    wake::poke_named(&engine_inbox(run.dir().path()));
    Ok(())
}

/// A launch under way becomes a start or none: by its engine, or, where there is none, by giving it up.
fn settle_launch(
    project: &ProjectWrite,
    run: &RunRead,
    mux: Option<&dyn Multiplexer>,
) -> Result<(), StopError> {
    let end = Instant::now() + LAUNCH_PATIENCE;
    loop {
        let view = observe::run(run, &mut Looks::none());
        let launching = matches!(view.verdict(), Some(Verdict::Launching)) || is_about_to_launch(&view);
        if !launching {
            return Ok(());
        }
        if view.engine.seen == EngineSeen::Gone {
            let lock = project.lock_run(run.id())?;
            // Under the run lock no engine can begin: what is free now stays free.
            if run.engine_lock() == Lease::Free
                && let Some(latest) = view.latest()
                && let Observation::Known(attempt) = run.attempt(latest.n)
            {
                give_up(&attempt, mux)?;
                drop(lock);
                return Ok(());
            }
        }
        if Instant::now() >= end {
            return Ok(());
        }
        wait_for_engine(run, Some(wake::SAFETY));
    }
}

/// An engine that looked for a stop before this one's request was there makes its attempt in a moment.
fn is_about_to_launch(view: &RunView) -> bool {
    let due = view.record.known().is_some_and(|r| r.status == Status::Starting && r.launch_is_due());
    view.engine.seen == EngineSeen::Running && (due || view.latest().is_none())
}

/// Whether a removal has taken the run since it was opened. One that is under way may put it back, and is waited for.
fn was_removed(project: &ProjectWrite, run: &RunRead) -> Result<bool, StopError> {
    let away = || matches!(run.dir().in_place(), Observation::Absent);
    if !away() {
        return Ok(false);
    }
    let _settled = project.lock_run(run.id())?;
    Ok(away())
}

/// Sleeps until the engine's process ends, at most for `limit`. `true` if nobody holds the engine lock now.
fn wait_for_engine(run: &RunRead, limit: Option<Duration>) -> bool {
    let end = limit.map(|l| Instant::now() + l);
    loop {
        match run.engine_lock() {
            Lease::Free => return true,
            // A removal has taken it, which it does to no run that an engine drives.
            Lease::NoFile if matches!(run.dir().in_place(), Observation::Absent) => return true,
            Lease::Held | Lease::NoFile | Lease::Unknown(_) => {}
        }
        let left = end.map_or(wake::SAFETY, |e| e.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return false;
        }
        let engine = run.record().known().and_then(|r| r.engine.clone());
        let handle = engine.map(|id| Handle::open(&id));
        let fds: Vec<_> = match &handle {
            Some(Opened::Handle(handle)) => vec![wake::AsSource::as_source(handle)],
            _ => Vec::new(),
        };
        if wake::wait(&fds, Some(left.min(wake::SAFETY))).is_err() {
            return false;
        }
    }
}

/// The engine ends by itself once its attempt has ended. One that does not is insisted on only with `force`.
fn end_engine(run: &RunRead, force: bool, report: &mut Report) {
    // An engine does not end before its attempt has, and is the one that will write that end down.
    let survivors = !report.survived.is_empty();
    let force = force && !survivors;
    let patience = match (survivors, force) {
        (true, _) => Duration::ZERO,
        (false, true) => Duration::from_secs(2),
        (false, false) => ENGINE_PATIENCE,
    };
    if wait_for_engine(run, Some(patience)) {
        return;
    }
    let Some(id) = run.record().known().and_then(|r| r.engine.clone()) else {
        report.unknown.push("an engine holds its lock, and did not write down who it is".to_owned());
        return;
    };
    if force && let Opened::Handle(handle) = Handle::open(&id) {
        if let Err(e) = handle.signal(Signal::Kill) {
            report.unknown.push(format!("the engine {} cannot be signalled: {e}", id.pid));
        }
        if wait_for_engine(run, Some(Duration::from_secs(2))) {
            return;
        }
    }
    match process::note(id.pid) {
        Ok(Some(process)) if process.id == id => {
            report.survived.push(Survivor {
                process,
                why: "the engine, which goes on until its attempt has ended".to_owned(),
            });
        }
        _ => report
            .unknown
            .push("the engine's lock is held, and its holder cannot be seen from here".to_owned()),
    }
}

fn add(report: &mut Report, n: u32, ended: Ended) {
    report.gone.extend(ended.gone);
    report.survived.extend(ended.survived);
    report.unknown.extend(ended.unknown.into_iter().map(|why| format!("attempt {n}: {why}")));
}

/// What this stop ended stays ended; what a resume began since lives, and is not hidden behind a success.
fn begun_again(after: &RunView, report: &mut Report) {
    if nothing_lives(after) || !report.survived.is_empty() || !report.unknown.is_empty() {
        return;
    }
    match &after.engine.seen {
        EngineSeen::Running => report.unknown.push("an engine has taken the run up meanwhile".to_owned()),
        EngineSeen::Unknown(why) => report.unknown.push(format!("the engine lock: {why}")),
        EngineSeen::Gone => {}
    }
    for a in after.attempts.known().map_or(&[][..], Vec::as_slice) {
        let free = matches!(a.evidence.lease, Lease::Free | Lease::NoFile);
        if !(a.verdict.is_end() && free) {
            report.unknown.push(format!("attempt {} is {} by now", a.n, a.verdict.kind()));
        }
    }
}

/// Without an engine the stopper writes the record; with one it was the engine's to write.
fn record(
    project: &ProjectWrite,
    run: &RunRead,
    after: &RunView,
    report: &mut Report,
) -> Result<Status, StoreError> {
    let unfinished = |view: &RunView| {
        view.record.known().is_some_and(|r| r.status.row().active) && view.engine.seen == EngineSeen::Gone
    };
    if !unfinished(after) {
        return Ok(after.status);
    }
    let lock = project.lock_run(run.id())?;
    // What was seen before the lock may be another attempt's end: a resume may have come, and its engine have died.
    let now = observe::run(run, &mut Looks::none());
    if !unfinished(&now) {
        return Ok(now.status);
    }
    let outcome = now.verdict().and_then(Outcome::of);
    if now.latest().is_some() && outcome.is_none() {
        report
            .unknown
            .push("the attempt's end is not proven, so the run's record was left as it is".to_owned());
        return Ok(now.status);
    }
    let run = project.run(&lock)?;
    let end = Change::End { status: Status::Stopped, outcome, reason: None, at_ms: now_ms() };
    match run.change_record_without_engine(&lock, end) {
        Ok(record) => {
            run.journal(&Event::new("stop", "stopped"))?;
            Ok(record.status)
        }
        // Somebody else wrote an end meanwhile, or an engine took the run up: both are the truth then.
        Err(StoreError::Forbidden(_) | StoreError::Busy { .. }) => Ok(now.status),
        Err(e) => Err(e),
    }
}
