//! The word that a person sees for a run, and what each word means for the commands.

use super::attempt::{Leftovers, Verdict};
use super::evidence::{End, Observation, Why};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The status of a run. The first eight are written into its record; the last three are derived by whoever
/// reads, and never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Its engine prepares a launch.
    Starting,
    /// An attempt runs under its engine.
    Running,
    /// Its engine waits for a person or for a condition.
    Paused,
    /// The work was done.
    Succeeded,
    /// The agent CLI failed, or never started.
    Failed,
    /// Somebody stopped it.
    Stopped,
    /// Its last attempt ended without the agent CLI's own end.
    Lost,
    /// It took longer than it was allowed to.
    TimedOut,
    /// The engine is gone, and something of the run is alive.
    Orphaned,
    /// The engine is gone, nothing of the run is alive, and something was left to decide.
    Interrupted,
    /// Neither alive nor dead is proven.
    Unknown,
}

/// A colour role in listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Things go on.
    Green,
    /// Nothing to do.
    Dim,
    /// A person should look.
    Yellow,
    /// It went wrong.
    Red,
}

/// One row of the policy table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRow {
    /// The word.
    pub word: &'static str,
    /// An engine is expected to drive it.
    pub active: bool,
    /// Written once, never changed again.
    pub is_final: bool,
    /// Only ever derived, never in a record.
    pub derived: bool,
    /// `resume` may make another attempt, if nothing of the run is alive.
    pub resumable: bool,
    /// The directory may go, if nothing of the run is alive. Where it is `false` no evidence allows it.
    pub removable: bool,
    /// How it is shown.
    pub colour: Colour,
    /// The exit code of `run` and `wait`.
    pub exit: u8,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 11] = [
        Self::Starting,
        Self::Running,
        Self::Paused,
        Self::Succeeded,
        Self::Failed,
        Self::Stopped,
        Self::Lost,
        Self::TimedOut,
        Self::Orphaned,
        Self::Interrupted,
        Self::Unknown,
    ];

    /// What the status means.
    pub const fn row(self) -> StatusRow {
        const fn row(word: &'static str, colour: Colour, exit: u8) -> StatusRow {
            StatusRow {
                word,
                active: false,
                is_final: false,
                derived: false,
                resumable: false,
                removable: false,
                colour,
                exit,
            }
        }
        match self {
            Self::Starting => StatusRow { active: true, ..row("starting", Colour::Green, 8) },
            Self::Running => StatusRow { active: true, ..row("running", Colour::Green, 8) },
            Self::Paused => StatusRow { active: true, resumable: true, ..row("paused", Colour::Yellow, 8) },
            Self::Succeeded => {
                StatusRow { is_final: true, removable: true, ..row("succeeded", Colour::Dim, 0) }
            }
            Self::Failed => StatusRow {
                is_final: true,
                resumable: true,
                removable: true,
                ..row("failed", Colour::Red, 1)
            },
            Self::Stopped => StatusRow {
                is_final: true,
                resumable: true,
                removable: true,
                ..row("stopped", Colour::Dim, 1)
            },
            Self::Lost => {
                StatusRow { is_final: true, resumable: true, removable: true, ..row("lost", Colour::Red, 6) }
            }
            Self::TimedOut => StatusRow {
                is_final: true,
                resumable: true,
                removable: true,
                ..row("timed-out", Colour::Red, 7)
            },
            Self::Orphaned => StatusRow { derived: true, ..row("orphaned", Colour::Yellow, 8) },
            Self::Interrupted => StatusRow {
                derived: true,
                resumable: true,
                removable: true,
                ..row("interrupted", Colour::Yellow, 1)
            },
            Self::Unknown => StatusRow { derived: true, ..row("unknown", Colour::Yellow, 8) },
        }
    }

    /// The contract's word.
    pub fn as_str(self) -> &'static str {
        self.row().word
    }

    /// The final status that an end by itself gives a run of one command.
    pub fn of_end(end: &End) -> Status {
        if *end == End::Code(0) { Self::Succeeded } else { Self::Failed }
    }

    /// The final status that a proven end gives a run in which nothing is left to decide, or `None` where the
    /// verdict is no end.
    pub fn of_verdict(verdict: &Verdict) -> Option<Status> {
        match verdict {
            Verdict::Exited { end, .. } => Some(Self::of_end(end)),
            Verdict::Lost { .. } => Some(Self::Lost),
            Verdict::NeverStarted { .. } => Some(Self::Failed),
            Verdict::Launching | Verdict::Running { .. } | Verdict::Unknown { .. } => None,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What the record says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordSeen {
    /// The status as written.
    pub status: Status,
    /// After its attempt's end something would still be left to decide: a verification, a retry, the next task.
    pub more_to_decide: bool,
}

/// The engine lock, as a reader finds it. Without the run lock "gone" can flip.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EngineSeen {
    /// Somebody holds the lock.
    Running,
    /// Nobody holds it.
    Gone,
    /// Cannot tell.
    Unknown(Why),
}

/// Derives the status of a run from its record, its engine lock and the verdict on its latest attempt, if it
/// has one.
pub fn derive_status(
    record: &Observation<RecordSeen>,
    engine: &EngineSeen,
    latest: Option<&Verdict>,
) -> Status {
    let Observation::Known(record) = record else { return Status::Unknown };
    if record.status.row().is_final {
        return record.status;
    }
    match engine {
        EngineSeen::Running => return record.status,
        EngineSeen::Unknown(_) => return Status::Unknown,
        EngineSeen::Gone => {}
    }
    // An engine that pauses says what it waits for, and goes.
    let left = if record.status == Status::Paused { Status::Paused } else { Status::Interrupted };
    match latest {
        None => left,
        Some(Verdict::Running { .. }) => Status::Orphaned,
        Some(Verdict::Launching | Verdict::Unknown { .. }) => Status::Unknown,
        Some(ended) if record.more_to_decide => match ended.leftovers() {
            Leftovers::None => left,
            Leftovers::Some | Leftovers::Settling => Status::Orphaned,
            Leftovers::Unknown(_) => Status::Unknown,
        },
        Some(ended) => Status::of_verdict(ended).unwrap_or(Status::Unknown),
    }
}

/// The exit code of `run` and `wait` for one run: lost counts before interrupted.
pub fn exit_code(status: Status, latest: Option<&Verdict>) -> u8 {
    match (status, latest) {
        (Status::Interrupted, Some(Verdict::Lost { .. })) => Status::Lost.row().exit,
        _ => status.row().exit,
    }
}

/// The exit code for several runs: the first that applies of 8, 6, 7, 1, 0.
pub fn exit_code_of_all(codes: impl IntoIterator<Item = u8>) -> u8 {
    let codes: Vec<u8> = codes.into_iter().collect();
    [8, 6, 7, 1].into_iter().find(|c| codes.contains(c)).unwrap_or(0)
}
