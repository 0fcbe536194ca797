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
    /// The ends before the present attempt, oldest first. A resume appends; nothing changes what stands here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Earlier>,
}

/// How the run stood when it was resumed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Earlier {
    /// The attempt that was the latest then; 0 where the run ended before its first.
    pub attempt: u32,
    /// The status as it was written: final, or active where no engine came to write an end.
    pub status: Status,
    /// How that attempt ended, as its receipts said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// When it ended, if that was written.
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
        /// The proven end of its last attempt; `None` only where none was made since the run was taken up.
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
    /// It succeeded, or how its latest attempt ended is not proven.
    #[error("a run that is {0} cannot be resumed, or the end of its latest attempt is not proven")]
    NotResumable(Status),
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
            earlier: Vec::new(),
        }
    }

    /// The record with every attempt counted that has a directory. An engine makes the directory first, and may die before
    /// it counts it.
    #[must_use]
    pub fn counting(mut self, attempts: u32) -> Self {
        if self.status.row().active {
            self.attempt = self.attempt.max(attempts);
        }
        self
    }

    /// The record of a run that is taken up again. Its end, if it had one, is kept among the earlier ones: it is
    /// the attempt after it that is active.
    ///
    /// `proven` is how the latest attempt ended, by its receipts, where the record itself does not say it.
    ///
    /// # Errors
    /// [`Forbidden::NotResumable`]; the record then stays as it is.
    pub fn resumed(&self, engine: Identity, proven: Option<Outcome>) -> Result<Self, Forbidden> {
        let row = self.status.row();
        // What is active has no engine any more: the caller holds the engine lock.
        if !(row.resumable || row.active) || (self.attempt > 0 && self.outcome.is_none() && proven.is_none())
        {
            return Err(Forbidden::NotResumable(self.status));
        }
        let mut earlier = self.earlier.clone();
        if self.attempt > 0 || row.is_final {
            earlier.push(Earlier {
                attempt: self.attempt,
                status: self.status,
                outcome: self.outcome.clone().or(proven),
                ended_ms: self.ended_ms,
            });
        }
        Ok(Self {
            rev: self.rev + 1,
            status: Status::Starting,
            engine: Some(engine),
            reason: None,
            outcome: None,
            ended_ms: None,
            earlier,
            ..self.clone()
        })
    }

    /// It was taken up again, and its next attempt was not begun: what is known of its latest attempt is an earlier
    /// end, not the run's.
    pub fn launch_is_due(&self) -> bool {
        self.earlier.last().is_some_and(|earlier| earlier.attempt == self.attempt)
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
                let begun = self.attempt != 0 && !self.launch_is_due();
                if !status.row().is_final || (outcome.is_none() && begun) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> Identity {
        Identity { pid: 1, start: 2, boot: "b".into(), pid_ns: None, time_ns: None }
    }

    fn outcome() -> Option<Outcome> {
        Some(Outcome::Exited { end: End::Code(3) })
    }

    fn end(status: Status) -> Change {
        Change::End { status, outcome: outcome(), reason: None, at_ms: 7 }
    }

    fn running() -> Record {
        let launch = Change::Launch { attempt: 1, engine: me() };
        Record::new().after(launch).unwrap().after(Change::Started).unwrap()
    }

    #[test]
    fn what_is_final_permits_no_change() {
        for status in Status::ALL.into_iter().filter(|s| s.row().is_final) {
            let ended = running().after(end(status)).unwrap();
            let changes = [
                Change::Started,
                Change::Pause { reason: "x".into() },
                Change::Launch { attempt: 2, engine: me() },
                end(Status::Lost),
                end(Status::Succeeded),
            ];
            for change in changes {
                assert_eq!(ended.after(change), Err(Forbidden::Final(status)));
            }
        }
    }

    #[test]
    fn only_a_final_status_with_an_outcome_ends_a_run() {
        for status in Status::ALL.into_iter().filter(|s| !s.row().is_final) {
            assert_eq!(running().after(end(status)), Err(Forbidden::NoEnd(status)));
        }
        let without = Change::End { status: Status::Stopped, outcome: None, reason: None, at_ms: 7 };
        assert_eq!(running().after(without.clone()), Err(Forbidden::NoEnd(Status::Stopped)));
        assert!(Record::new().after(without).is_ok(), "stopped before its first attempt");
    }

    #[test]
    fn attempts_are_counted_one_by_one() {
        let wrong = Change::Launch { attempt: 3, engine: me() };
        assert_eq!(running().after(wrong), Err(Forbidden::Attempt { latest: 1, asked: 3 }));
    }

    #[test]
    fn an_attempt_that_its_engine_did_not_come_to_count_is_counted_by_whoever_ends_it() {
        assert_eq!(Record::new().counting(1).after(end(Status::Stopped)).unwrap().attempt, 1);
        assert_eq!(running().counting(0), running());
        let ended = running().after(end(Status::Stopped)).unwrap();
        assert_eq!(ended.clone().counting(7), ended, "what is final stays as it is");
    }

    #[test]
    fn a_resume_keeps_the_earlier_end_and_counts_on() {
        let stopped = running().after(end(Status::Stopped)).unwrap();
        let again = stopped.resumed(me(), None).unwrap();
        assert_eq!((again.status, again.outcome.clone(), again.attempt), (Status::Starting, None, 1));
        let kept = Earlier { attempt: 1, status: Status::Stopped, outcome: outcome(), ended_ms: Some(7) };
        assert_eq!(again.earlier, std::slice::from_ref(&kept));
        let second = again.after(Change::Launch { attempt: 2, engine: me() }).unwrap();
        let twice = second.after(end(Status::Failed)).unwrap().resumed(me(), None).unwrap();
        assert_eq!((twice.earlier.len(), &twice.earlier[0]), (2, &kept));
    }

    #[test]
    fn a_run_that_was_resumed_may_be_stopped_before_its_next_attempt() {
        let again = running().after(end(Status::Stopped)).unwrap().resumed(me(), None).unwrap();
        let stop = Change::End { status: Status::Stopped, outcome: None, reason: None, at_ms: 9 };
        let stopped = again.after(stop.clone()).unwrap();
        assert_eq!((stopped.status, stopped.attempt, stopped.earlier.len()), (Status::Stopped, 1, 1));
        let begun = again.clone().counting(2);
        assert_eq!(begun.after(stop), Err(Forbidden::NoEnd(Status::Stopped)), "the next attempt has begun");
        assert!(stopped.resumed(me(), outcome()).is_ok());
    }

    #[test]
    fn a_run_that_was_stopped_before_its_first_attempt_keeps_that_when_it_is_resumed() {
        let stop = Change::End { status: Status::Stopped, outcome: None, reason: None, at_ms: 7 };
        let again = Record::new().after(stop).unwrap().resumed(me(), None).unwrap();
        let kept = Earlier { attempt: 0, status: Status::Stopped, outcome: None, ended_ms: Some(7) };
        assert_eq!((again.attempt, again.earlier), (0, vec![kept]));
        assert_eq!(Record::new().resumed(me(), None).unwrap().earlier, []);
    }

    #[test]
    fn what_succeeded_or_is_not_proven_to_have_ended_is_not_resumed() {
        let done = running().after(end(Status::Succeeded)).unwrap();
        assert_eq!(done.resumed(me(), None), Err(Forbidden::NotResumable(Status::Succeeded)));
        assert_eq!(running().resumed(me(), None), Err(Forbidden::NotResumable(Status::Running)));
        assert!(running().resumed(me(), outcome()).is_ok());
    }
}
