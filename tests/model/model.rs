//! The system as a whole: its guards, what a scenario switches on, and every step of everybody.

use crate::explore::{System, explore};
use crate::rules;
use crate::state::{
    AWAY, Archive, Attempt, Claim, Cli, Command, Drive, Engine, Foreign, Hold, Intent, KEEPERS, Keep, Keeper,
    Left, Lock, Made, Place, Receipt, State, Went, idle,
};
use crate::tables::{RecordId, SeenId, Tables};
use crate::{alone, engine, keeper, mutator, observer, world};
use std::cell::{Ref, RefCell, RefMut};
use std::time::Duration;

/// Declares the guards: the present system has them all, and each can be left out of a mutant.
macro_rules! guards {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The guards of the lifecycle. Without one the system is a mutant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct Guards { $($(#[$doc])* pub(crate) $name: bool,)* }

        /// The system as it is.
        pub(crate) const ALL: Guards = Guards { $($name: true,)* };

        /// The name of every guard.
        pub(crate) const GUARDS: &[&str] = &[$(stringify!($name),)*];

        /// The system without some guards.
        pub(crate) fn without(names: &[&str]) -> Guards {
            for name in names {
                assert!(GUARDS.contains(name), "there is no guard {name}");
            }
            Guards { $($name: !names.contains(&stringify!($name)),)* }
        }
    };
}

guards! {
    /// Reading: the start receipt is read before the lease.
    start_before_lease,
    /// The lease is read before the exit receipt.
    lease_before_exit,
    /// An absent start receipt is read again after the lease.
    start_read_again,
    /// An end that rests on missing receipts counts only if the directory is still in its place.
    place_is_checked,
    /// What cannot be read is unknown, and not absent or free.
    unknown_is_unknown,
    /// A listing without the window ends nothing.
    listing_is_no_proof,
    /// A held lease after the end forbids removal.
    leftovers_count,
    /// Without the keeper's last receipt a free lease does not permit removal.
    emptied_counts,
    /// A probe takes the lock shared.
    probes_share,
    /// The keeper: tries again for a lock that an observer holds for a moment.
    patience,
    /// The program inherits the lease.
    lease_inherited,
    /// Looks at the receipts before it takes the lease.
    unused_before_lease,
    /// Looks at them again after.
    unused_after_lease,
    /// Looks whether its path still leads to its directory.
    keeper_checks_path,
    /// Looks whether a later attempt was made.
    keeper_checks_attempt,
    /// Looks whether the launch was given up.
    keeper_checks_cancelled,
    /// Looks at its terminal once more after it reaped.
    keeper_drains,
    /// Waits until no descendant is left before it says so.
    keeper_waits_for_descendants,
    /// Does not wait for a stop from inside that registered.
    keeper_spares_stopper,
    /// On Windows: counts an end only beside a living sentinel.
    sentinel,
    /// Looks who answers before it believes what went away.
    explains_by_identity,
    /// Receipts are never overwritten.
    receipts_once,
    /// The engine's lock is not inherited by what it starts.
    engine_lock_stays,
    /// Giving up writes `cancelled`.
    give_up_cancels,
    /// Records: a change is written under the run lock.
    record_under_lock,
    /// The record is read again right before the write.
    record_read_again,
    /// Nothing is written over a final record.
    final_is_final,
    /// What a stop writes down it saw under the run lock, with the engine lock free.
    stop_looks_under_lock,
    /// Whoever writes the record counts the attempts that have a directory.
    attempts_are_counted,
    /// Writers never make the run directory.
    writes_make_nothing,
    /// Stop: reports from a fresh look at everything.
    stop_looks_last,
    /// Looks at each attempt again after it killed.
    stop_looks_again,
    /// Never kills the keeper before its descendants.
    stop_spares_keeper,
    /// Looks for members of the session where the keeper left no last receipt.
    stop_sweeps,
    /// Signals go through handles.
    signals_by_handle,
    /// A process of another pid namespace is unknown.
    foreign_space_is_unknown,
    /// Leaves the run before it acts on it.
    stop_leaves,
    /// A kill reaches only a window with this run's token.
    kills_by_token,
    /// A kill reaches only the recorded server.
    kills_on_recorded_server,
    /// Removal and resume take the run lock.
    acts_under_run_lock,
    /// Removal needs the proof.
    removal_needs_verdict,
    /// `--force` too.
    force_needs_proof,
    /// A launch under way is not removed before it was given up.
    launching_is_given_up_first,
    /// What the multiplexer shows forbids a removal.
    listing_vetoes,
    /// Everything is asked once more through the renamed directory.
    trash_is_looked_at,
    /// What was decided is marked before anything is unlinked.
    erasing_is_marked,
    /// Whoever comes next settles what was interrupted.
    trash_is_recovered,
    /// What was not decided is put back, and not erased.
    undecided_is_put_back,
    /// What was decided is erased only with its locks free.
    erasing_is_probed,
    /// A quarantine is refused while a lease or the engine lock is held, or somebody is seen.
    quarantine_refuses_held,
    /// On its way there the run passes through the trash, and is looked at once more.
    quarantine_looks_again,
    /// Erasing from the quarantine looks once more.
    quarantine_is_looked_at,
    /// Archive: removes only after the read-back.
    archive_is_read_back,
    /// Does not take an older archive for this one.
    archive_is_compared,
    /// Resume: needs every attempt's end and a free lease.
    resume_needs_end,
    /// Takes the engine lock.
    resume_takes_engine_lock,
    /// Cleanup: only what has ended.
    cleanup_needs_end,
    /// Only what carries our token.
    cleanup_by_token,
}

/// What happens in an exploration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    /// For people.
    pub(crate) name: &'static str,
    /// The two commands.
    pub(crate) commands: [Command; 2],
    /// Somebody looks all the time.
    pub(crate) observer: bool,
    /// How many faults may happen; each is one of those that are switched on.
    pub(crate) faults: u8,
    /// Engine, keeper and mutators may be killed.
    pub(crate) deaths: bool,
    /// The server crashes; the multiplexer omits, hangs, ignores a kill.
    pub(crate) mux: bool,
    /// A read or probe fails.
    pub(crate) errors: bool,
    /// The host restarts.
    pub(crate) reboot: bool,
    /// A window's command is executed again.
    pub(crate) respawn: bool,
    /// A receipt is torn for ever.
    pub(crate) tear: bool,
    /// An archive is torn on its way to the disk.
    pub(crate) bad_disk: bool,
    /// An archive that was interrupted before it removed the run has left its file.
    pub(crate) old_archive: bool,
    /// A create may time out, and be carried out later or never. No fault.
    pub(crate) late: bool,
    /// The program may leave something behind. No fault.
    pub(crate) leftovers: bool,
    /// What it leaves may be invisible to all but the keeper.
    pub(crate) hidden: bool,
    /// Others use names, ids and pids that were ours. No fault.
    pub(crate) strangers: bool,
    /// Causes are modelled: who went, what the keeper was told.
    pub(crate) causes: bool,
    /// The first mutator runs inside the run.
    pub(crate) inside: bool,
    /// The kernel gives no autogroups: a stranger's session may have the number of ours.
    pub(crate) no_autogroup: bool,
    /// Everybody but keeper and engine lives in another pid namespace.
    pub(crate) foreign_space: bool,
    /// A kill ends children first and the keeper last, and tells nobody.
    pub(crate) windows: bool,
    /// The run has a plan: its attempt's end leaves something to decide.
    pub(crate) plan: bool,
    /// The engine wakes only when there is something new to see; that it may wake at any time is explored by the
    /// scenarios without this.
    pub(crate) sound_sleep: bool,
    /// It begins wherever an engine and a keeper alone come to rest, not only with the launch.
    pub(crate) at_rest: bool,
}

/// Nothing but an engine, a keeper and a program.
pub(crate) const BARE: Scenario = Scenario {
    name: "nobody else",
    commands: [Command::Nothing; 2],
    observer: false,
    faults: 0,
    deaths: false,
    mux: false,
    errors: false,
    reboot: false,
    respawn: false,
    tear: false,
    bad_disk: false,
    old_archive: false,
    late: false,
    leftovers: false,
    hidden: false,
    strangers: false,
    causes: false,
    inside: false,
    no_autogroup: false,
    foreign_space: false,
    windows: false,
    plan: false,
    sound_sleep: false,
    at_rest: false,
};

/// Who takes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    Engine,
    Keeper(u8),
    Program(u8),
    Mutator(u8),
    Observer,
    Mux,
    World,
}

/// A step's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Label {
    pub(crate) who: Who,
    pub(crate) what: &'static str,
    /// The attempt, from 1, where the step is about one.
    pub(crate) of: u8,
}

/// Where the steps out of a state are collected.
pub(crate) struct Out<'a>(pub(crate) &'a mut Vec<(Label, State)>);

impl Out<'_> {
    pub(crate) fn push(&mut self, who: Who, what: &'static str, next: State) {
        self.0.push((Label { who, what, of: 0 }, next));
    }

    pub(crate) fn of(&mut self, who: Who, what: &'static str, attempt: usize, next: State) {
        let of = u8::try_from(attempt + 1).expect("few attempts");
        self.0.push((Label { who, what, of }, next));
    }
}

/// A system to explore.
pub(crate) struct Model {
    pub(crate) guards: Guards,
    pub(crate) scenario: Scenario,
    /// Reads whose answer nobody can change are taken alone.
    pub(crate) reduced: bool,
    tables: RefCell<Tables>,
}

impl Model {
    pub(crate) fn new(scenario: Scenario, guards: Guards) -> Self {
        Self { guards, scenario, reduced: true, tables: RefCell::new(Tables::new(scenario.plan)) }
    }

    /// The program's decisions.
    pub(crate) fn tables(&self) -> RefMut<'_, Tables> {
        self.tables.borrow_mut()
    }

    /// The same, for looking something up.
    pub(crate) fn tables_read(&self) -> Ref<'_, Tables> {
        self.tables.borrow()
    }

    /// Somebody holds the lease of an attempt.
    pub(crate) fn lease_held(&self, s: &State, a: usize) -> bool {
        s.lease_held(a, self.guards.lease_inherited)
    }

    /// The run as it was just published: the engine holds its lock, and nothing is launched yet.
    pub(crate) fn published(&self) -> State {
        let attempt = Attempt {
            made: Made::No,
            cancelled: false,
            refused: false,
            start: false,
            torn: false,
            exit: Receipt::None,
            emptied: false,
            note: Went::Nothing,
            cli: Cli::NotStarted,
            second: false,
            left: Left::None,
            window: false,
            server: 0,
            went: Went::Nothing,
            claim: Claim::None,
        };
        let keeper = Keeper { at: Keep::Unborn, gone: false, told: false };
        let mut mutators = self.scenario.commands.map(idle);
        mutators[0].inside = self.scenario.inside;
        State {
            place: Place::Runs,
            record: RecordId::NEW,
            stop: false,
            archive: Archive::None,
            blind: false,
            attempts: [attempt; 2],
            keepers: [keeper; KEEPERS],
            run_lock: Lock::Free,
            engine_lock: Lock::Engine,
            engine: Engine {
                at: Drive::ReadsStopFirst,
                attempt: 0,
                started: false,
                given_up: false,
                stop: false,
                intent: Intent::Launch,
                record: RecordId::NEW,
                seen: SeenId::NONE,
                look: AWAY,
            },
            mutators,
            observer: AWAY,
            hold: Hold::None,
            // A request can lie at a server only where one runs already.
            server: u8::from(self.scenario.late),
            servers: u8::from(self.scenario.late),
            foreign: Foreign::None,
            rebooted: false,
            reused: false,
            faults: self.scenario.faults,
            harm: None,
        }
    }
}

impl System for Model {
    type State = State;
    type Label = Label;

    fn begin(&self) -> Vec<State> {
        if !self.scenario.at_rest {
            return vec![self.published()];
        }
        let alone = Scenario {
            commands: [Command::Nothing; 2],
            observer: false,
            at_rest: false,
            faults: 1,
            deaths: true,
            ..self.scenario
        };
        let alone = Model::new(alone, self.guards);
        let mut rests = Vec::new();
        for s in explore(&alone, Duration::MAX, |_, _| false, |_| ()).states {
            if s.is_at_rest() {
                let mutators = self.published().mutators;
                let mut rest = State { mutators, faults: self.scenario.faults, ..s };
                if self.scenario.old_archive {
                    rest.archive = Archive::Good(rest.made());
                }
                if !rests.contains(&rest) {
                    rests.push(rest);
                }
            }
        }
        // The two systems number records and evidence by the order in which they met them.
        self.tables.replace(alone.tables.into_inner());
        rests
    }

    fn steps(&self, s: &State, out: &mut Vec<(Label, State)>) {
        let mut out = Out(out);
        if self.reduced && alone::steps(self, s, &mut out) {
            return;
        }
        engine::steps(self, s, &mut out);
        keeper::steps(self, s, &mut out);
        world::steps(self, s, &mut out);
        for i in 0..2 {
            mutator::steps(self, s, i, &mut out);
        }
        if self.scenario.observer {
            observer::steps(self, s, &mut out);
        }
    }

    fn is_over(&self, s: &State) -> bool {
        rules::broken(s).is_some()
    }
}
