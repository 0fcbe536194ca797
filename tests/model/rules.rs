//! The rules, as properties of a state.

use crate::state::{Cli, Lock, Place, State};

/// Something that must not happen, noted where it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Harm {
    FalseEnd,
    ListingBelieved,
    UnknownBelieved,
    WrongCause,
    NeverStartedStarted,
    FinalChanged,
    ExitDropped,
    ExitChanged,
    OutcomeOfAnother,
    FalseStop,
    ForeignKilled,
    ForeignClaimed,
    LiveCleaned,
    StrangerSignalled,
    StrangerInForeignSpace,
    CameBack,
    ReadDisturbed,
    TwoPrograms,
    TwoEngines,
    ResumedOverLeftovers,
    ErasedUnproven,
    HalfErasedBack,
    ArchiveMissing,
}

impl Harm {
    /// The number of the rule that is broken, and how.
    fn rule(self) -> (u8, &'static str) {
        match self {
            Self::FalseEnd => (2, "an end was concluded that is none, or that was another"),
            Self::ListingBelieved => (11, "a listing without the window ended an attempt"),
            Self::UnknownBelieved => (10, "an end was concluded from what could not be read"),
            Self::WrongCause => (12, "a cause was named that is not what went away"),
            Self::NeverStartedStarted => (14, "a launch that was called never started did start"),
            Self::FinalChanged => (3, "a final record was changed"),
            Self::ExitDropped => (4, "a recorded end was dropped"),
            Self::ExitChanged => (4, "an exit receipt was overwritten"),
            Self::OutcomeOfAnother => (4, "an outcome was recorded that the attempt's receipts do not say"),
            Self::FalseStop => (5, "a stop reported success while something of the run runs"),
            Self::ForeignKilled => (6, "a mux session of somebody else was killed"),
            Self::ForeignClaimed => (13, "a mux session without our token was taken for ours"),
            Self::LiveCleaned => (2, "a cleanup ended a live program"),
            Self::StrangerSignalled => (7, "a signal went to a process that has the pid of one of ours"),
            Self::StrangerInForeignSpace => (22, "a pid of another namespace was signalled here"),
            Self::CameBack => (8, "a removed run came back"),
            Self::ReadDisturbed => (9, "an observer's look changed what somebody else did"),
            Self::TwoPrograms => (15, "an attempt ran twice"),
            Self::TwoEngines => (15, "two engines drive the run"),
            Self::ResumedOverLeftovers => {
                (15, "a run was resumed while something held the lease of an attempt")
            }
            Self::ErasedUnproven => (23, "a run was erased that was not proven dead"),
            Self::HalfErasedBack => (19, "a half-erased run was put back"),
            Self::ArchiveMissing => (19, "a run was erased whose archive does not hold it"),
        }
    }
}

/// The rule that a state breaks, if it breaks one.
pub(crate) fn broken(s: &State) -> Option<(u8, &'static str)> {
    if let Some(harm) = s.harm {
        return Some(harm.rule());
    }
    let lives = (0..s.attempts.len()).any(|a| s.runs(a));
    match s.place {
        // What cannot be looked at is left to the person who asked, twice (L23).
        _ if s.blind => {}
        Place::Erasing | Place::HalfErased | Place::Gone if lives || s.engine_lives() => {
            return Some((1, "a run was erased of which something lives"));
        }
        Place::Quarantine if s.attempts.iter().any(|a| a.cli == Cli::Alive) && s.run_lock == Lock::Free => {
            return Some((18, "a live run is where nobody looks for it"));
        }
        _ => {}
    }
    if s.attempts.iter().filter(|a| a.cli == Cli::Alive).count() > 1 {
        return Some((15, "two attempts run"));
    }
    if s.engine_lock == Lock::Server {
        return Some((20, "the engine lock is held by what an engine started"));
    }
    None
}
