//! A breadth-first explorer: exact states, no fingerprints, shortest paths, and an explicit word for having run
//! out of time, which proves nothing.

use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

/// Something that moves from state to state, one atomic step at a time.
pub(crate) trait System {
    /// A state: everything that a later step depends on.
    type State: Copy + Eq + Hash;
    /// What a step is called.
    type Label;

    /// Where it begins.
    fn begin(&self) -> Vec<Self::State>;

    /// Every step that is possible in `state`, and the state after it.
    fn steps(&self, state: &Self::State, out: &mut Vec<(Self::Label, Self::State)>);

    /// No step after this state is of interest.
    fn is_over(&self, state: &Self::State) -> bool;
}

/// How an exploration came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// There is no further state.
    Complete,
    /// Whoever looked at the states had seen enough.
    Enough,
    /// The limit passed first: what was not seen may still be there.
    OutOfTime,
}

/// Every state that was reached, in the order of its distance from the beginning.
pub(crate) struct Explored<S> {
    /// The states.
    pub(crate) states: Vec<S>,
    /// How many steps were taken between them.
    pub(crate) steps: u64,
    /// How it came out.
    pub(crate) outcome: Outcome,
    /// How long it took.
    pub(crate) took: Duration,
    parents: Vec<u32>,
}

/// The parent of a state that the system begins in.
const NONE: u32 = u32::MAX;

/// Explores until `enough` says so of a state, given with its number. `step` is told every step.
pub(crate) fn explore<M: System>(
    system: &M,
    limit: Duration,
    mut enough: impl FnMut(usize, &M::State) -> bool,
    mut step: impl FnMut(&M::Label),
) -> Explored<M::State> {
    let begun = Instant::now();
    let mut found = Explored {
        states: Vec::new(),
        steps: 0,
        outcome: Outcome::Complete,
        took: Duration::ZERO,
        parents: Vec::new(),
    };
    let mut seen = Seen::new();
    for state in system.begin() {
        if seen.insert(&state, &found.states) {
            found.states.push(state);
            found.parents.push(NONE);
        }
    }
    let mut out = Vec::new();
    let mut at = 0;
    while at < found.states.len() {
        let state = found.states[at];
        if enough(at, &state) {
            found.outcome = Outcome::Enough;
            break;
        }
        if at % 1024 == 0 && begun.elapsed() > limit {
            found.outcome = Outcome::OutOfTime;
            break;
        }
        if !system.is_over(&state) {
            system.steps(&state, &mut out);
        }
        for (label, next) in out.drain(..) {
            step(&label);
            found.steps += 1;
            if seen.insert(&next, &found.states) {
                found.states.push(next);
                found.parents.push(u32::try_from(at).expect("fewer states than a table index holds"));
            }
        }
        at += 1;
    }
    found.took = begun.elapsed();
    found
}

impl<S: Copy + Eq + Hash> Explored<S> {
    /// The number of the state that the shortest way to a state begins with.
    pub(crate) fn beginning(&self, mut at: usize) -> usize {
        while self.parents[at] != NONE {
            at = self.parents[at] as usize;
        }
        at
    }

    /// The steps of a shortest way to a state, each with the state after it.
    pub(crate) fn path<M: System<State = S>>(&self, system: &M, mut at: usize) -> Vec<(M::Label, S)> {
        let mut path = Vec::new();
        let mut out = Vec::new();
        while self.parents[at] != NONE {
            let parent = self.parents[at] as usize;
            system.steps(&self.states[parent], &mut out);
            let step = out.drain(..).find(|(_, next)| *next == self.states[at]);
            path.push(step.expect("a state was reached by a step of its parent"));
            at = parent;
        }
        path.reverse();
        path
    }
}

/// A table of the states' places, by their hash; the states themselves decide.
struct Seen {
    /// The upper half of a hash, and one more than the place; 0 is empty.
    slots: Vec<(u32, u32)>,
    filled: usize,
}

impl Seen {
    fn new() -> Self {
        Self { slots: vec![(0, 0); 1 << 12], filled: 0 }
    }

    /// Notes that `state` will be put at the end of `states`, unless it is among them.
    fn insert<S: Eq + Hash>(&mut self, state: &S, states: &[S]) -> bool {
        if self.filled * 2 >= self.slots.len() {
            self.grow(states);
        }
        let mut hasher = Fx(0);
        state.hash(&mut hasher);
        let (tag, mut slot) = self.place(hasher.finish());
        loop {
            match self.slots[slot] {
                (_, 0) => break,
                (other, at) if other == tag && states[at as usize - 1] == *state => return false,
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
        self.filled += 1;
        self.slots[slot] = (tag, u32::try_from(states.len() + 1).expect("fewer states than an index holds"));
        true
    }

    fn place(&self, hash: u64) -> (u32, usize) {
        ((hash >> 32) as u32, (hash as usize ^ (hash >> 40) as usize) & (self.slots.len() - 1))
    }

    fn grow<S: Hash>(&mut self, states: &[S]) {
        self.slots = vec![(0, 0); self.slots.len() * 2];
        for (at, state) in states.iter().enumerate() {
            let mut hasher = Fx(0);
            state.hash(&mut hasher);
            let (tag, mut slot) = self.place(hasher.finish());
            while self.slots[slot].1 != 0 {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = (tag, u32::try_from(at + 1).expect("fewer states than an index holds"));
        }
    }
}

/// A fast hash of small values. It only spreads: equality decides.
struct Fx(u64);

impl Hasher for Fx {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter that may add one or double.
    struct Counter;

    impl System for Counter {
        type State = u8;
        type Label = &'static str;

        fn begin(&self) -> Vec<u8> {
            vec![1]
        }

        fn steps(&self, state: &u8, out: &mut Vec<(&'static str, u8)>) {
            out.push(("add", state.saturating_add(1)));
            out.push(("double", state.saturating_mul(2)));
        }

        fn is_over(&self, state: &u8) -> bool {
            *state == u8::MAX
        }
    }

    #[test]
    fn every_state_is_reached_once_and_by_a_shortest_way() {
        let all = explore(&Counter, Duration::from_secs(60), |_, _| false, |_| ());
        assert_eq!((all.states.len(), all.outcome), (255, Outcome::Complete));
        let at = all.states.iter().position(|s| *s == 10).unwrap();
        let labels: Vec<_> = all.path(&Counter, at).into_iter().map(|(label, _)| label).collect();
        assert_eq!(labels, ["add", "double", "add", "double"]);
    }

    #[test]
    fn who_has_seen_enough_stops_it_and_a_passed_limit_is_said() {
        let some = explore(&Counter, Duration::from_secs(60), |_, s| *s == 4, |_| ());
        assert_eq!((some.outcome, some.states.last()), (Outcome::Enough, Some(&6)));
        assert_eq!(explore(&Counter, Duration::ZERO, |_, _| false, |_| ()).outcome, Outcome::OutOfTime);
    }
}
