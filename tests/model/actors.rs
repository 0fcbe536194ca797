//! How far everybody has come who reads or acts: lookers, the engine, the commands.

use crate::state::{ATTEMPTS, Receipt};
use crate::tables::{RecordId, SeenId};

/// Three answers and the want of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Tri {
    /// It is there.
    Yes,
    /// It is not there.
    No,
    /// Nobody can tell.
    Unknown,
}

/// What a probe of a lock said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Probe {
    /// Held.
    Held,
    /// Free.
    Free,
    /// No such file.
    NoFile,
    /// Nobody can tell.
    Unknown,
}

/// What was read of one attempt so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Evidence {
    pub(crate) cancelled: Tri,
    pub(crate) refused: Tri,
    pub(crate) start: Tri,
    pub(crate) lease: Probe,
    /// `None` where it could not be read.
    pub(crate) exit: Option<Receipt>,
    pub(crate) emptied: Tri,
}

/// Nothing read yet: the fields that no read will fill are absent.
pub(crate) const NOTHING: Evidence = Evidence {
    cancelled: Tri::No,
    refused: Tri::No,
    start: Tri::No,
    lease: Probe::NoFile,
    exit: Some(Receipt::None),
    emptied: Tri::No,
};

/// The next read of a look, in the fixed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Read {
    /// Not looking.
    Idle,
    Engine,
    List,
    Cancelled,
    Refused,
    Start,
    Lease,
    Exit,
    StartAgain,
    LeaseAgain,
    ExitAgain,
    Emptied,
    /// Whether the directory is still where it was opened.
    Place,
    Record,
    /// The look is over.
    Done,
}

/// Somebody who looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Looker {
    pub(crate) next: Read,
    /// At the engine lock, all attempts and the record; otherwise at one attempt.
    pub(crate) whole: bool,
    /// At the keeper's last receipt too.
    pub(crate) emptied: bool,
    /// Nobody can move the run meanwhile: it looks under the run lock.
    pub(crate) locked: bool,
    /// The attempt that is being looked at.
    pub(crate) at: u8,
    /// The attempts that were listed, one bit each.
    pub(crate) listed: u8,
    pub(crate) evidence: Evidence,
    pub(crate) engine: Probe,
    pub(crate) seen: [SeenId; ATTEMPTS],
    /// `None` where it is not there or could not be read.
    pub(crate) record: Option<RecordId>,
}

/// Nobody looks, and nothing was seen.
pub(crate) const AWAY: Looker = Looker {
    next: Read::Idle,
    whole: false,
    emptied: false,
    locked: false,
    at: 0,
    listed: 0,
    evidence: NOTHING,
    engine: Probe::Unknown,
    seen: [SeenId::NONE; ATTEMPTS],
    record: None,
};

/// How far the engine has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Drive {
    /// It ended; it holds nothing.
    Dead,
    ReadsStopFirst,
    /// Its pending change of the record: takes the run lock for it.
    Locks,
    Reads,
    Writes,
    Makes,
    Fills,
    Creates,
    /// It sleeps.
    Waits,
    Looks,
    /// It saw a launch under way.
    Unsure,
    /// It saw nothing that can be told.
    Puzzled,
    Cancels,
    Asks,
    Kills,
    LooksAfter,
    ReadsStop,
}

/// What the engine is about to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Intent {
    Launch,
    Started,
    Pause,
    End,
}

/// The engine. A resume becomes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Engine {
    pub(crate) at: Drive,
    /// The attempt that it drives.
    pub(crate) attempt: u8,
    pub(crate) started: bool,
    pub(crate) given_up: bool,
    pub(crate) stop: bool,
    pub(crate) intent: Intent,
    /// The record as it read it last.
    pub(crate) record: RecordId,
    /// The verdict that it ends on.
    pub(crate) seen: SeenId,
    pub(crate) look: Looker,
}

/// What a person asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Command {
    Nothing,
    Stop,
    Delete,
    /// `delete --force`.
    Force,
    /// `delete --unproven`.
    Unproven,
    Archive,
    Restore,
    /// `clean --quarantine`.
    EraseQuarantined,
    Cleanup,
    Resume,
}

/// How far a mutator has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Act {
    /// Not begun.
    Idle,
    /// It died, or ended; it holds nothing.
    Done,
    // From inside the run.
    Leaves,
    Registers,
    // Whatever an interrupted removal left.
    LocksToRecover,
    Recovers,
    // Stop.
    LooksFirst,
    LocksRequest,
    WritesRequest,
    LooksAtLaunch,
    AwaitsLaunch,
    LocksToGiveUp,
    ProbesToGiveUp,
    Cancels,
    AsksToGiveUp,
    KillsToGiveUp,
    LooksAtAttempt,
    Asks,
    Kills,
    Insists,
    Sweeps,
    AwaitsEngine,
    LooksLast,
    SweepsLast,
    LocksRecord,
    LooksToRecord,
    ReadsRecord,
    WritesRecord,
    // Removal.
    Locks,
    Looks,
    GivesUp,
    SweepsFirst,
    AsksVeto,
    Renames,
    LooksAgain,
    SweepsAgain,
    RenamesBack,
    MarksErasing,
    ProbesErasing,
    Unlinks,
    RemovesNow,
    // Archive.
    ChecksArchive,
    StagesArchive,
    ReadsBack,
    NamesArchive,
    // Quarantine.
    LooksUnheld,
    SweepsUnheld,
    LooksUnheldAgain,
    SweepsUnheldAgain,
    Quarantines,
    // Resume.
    LooksToResume,
    TakesEngine,
    ReadsToResume,
    PutsStopAside,
    WritesResumed,
    // Cleanup.
    LocksToClean,
    LooksToClean,
    Lists,
    KillsPane,
    ListsAgain,
}

/// What a mutator told its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Report {
    /// Nothing yet, or it died.
    None,
    /// It did what was asked.
    Success,
    /// It refused, or could not prove it.
    Refused,
}

/// A command at work. It may die at any step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mutator {
    pub(crate) command: Command,
    pub(crate) at: Act,
    /// The attempt that it works on.
    pub(crate) attempt: u8,
    /// How often it tried to end that attempt.
    pub(crate) tries: u8,
    /// Everything was proven so far.
    pub(crate) proven: bool,
    /// It finishes what another one began.
    pub(crate) recovering: bool,
    /// Somebody resumed the run after this one began its last look.
    pub(crate) overtaken: bool,
    /// It runs below the keeper, with the lease inherited.
    pub(crate) inside: bool,
    /// It has the inherited lease open.
    pub(crate) holds: bool,
    /// It told the keeper not to wait for it.
    pub(crate) registered: bool,
    /// The attempts that it listed, one bit each.
    pub(crate) mask: u8,
    pub(crate) record: RecordId,
    /// The archive that it wrote is not what the disk holds.
    pub(crate) torn: bool,
    pub(crate) report: Report,
    pub(crate) look: Looker,
}

/// A mutator that was not begun.
pub(crate) const fn idle(command: Command) -> Mutator {
    Mutator {
        command,
        at: Act::Idle,
        attempt: 0,
        tries: 0,
        proven: true,
        recovering: false,
        overtaken: false,
        inside: false,
        holds: false,
        registered: false,
        mask: 0,
        record: RecordId::NEW,
        torn: false,
        report: Report::None,
        look: AWAY,
    }
}
