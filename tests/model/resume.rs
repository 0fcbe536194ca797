//! `resume`: under the run lock, with every end proven, it takes the engine lock and becomes the engine of the next
//! attempt.

use crate::engine::write_record;
use crate::look;
use crate::model::{Model, Out};
use crate::mutator::{reports, unlocks, who};
use crate::rules::Harm;
use crate::state::{AWAY, Act, Cli, Drive, Hold, Left, Lock, Looker, Report, State};
use crate::tables::SeenId;

/// The run lock is held: the look that decides.
pub(crate) fn begins(n: &mut State, i: usize) {
    n.mutators[i].look = Looker { locked: true, ..look::at_everything() };
    n.mutators[i].at = Act::LooksToResume;
}

/// The steps of a resume, from its look on; `false` where the mutator is at none of them.
pub(crate) fn steps(m: &Model, s: &State, i: usize, out: &mut Out<'_>) -> bool {
    let mutator = &s.mutators[i];
    let me = who(i);
    let mut n = *s;
    match mutator.at {
        Act::LooksToResume => look::steps(
            m,
            s,
            me,
            mutator.look,
            out,
            |n, looker| n.mutators[i].look = looker,
            |n| looked(m, n, i),
        ),
        Act::TakesEngine => {
            if s.engine_lock != Lock::Free && m.guards.resume_takes_engine_lock {
                reports(&mut n, i, Report::Refused);
                out.push(me, "finds the engine lock held", n);
            } else if s.hold != Hold::Engine || !m.guards.resume_takes_engine_lock {
                n.engine_lock = Lock::Mutator(u8::try_from(i).expect("two mutators"));
                n.mutators[i].at = Act::ReadsToResume;
                out.push(me, "takes the engine lock", n);
            } else if !m.guards.patience {
                reports(&mut n, i, Report::Refused);
                n.harmed(Harm::ReadDisturbed);
                out.push(me, "takes an observer for an engine", n);
            }
        }
        Act::ReadsToResume => {
            let latest = (mutator.look.seen[0] != SeenId::NONE).then_some(mutator.look.seen[0]);
            let read = if m.guards.attempts_are_counted {
                m.tables().counting(s.record, s.latest_made())
            } else {
                s.record
            };
            let full = m.tables().record(read).attempt >= 2;
            let next = m.tables().resumed(read, latest);
            match next {
                Some(next) if !full => {
                    n.mutators[i].record = next;
                    n.mutators[i].look = AWAY;
                    n.mutators[i].at = Act::PutsStopAside;
                }
                _ => reports(&mut n, i, Report::Refused),
            }
            out.push(me, "reads the record again", n);
        }
        Act::PutsStopAside => {
            n.stop = false;
            n.mutators[i].at = Act::WritesResumed;
            out.push(me, "puts the stop request aside", n);
        }
        Act::WritesResumed => {
            write_record(m, &mut n, mutator.record);
            becomes_engine(m, &mut n, i);
            out.push(me, "writes the record, gives the run lock up, and is the engine now", n);
        }
        _ => return false,
    }
    true
}

fn looked(m: &Model, n: &mut State, i: usize) {
    let l = n.mutators[i].look;
    n.mutators[i].look = AWAY;
    n.mutators[i].look.seen[0] = look::outcome(m, &l).unwrap_or(SeenId::NONE);
    if look::permit(m, &l).resumable || !m.guards.resume_needs_end {
        n.mutators[i].at = Act::TakesEngine;
    } else {
        reports(n, i, Report::Refused);
    }
}

fn becomes_engine(m: &Model, n: &mut State, i: usize) {
    if n.engine_lives() {
        n.harmed(Harm::TwoEngines);
    } else if n.attempts.iter().any(|a| a.cli == Cli::Alive || a.left == Left::Holding) {
        n.harmed(Harm::ResumedOverLeftovers);
    }
    let attempt = m.tables().record(n.mutators[i].record).attempt;
    unlocks(n, i);
    n.engine_lock = Lock::Engine;
    n.engine.at = Drive::ReadsStopFirst;
    n.engine.attempt = u8::try_from(attempt).expect("few attempts");
    for other in (0..n.mutators.len()).filter(|o| *o != i) {
        if !matches!(n.mutators[other].at, Act::Idle | Act::Done) {
            n.mutators[other].overtaken = true;
        }
    }
    n.mutators[i].report = Report::Success;
    crate::mutator::ends(n, i);
}
