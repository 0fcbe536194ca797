//! How a run comes to be (rule L14): whoever stages it, an engine that publishes it, early or late, and a sweep of
//! what was left in staging. A launch that reported failure leaves nothing that starts later, and a run that is among
//! the runs has an engine or had one.

use crate::explore::{Outcome, System, explore};
use std::time::Duration;

/// Where the run's directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Staging,
    /// Renamed to a name that no engine knows.
    Away,
    Runs,
    Gone,
}

/// The caller of `run --detach`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Caller {
    Waits,
    GivesUp,
    Erases,
    ReportedFailure,
    ReportedRun,
    Dead,
}

/// The engine in its window, which may come at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Engine {
    Unborn,
    Opened,
    Locked,
    /// A mutant renames before it locks.
    Renamed,
    Drives,
    Ended,
}

/// The next launch of anybody, which sweeps old staging entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sweeper {
    Idle,
    Opened,
    FoundFree,
    Erases,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    place: Place,
    caller: Caller,
    engine: Engine,
    sweeper: Sweeper,
    deaths: u8,
    /// It was among the runs without anybody who held its engine lock, and nobody had died.
    bare: bool,
    /// A published run was erased.
    erased: bool,
}

/// The guards of a birth.
#[derive(Clone, Copy)]
struct Birth {
    /// Giving up renames first, and whoever loses the rename stops.
    give_up_renames: bool,
    /// The engine takes its lock in staging.
    locks_in_staging: bool,
    /// The sweep looks at the engine lock.
    sweep_probes: bool,
    /// The sweep renames before it erases.
    sweep_renames: bool,
}

const GUARDED: Birth =
    Birth { give_up_renames: true, locks_in_staging: true, sweep_probes: true, sweep_renames: true };

impl State {
    fn locked(&self) -> bool {
        matches!(self.engine, Engine::Locked | Engine::Drives)
    }

    fn broken(&self) -> Option<&'static str> {
        let runs = self.engine == Engine::Drives;
        if self.erased {
            Some("L1: a published run was erased")
        } else if self.bare {
            Some("L14: a run was among the runs with nobody who holds its engine lock")
        } else if self.caller == Caller::ReportedFailure && runs {
            Some("L14: a launch that reported failure drives a run")
        } else if self.caller == Caller::ReportedFailure && self.place == Place::Runs {
            Some("L14: a launch that reported failure left a run")
        } else {
            None
        }
    }
}

impl System for Birth {
    type State = State;
    type Label = &'static str;

    fn begin(&self) -> Vec<State> {
        vec![State {
            place: Place::Staging,
            caller: Caller::Waits,
            engine: Engine::Unborn,
            sweeper: Sweeper::Idle,
            deaths: 2,
            bare: false,
            erased: false,
        }]
    }

    fn steps(&self, s: &State, out: &mut Vec<(&'static str, State)>) {
        self.caller(s, out);
        self.engine(s, out);
        self.sweeper(s, out);
        if s.deaths == 0 {
            return;
        }
        let dies = State { deaths: s.deaths - 1, ..*s };
        if !matches!(s.engine, Engine::Unborn | Engine::Ended) {
            out.push(("the engine is killed", State { engine: Engine::Ended, ..dies }));
        }
        if matches!(s.caller, Caller::Waits | Caller::GivesUp | Caller::Erases) {
            out.push(("the caller is killed", State { caller: Caller::Dead, ..dies }));
        }
        if !matches!(s.sweeper, Sweeper::Idle | Sweeper::Done) {
            out.push(("the sweep is killed", State { sweeper: Sweeper::Done, ..dies }));
        }
    }

    fn is_over(&self, s: &State) -> bool {
        s.broken().is_some()
    }
}

impl Birth {
    fn caller(&self, s: &State, out: &mut Vec<(&'static str, State)>) {
        match s.caller {
            Caller::Waits if s.place == Place::Runs => {
                out.push(("the caller sees the run", State { caller: Caller::ReportedRun, ..*s }));
            }
            Caller::Waits => {
                out.push(("the caller has waited enough", State { caller: Caller::GivesUp, ..*s }))
            }
            Caller::GivesUp if !self.give_up_renames => {
                out.push(("the caller gives up", State { caller: Caller::ReportedFailure, ..*s }));
            }
            Caller::GivesUp => out.push(match s.place {
                Place::Staging => {
                    ("the caller renames it away", State { place: Place::Away, caller: Caller::Erases, ..*s })
                }
                Place::Runs => ("the caller finds it published", State { caller: Caller::ReportedRun, ..*s }),
                // A sweep was faster, and nothing was published.
                _ => ("the caller finds it gone", State { caller: Caller::ReportedFailure, ..*s }),
            }),
            Caller::Erases => out.push((
                "the caller erases it",
                State { place: Place::Gone, caller: Caller::ReportedFailure, ..*s },
            )),
            Caller::ReportedFailure | Caller::ReportedRun | Caller::Dead => {}
        }
    }

    fn engine(&self, s: &State, out: &mut Vec<(&'static str, State)>) {
        let ends = State { engine: Engine::Ended, ..*s };
        match s.engine {
            Engine::Unborn => out.push(match s.place {
                Place::Staging => ("the engine opens it", State { engine: Engine::Opened, ..*s }),
                _ => ("the engine finds nothing", ends),
            }),
            Engine::Opened if self.locks_in_staging => {
                out.push(("the engine takes its lock", State { engine: Engine::Locked, ..*s }));
            }
            Engine::Opened | Engine::Locked => out.push(match s.place {
                Place::Staging => {
                    let engine = if self.locks_in_staging { Engine::Drives } else { Engine::Renamed };
                    let bare = engine == Engine::Renamed;
                    ("the engine publishes it", State { place: Place::Runs, engine, bare, ..*s })
                }
                _ => ("the engine loses the rename, and ends", ends),
            }),
            Engine::Renamed => {
                out.push(("the engine takes its lock", State { engine: Engine::Drives, ..*s }))
            }
            Engine::Drives | Engine::Ended => {}
        }
    }

    fn sweeper(&self, s: &State, out: &mut Vec<(&'static str, State)>) {
        let done = State { sweeper: Sweeper::Done, ..*s };
        match s.sweeper {
            Sweeper::Idle => out.push(match s.place {
                Place::Staging | Place::Away => {
                    ("the sweep opens an entry", State { sweeper: Sweeper::Opened, ..*s })
                }
                _ => ("the sweep finds nothing", done),
            }),
            Sweeper::Opened if self.sweep_probes && s.locked() => {
                out.push(("the sweep finds its lock held", done));
            }
            Sweeper::Opened => {
                out.push(("the sweep finds it old and free", State { sweeper: Sweeper::FoundFree, ..*s }));
            }
            Sweeper::FoundFree if !self.sweep_renames => {
                let erased = s.place == Place::Runs;
                out.push(("the sweep erases it", State { place: Place::Gone, erased, ..done }));
            }
            Sweeper::FoundFree => out.push(match s.place {
                Place::Staging => (
                    "the sweep renames it away",
                    State { place: Place::Away, sweeper: Sweeper::Erases, ..*s },
                ),
                Place::Away => ("the sweep finds it given up", State { sweeper: Sweeper::Erases, ..*s }),
                _ => ("the sweep loses the rename", done),
            }),
            Sweeper::Erases => out.push(("the sweep erases it", State { place: Place::Gone, ..done })),
            Sweeper::Done => {}
        }
    }
}

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_run_is_published_with_its_lock_held_or_never() {
    let found = explore(&GUARDED, LIMIT, |_, s| s.broken().is_some(), |_| ());
    let broken = found.states.iter().find_map(State::broken);
    assert_eq!((found.outcome, broken), (Outcome::Complete, None));
    assert_eq!(found.states.len(), 224, "the model changed: read the change, then note its states");
    let seen = |is: fn(&State) -> bool| found.states.iter().any(is);
    assert!(seen(|s| s.caller == Caller::ReportedRun && s.engine == Engine::Drives), "a run begins");
    assert!(
        seen(|s| s.caller == Caller::ReportedFailure && s.engine == Engine::Ended),
        "an engine comes late"
    );
    assert!(seen(|s| s.caller == Caller::Dead && s.place == Place::Gone), "a sweep takes what was left");
    assert!(
        seen(|s| s.caller == Caller::Dead && s.engine == Engine::Drives),
        "a run begins without its caller"
    );
}

#[test]
fn every_guard_of_a_birth_is_needed() {
    let breaks = |birth: Birth| {
        let found = explore(&birth, LIMIT, |_, s| s.broken().is_some(), |_| ());
        found.states.iter().find_map(State::broken)
    };
    let late = Some("L14: a launch that reported failure drives a run");
    assert_eq!(breaks(Birth { give_up_renames: false, ..GUARDED }), late);
    let bare = Some("L14: a run was among the runs with nobody who holds its engine lock");
    assert_eq!(breaks(Birth { locks_in_staging: false, ..GUARDED }), bare);
    assert_eq!(breaks(Birth { sweep_renames: false, ..GUARDED }), Some("L1: a published run was erased"));
    // The rename decides; the look at the lock spares a launch that is under way.
    assert_eq!(breaks(Birth { sweep_probes: false, ..GUARDED }), None);
}
