//! The record of a run: the one file that changes, and the changes that it permits.

use super::files::{SCHEMA, Schema};
use crate::process::Identity;
use crate::verdict::{Cause, End, Status, Verdict};
use serde::{Deserialize, Serialize};

/// `state.json`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Counts the writes.
    pub rev: u64,
    /// A status that may be written.
    pub status: Status,
    /// The latest attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// The engine that wrote last, and how often an engine has taken this run up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Identity>,
    /// Why it is paused, or why it failed otherwise than by its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How the latest attempt ended, as its receipts said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// When it ended, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
}

impl Schema for Record {
    fn schema(&self) -> u32 {
        self.schema
    }
}

/// A proven end of an attempt, as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Outcome {
    /// The agent CLI ended by itself.
    Exited {
        /// How.
        end: End,
    },
    /// The attempt ended without the agent CLI's own end.
    Lost {
        /// What went away.
        cause: Cause,
        /// How the agent CLI ended, if its keeper saw it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<End>,
    },
    /// It never started.
    NeverStarted {
        /// Why.
        why: String,
    },
}

impl Outcome {
    /// The outcome that a verdict proves, or `None` where it proves no end.
    pub fn of(verdict: &Verdict) -> Option<Self> {
        match verdict {
            Verdict::Exited { end, .. } => Some(Self::Exited { end: end.clone() }),
            Verdict::Lost { cause, end, .. } => Some(Self::Lost { cause: *cause, end: end.clone() }),
            Verdict::NeverStarted { why } => Some(Self::NeverStarted { why: why.clone() }),
            Verdict::Launching | Verdict::Running { .. } | Verdict::Unknown { .. } => None,
        }
    }
}

/// A change of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// An engine prepares this attempt.
    Launch {
        /// Its number: the one after the record's.
        attempt: u32,
        /// The engine.
        engine: Identity,
    },
    /// The attempt's start receipt was seen.
    Started,
    /// The engine waits.
    Pause {
        /// For what.
        reason: String,
    },
    /// The run is over.
    End {
        /// A final status.
        status: Status,
        /// The proven end of its last attempt; `None` only where none was ever made.
        outcome: Option<Outcome>,
        /// Why, where the outcome does not say it.
        reason: Option<String>,
        /// When, in milliseconds since the Unix epoch.
        at_ms: u64,
    },
}

/// A change that a record does not permit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// What is final stays as it is.
    #[error("the run is {0} already, and that is final")]
    Final(Status),
    /// Only final statuses end a run, and an end needs an outcome.
    #[error("{0} is no end of a run")]
    NoEnd(Status),
    /// Attempts are counted one by one.
    #[error("attempt {asked} does not follow attempt {latest}")]
    Attempt {
        /// The record's.
        latest: u32,
        /// The change's.
        asked: u32,
    },
}

impl Record {
    /// The record of a run that was just made.
    pub fn new() -> Self {
        Self {
            schema: SCHEMA,
            rev: 0,
            status: Status::Starting,
            attempt: 0,
            engine: None,
            reason: None,
            outcome: None,
            ended_ms: None,
        }
    }

    /// The record after a change.
    ///
    /// # Errors
    /// [`Forbidden`]; the record then stays as it is.
    pub fn after(&self, change: Change) -> Result<Self, Forbidden> {
        if self.status.row().is_final {
            return Err(Forbidden::Final(self.status));
        }
        let mut next = Self { rev: self.rev + 1, reason: None, ..self.clone() };
        match change {
            Change::Launch { attempt, engine } => {
                if attempt != self.attempt + 1 {
                    return Err(Forbidden::Attempt { latest: self.attempt, asked: attempt });
                }
                next.attempt = attempt;
                next.engine = Some(engine);
                next.status = Status::Starting;
                next.outcome = None;
            }
            Change::Started => next.status = Status::Running,
            Change::Pause { reason } => {
                next.status = Status::Paused;
                next.reason = Some(reason);
            }
            Change::End { status, outcome, reason, at_ms } => {
                if !status.row().is_final || (outcome.is_none() && self.attempt != 0) {
                    return Err(Forbidden::NoEnd(status));
                }
                next.status = status;
                next.outcome = outcome;
                next.reason = reason;
                next.ended_ms = Some(at_ms);
            }
        }
        Ok(next)
    }
}

impl Default for Record {
    fn default() -> Self {
        Self::new()
    }
}
