//! The engine: it launches, watches, gives up, writes the end.

use crate::alone;
use crate::keeper;
use crate::look::{self, Listed};
use crate::model::{Model, Out, Who};
use crate::rules::Harm;
use crate::state::{
    AWAY, Cli, Drive, Foreign, Intent, KEEPERS, Keep, Lock, Made, Place, Receipt, State, Went, attempt_of,
};
use crate::tables::{Edit, RecordId, SeenId};
use loopmux::run::record::Outcome;
use loopmux::verdict::{Lease, Status, Verdict};

/// Every step of the engine.
pub(crate) fn steps(m: &Model, s: &State, out: &mut Out<'_>) {
    let e = &s.engine;
    let a = usize::from(e.attempt);
    let who = Who::Engine;
    let mut n = *s;
    match e.at {
        Drive::Dead => {}
        Drive::ReadsStopFirst => {
            n.engine.stop = s.stop && s.has_files();
            n.engine.intent = if n.engine.stop { Intent::End } else { Intent::Launch };
            n.engine.at = if n.engine.stop { Drive::Locks } else { Drive::Makes };
            out.push(who, "looks for a stop request", n);
        }
        Drive::Locks => {
            if lock_free(m, s) {
                if m.guards.record_under_lock {
                    n.run_lock = Lock::Engine;
                }
                n.engine.at = Drive::Reads;
                out.push(who, "takes the run lock", n);
            }
        }
        Drive::Reads => {
            n.engine.record = s.record;
            n.engine.at = Drive::Writes;
            out.push(who, "reads the record again", n);
        }
        Drive::Writes => {
            writes(m, &mut n);
            out.push(who, "writes the record, and gives the run lock up", n);
        }
        Drive::Makes => {
            n.attempts[a].made = n.attempts[a].made.max(Made::Dir);
            // The directory first: a counted attempt without one would never be known to have come to nothing.
            n.engine.at = Drive::Locks;
            out.of(who, "makes the attempt's directory", a, n);
        }
        Drive::Fills => {
            n.attempts[a].made = Made::Filled;
            n.engine.at = Drive::Creates;
            out.of(who, "fills the attempt's directory", a, n);
        }
        Drive::Creates => creates(m, s, a, out),
        Drive::Waits if m.scenario.sound_sleep && !has_news(m, s, a) => {}
        Drive::Waits => {
            n.engine.at = Drive::Looks;
            n.engine.look = look::at_attempt(e.attempt);
            out.push(who, "wakes", n);
        }
        Drive::Looks | Drive::LooksAfter => {
            look::steps(m, s, who, e.look, out, |n, looker| n.engine.look = looker, |n| looked(m, n))
        }
        Drive::Unsure => {
            n.engine.at = Drive::Waits;
            out.push(who, "waits on", n);
            let mut n = *s;
            n.engine.at = Drive::Cancels;
            out.push(who, "gives the launch up", n);
        }
        Drive::Puzzled => {
            n.engine.at = Drive::Waits;
            out.push(who, "waits on", n);
            let mut n = *s;
            n.engine.intent = Intent::Pause;
            n.engine.at = Drive::Locks;
            out.push(who, "asks a person", n);
        }
        Drive::Cancels => {
            crate::stop::cancels(m, &mut n, a);
            n.engine.given_up = true;
            n.engine.at = Drive::Asks;
            out.of(who, "writes `cancelled`", a, n);
        }
        Drive::Asks => look::asks(m, s, who, a, out, |n, listed| match listed {
            Listed::Ours => n.engine.at = Drive::Kills,
            Listed::Not => looks_after(n),
        }),
        Drive::Kills => crate::mux::kill(m, s, who, a, out, looks_after),
        Drive::ReadsStop => {
            n.engine.stop = s.stop && s.has_files();
            n.engine.intent = Intent::End;
            n.engine.at = Drive::Locks;
            out.push(who, "looks for a stop request", n);
        }
    }
}

/// A look would show something new, and nothing that is about to change.
fn has_news(m: &Model, s: &State, a: usize) -> bool {
    let runs = s.attempts[a].cli == Cli::Alive && !s.engine.started;
    let queued = (0..KEEPERS).any(|k| attempt_of(k) == a && s.keepers[k].at == Keep::Queued);
    runs || queued || alone::is_settled(m, s, a)
}

fn looks_after(n: &mut State) {
    n.engine.at = Drive::LooksAfter;
    n.engine.look = look::at_attempt(n.engine.attempt);
}

/// Whether the run lock can be taken now. Whoever cannot have it tries on.
pub(crate) fn lock_free(m: &Model, s: &State) -> bool {
    s.run_lock == Lock::Free || !m.guards.acts_under_run_lock || !m.guards.record_under_lock
}

/// The engine has ended, by itself or not. Its lock falls, unless something inherited it.
pub(crate) fn ends(m: &Model, n: &mut State) {
    if n.run_lock == Lock::Engine {
        n.run_lock = Lock::Free;
    }
    if n.engine_lock == Lock::Engine {
        let leaked = !m.guards.engine_lock_stays && n.server > 0;
        n.engine_lock = if leaked { Lock::Server } else { Lock::Free };
    }
    let engine = &mut n.engine;
    engine.at = Drive::Dead;
    engine.started = false;
    engine.given_up = false;
    engine.stop = false;
    engine.intent = Intent::Launch;
    engine.record = RecordId::NEW;
    engine.seen = SeenId::NONE;
    engine.look = AWAY;
}

/// What follows from the verdict.
fn looked(m: &Model, n: &mut State) {
    let a = usize::from(n.engine.attempt);
    let id = n.engine.look.seen[a];
    let tables = m.tables();
    let (verdict, lease) = (tables.verdict(id).clone(), tables.seen(id).evidence.lease.clone());
    drop(tables);
    n.engine.look = AWAY;
    match verdict {
        Verdict::Exited { .. } | Verdict::NeverStarted { .. } | Verdict::Lost { .. } => {
            n.engine.seen = m.tables().outcome(id);
            n.engine.given_up = false;
            n.engine.at = Drive::ReadsStop;
        }
        Verdict::Running { .. } if n.engine.started => n.engine.at = Drive::Waits,
        Verdict::Running { .. } => {
            n.engine.intent = Intent::Started;
            n.engine.at = Drive::Locks;
        }
        Verdict::Launching if n.engine.given_up && lease == Lease::Held => n.engine.at = Drive::Waits,
        Verdict::Launching => n.engine.at = Drive::Unsure,
        Verdict::Unknown { .. } => n.engine.at = Drive::Puzzled,
    }
}

/// Writes what it intended over the record as it read it.
fn writes(m: &Model, n: &mut State) {
    let e = n.engine;
    let seen = (e.seen != SeenId::NONE).then_some(e.seen);
    let edit = match e.intent {
        Intent::Launch => Edit::Launch(m.tables().record(e.record).attempt + 1),
        Intent::Started => Edit::Started,
        Intent::Pause => Edit::Pause,
        Intent::End => Edit::End(end_status(m, e.stop, seen), seen),
    };
    let after = permitted(m, n, e.record, edit);
    if let Some(next) = after {
        write_record(m, n, next);
    }
    n.engine.record = RecordId::NEW;
    n.engine.stop = false;
    if n.run_lock == Lock::Engine {
        n.run_lock = Lock::Free;
    }
    match (after, e.intent) {
        (Some(_), Intent::Launch) => n.engine.at = Drive::Fills,
        (Some(_), Intent::Started) => {
            n.engine.started = true;
            n.engine.given_up = false;
            n.engine.at = Drive::Waits;
        }
        // A record that permits no such change ends the engine with an error.
        _ => ends(m, n),
    }
}

fn end_status(m: &Model, stopped: bool, seen: Option<SeenId>) -> Status {
    let by_itself = seen.and_then(|id| Status::of_verdict(m.tables().verdict(id)));
    match (stopped, by_itself) {
        (true, _) | (false, None) => Status::Stopped,
        (false, Some(status)) => status,
    }
}

/// The record after a change, as the program permits it.
pub(crate) fn permitted(m: &Model, s: &State, read: RecordId, edit: Edit) -> Option<RecordId> {
    let mut tables = m.tables();
    let counts = m.guards.attempts_are_counted && !matches!(edit, Edit::Launch(_));
    let read = if counts { tables.counting(read, s.latest_made()) } else { read };
    tables.after(read, edit).or_else(|| {
        if m.guards.final_is_final {
            return None;
        }
        let reopened = tables.reopened(read);
        tables.after(reopened, edit)
    })
}

/// The write of a record: what must not change is looked at, whoever writes.
pub(crate) fn write_record(m: &Model, n: &mut State, next: RecordId) {
    if n.place == Place::Gone {
        if !m.guards.writes_make_nothing {
            n.place = Place::Runs;
            n.harmed(Harm::CameBack);
        }
        return;
    }
    let tables = m.tables();
    let (old, new) = (tables.record(n.record), tables.record(next));
    // The one way on from a final record is a resume, and it keeps the end among the earlier ones.
    let kept = new.earlier.len() == old.earlier.len() + 1
        && new
            .earlier
            .last()
            .is_some_and(|e| e.status == old.status && (old.outcome.is_none() || e.outcome == old.outcome));
    let final_changed = old.status.row().is_final && old != new && !kept;
    let outcome_dropped = old.outcome.is_some() && old.outcome != new.outcome && !kept;
    let end_dropped = !new.earlier.starts_with(&old.earlier);
    let ended = new.status.row().is_final;
    // Since it was taken up no attempt was made: its earlier end is kept, and there is no other.
    let none = new.outcome.is_none() && new.earlier.last().is_some_and(|e| e.attempt == new.attempt);
    let mut untrue = ended && !none && is_untrue(n, new.attempt, new.outcome.as_ref());
    if let Some(earlier) = new.earlier.last().filter(|_| kept) {
        untrue |= is_untrue(n, earlier.attempt, earlier.outcome.as_ref());
    }
    let alive = ended && new.attempt > 0 && n.attempts[new.attempt as usize - 1].cli == Cli::Alive;
    drop(tables);
    if alive {
        n.harmed(Harm::FalseEnd);
    } else if untrue {
        n.harmed(Harm::OutcomeOfAnother);
    } else if final_changed {
        n.harmed(Harm::FinalChanged);
    } else if outcome_dropped || end_dropped {
        n.harmed(Harm::ExitDropped);
    }
    n.record = next;
}

/// An outcome says of an attempt what its receipts do not.
fn is_untrue(s: &State, attempt: u32, outcome: Option<&Outcome>) -> bool {
    let Some(a) = s.attempts.get((attempt as usize).wrapping_sub(1)) else {
        return outcome.is_some();
    };
    match outcome {
        None => attempt > 0,
        Some(Outcome::Exited { .. }) => a.exit != Receipt::Own,
        Some(Outcome::Lost { end: Some(_), .. }) => a.exit != Receipt::HangUp,
        Some(Outcome::Lost { end: None, .. }) => !a.start || a.exit != Receipt::None,
        Some(Outcome::NeverStarted { .. }) => a.start,
    }
}

/// Asks the multiplexer for a window.
fn creates(m: &Model, s: &State, a: usize, out: &mut Out<'_>) {
    let who = Who::Engine;
    let keeper = (0..KEEPERS).find(|k| attempt_of(*k) == a && *k < 2).expect("every attempt has a keeper");
    let mut n = *s;
    n.engine.at = Drive::Waits;
    n.attempts[a].server = s.server;
    if m.scenario.late {
        out.of(who, "asks for a window, and nothing comes of it", a, n);
        if s.server > 0 {
            n.keepers[keeper].at = Keep::Queued;
            out.of(who, "asks for a window, and its client is killed; the request lies at the server", a, n);
        }
    }
    if s.server == 0 {
        if s.servers == 3 {
            return;
        }
        n.servers += 1;
        n.server = n.servers;
        n.attempts[a].server = n.server;
    }
    n.keepers[keeper].at = Keep::Born;
    n.attempts[a].window = true;
    out.of(who, "asks for a window, and has it with its tags", a, n);
}

/// A request of a killed client is carried out.
pub(crate) fn carries_out(s: &State, k: usize) -> Option<State> {
    let a = attempt_of(k);
    if s.keepers[k].at != Keep::Queued || s.server != s.attempts[a].server {
        return None;
    }
    let mut n = *s;
    n.keepers[k].at = Keep::Born;
    n.attempts[a].window = true;
    Some(n)
}

/// The server ends, and every window and request with it.
pub(crate) fn server_ends(m: &Model, n: &mut State) {
    let server = n.server;
    n.server = 0;
    n.foreign = Foreign::None;
    if n.engine_lock == Lock::Server {
        n.engine_lock = Lock::Free;
    }
    for a in 0..n.attempts.len() {
        for k in (0..KEEPERS).filter(|k| attempt_of(*k) == a) {
            if n.keepers[k].at == Keep::Queued {
                n.keepers[k].at = Keep::Unborn;
            }
        }
        if n.attempts[a].window && n.attempts[a].server == server {
            keeper::window_goes(m, n, a, Went::Server);
        }
    }
}
