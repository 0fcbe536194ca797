//! Steps that need no company: a read whose answer nobody can change any more commutes with whatever the others
//! do, so the explorer takes it at once and alone. Everything else is tried in every order.
//!
//! Receipts never go away while the directory is there, so a receipt that is there stays; and of an attempt in which
//! nothing moves any more, nothing changes at all. Whether somebody may move the directory, take the run up or write
//! a record is asked of the commands that are not done yet, and of the locks.

use crate::model::{Model, Out};
use crate::state::{
    Act, Cli, Command, Drive, KEEPERS, Keep, Left, Lock, Looker, Made, Place, Read, Receipt, State,
    attempt_of,
};
use crate::{engine, keeper, mutator, observer};

/// Who looks, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looks {
    Engine,
    Mutator(usize),
    Observer,
}

/// Takes one such step, if there is one.
pub(crate) fn steps(m: &Model, s: &State, out: &mut Out<'_>) -> bool {
    if m.scenario.errors && s.faults > 0 {
        // A read that may fail has two outcomes, and each uses up the fault.
        return false;
    }
    let before = out.0.len();
    for k in 0..KEEPERS {
        if keeper_is_alone(m, s, k) {
            keeper::keeper(m, s, k, out);
            return out.0.len() > before;
        }
    }
    let driving =
        matches!(s.engine.at, Drive::Looks | Drive::LooksAfter) && stays(m, s, Looks::Engine, &s.engine.look);
    if driving || (s.engine.at == Drive::Reads && s.run_lock == Lock::Engine) {
        engine::steps(m, s, out);
        return true;
    }
    for i in 0..s.mutators.len() {
        let mutator = &s.mutators[i];
        let looks = mutator.look.next != Read::Idle && stays(m, s, Looks::Mutator(i), &mutator.look);
        let reads = matches!(mutator.at, Act::ReadsRecord | Act::ReadsToResume);
        if looks || (reads && holds_run_lock(s, i)) {
            mutator::steps(m, s, i, out);
            return true;
        }
    }
    let looks = s.observer.next != Read::Idle && stays(m, s, Looks::Observer, &s.observer);
    // While it holds a lock shared it gives that up first, which others may wait for.
    if looks
        && !matches!(s.observer.next, Read::Engine | Read::Lease | Read::LeaseAgain)
        && s.hold == crate::state::Hold::None
    {
        observer::steps(m, s, out);
        return true;
    }
    false
}

fn holds_run_lock(s: &State, i: usize) -> bool {
    matches!(s.run_lock, Lock::Mutator(holder) if usize::from(holder) == i)
}

/// Some other command may still do what `does` asks about, while this one looks.
fn others(s: &State, who: Looks, does: impl Fn(Command) -> bool) -> bool {
    let locked = matches!(who, Looks::Mutator(i) if holds_run_lock(s, i));
    (0..s.mutators.len()).any(|j| {
        let other = &s.mutators[j];
        who != Looks::Mutator(j) && other.at != Act::Done && does(other.command) && !locked
    })
}

fn removes(command: Command) -> bool {
    use Command::{Archive, Delete, EraseQuarantined, Force, Restore, Unproven};
    matches!(command, Delete | Force | Unproven | Archive | EraseQuarantined | Restore)
}

/// Nothing of an attempt moves any more.
pub(crate) fn is_settled(m: &Model, s: &State, a: usize) -> bool {
    let attempt = &s.attempts[a];
    let being_made = s.engine_lives()
        && usize::from(s.engine.attempt) == a
        && (attempt.made < Made::Filled || s.engine.at == Drive::Creates);
    let quiet = (0..KEEPERS).filter(|k| attempt_of(*k) == a).all(|k| match s.keepers[k].at {
        Keep::Dead | Keep::Parked => true,
        Keep::Unborn => k < 2 || !(m.scenario.respawn && s.faults > 0),
        _ => false,
    });
    let inside = m.scenario.inside && a == 0 && s.mutators.iter().any(|m| m.holds);
    quiet && !being_made && !inside && attempt.cli != Cli::Alive && attempt.left == Left::None
}

/// The answer to the next read can no longer change.
fn stays(m: &Model, s: &State, who: Looks, l: &Looker) -> bool {
    let a = usize::from(l.at);
    let attempt = &s.attempts[a];
    let locked = matches!(who, Looks::Mutator(i) if holds_run_lock(s, i));
    if others(s, who, removes) || (!locked && s.place != Place::Runs && s.place != Place::Gone) {
        return false;
    }
    let torn = m.scenario.tear && s.faults > 0;
    let no_resume = !others(s, who, |c| c == Command::Resume);
    let settled = is_settled(m, s, a);
    let alone = !s.engine_lives() && !others(s, who, |c| c != Command::Nothing);
    match l.next {
        Read::Engine => s.engine_lock == Lock::Free && no_resume,
        Read::List => !s.engine_lives() && no_resume,
        Read::Record => alone || matches!(who, Looks::Mutator(i) if holds_run_lock(s, i)),
        // Of an attempt that has started it says nothing any more.
        Read::Cancelled => attempt.cancelled || (attempt.start && !torn) || alone,
        Read::Refused => attempt.refused || settled,
        Read::Start | Read::StartAgain => (attempt.start || settled) && !torn,
        Read::Lease | Read::LeaseAgain => settled,
        Read::Exit | Read::ExitAgain => attempt.exit != Receipt::None || settled,
        Read::Emptied => attempt.emptied || settled,
        Read::Place => true,
        Read::Idle | Read::Done => false,
    }
}

/// A keeper's look at what nobody else changes.
fn keeper_is_alone(m: &Model, s: &State, k: usize) -> bool {
    let second = m.scenario.respawn;
    let commands = s.mutators.iter().filter(|m| m.at != Act::Done).map(|m| m.command);
    match s.keepers[k].at {
        Keep::Opened | Keep::Locked => !second && !commands.clone().any(removes),
        Keep::StillUnused => !commands.clone().any(removes),
        Keep::InPlace => attempt_of(k) == 1 || !commands.clone().any(|c| c == Command::Resume),
        Keep::Reaped => s.keepers[k].gone && !m.scenario.windows,
        _ => false,
    }
}
