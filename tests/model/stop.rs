//! `stop`, and the first half of `delete --force`: the request, the end of each attempt, and a fresh look.

use crate::engine::{self, permitted, write_record};
use crate::look::{self, Listed, at_attempt, at_everything, probe_engine};
use crate::model::{Model, Out};
use crate::mutator::{locks, reports, unlocks, who};
use crate::mux;
use crate::remove::{Sweep, sweep, sweep_all, unswept};
use crate::rules::Harm;
use crate::state::{
    AWAY, Act, Cli, Command, KEEPERS, Keep, Left, Lock, Looker, Place, Probe, Read, Report, State, attempt_of,
};
use crate::tables::{Edit, RecordId, SeenId};
use loopmux::verdict::{Lease, Leftovers, Status, Verdict};

/// The first look.
pub(crate) fn begins(n: &mut State, i: usize) {
    n.mutators[i].look = Looker { emptied: true, ..at_everything() };
    n.mutators[i].at = Act::LooksFirst;
}

/// Nothing of an attempt runs, as it was seen, and nothing can start.
fn is_over(m: &Model, id: SeenId) -> bool {
    let tables = m.tables();
    let seen = tables.seen(id);
    seen.verdict.is_end() && matches!(seen.evidence.lease, Lease::Free | Lease::NoFile)
}

/// Nothing of the run lives, as it was seen.
fn nothing_lives(m: &Model, l: &Looker) -> bool {
    l.engine == Probe::Free && look::listed(l).all(|id| is_over(m, id))
}

/// The steps of a stop; `false` where the mutator is at none of them.
pub(crate) fn steps(m: &Model, s: &State, i: usize, out: &mut Out<'_>) -> bool {
    let mutator = &s.mutators[i];
    let me = who(i);
    let a = usize::from(mutator.attempt);
    let mut n = *s;
    match mutator.at {
        Act::LooksFirst | Act::LooksAtLaunch | Act::LooksAtAttempt | Act::LooksLast | Act::LooksToRecord => {
            look::steps(
                m,
                s,
                me,
                mutator.look,
                out,
                |n, looker| {
                    let alive = looker.whole && looker.engine != Probe::Free && looker.next == Read::List;
                    let decided = alive
                        && matches!(n.mutators[i].at, Act::LooksFirst | Act::LooksLast | Act::LooksToRecord);
                    n.mutators[i].look = looker;
                    if decided {
                        // An engine lives, or may: what else is read changes nothing.
                        looked(m, n, i);
                    }
                },
                |n| looked(m, n, i),
            )
        }
        Act::LocksRequest => locks(m, s, i, out, |n| n.mutators[i].at = Act::WritesRequest),
        Act::WritesRequest => {
            if s.place == Place::Runs {
                n.stop = true;
                unlocks(&mut n, i);
                looks_at_launch(&mut n, i);
                out.push(me, "writes the stop request, and gives the run lock up", n);
            } else {
                if !m.guards.writes_make_nothing && s.place == Place::Gone {
                    n.place = Place::Runs;
                    n.harmed(Harm::CameBack);
                }
                reports(&mut n, i, Report::Refused);
                out.push(me, "finds no run to stop", n);
            }
        }
        Act::AwaitsLaunch => {
            looks_at_launch(&mut n, i);
            out.push(me, "waits for the launch", n);
            let mut n = *s;
            first_attempt(&mut n, i);
            out.push(me, "waits no longer", n);
        }
        Act::LocksToGiveUp => locks(m, s, i, out, |n| n.mutators[i].at = Act::ProbesToGiveUp),
        Act::ProbesToGiveUp => {
            if probe_engine(s) == Probe::Free {
                n.mutators[i].at = Act::Cancels;
            } else {
                unlocks(&mut n, i);
                looks_at_launch(&mut n, i);
            }
            out.push(me, "probes the engine lock", n);
        }
        Act::Cancels => {
            cancels(m, &mut n, a);
            n.mutators[i].at = Act::AsksToGiveUp;
            out.of(me, "writes `cancelled`", a, n);
        }
        Act::AsksToGiveUp => look::asks(m, s, me, a, out, |n, listed| match listed {
            Listed::Ours => n.mutators[i].at = Act::KillsToGiveUp,
            Listed::Not => gave_up(n, i),
        }),
        Act::KillsToGiveUp => mux::kill(m, s, me, a, out, |n| gave_up(n, i)),
        Act::Asks => look::asks(m, s, me, a, out, |n, listed| match listed {
            Listed::Ours => n.mutators[i].at = Act::Kills,
            Listed::Not => looks_at_attempt(n, i),
        }),
        Act::Kills => mux::kill(m, s, me, a, out, |n| {
            if m.guards.stop_looks_again { looks_at_attempt(n, i) } else { next_attempt(n, i) }
        }),
        Act::Insists => insists(m, s, i, out),
        Act::Sweeps => {
            match sweep(m, s, a) {
                Sweep::Somebody if mutator.tries < 2 => {
                    n.mutators[i].tries = 2;
                    n.mutators[i].at = Act::Insists;
                }
                found => {
                    n.mutators[i].proven &= found == Sweep::Nobody;
                    next_attempt(&mut n, i);
                }
            }
            out.of(me, "looks for members of the keeper's session", a, n);
        }
        Act::SweepsLast => {
            n.mutators[i].proven &= sweep_all(m, s, mutator.mask) == Sweep::Nobody;
            n.mutators[i].mask = 0;
            writes_or_reports(m, &mut n, i);
            out.push(me, "looks for members of the run's sessions", n);
        }
        Act::AwaitsEngine => awaits_engine(m, s, i, out),
        Act::LocksRecord => locks(m, s, i, out, |n| {
            if m.guards.stop_looks_under_lock {
                n.mutators[i].look = Looker { locked: true, ..at_everything() };
                n.mutators[i].at = Act::LooksToRecord;
            } else {
                n.mutators[i].at = Act::ReadsRecord;
            }
        }),
        Act::ReadsRecord => {
            if m.guards.record_read_again {
                n.mutators[i].record = s.record;
            }
            n.mutators[i].at = Act::WritesRecord;
            out.push(me, "reads the record again", n);
        }
        Act::WritesRecord => {
            let seen = (mutator.look.seen[0] != SeenId::NONE).then_some(mutator.look.seen[0]);
            if let Some(next) = permitted(m, s, mutator.record, Edit::End(Status::Stopped, seen)) {
                write_record(m, &mut n, next);
            }
            finishes(m, &mut n, i);
            out.push(me, "writes that it was stopped", n);
        }
        _ => return false,
    }
    true
}

/// Writes that the launch was given up, in whatever place the directory is.
pub(crate) fn cancels(m: &Model, n: &mut State, a: usize) {
    let matters = !n.attempts[a].start || m.scenario.respawn;
    n.attempts[a].cancelled |= m.guards.give_up_cancels && n.place != Place::Gone && matters;
}

fn looks_at_launch(n: &mut State, i: usize) {
    n.mutators[i].look = at_everything();
    n.mutators[i].at = Act::LooksAtLaunch;
}

fn looks_at_attempt(n: &mut State, i: usize) {
    let a = n.mutators[i].attempt;
    n.mutators[i].look = Looker { emptied: true, ..at_attempt(a) };
    n.mutators[i].at = Act::LooksAtAttempt;
}

fn gave_up(n: &mut State, i: usize) {
    unlocks(n, i);
    first_attempt(n, i);
}

/// Lists the attempts, and begins with the first.
fn first_attempt(n: &mut State, i: usize) {
    n.mutators[i].mask = if n.has_files() { n.made() } else { 0 };
    next_attempt(n, i);
}

fn next_attempt(n: &mut State, i: usize) {
    let mask = n.mutators[i].mask;
    n.mutators[i].look = AWAY;
    n.mutators[i].tries = 0;
    if mask == 0 {
        n.mutators[i].attempt = 0;
        n.mutators[i].at = Act::AwaitsEngine;
        return;
    }
    let a = u8::try_from(mask.trailing_zeros()).expect("few attempts");
    n.mutators[i].mask &= !(1 << a);
    n.mutators[i].attempt = a;
    looks_at_attempt(n, i);
}

fn looked(m: &Model, n: &mut State, i: usize) {
    let mutator = n.mutators[i];
    let l = mutator.look;
    n.mutators[i].look = AWAY;
    match mutator.at {
        Act::LooksFirst => {
            // A free lease alone does not say that no descendant is left.
            let swept = !m.guards.stop_sweeps || unswept(m, &l) == 0;
            let over = nothing_lives(m, &l) && look::status(m, &l).row().is_final && swept;
            if over && mutator.command == Command::Stop {
                reports(n, i, Report::Success);
            } else {
                n.mutators[i].at = Act::LocksRequest;
            }
        }
        Act::LooksAtLaunch => {
            let launching =
                look::listed(&l).last().is_some_and(|id| *m.tables().verdict(id) == Verdict::Launching);
            // An engine that looked for a stop before this one's request was there launches in a moment.
            let due = l.record.is_some_and(|id| {
                let tables = m.tables();
                let record = tables.record(id);
                record.status == Status::Starting && record.launch_is_due()
            });
            let about_to = l.engine == Probe::Held && (l.listed == 0 || due);
            match (launching || about_to, l.engine) {
                (false, _) => first_attempt(n, i),
                (true, Probe::Free) => {
                    n.mutators[i].attempt = u8::try_from(7 - l.listed.leading_zeros()).expect("few attempts");
                    n.mutators[i].at = Act::LocksToGiveUp;
                }
                (true, _) => n.mutators[i].at = Act::AwaitsLaunch,
            }
        }
        Act::LooksAtAttempt => looked_at_attempt(m, n, i, &l),
        Act::LooksToRecord => looked_to_record(m, n, i, &l),
        _ => looked_last(m, n, i, &l),
    }
}

fn looked_at_attempt(m: &Model, n: &mut State, i: usize, l: &Looker) {
    let mutator = n.mutators[i];
    let id = l.seen[usize::from(mutator.attempt)];
    let tables = m.tables();
    let seen = tables.seen(id);
    let unknown = matches!(seen.verdict, Verdict::Unknown { .. });
    let lives = matches!(seen.evidence.lease, Lease::Held | Lease::Unknown(_)) || unknown;
    let swept = matches!(seen.evidence.emptied, loopmux::verdict::Observation::Known(()))
        || matches!(seen.verdict, Verdict::NeverStarted { .. });
    let ended = seen.verdict.is_end() && seen.verdict.leftovers() == Leftovers::None;
    drop(tables);
    match (lives, mutator.tries) {
        (true, 0) => {
            n.mutators[i].tries = 1;
            n.mutators[i].at = Act::Asks;
        }
        (true, 1) => {
            n.mutators[i].tries = 2;
            n.mutators[i].at = Act::Insists;
        }
        (false, _) if ended && !swept && m.guards.stop_sweeps => n.mutators[i].at = Act::Sweeps,
        _ => {
            n.mutators[i].proven &= ended;
            next_attempt(n, i);
        }
    }
}

/// Kills what it finds, through handles.
fn insists(m: &Model, s: &State, i: usize, out: &mut Out<'_>) {
    let a = usize::from(s.mutators[i].attempt);
    let mut n = *s;
    let keeper = (0..KEEPERS).find(|k| attempt_of(*k) == a && s.keepers[*k].at.lives() && *k == s.parent(a));
    let started = s.attempts[a].start;
    if m.scenario.foreign_space {
        if !m.guards.foreign_space_is_unknown && started {
            n.harmed(Harm::StrangerInForeignSpace);
        }
        looks_at_attempt(&mut n, i);
        out.of(who(i), "cannot signal anybody in another pid namespace", a, n);
        return;
    }
    let recorded_dead = s.keepers[s.parent(a)].at == Keep::Dead || s.attempts[a].cli != Cli::Alive;
    if !m.guards.signals_by_handle && s.reused && started && recorded_dead {
        n.harmed(Harm::StrangerSignalled);
    }
    let all = match keeper {
        Some(k) if !m.guards.stop_spares_keeper => {
            n.keepers[k].gone = true;
            crate::keeper::ends(&mut n, k);
            false
        }
        keeper => keeper.is_some(),
    };
    let attempt = &mut n.attempts[a];
    if attempt.cli == Cli::Alive {
        let there = keeper.is_some_and(|k| !s.keepers[k].gone);
        attempt.cli = if there && all { Cli::Ended } else { Cli::EndedAfter };
    }
    attempt.left = match attempt.left {
        Left::Member if !all && !m.guards.stop_sweeps => Left::Member,
        Left::Hidden | Left::Beyond if !all => attempt.left,
        _ => Left::None,
    };
    looks_at_attempt(&mut n, i);
    out.of(who(i), "kills what it finds, through handles", a, n);
}

fn awaits_engine(m: &Model, s: &State, i: usize, out: &mut Out<'_>) {
    let me = who(i);
    let after = |n: &mut State| {
        n.mutators[i].overtaken = false;
        if m.guards.stop_looks_last {
            n.mutators[i].look = Looker { emptied: true, ..at_everything() };
            n.mutators[i].at = Act::LooksLast;
        } else {
            finishes(m, n, i);
        }
    };
    let mut n = *s;
    if matches!(s.engine_lock, Lock::Free) && s.place != Place::Gone {
        after(&mut n);
        out.push(me, "sees that no engine runs", n);
    } else {
        n.mutators[i].proven = false;
        after(&mut n);
        out.push(me, "waits no longer for the engine", n);
        if s.mutators[i].command == Command::Force && s.engine_lives() {
            let mut n = *s;
            engine::ends(m, &mut n);
            after(&mut n);
            out.push(me, "kills the engine, through a handle", n);
        }
    }
}

/// The look that is reported.
fn looked_last(m: &Model, n: &mut State, i: usize, l: &Looker) {
    n.mutators[i].proven &= nothing_lives(m, l);
    n.mutators[i].look = Looker { engine: l.engine, record: l.record, ..AWAY };
    n.mutators[i].look.seen[0] = look::outcome(m, l).unwrap_or(SeenId::NONE);
    n.mutators[i].mask = unswept(m, l);
    if n.mutators[i].mask != 0 && n.mutators[i].proven && m.guards.stop_sweeps {
        n.mutators[i].at = Act::SweepsLast;
    } else {
        n.mutators[i].mask = 0;
        writes_or_reports(m, n, i);
    }
}

/// An active record of a run without an engine is the stopper's to end.
fn writes_or_reports(m: &Model, n: &mut State, i: usize) {
    let l = n.mutators[i].look;
    n.mutators[i].look = AWAY;
    if may_write(m, &l) {
        if !m.guards.stop_looks_under_lock {
            n.mutators[i].look.seen[0] = l.seen[0];
            n.mutators[i].record = l.record.unwrap_or(RecordId::NEW);
        }
        n.mutators[i].at = Act::LocksRecord;
    } else {
        finishes(m, n, i);
    }
}

/// The look under the run lock, whose outcome is written down.
fn looked_to_record(m: &Model, n: &mut State, i: usize, l: &Looker) {
    let outcome = look::outcome(m, l).unwrap_or(SeenId::NONE);
    let l = Looker { seen: [outcome, SeenId::NONE], ..*l };
    if may_write(m, &l) {
        n.mutators[i].look.seen[0] = outcome;
        n.mutators[i].record = l.record.unwrap_or(RecordId::NEW);
        n.mutators[i].at = Act::ReadsRecord;
    } else {
        finishes(m, n, i);
    }
}

/// No engine, an active record, and the latest attempt, if there is one, has ended by proof.
fn may_write(m: &Model, l: &Looker) -> bool {
    let tables = m.tables();
    let active = l.record.is_some_and(|id| tables.record(id).status.row().active);
    let ended = l.seen[0] == SeenId::NONE || tables.verdict(l.seen[0]).is_end();
    active && l.engine == Probe::Free && ended
}

/// A stop reports; a removal that was forced goes on with what is proven dead.
fn finishes(m: &Model, n: &mut State, i: usize) {
    let mutator = n.mutators[i];
    unlocks(n, i);
    if mutator.command == Command::Force && (mutator.proven || !m.guards.force_needs_proof) {
        if mutator.proven {
            crate::mutator::claims_success(n, i);
        }
        n.mutators[i].look = AWAY;
        n.mutators[i].record = RecordId::NEW;
        n.mutators[i].at = Act::LocksToClean;
        return;
    }
    reports(n, i, if mutator.proven { Report::Success } else { Report::Refused });
}
