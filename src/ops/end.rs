//! Ending one attempt (rules L5, L6, L7): ask, take its window away, insist, and look again.
//!
//! What is asked and killed is found in three ways, and signalled only through handles: the keeper's descendants,
//! whoever holds the lease, and whoever carries the token. The keeper itself is the only process that sees all
//! its descendants, so it is spared while it has any.

mod insist;
mod lease_wait;

pub use insist::Survivor;
pub use lease_wait::LeaseWait;

use crate::fault;
use crate::observe::{AttemptView, Look, attempt_on_disk, belongs_here, look};
use crate::process::{Handle, Opened, Signal};
use crate::run::files::name;
use crate::run::store::AttemptRead;
use crate::verdict::{Lease, Observation, Verdict};
use crate::wake::Source;
use loopmux_mux::{KillReply, KillScope, Multiplexer, Snapshot, TagScope, Trouble};
use std::time::{Duration, Instant};

/// How long a program may take to notice that its terminal went away, before it is killed.
const AFTER_HANGUP: Duration = Duration::from_secs(1);

/// How long the kernel may take to end what was killed.
const AFTER_KILL: Duration = Duration::from_secs(3);

/// How often the kernel is asked whether it has.
const PAUSE: Duration = Duration::from_millis(5);

/// How often killing is repeated for what appeared meanwhile.
const ROUNDS: u32 = 4;

/// How to end an attempt.
pub struct Manner<'a> {
    /// How long the agent CLI may take after it was asked.
    pub grace: Duration,
    /// Do not ask; insist at once.
    pub force: bool,
    /// The multiplexer, if it can be used.
    pub mux: Option<&'a dyn Multiplexer>,
    /// What may bring [`Manner::urgent`] about.
    pub wake: Vec<Source<'a>>,
    /// Somebody lost patience: insist now.
    pub urgent: &'a dyn Fn() -> bool,
    /// Processes that are not ended: whoever stops from inside the run.
    pub spared: &'a [u32],
}

/// What came of it, by a fresh look.
#[derive(Debug)]
pub struct Ended {
    /// The attempt as it is now.
    pub view: AttemptView,
    /// Whoever was seen alive and is gone now.
    pub gone: Vec<Survivor>,
    /// Whoever is still alive.
    pub survived: Vec<Survivor>,
    /// What could not be told.
    pub unknown: Vec<String>,
}

impl Ended {
    /// Nothing of the attempt runs, by proof.
    pub fn proven(&self) -> bool {
        self.survived.is_empty()
            && self.unknown.is_empty()
            && self.view.verdict.is_end()
            && matches!(self.view.evidence.lease, Lease::Free | Lease::NoFile)
    }
}

/// Ends whatever of an attempt runs.
pub fn end_attempt(read: &AttemptRead, manner: &Manner<'_>) -> Ended {
    let before = attempt_on_disk(read);
    if let Observation::Absent = belongs_here(read, &before) {
        return leave_to_the_original(before);
    }
    let mut seen = insist::living(read, &before, manner.spared);
    if alive(&before) {
        end_holders(read, &before, &mut seen, manner);
    }
    end_strays(read, &mut seen, manner);
    report(read, seen.found, manner)
}

/// Ends whoever holds the lease: asks, takes the window away, insists.
fn end_holders(read: &AttemptRead, before: &AttemptView, seen: &mut insist::Living, manner: &Manner<'_>) {
    let free = LeaseWait::start(read.dir(), name::LEASE);
    if !manner.force {
        fault::around("stop.ask", || ask(before));
        if wait(&free, manner.grace, manner) {
            return;
        }
    }
    if let Some(mux) = manner.mux {
        let reply = kill_window(read, before, mux);
        tracing::debug!("conditional kill: {reply:?}");
        if !manner.force && wait(&free, AFTER_HANGUP, manner) {
            return;
        }
    }
    for round in 0..ROUNDS {
        let now = attempt_on_disk(read);
        let killed = fault::around("stop.kill", || insist::kill_all(read, &now, manner.spared, round > 1));
        seen.absorb(&killed);
        if wait(&free, AFTER_KILL / ROUNDS, manner) {
            break;
        }
    }
}

/// Ends what holds no lease any more, and that no keeper watches.
fn end_strays(read: &AttemptRead, seen: &mut insist::Living, manner: &Manner<'_>) {
    for _ in 0..ROUNDS {
        let now = attempt_on_disk(read);
        if now.evidence.lease == Lease::Held || insist::living(read, &now, manner.spared).found.is_empty() {
            return;
        }
        let killed = fault::around("stop.kill", || insist::kill_all(read, &now, manner.spared, false));
        let end = Instant::now() + AFTER_KILL / ROUNDS;
        while killed.iter().any(Survivor::still_lives) && Instant::now() < end {
            std::thread::sleep(PAUSE);
        }
        seen.absorb(&killed);
    }
}

/// In a copy of a run's directory token and processes are the original's, and nobody of them is this one's to end
/// (rules L6, L7).
fn leave_to_the_original(view: AttemptView) -> Ended {
    let mut unknown = Vec::new();
    if alive(&view) {
        unknown.push("this directory is a copy of the one that it was launched in".to_owned());
    }
    Ended { view, gone: Vec::new(), survived: Vec::new(), unknown }
}

/// Something of the attempt runs, or may.
fn alive(view: &AttemptView) -> bool {
    match view.evidence.lease {
        Lease::Held | Lease::Unknown(_) => true,
        Lease::Free | Lease::NoFile => matches!(view.verdict, Verdict::Unknown { .. }),
    }
}

/// Asks the agent CLI to end: through the keeper, which hands the signal on; after its end, its leftovers.
fn ask(view: &AttemptView) {
    if let Some(keeper) = view.keeper()
        && let Opened::Handle(handle) = Handle::open(keeper)
        && matches!(view.exit, Observation::Absent)
    {
        send(&handle, Signal::Term);
        return;
    }
    let cli = view.spawned.known().map(|s| &s.cli);
    let left = view.leftovers.known().into_iter().flat_map(|l| l.processes.iter().map(|p| &p.id));
    for id in cli.into_iter().chain(left) {
        if let Opened::Handle(handle) = Handle::open(id) {
            send(&handle, Signal::Term);
        }
    }
}

fn send(handle: &Handle, signal: Signal) {
    // Whether it had an effect is what the next look says.
    if let Err(e) = handle.signal(signal) {
        tracing::debug!("{signal:?} to {}: {e}", handle.identity().pid);
    }
}

fn wait(free: &LeaseWait, limit: Duration, manner: &Manner<'_>) -> bool {
    free.wait(limit, &manner.wake, manner.urgent)
}

/// Looks again, and tells who of `seen` is gone.
fn report(read: &AttemptRead, seen: Vec<Survivor>, manner: &Manner<'_>) -> Ended {
    let view = attempt_on_disk(read);
    let now = insist::living(read, &view, manner.spared);
    let (survived, gone) = seen.into_iter().partition::<Vec<_>, _>(Survivor::still_lives);
    let mut survived = survived;
    survived.retain(|s| !insist::is_only_parked(&s.process.id, &view));
    for more in now.found {
        if !survived.iter().any(|s| s.process.id == more.process.id) {
            survived.push(more);
        }
    }
    let mut unknown = now.unknown;
    match &view.evidence.lease {
        Lease::Held if survived.is_empty() => {
            unknown.push("the lease is held, and its holder cannot be seen from here".to_owned());
        }
        Lease::Unknown(why) => unknown.push(format!("the lease cannot be probed: {why}")),
        Lease::Held | Lease::Free | Lease::NoFile => {}
    }
    if let Verdict::Unknown { why } = &view.verdict {
        unknown.push(why.to_string());
    }
    Ended { view, gone, survived, unknown }
}

/// What became of the window.
#[derive(Debug)]
pub enum WindowKill {
    /// The server answered the conditional kill.
    Asked(KillReply),
    /// No window of this attempt is on the recorded server.
    NoneThere,
    /// Another server answers, and nothing there was asked.
    OtherServer,
    /// This directory is a copy: the window is the original's.
    OfTheOriginal,
    /// The multiplexer did not answer.
    Unanswered(Trouble),
}

/// Takes the attempt's pane away, if the recorded server lists one that carries its token.
pub fn kill_window(read: &AttemptRead, view: &AttemptView, mux: &dyn Multiplexer) -> WindowKill {
    if let Observation::Absent = belongs_here(read, view) {
        return WindowKill::OfTheOriginal;
    }
    let Look::Asked(side) = look(mux) else { return WindowKill::NoneThere };
    let answered = match (&side.snapshot, view.server()) {
        (Snapshot::Answered(answered), None) => answered,
        (Snapshot::Answered(_), Some(recorded)) => match side.answer_of(recorded) {
            Some(answered) => answered,
            None => return WindowKill::OtherServer,
        },
        (Snapshot::NotServed(trouble) | Snapshot::Unknown(trouble), _) => {
            return WindowKill::Unanswered(trouble.clone());
        }
    };
    let Some(launch) = view.launch.known() else { return WindowKill::NoneThere };
    match answered.owned(&launch.tags, TagScope::Pane).first() {
        Some(owned) => {
            WindowKill::Asked(fault::around("stop.kill-window", || mux.kill(owned, KillScope::Pane)))
        }
        None => WindowKill::NoneThere,
    }
}
