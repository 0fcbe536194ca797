//! The commands: how each begins, takes its locks, and ends. Any of them may die at any step, and the kernel then
//! drops what it held.

use crate::engine::lock_free;
use crate::model::{Model, Out, Who};
use crate::rules::Harm;
use crate::state::{Act, Cli, Command, Keep, Lock, Mutator, Place, Report, State, idle};
use crate::{cleanup, remove, resume, stop};

/// Who a mutator is.
pub(crate) fn who(i: usize) -> Who {
    Who::Mutator(u8::try_from(i).expect("two mutators"))
}

fn lock_of(i: usize) -> Lock {
    Lock::Mutator(u8::try_from(i).expect("two mutators"))
}

/// Every step of one mutator.
pub(crate) fn steps(m: &Model, s: &State, i: usize, out: &mut Out<'_>) {
    let mutator = &s.mutators[i];
    match mutator.at {
        Act::Idle => begins(m, s, i, out),
        Act::Done => {}
        Act::Leaves => {
            let mut n = *s;
            n.mutators[i].holds = false;
            n.mutators[i].at = Act::Registers;
            out.push(who(i), "goes on in a copy outside the window, with the lease closed", n);
        }
        Act::Registers => {
            let mut n = *s;
            n.mutators[i].registered = true;
            enters(m, &mut n, i);
            out.push(who(i), "registers with the keeper", n);
        }
        Act::LocksToRecover => locks(m, s, i, out, |n| n.mutators[i].at = Act::Recovers),
        Act::Recovers => remove::recovers(m, s, i, out),
        Act::Locks => locks(m, s, i, out, |n| locked(m, n, i)),
        _ => {
            let _ = remove::steps(m, s, i, out)
                || cleanup::steps(m, s, i, out)
                || resume::steps(m, s, i, out)
                || stop::steps(m, s, i, out);
        }
    }
}

/// Takes the run lock, as soon as nobody has it.
pub(crate) fn locks(m: &Model, s: &State, i: usize, out: &mut Out<'_>, then: impl Fn(&mut State)) {
    if !lock_free(m, s) {
        return;
    }
    let mut n = *s;
    if m.guards.acts_under_run_lock && m.guards.record_under_lock {
        n.run_lock = lock_of(i);
    }
    then(&mut n);
    out.push(who(i), "takes the run lock", n);
}

/// Gives the run lock up.
pub(crate) fn unlocks(n: &mut State, i: usize) {
    if n.run_lock == lock_of(i) {
        n.run_lock = Lock::Free;
    }
}

/// It has ended or was killed: what it held falls.
pub(crate) fn ends(n: &mut State, i: usize) {
    unlocks(n, i);
    if n.engine_lock == lock_of(i) {
        n.engine_lock = Lock::Free;
    }
    let report = n.mutators[i].report;
    n.mutators[i] = Mutator { at: Act::Done, report, ..idle(n.mutators[i].command) };
}

/// It tells its caller how it went.
pub(crate) fn reports(n: &mut State, i: usize, report: Report) {
    let mutator = n.mutators[i];
    n.mutators[i].report = report;
    if mutator.command == Command::Stop && report == Report::Success {
        claims_success(n, i);
    }
    ends(n, i);
}

/// A stop says that nothing of the run runs. What a resume began after its last look is not its own.
pub(crate) fn claims_success(n: &mut State, i: usize) {
    let runs = (0..n.attempts.len()).any(|a| n.runs(a));
    if (runs || n.engine_lives()) && !n.mutators[i].overtaken {
        n.harmed(Harm::FalseStop);
    }
}

fn begins(m: &Model, s: &State, i: usize, out: &mut Out<'_>) {
    let mutator = &s.mutators[i];
    if mutator.command == Command::Nothing {
        return;
    }
    let mut n = *s;
    if mutator.inside {
        // From a shell that the agent started.
        if s.keepers[0].at != Keep::Tends || s.attempts[0].cli != Cli::Alive {
            return;
        }
        n.mutators[i].holds = true;
        if m.guards.stop_leaves {
            n.mutators[i].at = Act::Leaves;
        } else {
            enters(m, &mut n, i);
        }
    } else {
        enters(m, &mut n, i);
    }
    if n.mutators[i].at != Act::Idle {
        out.push(who(i), "begins", n);
    }
}

/// Commands that move runs, and those that need one in its place, settle first what another one left.
fn recovers(command: Command) -> bool {
    use Command::{Archive, Delete, Force, Restore, Resume, Stop, Unproven};
    matches!(command, Delete | Force | Unproven | Archive | Restore | Stop | Resume)
}

/// The first step of a command, by where the run is now; none where there is nothing to do.
pub(crate) fn enters(m: &Model, n: &mut State, i: usize) {
    use Command::{Cleanup, EraseQuarantined, Force, Restore, Stop};
    let command = n.mutators[i].command;
    let quarantined = matches!(command, Restore | EraseQuarantined);
    let recovers = recovers(command);
    n.mutators[i].at = match n.place {
        Place::Runs if quarantined => return,
        Place::Runs => match command {
            Stop | Force => return stop::begins(n, i),
            Cleanup => Act::LocksToClean,
            _ => Act::Locks,
        },
        Place::Quarantine if quarantined => Act::Locks,
        Place::Quarantine | Place::Gone => return,
        Place::Trash | Place::Erasing | Place::HalfErased if recovers && m.guards.trash_is_recovered => {
            Act::LocksToRecover
        }
        Place::Trash | Place::Erasing | Place::HalfErased => return,
    };
}

/// The run lock is held, and the command's own work begins, if the run is still where it was.
fn locked(m: &Model, n: &mut State, i: usize) {
    let command = n.mutators[i].command;
    let quarantined = matches!(command, Command::Restore | Command::EraseQuarantined);
    let expected = if quarantined { Place::Quarantine } else { Place::Runs };
    if n.place != expected {
        // Whoever had the lock before left something; or the run is gone.
        let left = matches!(n.place, Place::Trash | Place::Erasing | Place::HalfErased);
        if left && recovers(command) && m.guards.trash_is_recovered {
            n.mutators[i].at = Act::Recovers;
        } else {
            reports(n, i, Report::Refused);
        }
        return;
    }
    match command {
        Command::Resume => resume::begins(n, i),
        Command::Restore => n.mutators[i].at = Act::RenamesBack,
        _ => remove::begins(m, n, i),
    }
}
