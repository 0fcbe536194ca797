//! What nobody asked for: deaths, reboots, strangers, and a multiplexer that does things of its own.

use crate::engine;
use crate::keeper;
use crate::model::{Model, Out, Who};
use crate::mutator;
use crate::state::{
    AWAY, Act, Cli, Foreign, Hold, KEEPERS, Keep, Left, Lock, Made, Place, State, attempt_of,
};

/// Every such step.
pub(crate) fn steps(m: &Model, s: &State, out: &mut Out<'_>) {
    for k in 0..KEEPERS {
        if let Some(n) = engine::carries_out(s, k) {
            out.of(Who::Mux, "carries out the request of a killed client", attempt_of(k), n);
        }
    }
    if m.scenario.strangers {
        strangers(s, out);
    }
    if s.faults > 0 {
        faults(m, s, out);
    }
}

fn strangers(s: &State, out: &mut Out<'_>) {
    let ours = s.attempts.iter().any(|a| a.window);
    if s.foreign == Foreign::None && s.attempts[0].server > 0 && !ours {
        let mut n = *s;
        n.foreign = Foreign::Name;
        if s.server > 0 {
            if s.server != s.attempts[0].server {
                n.foreign = Foreign::NameAndId;
            }
            out.push(Who::World, "makes a mux session under the name of ours", n);
        } else if s.servers < 3 {
            n.servers += 1;
            n.server = n.servers;
            n.foreign = Foreign::NameAndId;
            out.push(
                Who::World,
                "starts a new server, with a mux session under the name and the id of ours",
                n,
            );
        }
    }
    let dead = !s.engine_lives() || s.keepers.iter().any(|k| k.at == Keep::Dead);
    if dead && !s.reused {
        let mut n = *s;
        n.reused = true;
        out.push(Who::World, "gives the pids of what died to strangers", n);
    }
}

fn faults(m: &Model, s: &State, out: &mut Out<'_>) {
    let mut base = *s;
    base.faults -= 1;
    if m.scenario.deaths {
        deaths(m, s, base, out);
    }
    if m.scenario.mux && s.server > 0 {
        let mut n = base;
        engine::server_ends(m, &mut n);
        out.push(Who::World, "ends the multiplexer's server", n);
    }
    if m.scenario.reboot && !s.rebooted {
        out.push(Who::World, "restarts the host", reboots(m, base));
    }
    if m.scenario.respawn
        && s.keepers[2].at == Keep::Unborn
        && s.attempts[0].made == Made::Filled
        && s.server > 0
    {
        let mut n = base;
        n.keepers[0].gone |= n.keepers[0].at.lives();
        n.keepers[2].at = Keep::Born;
        n.attempts[0].window = true;
        n.attempts[0].server = s.server;
        out.of(Who::World, "executes the window's command again", 0, n);
    }
    if m.scenario.tear && s.place == Place::Runs {
        for a in 0..s.attempts.len() {
            if s.attempts[a].start && !s.attempts[a].torn {
                let mut n = base;
                n.attempts[a].torn = true;
                out.of(Who::World, "tears the start receipt", a, n);
            }
        }
    }
}

fn deaths(m: &Model, s: &State, base: State, out: &mut Out<'_>) {
    if s.engine_lives() {
        let mut n = base;
        engine::ends(m, &mut n);
        out.push(Who::World, "kills the engine", n);
    }
    for k in 0..KEEPERS {
        if s.keepers[k].at.lives() {
            let mut n = base;
            let a = attempt_of(k);
            if n.attempts[a].left == Left::Hidden && n.parent(a) == k {
                n.attempts[a].left = Left::Beyond;
            }
            keeper::ends(&mut n, k);
            out.of(Who::World, "kills the keeper", attempt_of(k), n);
        }
    }
    for i in 0..2 {
        if !matches!(s.mutators[i].at, Act::Idle | Act::Done) {
            let mut n = base;
            mutator::ends(&mut n, i);
            out.push(if i == 0 { Who::Mutator(0) } else { Who::Mutator(1) }, "is killed", n);
        }
    }
}

/// Nothing that ran runs on; the disk is as it was.
fn reboots(m: &Model, mut n: State) -> State {
    n.rebooted = true;
    engine::server_ends(m, &mut n);
    for k in 0..KEEPERS {
        if n.keepers[k].at != Keep::Unborn {
            keeper::ends(&mut n, k);
        }
    }
    for a in &mut n.attempts {
        a.left = Left::None;
        a.window = false;
        if a.cli == Cli::Alive {
            a.cli = Cli::EndedAfter;
        }
    }
    engine::ends(m, &mut n);
    n.engine_lock = Lock::Free;
    for i in 0..2 {
        if n.mutators[i].at != Act::Idle {
            mutator::ends(&mut n, i);
        }
    }
    n.observer = AWAY;
    n.hold = Hold::None;
    n
}
