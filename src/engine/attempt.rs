//! Watching one attempt to its end.

use super::{Engine, EngineError, Notice};
use crate::observe::{AttemptView, Look, attempt_on_disk, look};
use crate::ops::end::{LeaseWait, Manner, end_attempt};
use crate::ops::give_up::give_up;
use crate::ops::stop::LAUNCH_PATIENCE;
use crate::process::{self, Handle, Life, Opened};
use crate::run::files::{SCHEMA, StopFile, StopWhy, name, now, now_ms};
use crate::run::journal::Event;
use crate::run::record::Change;
use crate::run::store::{AttemptRead, RunRead};
use crate::run::write::StoreError;
use crate::verdict::{Cause, Lease, MuxObject, Observation, Verdict};
use crate::wake::{self, AsSource};
use std::time::{Duration, Instant, SystemTime};

/// How long the keeper may take to say what went away, after the end is proven.
const CAUSE_PATIENCE: Duration = Duration::from_secs(1);

/// How often evidence may be unreadable in a row, once a second, before the engine asks a person.
const UNKNOWN_PATIENCE: u32 = 5;

/// What watching led to.
#[derive(Debug)]
pub enum Outcomes {
    /// The attempt has ended, by proof.
    Ended(Box<AttemptView>),
    /// Nobody can tell: why.
    Unclear(String),
}

/// Both clocks bound a deadline: one stops while the host sleeps, the other can be set.
struct Deadline {
    monotonic: Instant,
    wall: SystemTime,
}

impl Deadline {
    fn after(limit: Duration) -> Self {
        Self { monotonic: Instant::now() + limit, wall: now() + limit }
    }

    fn left(&self) -> Duration {
        let wall = self.wall.duration_since(now()).unwrap_or(Duration::ZERO);
        self.monotonic.saturating_duration_since(Instant::now()).min(wall)
    }
}

/// What the watch remembers between two looks.
struct Watch {
    launched: Instant,
    timeout: Option<Deadline>,
    started: bool,
    given_up: bool,
    /// An end was tried, and so many requests of a person were answered by it.
    tried: Option<usize>,
    proven: Option<Instant>,
    unknown_in_a_row: u32,
    unknown_said: Vec<String>,
    asked_mux: Instant,
    pane_ended: bool,
}

impl Engine<'_> {
    /// Sleeps from event to event until the attempt has ended.
    pub(super) fn watch(
        &mut self,
        run: &RunRead,
        n: u32,
        pane_pid: Option<u32>,
    ) -> Result<Outcomes, EngineError> {
        let attempt = self.open_attempt(run, n)?;
        let mut watch = Watch {
            launched: Instant::now(),
            timeout: self.file.timeout_ms.map(|ms| Deadline::after(Duration::from_millis(ms))),
            started: false,
            given_up: false,
            tried: None,
            proven: None,
            unknown_in_a_row: 0,
            unknown_said: Vec::new(),
            asked_mux: Instant::now(),
            pane_ended: false,
        };
        // The pid of the pane only wakes: should it be another process by now, a look finds nothing new.
        let pane = pane_pid.and_then(|pid| Handle::watch(pid).ok().flatten());
        let mut keeper: Option<Handle> = None;
        let mut lease: Option<LeaseWait> = None;
        loop {
            watch.pane_ended = pane.as_ref().is_some_and(|pane| wake::is_ready(pane.as_source()));
            let view = attempt_on_disk(&attempt);
            self.note_unknowns(&mut watch, &view)?;
            if let Some(done) = self.step(run, &attempt, &mut watch, view, &mut keeper)? {
                return Ok(done);
            }
            let limit = match (&watch.proven, &watch.timeout) {
                (Some(_), _) => CAUSE_PATIENCE / 4,
                (None, Some(timeout)) => timeout.left(),
                (None, None) if watch.started && matches!(run.stop(), Observation::Absent) => Duration::MAX,
                // A launch may come to nothing in silence, and whoever asked for a stop may die over it.
                (None, None) => wake::SAFETY,
            };
            // What has ended goes on telling it, and would end every sleep: then the lease is what is waited for.
            let process =
                keeper.as_ref().map(AsSource::as_source).or_else(|| pane.as_ref().map(AsSource::as_source));
            let process = process.filter(|source| !wake::is_ready(*source));
            if process.is_none() && lease.is_none() && watch.started {
                lease = Some(LeaseWait::start(attempt.dir(), name::LEASE));
            }
            let lease = lease.as_ref().and_then(LeaseWait::source).filter(|source| !wake::is_ready(*source));
            self.wakes.sleep(process.or(lease), limit);
        }
    }

    /// One look: what follows from it.
    fn step(
        &mut self,
        run: &RunRead,
        attempt: &AttemptRead,
        watch: &mut Watch,
        view: AttemptView,
        keeper: &mut Option<Handle>,
    ) -> Result<Option<Outcomes>, EngineError> {
        let n = attempt.n();
        if self.wakes.signals.hung_up() {
            self.journal(Event::new("engine", "hangup").text("the engine's terminal went away; it goes on"))?;
        }
        if keeper.is_none()
            && let Some(id) = view.keeper()
            && let Opened::Handle(handle) = Handle::open(id)
        {
            *keeper = Some(handle);
        }
        match &view.verdict {
            Verdict::Exited { .. } | Verdict::NeverStarted { .. } => {
                return Ok(Some(Outcomes::Ended(Box::new(view))));
            }
            Verdict::Lost { cause, .. } => {
                let since = *watch.proven.get_or_insert_with(Instant::now);
                let may_say_more =
                    *cause == Cause::Unexplained && view.evidence.keeper == crate::verdict::Life::Alive;
                if !may_say_more || since.elapsed() >= CAUSE_PATIENCE {
                    return Ok(Some(Outcomes::Ended(Box::new(view))));
                }
                return Ok(None);
            }
            Verdict::Unknown { why } => {
                watch.unknown_in_a_row += 1;
                let keeper_gone = view.keeper().is_none_or(|id| !matches!(process::life(id), Life::Alive));
                if watch.unknown_in_a_row > UNKNOWN_PATIENCE && keeper_gone {
                    return Ok(Some(Outcomes::Unclear(format!("attempt {n}: {why}"))));
                }
                return Ok(None);
            }
            Verdict::Running { .. } => {
                if !watch.started {
                    watch.started = true;
                    self.change(Change::Started)?;
                    self.journal(Event::new("engine", "started").attempt(n))?;
                    (self.notice)(&Notice::Started { attempt: n });
                }
            }
            Verdict::Launching => self.launching(run, attempt, watch, &view)?,
        }
        watch.unknown_in_a_row = 0;
        self.end_if_asked(run, attempt, watch, &view)?;
        Ok(None)
    }

    /// No start receipt yet: give up when it was asked, when it takes too long, or when the window is gone.
    fn launching(
        &mut self,
        run: &RunRead,
        attempt: &AttemptRead,
        watch: &mut Watch,
        view: &AttemptView,
    ) -> Result<(), EngineError> {
        if watch.given_up && view.evidence.lease == Lease::Held {
            return Ok(());
        }
        let asked = self.wakes.signals.interrupts() > 0 || matches!(run.stop(), Observation::Known(_));
        let late = watch.launched.elapsed() >= LAUNCH_PATIENCE;
        let ask = !watch.pane_ended && watch.asked_mux.elapsed() >= wake::SAFETY;
        if ask {
            watch.asked_mux = Instant::now();
        }
        let gone = watch.pane_ended || (ask && self.window_is_gone(view));
        if !(asked || late || gone) {
            return Ok(());
        }
        if asked && matches!(run.stop(), Observation::Absent) {
            self.write_stop(run, StopWhy::Interrupt)?;
        }
        let why = match (asked, gone) {
            (true, _) => "it was stopped before it started",
            (false, true) => "its window went away before it started",
            (false, false) => "its window did not start in time",
        };
        self.journal(Event::new("engine", "given-up").attempt(attempt.n()).text(why))?;
        give_up(attempt, Some(self.mux)).map_err(|e| EngineError::Store(StoreError::from(e)))?;
        watch.given_up = true;
        Ok(())
    }

    /// The server that made the window answers without it. Not a proof: a reason to give up, which looks again.
    fn window_is_gone(&self, view: &AttemptView) -> bool {
        let Look::Asked(side) = look(self.mux) else { return false };
        let Some(created) = view.created.known() else { return false };
        let Some(answered) = created.server.as_ref().and_then(|server| side.answer_of(server)) else {
            return false;
        };
        answered.pane(&created.pane).is_none() && view.evidence.window == MuxObject::NotAsked
    }

    /// Ends the attempt for a time-out, for Ctrl-C, or for a stopper that died over it.
    fn end_if_asked(
        &mut self,
        run: &RunRead,
        attempt: &AttemptRead,
        watch: &mut Watch,
        view: &AttemptView,
    ) -> Result<(), EngineError> {
        let asked = self.wakes.signals.interrupts();
        // What survived one try is not tried again until a person asks again.
        if !matches!(view.verdict, Verdict::Running { .. }) || watch.tried.is_some_and(|n| asked <= n) {
            return Ok(());
        }
        let why = if asked > 0 {
            StopWhy::Interrupt
        } else if watch.timeout.as_ref().is_some_and(|t| t.left().is_zero()) {
            StopWhy::Timeout
        } else {
            match run.stop() {
                Observation::Known(stop)
                    if stop.by != process::current() && process::life(&stop.by) == Life::Gone =>
                {
                    stop.why
                }
                _ => return Ok(()),
            }
        };
        self.write_stop(run, why)?;
        (self.notice)(&Notice::Stopping(why));
        // One request began this; the next one insists.
        let enough = watch.tried.unwrap_or(0) + usize::from(why == StopWhy::Interrupt);
        let signals = &self.wakes.signals;
        let urgent = || {
            signals.drain();
            signals.interrupts() > enough
        };
        let manner = Manner {
            grace: Duration::from_millis(self.file.grace_ms),
            force: watch.tried.is_some(),
            mux: Some(self.mux),
            wake: vec![signals.as_source()],
            urgent: &urgent,
            spared: &[],
        };
        let ended = end_attempt(attempt, &manner);
        watch.tried = Some(self.wakes.signals.interrupts());
        let proven = ended.proven();
        let event = if proven { "attempt-ended" } else { "attempt-survived" };
        let names: Vec<String> =
            ended.survived.iter().map(|s| format!("{} `{}`", s.process.id.pid, s.process.command)).collect();
        let text = names.into_iter().chain(ended.unknown).collect::<Vec<_>>().join("; ");
        self.journal(Event::new("engine", event).attempt(attempt.n()).text(text.clone()))?;
        if !proven && !text.is_empty() {
            (self.notice)(&Notice::Trouble(format!("not everything has ended: {text}")));
        }
        Ok(())
    }

    fn write_stop(&self, run: &RunRead, why: StopWhy) -> Result<(), EngineError> {
        let lock = self.project.lock_run(run.id())?;
        let stop = StopFile { schema: SCHEMA, by: process::current(), why, at_ms: now_ms() };
        self.run.run().request_stop(&lock, &stop)?;
        self.journal(Event::new("engine", "stop-requested").text(format!("{why:?}").to_lowercase()))
    }

    /// What could not be observed goes into the journal once per change.
    fn note_unknowns(&self, watch: &mut Watch, view: &AttemptView) -> Result<(), EngineError> {
        let now = view.unknowns();
        if now != watch.unknown_said {
            if !now.is_empty() {
                self.journal(Event::new("engine", "unknown").attempt(view.n).text(now.join("; ")))?;
            }
            watch.unknown_said = now;
        }
        Ok(())
    }
}
