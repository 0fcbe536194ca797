//! `cleanup`: the multiplexer only, and only what is ours and has ended. The run lock is held for the look alone: a
//! window is killed by its own attempt's token, and a later attempt has another.

use crate::keeper;
use crate::look;
use crate::model::{Model, Out};
use crate::mutator::{locks, reports, unlocks, who};
use crate::mux;
use crate::rules::Harm;
use crate::state::{AWAY, Act, Cli, Command, Foreign, Looker, Probe, Report, State, Went};

/// The steps of a cleanup; `false` where the mutator is at none of them.
pub(crate) fn steps(m: &Model, s: &State, i: usize, out: &mut Out<'_>) -> bool {
    let mutator = &s.mutators[i];
    let me = who(i);
    let mut n = *s;
    match mutator.at {
        Act::LocksToClean => locks(m, s, i, out, |n| {
            n.mutators[i].look = Looker { emptied: true, locked: true, ..look::at_everything() };
            n.mutators[i].at = Act::LooksToClean;
        }),
        Act::LooksToClean => look::steps(
            m,
            s,
            me,
            mutator.look,
            out,
            |n, looker| n.mutators[i].look = looker,
            |n| looked(m, n, i),
        ),
        Act::Lists => {
            let ours = (0..s.attempts.len()).filter(|a| mutator.mask & (1 << a) != 0 && mux::lists(s, *a));
            n.mutators[i].mask = ours.map(|a| 1 << a).sum();
            let taken = !m.guards.cleanup_by_token && s.foreign != Foreign::None;
            if n.mutators[i].mask != 0 || taken {
                n.mutators[i].at = Act::KillsPane;
            } else {
                cleaned(&mut n, i, Report::Success);
            }
            out.push(me, "asks the multiplexer what it lists", n);
            if n.mutators[i].mask != 0 && m.scenario.mux && s.faults > 0 {
                let mut n = *s;
                n.faults -= 1;
                cleaned(&mut n, i, Report::Success);
                out.push(me, "asks the multiplexer, which omits the windows", n);
            }
        }
        Act::KillsPane => kills(m, s, i, out),
        Act::ListsAgain => {
            let still = (0..s.attempts.len()).any(|a| mux::lists(s, a));
            cleaned(&mut n, i, if still { Report::Refused } else { Report::Success });
            out.push(me, "asks the multiplexer again", n);
        }
        _ => return false,
    }
    true
}

/// Whose windows may go.
fn looked(m: &Model, n: &mut State, i: usize) {
    let l = n.mutators[i].look;
    let permitted = look::permit(m, &l);
    let ended = l.engine == Probe::Free && (permitted.removable || permitted.but_for_a_sweep);
    unlocks(n, i);
    n.mutators[i].look = AWAY;
    if ended || !m.guards.cleanup_needs_end {
        n.mutators[i].mask = l.listed;
        n.mutators[i].at = Act::Lists;
    } else {
        cleaned(n, i, Report::Refused);
    }
}

fn kills(m: &Model, s: &State, i: usize, out: &mut Out<'_>) {
    let me = who(i);
    let mask = s.mutators[i].mask;
    let mut n = *s;
    if !m.guards.cleanup_by_token && s.foreign != Foreign::None {
        n.harmed(Harm::ForeignClaimed);
    }
    // Without its own token a pane is found by the run alone, and the next attempt's with it.
    let meant = |a: usize| mask & (1 << a) != 0 || !m.guards.cleanup_by_token;
    for a in (0..s.attempts.len()).filter(|a| meant(*a)) {
        if mux::lists(s, a) {
            if s.attempts[a].cli == Cli::Alive {
                n.harmed(Harm::LiveCleaned);
            }
            keeper::window_goes(m, &mut n, a, Went::Window);
        }
    }
    n.mutators[i].mask = 0;
    n.mutators[i].at = Act::ListsAgain;
    out.push(me, "has the multiplexer kill the windows", n);
    if m.scenario.mux && s.faults > 0 {
        let mut n = *s;
        n.faults -= 1;
        n.mutators[i].mask = 0;
        n.mutators[i].at = Act::ListsAgain;
        out.push(me, "has the multiplexer kill the windows, which says so and does not", n);
    }
}

/// A cleanup reports; a removal that was forced goes on, and sees for itself what is left.
fn cleaned(n: &mut State, i: usize, report: Report) {
    if n.mutators[i].command == Command::Force {
        n.mutators[i].mask = 0;
        n.mutators[i].at = Act::Locks;
    } else {
        reports(n, i, report);
    }
}
