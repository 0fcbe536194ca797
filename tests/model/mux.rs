//! The multiplexer's acts: it can ignore a kill, and a kill that names too little reaches somebody else.

use crate::keeper;
use crate::model::{Model, Out, Who};
use crate::rules::Harm;
use crate::state::{Foreign, State, Went};

/// The window of an attempt is on the server that serves now.
pub(crate) fn lists(s: &State, a: usize) -> bool {
    s.attempts[a].window && s.server == s.attempts[a].server
}

/// A conditional kill of an attempt's window.
pub(crate) fn kill(m: &Model, s: &State, who: Who, a: usize, out: &mut Out<'_>, then: impl Fn(&mut State)) {
    let by_name = !m.guards.kills_by_token && s.foreign != Foreign::None;
    let by_id = !m.guards.kills_on_recorded_server && s.foreign == Foreign::NameAndId;
    let mut n = *s;
    if lists(s, a) {
        keeper::window_goes(m, &mut n, a, Went::Window);
        then(&mut n);
        out.of(who, "has the multiplexer kill the window", a, n);
        if m.scenario.mux && s.faults > 0 {
            let mut n = *s;
            n.faults -= 1;
            then(&mut n);
            out.of(who, "has the multiplexer kill the window, which says so and does not", a, n);
        }
    } else {
        if by_name || by_id {
            n.harmed(Harm::ForeignKilled);
        }
        then(&mut n);
        out.of(who, "asks the multiplexer for a kill, and no window of this run is there", a, n);
    }
}
