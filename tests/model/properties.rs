//! The system as it is keeps every rule, in every scenario; what it must be able to do it does; and no dead run is out
//! of every command's reach.

use crate::explore::{Outcome, explore};
use crate::model::{ALL, Guards, Model, Scenario, without};
use crate::reach;
use crate::rules;
use crate::state::{Act, Archive, Cli, Command, Keep, Left, Place, Receipt, Report, State};
use crate::words::tell;
use loopmux::run::record::{Outcome as Recorded, Record};
use loopmux::verdict::{Cause, Status};
use std::collections::HashSet;
use std::time::Duration;

/// A hang guard: ten times what the largest exploration takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);

/// Something that must be seen, or the rules would hold of a system that does nothing.
pub(crate) enum Witness {
    /// A step of that name.
    Step(&'static str),
    /// A state.
    State(&'static str, fn(&Model, &State) -> bool),
}

/// The witnesses that an exploration did not see.
pub(crate) fn unseen(
    m: &Model,
    states: &[State],
    steps: &HashSet<&'static str>,
    all: &[Witness],
) -> Vec<&'static str> {
    all.iter()
        .filter_map(|witness| match witness {
            Witness::Step(what) => (!steps.contains(what)).then_some(*what),
            Witness::State(what, is) => (!states.iter().any(|s| is(m, s))).then_some(*what),
        })
        .collect()
}

/// Explores everything.
pub(crate) fn all_of(m: &Model) -> (crate::explore::Explored<State>, HashSet<&'static str>) {
    let mut steps = HashSet::new();
    let found = explore(
        m,
        LIMIT,
        |_, s| rules::broken(s).is_some(),
        |label| {
            steps.insert(label.what);
        },
    );
    (found, steps)
}

/// The system as it is, in one scenario.
fn holds(scenario: &Scenario, states: usize, witnesses: &[Witness]) {
    let m = Model::new(*scenario, ALL);
    let (found, steps) = all_of(&m);
    if found.outcome == Outcome::Enough {
        let at = found.states.iter().position(|s| rules::broken(s).is_some()).expect("it was seen");
        let (rule, how) = rules::broken(&found.states[at]).expect("it was seen");
        panic!("{}: rule L{rule} is broken: {how}\n{}", scenario.name, tell(&m, &found, at));
    }
    assert_eq!(found.outcome, Outcome::Complete, "{}: what was not seen in time may be wrong", scenario.name);
    let unseen = unseen(&m, &found.states, &steps, witnesses);
    assert!(unseen.is_empty(), "{}: never seen, so the rules say little: {unseen:?}", scenario.name);
    let (dead, stuck) = reach::unreachable(&m, &found.states);
    assert!(dead > 0, "{}: no dead state was reached", scenario.name);
    assert!(
        stuck.is_empty(),
        "{}: {} of {dead} dead states: no command removes {:?}",
        scenario.name,
        stuck.len(),
        stuck[0]
    );
    let known = found.states.len();
    assert_eq!(
        known, states,
        "{}: the model changed ({} steps in {:?}): read the change, then note its states",
        scenario.name, found.steps, found.took
    );
}

fn record<'m>(m: &'m Model, s: &State) -> std::cell::Ref<'m, Record> {
    let id = s.record;
    std::cell::Ref::map(m.tables_read(), move |tables| tables.record(id))
}

fn recorded(m: &Model, s: &State, status: Status) -> bool {
    record(m, s).status == status
}

/// A run that is gone, with the last record that it had.
fn gone(m: &Model, s: &State, status: Status) -> bool {
    s.place == Place::Gone && recorded(m, s, status)
}

fn caused(m: &Model, s: &State, by: Cause) -> bool {
    matches!(record(m, s).outcome, Some(Recorded::Lost { cause, .. }) if cause == by)
}

use Witness::{State as Is, Step};

/// Declares one test a scenario.
macro_rules! scenarios {
    ($($name:ident: $scenario:ident, $states:expr, [$($witness:expr),* $(,)?];)*) => {
        $(#[test]
        fn $name() {
            holds(&crate::scenarios::$scenario, $states, &[$($witness),*]);
        })*

        /// The scenarios that have a test.
        const TESTED: &[&str] = &[$(stringify!($scenario),)*];
    };
}

scenarios! {
    an_engine_and_a_keeper_alone: ALONE, 5279, [
        Is("a program's own end is recorded", |m, s| recorded(m, s, Status::Succeeded)),
        Is("a loss is recorded", |m, s| recorded(m, s, Status::Lost)),
        Is("a launch that never started is recorded", |m, s| recorded(m, s, Status::Failed)),
        Is("a program without its engine and without its keeper", |_, s| {
            s.attempts[0].cli == Cli::Alive && s.keepers[0].at == Keep::Dead
        }),
        Is("a program without its engine", |_, s| s.attempts[0].cli == Cli::Alive && !s.engine_lives()),
        Is("an end is recorded while something is left", |m, s| {
            recorded(m, s, Status::Succeeded) && s.attempts[0].left == Left::Holding
        }),
        Step("is told by the multiplexer, which omits the window or hangs,"),
        Step("has the multiplexer kill the window, which says so and does not"),
        Step("sees `cancelled`"),
        Step("is ended by the hang-up before it ignores it"),
        Step("sees that a hang-up had come"),
    ];
    under_observation: OBSERVED, 83401, [
        Step("carries out the request of a killed client"),
        Step("probes the lease again"),
        Step("gives its shared lock up"),
    ];
    delete_from_the_launch_on: DELETED, 200_019, [
        Is("a run that succeeded is removed", |m, s| gone(m, s, Status::Succeeded)),
        Is("a run that was lost is removed", |m, s| gone(m, s, Status::Lost)),
        Is("a run that never started is removed", |m, s| gone(m, s, Status::Failed)),
        Is("a run without an engine and without an end is removed", |m, s| gone(m, s, Status::Running)),
        Is("a refusal while the program runs", |_, s| {
            s.mutators[0].report == Report::Refused && s.attempts[0].cli == Cli::Alive
        }),
        Is("a refusal over a leftover", |_, s| {
            s.mutators[0].report == Report::Refused && s.attempts[0].left == Left::Member
        }),
        Step("sees that its directory was moved away, and ends"),
        Step("asks the multiplexer, which omits what may be the run's"),
        Step("finds no directory, and ends"),
    ];
    stop_from_the_launch_on: STOPPED, 399_160, [
        Is("a stop that proves it", |m, s| {
            s.mutators[0].report == Report::Success && recorded(m, s, Status::Stopped)
        }),
        Is("a stop that cannot prove it", |_, s| s.mutators[0].report == Report::Refused),
        Step("kills what it finds, through handles"),
        Step("writes that it was stopped"),
    ];
    resume_from_the_launch_on: RESUMED, 179_955, [
        Is("a second attempt succeeds", |m, s| {
            recorded(m, s, Status::Succeeded) && record(m, s).attempt == 2
        }),
        Is("a run that was lost is resumed", |_, s| s.attempts[1].cli == Cli::Alive && s.attempts[0].exit == Receipt::None),
        Step("sees a later attempt"),
    ];
    quarantine_from_the_launch_on: PUT_ASIDE, 407_089, [
        Is("a run that cannot be read is put aside", |_, s| s.place == Place::Quarantine),
        Step("renames the run back"),
    ];
    delete_with_force: FORCED, 26_429, [
        Is("what lived is ended and removed", |m, s| gone(m, s, Status::Stopped)),
        Is("a refusal", |_, s| s.mutators[0].report == Report::Refused),
        Step("has the multiplexer kill the windows"),
        Step("kills the engine, through a handle"),
    ];
    two_deletes: TWO_DELETES, 20_417, [
        Step("finds a removal that was interrupted"),
        Step("finds an erasing that was interrupted"),
        Step("finds that another one settled it"),
        Is("the second finishes what the first began", |_, s| {
            s.place == Place::Gone && s.mutators[0].report == Report::None && s.mutators[1].report == Report::Success
        }),
    ];
    delete_and_resume: DELETE_RESUME, 87_207, [
        Is("the resume was first", |_, s| s.mutators[0].report == Report::Refused && s.attempts[1].cli == Cli::Alive),
        Is("the removal was first", |_, s| s.place == Place::Gone && s.mutators[1].report == Report::Refused),
    ];
    delete_and_stop: DELETE_STOP, 187_940, [
        Is("stopped, then removed", |m, s| gone(m, s, Status::Stopped)),
        Step("looks whether the run is still in its place"),
        Step("finds no run to stop"),
    ];
    stop_and_resume: STOP_RESUME, 1_145_654, [
        Is("stopped, then resumed", |m, s| {
            record(m, s).earlier.last().is_some_and(|e| e.status == Status::Stopped) && s.attempts[1].cli == Cli::Alive
        }),
        Is("resumed, then stopped", |m, s| recorded(m, s, Status::Stopped) && record(m, s).attempt == 2),
        Is("resumed, and stopped before the next attempt", |m, s| {
            let record = record(m, s);
            record.status == Status::Stopped && record.outcome.is_none() && !record.earlier.is_empty()
        }),
    ];
    two_stops: TWO_STOPS, 478_106, [
        Is("both prove it", |_, s| s.mutators.iter().all(|m| m.report == Report::Success)),
    ];
    two_archives: TWO_ARCHIVES, 21_621, [
        Is("a run is in its archive and nowhere else", |_, s| s.place == Place::Gone && s.archive != Archive::None),
        Is("a run and its archive, after a death", |_, s| {
            s.place == Place::Runs && s.archive != Archive::None && s.faults == 0
        }),
        Step("reads another archive back than it wrote, and removes that"),
        Step("finds an archive of this run"),
    ];
    archive_and_stop: ARCHIVE_STOP, 200_761, [
        Is("stopped, then archived", |m, s| gone(m, s, Status::Stopped) && s.archive != Archive::None),
    ];
    archive_and_resume: ARCHIVE_RESUME, 89_254, [
        Is("resumed beside an archive", |_, s| s.archive != Archive::None && s.attempts[1].cli == Cli::Alive),
    ];
    an_archive_that_was_left: OLD_ARCHIVE, 85_615, [
        Step("finds an archive that differs"),
        Step("finds an archive of this run"),
    ];
    a_quarantine_that_was_interrupted: QUARANTINE_DELETED, 42_161, [
        Step("finds a removal that was interrupted"),
        Is("a torn run is put aside", |_, s| s.place == Place::Quarantine && s.attempts[0].torn),
    ];
    a_quarantine_of_a_launch: QUARANTINE_LATE, 43_309, [
        Step("carries out the request of a killed client"),
    ];
    cleanup_and_resume: CLEANUP_RESUME, 181_226, [
        Is("the windows of an ended run are ended", |_, s| {
            s.mutators[0].command == Command::Cleanup && s.mutators[0].report == Report::Success
        }),
        Step("asks the multiplexer, which omits the windows"),
    ];
    two_resumes: TWO_RESUMES, 99_584, [
        Is("one of them refuses", |_, s| {
            s.attempts[1].cli == Cli::Alive && s.mutators.iter().any(|m| m.report == Report::Refused)
        }),
    ];
    a_quarantine_that_is_erased: QUARANTINE_ERASED, 17_510, [
        Is("a torn run is erased after all", |_, s| s.place == Place::Gone && s.attempts[0].torn),
    ];
    a_quarantine_that_is_restored: QUARANTINE_RESTORED, 17_306, [
        Is("a torn run is back", |_, s| {
            s.place == Place::Runs && s.mutators[1].report == Report::Success && s.attempts[0].torn
        }),
    ];
    force_among_strangers: STRANGERS_DELETE, 70_517, [
        Step("makes a mux session under the name of ours"),
        Step("starts a new server, with a mux session under the name and the id of ours"),
        Step("gives the pids of what died to strangers"),
    ];
    cleanup_among_strangers: STRANGERS_CLEANUP, 9882, [
        Step("makes a mux session under the name of ours"),
    ];
    a_window_that_is_executed_again: RESPAWNED, 12_823, [
        Step("sees that another keeper was here, and ends"),
        Is("the second keeper's program runs", |_, s| s.attempts[0].second),
    ];
    what_went_away: CAUSES, 13_656, [
        Is("a window", |m, s| caused(m, s, Cause::SessionKilled)),
        Is("a server", |m, s| caused(m, s, Cause::ServerGone)),
        Is("a keeper", |m, s| caused(m, s, Cause::KeeperKilled)),
        Is("nobody can tell", |m, s| caused(m, s, Cause::Unexplained)),
        Step("restarts the host"),
        Step("is told by another server: its own is gone"),
    ];
    a_stop_from_inside: INSIDE, 7240, [
        Is("it completes, and proves it", |m, s| {
            s.mutators[0].report == Report::Success && recorded(m, s, Status::Stopped) && s.faults == 1
        }),
    ];
    a_host_that_restarts: REBOOTED, 294_088, [
        Is("a run is removed after a restart", |_, s| s.rebooted && s.place == Place::Gone),
    ];
    leftovers_that_nobody_sees: HIDDEN, 16_278, [
        // The documented limit: what left the session and dropped everything is seen by its keeper alone.
        Is("a run is removed over a leftover that nothing sees", |_, s| {
            s.place == Place::Gone && s.attempts[0].left == Left::Beyond
        }),
    ];
    a_kernel_without_autogroups: NO_AUTOGROUP, 9795, [
        Is("a stranger's session is taken for a leftover, and nothing is removed", |_, s| {
            s.reused && s.mutators[0].report == Report::Refused && s.attempts[0].left == Left::None
        }),
    ];
    another_pid_namespace: FOREIGN_SPACE, 52_826, [
        Step("cannot signal anybody in another pid namespace"),
        Is("what ended by itself is removed all the same", |_, s| s.place == Place::Gone),
    ];
    a_platform_that_ends_children_first: WINDOWS, 157_098, [
        Step("ends the keeper, last of its tree,"),
        Is("a loss is recorded", |m, s| recorded(m, s, Status::Lost)),
    ];
    a_run_with_a_plan: PLANNED, 174_305, [
        Is("an interrupted run is resumed", |m, s| {
            record(m, s).earlier.last().is_some_and(|e| e.status == Status::Running) && s.attempts[1].cli == Cli::Alive
        }),
    ];
}

/// The same with more, up to a number of states for each scenario: the nearest to its beginning.
fn holds_at_length(most: usize, more: impl Fn(&Scenario) -> Scenario) {
    let most = match std::env::var("LOOPMUX_MODEL_STATES") {
        Ok(states) => states.parse().expect("LOOPMUX_MODEL_STATES is a number of states"),
        Err(_) => most,
    };
    for scenario in crate::scenarios::SCENARIOS {
        let m = Model::new(more(scenario), ALL);
        let mut seen = 0;
        let found = explore(
            &m,
            LIMIT * 100,
            |at, s| {
                seen = at;
                rules::broken(s).is_some() || at > most
            },
            |_| (),
        );
        let last = &found.states[seen];
        if let Some((rule, how)) = rules::broken(last) {
            panic!("{}: rule L{rule} is broken: {how}\n{}", scenario.name, tell(&m, &found, seen));
        }
        let how = if seen > most { "the nearest of more" } else { "all" };
        // What a long run did is worth a line.
        #[allow(clippy::print_stdout)]
        {
            println!("{}: {} states, {how}, {:?}", scenario.name, found.states.len(), found.took);
        }
        assert_ne!(found.outcome, Outcome::OutOfTime, "{}", scenario.name);
    }
}

/// As many states as a machine with sixteen gigabytes holds.
const MANY: usize = 40_000_000;

/// As many as a few seconds allow; `LOOPMUX_MODEL_STATES` asks for more.
const FEW: usize = 2_000_000;

#[test]
#[ignore = "a minute"]
fn every_scenario_with_two_faults() {
    holds_at_length(MANY, |s| Scenario { faults: 2, ..*s });
}

#[test]
#[ignore = "minutes"]
fn every_scenario_with_three_faults() {
    holds_at_length(MANY, |s| Scenario { faults: 3, ..*s });
}

#[test]
#[ignore = "minutes"]
fn every_scenario_from_the_launch_on() {
    holds_at_length(FEW, |s| Scenario { at_rest: false, sound_sleep: false, ..*s });
}

/// What anybody can tell of a run once everything has come to rest; `None` before. A harm is told at once.
fn told(m: &Model, s: &State) -> Option<impl Eq + std::hash::Hash + std::fmt::Debug + use<>> {
    let over = s.mutators.iter().all(|m| matches!(m.at, Act::Idle | Act::Done));
    let keepers = s.keepers.iter().all(|k| matches!(k.at, Keep::Unborn | Keep::Dead | Keep::Parked));
    let receipts = s.attempts.map(|a| (a.cancelled, a.refused, a.start, a.exit, a.emptied, a.cli, a.left));
    let record = record(m, s).clone();
    let rest = (s.place, record, s.stop, s.archive, receipts, s.mutators.map(|m| m.report));
    let at_rest = s.harm.is_none() && over && keepers && !s.engine_lives();
    (at_rest || s.harm.is_some()).then(|| (s.harm, at_rest.then_some(rest)))
}

/// Taking some reads alone leaves out orders, and nothing that comes of them.
#[test]
fn a_read_that_is_taken_alone_hides_nothing() {
    use crate::scenarios::{ALONE, DELETE_RESUME, DELETED, TWO_DELETES};
    for scenario in [ALONE, TWO_DELETES, DELETE_RESUME, Scenario { faults: 0, ..DELETED }] {
        for guards in [ALL, without(&["start_before_lease"]), without(&["erasing_is_marked"])] {
            let mut m = Model::new(scenario, guards);
            let mut ends = Vec::new();
            for reduced in [true, false] {
                m.reduced = reduced;
                let found = explore(&m, LIMIT, |_, _| false, |_| ());
                assert_eq!(found.outcome, Outcome::Complete);
                ends.push((
                    found.states.iter().filter_map(|s| told(&m, s)).collect::<HashSet<_>>(),
                    found.states.len(),
                ));
            }
            let [(few, reduced), (all, every)] = &ends[..] else { unreachable!() };
            assert!(reduced < every, "{}: nothing was left out", scenario.name);
            let hidden: Vec<_> = all.difference(few).take(3).collect();
            assert!(hidden.is_empty(), "{}: hidden: {hidden:?}", scenario.name);
        }
    }
}

#[test]
fn every_scenario_has_a_test() {
    for scenario in crate::scenarios::SCENARIOS {
        assert!(TESTED.contains(&scenario.name), "{} is explored by nobody", scenario.name);
    }
}

/// For the mutants: explores until a rule is broken.
pub(crate) fn breaks(scenario: &Scenario, guards: Guards, rule: u8) -> Result<usize, String> {
    let m = Model::new(*scenario, guards);
    let broken = |s: &State| rules::broken(s).is_some_and(|(number, _)| number == rule);
    let found = explore(&m, LIMIT, |_, s| broken(s), |_| ());
    match found.states.iter().position(broken) {
        Some(at) => {
            // Shown by `--nocapture` only.
            #[allow(clippy::print_stdout)]
            {
                println!("L{rule}, {} states:\n{}", found.states.len(), tell(&m, &found, at));
            }
            Ok(found.path(&m, at).len())
        }
        None => Err(format!("{:?} after {} states", found.outcome, found.states.len())),
    }
}
