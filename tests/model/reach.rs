//! Every dead state reaches removal by some command (rules L19, L23): nothing is ever in nobody's reach.

use crate::explore::System;
use crate::model::{Model, Who};
use crate::state::{AWAY, Act, Cli, Command, Foreign, Hold, Keep, Left, Lock, Place, State, idle};
use std::collections::HashSet;

/// What a person types, the simplest first.
const WAYS: [&[Command]; 5] = [
    &[Command::Delete],
    &[Command::Cleanup, Command::Delete],
    // A refusal that names `cleanup` may have given a launch up.
    &[Command::Delete, Command::Cleanup, Command::Delete],
    &[Command::Unproven, Command::EraseQuarantined],
    &[Command::EraseQuarantined],
];

/// More steps than any command takes.
const MANY: usize = 500;

/// Nothing of the run lives, and nothing of it can begin.
fn is_dead(s: &State) -> bool {
    let keepers = s.keepers.iter().all(|k| matches!(k.at, Keep::Unborn | Keep::Dead | Keep::Parked));
    let programs = s.attempts.iter().all(|a| a.cli != Cli::Alive && a.left == Left::None);
    keepers && programs && !s.engine_lives() && s.run_lock == Lock::Free && s.place != Place::Gone
}

/// The same state, with nobody at work, no fault to come, and nobody else's session in the way: the refusal prints
/// how to end that one.
fn quiet(s: &State) -> State {
    State {
        mutators: [idle(Command::Nothing); 2],
        observer: AWAY,
        hold: Hold::None,
        foreign: Foreign::None,
        reused: false,
        faults: 0,
        ..*s
    }
}

/// The dead states among `states`, and those of them that no way leads out of.
pub(crate) fn unreachable(m: &Model, states: &[State]) -> (usize, Vec<State>) {
    let dead: HashSet<State> = states.iter().filter(|s| is_dead(s)).map(quiet).collect();
    let stuck = dead.iter().filter(|s| !WAYS.iter().any(|way| leads_out(m, s, way))).copied().collect();
    (dead.len(), stuck)
}

fn leads_out(m: &Model, s: &State, way: &[Command]) -> bool {
    let end = way.iter().try_fold(*s, |s, command| carry_out(m, &s, *command));
    end.is_some_and(|end| end.place == Place::Gone)
}

/// A command alone, to its end; `None` where it comes to none.
fn carry_out(m: &Model, s: &State, command: Command) -> Option<State> {
    let mut s = State { mutators: [idle(command), idle(Command::Nothing)], ..*s };
    let mut out = Vec::new();
    for _ in 0..MANY {
        if s.mutators[0].at == Act::Done {
            return Some(State { mutators: [idle(Command::Nothing); 2], ..s });
        }
        m.steps(&s, &mut out);
        let (_, next) = out.drain(..).find(|(label, _)| label.who == Who::Mutator(0))?;
        s = next;
    }
    None
}
