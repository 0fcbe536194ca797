//! The keepers and their programs, one step after the other.

use crate::model::{Model, Out, Who};
use crate::rules::Harm;
use crate::state::{
    Act, Claim, Cli, Hold, KEEPERS, Keep, Keeper, Left, Made, Place, Receipt, State, Went, attempt_of,
};

/// Every step of every keeper and program.
pub(crate) fn steps(m: &Model, s: &State, out: &mut Out<'_>) {
    for k in 0..KEEPERS {
        keeper(m, s, k, out);
    }
    for a in 0..s.attempts.len() {
        program(m, s, a, out);
    }
}

/// A receipt of a keeper can be seen in the directory.
fn used(s: &State, a: usize) -> bool {
    let attempt = &s.attempts[a];
    s.has_files() && (attempt.start || attempt.refused || attempt.exit != Receipt::None)
}

/// A keeper ends, and its window closes with it.
pub(crate) fn ends(n: &mut State, k: usize) {
    n.keepers[k] = Keeper { at: Keep::Dead, gone: false, told: false };
    let a = attempt_of(k);
    let replaced = k == 0 && n.keepers[2].at != Keep::Unborn;
    n.attempts[a].window &= replaced;
}

/// The window of an attempt goes away. What it was told of it depends on the platform.
pub(crate) fn window_goes(m: &Model, n: &mut State, a: usize, went: Went) {
    n.attempts[a].window = false;
    if m.scenario.causes {
        n.attempts[a].went = went;
    }
    for k in (0..KEEPERS).filter(|k| attempt_of(*k) == a) {
        if n.keepers[k].at == Keep::Parked {
            ends(n, k);
        } else if n.keepers[k].at.may_be_told() || (m.scenario.windows && n.keepers[k].at.lives()) {
            n.keepers[k].gone = true;
        }
    }
    if m.scenario.windows && n.attempts[a].cli == Cli::Alive {
        n.attempts[a].cli = Cli::EndedAfter;
    }
}

pub(crate) fn keeper(m: &Model, s: &State, k: usize, out: &mut Out<'_>) {
    let who = Who::Keeper(u8::try_from(k).expect("few keepers"));
    let a = attempt_of(k);
    let attempt = &s.attempts[a];
    let keeper = &s.keepers[k];
    let g = &m.guards;
    let mut n = *s;
    let mut go = |n: State, what| out.of(who, what, a, n);
    let to = |at: Keep| {
        let mut n = *s;
        n.keepers[k].at = at;
        n
    };
    let quits = || {
        let mut n = *s;
        ends(&mut n, k);
        n
    };
    match keeper.at {
        Keep::Unborn | Keep::Queued | Keep::Dead => {}
        Keep::Born => {
            let opens = s.place == Place::Runs && attempt.made >= Made::Dir;
            let (next, what) = if opens {
                (to(Keep::Opened), "opens its directory")
            } else {
                (quits(), "finds no directory, and ends")
            };
            go(next, what);
            if keeper.gone {
                go(quits(), "is ended by the hang-up before it ignores it");
            }
        }
        Keep::Opened | Keep::Locked => {
            let first = keeper.at == Keep::Opened;
            let looks = if first { g.unused_before_lease } else { g.unused_after_lease };
            if looks && used(s, a) {
                go(quits(), "sees that another keeper was here, and ends");
            } else {
                go(to(if first { Keep::Unused } else { Keep::StillUnused }), "sees no receipt");
            }
        }
        Keep::Unused => takes_lease(m, s, k, out),
        Keep::StillUnused => {
            if s.place == Place::Runs || !g.keeper_checks_path {
                go(to(Keep::InPlace), "sees that its path leads to its directory");
            } else {
                go(quits(), "sees that its directory was moved away, and ends");
            }
        }
        Keep::InPlace => {
            let later = a == 0 && s.attempts[1].made > Made::No && s.has_files();
            if later && g.keeper_checks_attempt {
                go(to(Keep::Refusing), "sees a later attempt");
            } else {
                go(to(Keep::Latest), "sees no later attempt");
            }
        }
        Keep::Latest => {
            if attempt.cancelled && s.has_files() && g.keeper_checks_cancelled {
                go(to(Keep::Refusing), "sees `cancelled`");
            } else {
                go(to(Keep::Cleared), "sees no `cancelled`");
            }
        }
        Keep::Cleared => {
            if keeper.gone {
                go(to(Keep::Refusing), "sees that its terminal is gone");
            } else if s.place == Place::Gone || (attempt.start && s.has_files()) {
                go(quits(), "cannot write a start receipt, and ends");
            } else {
                n.keepers[k].at = Keep::Started;
                n.attempts[a].start = true;
                // Beside a start receipt nobody asks for it but another keeper.
                n.attempts[a].cancelled &= m.scenario.respawn;
                if attempt.claim == Claim::Never {
                    n.harmed(Harm::NeverStartedStarted);
                }
                go(n, "writes the start receipt");
            }
        }
        Keep::Started => {
            if keeper.gone {
                go(to(Keep::PolledHangUp), "sees that its terminal is gone, and spawns nothing");
            } else {
                if attempt.cli != Cli::NotStarted {
                    n.harmed(Harm::TwoPrograms);
                }
                n.keepers[k].at = Keep::Tends;
                n.attempts[a].cli = Cli::Alive;
                n.attempts[a].second = k == 2;
                go(n, "spawns the program");
            }
        }
        Keep::Tends => {
            if matches!(attempt.cli, Cli::Ended | Cli::EndedAfter) && s.parent(a) == k {
                go(to(Keep::Reaped), "reaps the program");
            }
        }
        Keep::Reaped => reaped(m, s, k, out),
        Keep::PolledOwn | Keep::PolledHangUp => {
            n.keepers[k].at = Keep::Recorded;
            n.keepers[k].gone &= m.scenario.windows;
            let new = if keeper.at == Keep::PolledOwn { Receipt::Own } else { Receipt::HangUp };
            if s.place != Place::Gone && (attempt.exit == Receipt::None || !g.receipts_once) {
                if attempt.exit != Receipt::None && attempt.exit != new {
                    n.harmed(Harm::ExitChanged);
                }
                n.attempts[a].exit = new;
                if new == Receipt::HangUp {
                    n.attempts[a].cli = Cli::EndedAfter;
                }
                let untrue = new == Receipt::Own && attempt.cli == Cli::EndedAfter;
                if attempt.claim == Claim::Lost && s.attempts[a].exit == Receipt::None || untrue {
                    n.harmed(Harm::FalseEnd);
                }
            }
            go(n, "writes the exit receipt");
        }
        Keep::Recorded => {
            let stopper = s
                .mutators
                .iter()
                .any(|m| m.inside && !m.registered && a == 0 && !matches!(m.at, Act::Idle | Act::Done))
                || (!g.keeper_spares_stopper && below(s, a));
            let left = attempt.left != Left::None || stopper;
            if !left || !g.keeper_waits_for_descendants {
                n.keepers[k].at = Keep::Emptied;
                n.attempts[a].emptied = true;
                go(n, "writes that nothing is left");
            }
        }
        Keep::Emptied => go(to(Keep::Parked), "closes the lease"),
        Keep::Refusing => {
            n.keepers[k].at = Keep::Refused;
            n.attempts[a].refused |= s.place != Place::Gone && attempt.exit == Receipt::None;
            go(n, "writes its refusal");
        }
        Keep::Refused => go(to(Keep::Parked), "closes the lease"),
        Keep::Parked => go(quits(), "ends, and its window closes"),
    }
    if m.scenario.causes && keeper.gone && !keeper.told && keeper.at == Keep::Tends {
        told(m, s, k, out);
    } else if !g.keeper_drains && keeper.gone && !keeper.told && keeper.at == Keep::Tends {
        let mut n = *s;
        n.keepers[k].told = true;
        out.of(who, "notices the hang-up", a, n);
    }
    // Whoever ends a tree ends the keeper last.
    if m.scenario.windows && keeper.gone && keeper.at.lives() {
        out.of(Who::Mux, "ends the keeper, last of its tree,", a, quits());
    }
}

/// A stop from inside runs below the keeper, wherever it went.
fn below(s: &State, a: usize) -> bool {
    a == 0 && s.mutators.iter().any(|m| m.inside && !matches!(m.at, Act::Idle | Act::Done))
}

fn takes_lease(m: &Model, s: &State, k: usize, out: &mut Out<'_>) {
    let who = Who::Keeper(u8::try_from(k).expect("few keepers"));
    let a = attempt_of(k);
    let mut n = *s;
    if s.place == Place::Gone || m.lease_held(s, a) {
        ends(&mut n, k);
        out.of(who, "cannot take the lease, and ends", a, n);
    } else if s.hold != Hold::Lease(u8::try_from(a).expect("few attempts")) {
        n.keepers[k].at = Keep::Locked;
        out.of(who, "locks the lease", a, n);
    } else if !m.guards.patience {
        ends(&mut n, k);
        n.harmed(Harm::ReadDisturbed);
        out.of(who, "takes an observer for the holder of the lease, and ends", a, n);
    }
}

fn reaped(m: &Model, s: &State, k: usize, out: &mut Out<'_>) {
    let who = Who::Keeper(u8::try_from(k).expect("few keepers"));
    let a = attempt_of(k);
    let keeper = &s.keepers[k];
    let gone = if m.guards.keeper_drains { keeper.gone } else { keeper.told };
    let mut n = *s;
    if m.scenario.windows {
        // No event tells of it. What was ended together with the program is evidence.
        if !m.guards.sentinel || !keeper.gone {
            n.keepers[k].at = Keep::PolledOwn;
            out.of(who, "sees its sentinel alive", a, n);
        }
    } else if gone {
        n.keepers[k].at = Keep::PolledHangUp;
        out.of(who, "sees that a hang-up had come", a, n);
    } else {
        n.keepers[k].at = Keep::PolledOwn;
        out.of(who, "sees that no hang-up had come", a, n);
    }
}

/// Asks what went away; writes the answer.
fn told(m: &Model, s: &State, k: usize, out: &mut Out<'_>) {
    let who = Who::Keeper(u8::try_from(k).expect("few keepers"));
    let a = attempt_of(k);
    let attempt = &s.attempts[a];
    let mut said = |note: Went, what| {
        let mut n = *s;
        n.keepers[k].told = true;
        if s.has_files() {
            n.attempts[a].note = note;
        }
        out.of(who, what, a, n);
    };
    let same = s.server == attempt.server;
    if s.server == 0 {
        said(Went::Server, "is told by nobody: the server is gone");
    } else if same {
        said(Went::Window, "is told by its server, which lists no such window");
    } else if m.guards.explains_by_identity {
        said(Went::Server, "is told by another server: its own is gone");
    } else {
        said(Went::Window, "believes another server, which lists no such window");
    }
    if m.scenario.mux {
        said(Went::Unclear, "gets no answer that counts");
    }
}

fn program(m: &Model, s: &State, a: usize, out: &mut Out<'_>) {
    let who = Who::Program(u8::try_from(a).expect("few attempts"));
    let attempt = &s.attempts[a];
    if attempt.cli == Cli::Alive {
        let keeper = &s.keepers[s.parent(a)];
        let mut n = *s;
        n.attempts[a].cli = if keeper.gone || !keeper.at.lives() { Cli::EndedAfter } else { Cli::Ended };
        out.of(who, "ends", a, n);
        if m.scenario.leftovers && attempt.left == Left::None {
            let kinds = [
                (Left::Holding, "leaves a process that holds the lease"),
                (Left::Member, "leaves a process that dropped the lease"),
                (Left::Hidden, "leaves a process that dropped the lease and the session"),
            ];
            for (left, what) in kinds {
                if left != Left::Hidden || m.scenario.hidden {
                    let mut n = *s;
                    let beyond = left == Left::Hidden && !keeper.at.lives();
                    n.attempts[a].left = if beyond { Left::Beyond } else { left };
                    out.of(who, what, a, n);
                }
            }
        }
    }
    if attempt.left != Left::None {
        let mut n = *s;
        n.attempts[a].left = Left::None;
        out.of(who, "had left something, which ends", a, n);
    }
}
