//! One state: the disk, the locks, the processes, the multiplexer, and how far everybody has come.
//!
//! Every field is small and plain, so that two states are the same exactly when nothing tells them apart.

pub(crate) use crate::actors::{
    AWAY, Act, Command, Drive, Engine, Evidence, Intent, Looker, Mutator, NOTHING, Probe, Read, Report, Tri,
    idle,
};
use crate::tables::RecordId;

/// How many attempts a run of the model can make.
pub(crate) const ATTEMPTS: usize = 2;

/// The keepers: one for each attempt, and a second one for the first, by a window that was executed again.
pub(crate) const KEEPERS: usize = 3;

/// The attempt that a keeper was started for.
pub(crate) const fn attempt_of(keeper: usize) -> usize {
    if keeper == 1 { 1 } else { 0 }
}

/// Where the run's directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// In `runs/`.
    Runs,
    /// In `trash/`, and nothing is decided.
    Trash,
    /// In `trash/` under the name that says: proven again, being erased, never to be renamed back.
    Erasing,
    /// The same, and everything but the lock files is unlinked.
    HalfErased,
    /// In `quarantine/`.
    Quarantine,
    /// Erased.
    Gone,
}

/// The run's archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Archive {
    /// None.
    None,
    /// Renamed into place, content of the run with so many attempts.
    Good(u8),
    /// Renamed into place, and what the disk holds is not what was written.
    Torn,
}

/// Who holds a lock that one process at a time takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lock {
    /// Nobody.
    Free,
    /// The engine.
    Engine,
    /// A mutator.
    Mutator(u8),
    /// The multiplexer's server, which inherited it by mistake.
    Server,
}

/// How much of an attempt's directory is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Made {
    /// Nothing.
    No,
    /// The directory.
    Dir,
    /// Lease, environment and launch file too.
    Filled,
}

/// The exit receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Receipt {
    /// Not there.
    None,
    /// The program ended, and no hang-up came before.
    Own,
    /// A hang-up came no later.
    HangUp,
}

/// The agent CLI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cli {
    /// Not spawned.
    NotStarted,
    /// It runs.
    Alive,
    /// It ended while its terminal was there.
    Ended,
    /// It ended after its terminal had gone away, or with its tree.
    EndedAfter,
}

/// A process that the agent CLI left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Left {
    /// None.
    None,
    /// It holds the lease.
    Holding,
    /// It closed the lease and dropped the environment; it is still a member of the keeper's session.
    Member,
    /// It left the session too: nothing but the keeper sees it.
    Hidden,
    /// The same, and its keeper was killed: nothing at all sees it. The documented limit.
    Beyond,
}

/// What any reader has concluded of an attempt. A conclusion is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Claim {
    /// Nothing that is for ever.
    None,
    /// It never starts.
    Never,
    /// It was lost, and no receipt says so.
    Lost,
}

/// What the keeper wrote about its hang-up, or what really went away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Went {
    /// Nothing.
    Nothing,
    /// The window.
    Window,
    /// The server.
    Server,
    /// Nobody can tell.
    Unclear,
}

/// One attempt: its directory, its program, its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Attempt {
    pub(crate) made: Made,
    pub(crate) cancelled: bool,
    pub(crate) refused: bool,
    pub(crate) start: bool,
    /// The start receipt cannot be read any more.
    pub(crate) torn: bool,
    pub(crate) exit: Receipt,
    pub(crate) emptied: bool,
    pub(crate) note: Went,
    pub(crate) cli: Cli,
    /// The program is the second keeper's.
    pub(crate) second: bool,
    pub(crate) left: Left,
    /// The server lists its window.
    pub(crate) window: bool,
    /// The server that the window was asked of; 0 before.
    pub(crate) server: u8,
    /// What really took the window away.
    pub(crate) went: Went,
    pub(crate) claim: Claim,
}

/// How far a keeper has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Keep {
    /// Nobody asked for it.
    Unborn,
    /// The request for its window lies at the server; the client that sent it is dead.
    Queued,
    /// It runs, and ignores nothing yet.
    Born,
    /// It has the directory open.
    Opened,
    /// It saw no receipt of another keeper.
    Unused,
    /// It holds the lease.
    Locked,
    /// It saw no receipt again.
    StillUnused,
    /// Its path leads to the directory that it has open.
    InPlace,
    /// No later attempt was made.
    Latest,
    /// Nobody gave the launch up.
    Cleared,
    /// The start receipt is written.
    Started,
    /// The program is spawned.
    Tends,
    /// The program is reaped.
    Reaped,
    /// It looked once more, and no hang-up had come.
    PolledOwn,
    /// It looked once more, and a hang-up had come.
    PolledHangUp,
    /// The exit receipt is written.
    Recorded,
    /// The receipt that nothing is left is written.
    Emptied,
    /// It is about to write its refusal.
    Refusing,
    /// The refusal is written.
    Refused,
    /// The lease is closed; the window stays.
    Parked,
    /// It has ended.
    Dead,
}

impl Keep {
    /// It holds the lease itself.
    pub(crate) fn holds_lease(self) -> bool {
        (Self::Locked..=Self::Refused).contains(&self)
    }

    /// It runs.
    pub(crate) fn lives(self) -> bool {
        (Self::Born..=Self::Parked).contains(&self)
    }

    /// A hang-up still changes what it does.
    pub(crate) fn may_be_told(self) -> bool {
        (Self::Born..=Self::Reaped).contains(&self)
    }

    /// It may still write an exit receipt.
    pub(crate) fn may_record(self) -> bool {
        (Self::Started..=Self::PolledHangUp).contains(&self)
    }
}

/// A keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Keeper {
    pub(crate) at: Keep,
    /// Its terminal went away.
    pub(crate) gone: bool,
    /// It was told so.
    pub(crate) told: bool,
}

/// A lock that the observer holds shared, for the moment of its probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Hold {
    None,
    Engine,
    Lease(u8),
}

/// Somebody else's mux session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Foreign {
    None,
    /// On the present server, under the name of ours.
    Name,
    /// On a later server, under the name and the id of ours.
    NameAndId,
}

/// The state of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) place: Place,
    pub(crate) record: RecordId,
    pub(crate) stop: bool,
    pub(crate) archive: Archive,
    /// It was put aside or erased by a person's word while a lock of it could not be probed.
    pub(crate) blind: bool,
    pub(crate) attempts: [Attempt; ATTEMPTS],
    pub(crate) keepers: [Keeper; KEEPERS],
    pub(crate) run_lock: Lock,
    pub(crate) engine_lock: Lock,
    pub(crate) engine: Engine,
    pub(crate) mutators: [Mutator; 2],
    pub(crate) observer: Looker,
    pub(crate) hold: Hold,
    /// The server that serves now, counted from 1; 0 where none does.
    pub(crate) server: u8,
    /// The last server that was started.
    pub(crate) servers: u8,
    pub(crate) foreign: Foreign,
    pub(crate) rebooted: bool,
    /// A dead process's pid is a stranger's.
    pub(crate) reused: bool,
    /// Faults that may still happen.
    pub(crate) faults: u8,
    /// The harm that was done, if any.
    pub(crate) harm: Option<crate::rules::Harm>,
}

impl State {
    /// Somebody holds the lease of an attempt. An observer's shared hold is not looked at here.
    pub(crate) fn lease_held(&self, a: usize, inherited: bool) -> bool {
        let attempt = &self.attempts[a];
        let keeper = (0..KEEPERS).any(|k| attempt_of(k) == a && self.keepers[k].at.holds_lease());
        let inside = a == 0 && self.mutators.iter().any(|m| m.holds);
        keeper || (inherited && (attempt.cli == Cli::Alive || attempt.left == Left::Holding || inside))
    }

    /// The receipts of the run can be read by whoever has its directory open.
    pub(crate) fn has_files(&self) -> bool {
        !matches!(self.place, Place::HalfErased | Place::Gone)
    }

    /// The keeper of an attempt's program.
    pub(crate) fn parent(&self, a: usize) -> usize {
        match (a, self.attempts[a].second) {
            (0, true) => 2,
            _ => a,
        }
    }

    /// The program or something that it left runs, but for what nothing sees.
    pub(crate) fn runs(&self, a: usize) -> bool {
        self.attempts[a].cli == Cli::Alive || !matches!(self.attempts[a].left, Left::None | Left::Beyond)
    }

    /// The engine runs.
    pub(crate) fn engine_lives(&self) -> bool {
        self.engine.at != Drive::Dead
    }

    /// The attempts that were made, one bit each.
    pub(crate) fn made(&self) -> u8 {
        (0..ATTEMPTS).filter(|a| self.attempts[*a].made > Made::No).map(|a| 1 << a).sum()
    }

    /// The number of the latest attempt that has a directory; 0 where there is none.
    pub(crate) fn latest_made(&self) -> u32 {
        u8::BITS - self.made().leading_zeros()
    }

    /// Nothing happens until somebody acts: the program runs, or everything has ended or was never launched. What
    /// differs only in how it came there is left out.
    pub(crate) fn is_at_rest(&self) -> bool {
        let first = &self.attempts[0];
        let lives = first.cli == Cli::Alive;
        let keeper = match self.keepers[0].at {
            Keep::Unborn | Keep::Queued => true,
            Keep::Dead => first.refused == first.cancelled,
            Keep::Parked => first.window,
            Keep::Tends => lives,
            Keep::Recorded => first.left != Left::None,
            _ => false,
        };
        let same = first.exit == Receipt::None && matches!(first.cli, Cli::Ended);
        let engine = match self.engine.at {
            Drive::Dead => true,
            Drive::Waits => lives && self.engine.started,
            _ => false,
        };
        keeper && engine && !same
    }

    /// Notes a harm; the first one counts.
    pub(crate) fn harmed(&mut self, harm: crate::rules::Harm) {
        self.harm.get_or_insert(harm);
    }
}
