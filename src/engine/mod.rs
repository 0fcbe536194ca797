//! The engine of a run: launches its attempts, waits for their ends, and writes down what became of them.
//!
//! Its life is its lock on `engine.lock`, nothing else. It goes on without a terminal and without a window.

mod attempt;
pub mod begin;
mod inbox;
mod signals;

pub use attempt::Outcomes;
pub use inbox::Wakes;
pub use signals::Signals;

use crate::observe::AttemptView;
use crate::ops::launch;
use crate::ops::programs::KeeperProgram;
use crate::ops::tidy::tidy;
use crate::process;
use crate::run::files::{RunFile, StopWhy, name, now_ms};
use crate::run::journal::Event;
use crate::run::record::{Change, Outcome, Record};
use crate::run::store::RunRead;
use crate::run::write::{EngineRun, ProjectWrite, StoreError};
use crate::verdict::{Observation, Status, Verdict};
use loopmux_mux::{CreateError, Multiplexer, Owned};
use std::ffi::OsString;

/// An engine that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The state directory could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run's directory could not be opened once more.
    #[error("cannot open the run's directory: {0}")]
    Reopen(std::io::Error),
    /// The attempt's directory is gone or cannot be read.
    #[error("cannot read the attempt's directory: {0}")]
    Attempt(String),
}

/// Everything that one engine works with.
pub struct Engine<'a> {
    /// The project.
    pub project: &'a ProjectWrite,
    /// The run, whose engine lock is held.
    pub run: &'a EngineRun,
    /// What was asked.
    pub file: &'a RunFile,
    /// The multiplexer.
    pub mux: &'a dyn Multiplexer,
    /// The keeper program, found once.
    pub keeper: &'a KeeperProgram,
    /// The caller's environment.
    pub caller: Vec<(OsString, OsString)>,
    /// `--env`.
    pub extra: Vec<(OsString, OsString)>,
    /// What wakes it.
    pub wakes: Wakes,
    /// Called at each change of what a person would want to see.
    pub notice: Box<dyn Fn(&Notice) + 'a>,
}

/// Something that a person would want to see.
#[derive(Debug)]
pub enum Notice {
    /// The window is there, or may be.
    Launched {
        /// The attempt's number.
        attempt: u32,
        /// The mux session's name.
        session: String,
        /// The version of the server that made the window, where it said one.
        server_version: Option<String>,
    },
    /// The start receipt was seen.
    Started {
        /// The attempt's number.
        attempt: u32,
    },
    /// The run is being stopped.
    Stopping(StopWhy),
    /// Something that is no end, and that a person should know.
    Trouble(String),
}

/// How a run came out.
#[derive(Debug)]
pub struct Finished {
    /// The record as written.
    pub record: Record,
    /// The last attempt, if there was one.
    pub view: Option<AttemptView>,
}

impl Engine<'_> {
    /// Drives the run to its end.
    ///
    /// # Errors
    /// [`EngineError`]; what was launched goes on, and reads orphaned.
    pub fn drive(&mut self) -> Result<Finished, EngineError> {
        let read = self.run.run().read().map_err(EngineError::Reopen)?;
        if let Err(trouble) = self.keeper.check() {
            return self.pause(trouble.to_string());
        }
        if matches!(read.stop(), Observation::Known(_)) {
            return self.finish(None, &read);
        }
        let attempt = match read.record() {
            Observation::Known(record) => record.attempt + 1,
            Observation::Absent => return Err(EngineError::Attempt(format!("{} is not there", name::STATE))),
            Observation::Unknown(why) => return Err(EngineError::Attempt(why.to_string())),
        };
        // The directory first: a counted attempt without one would never be known to have come to nothing.
        let dir = self.run.make_attempt(attempt)?;
        self.change(Change::Launch { attempt, engine: process::current() })?;
        let request = launch::Request {
            file: self.file,
            project_key: self.project.key(),
            attempt,
            caller: &self.caller,
            extra: &self.extra,
            keeper: self.keeper,
            poke: self.wakes.poke_path(),
            session: self.session_of_earlier(&read, attempt),
        };
        let prepared = launch::prepare(self.run, dir, &request)?;
        self.journal(Event::new("engine", "launching").attempt(attempt))?;
        let mut server_version = None;
        let pane_pid = match launch::create(&prepared, self.mux) {
            Ok(created) => {
                if !created.tagged {
                    self.trouble(attempt, "the window's tags could not be read back".to_owned())?;
                }
                server_version = Some(created.version);
                created.pane_pid
            }
            Err(e) => {
                self.trouble(attempt, e.to_string())?;
                if let CreateError::Refused(trouble) = &e {
                    return self.refused(&read, attempt, trouble.to_string());
                }
                None
            }
        };
        let session = prepared.launch.session.to_string();
        (self.notice)(&Notice::Launched { attempt, session, server_version });
        drop(prepared);
        let view = self.watch(&read, attempt, pane_pid)?;
        match view {
            Outcomes::Ended(view) => self.finish(Some(*view), &read),
            Outcomes::Unclear(why) => self.pause(why),
        }
    }

    /// A run has one mux session: an earlier attempt may have left it, parked or with a person's split in it.
    fn session_of_earlier(&self, read: &RunRead, attempt: u32) -> Option<Owned> {
        if attempt == 1 {
            return None;
        }
        let earlier: Vec<AttemptView> = (1..attempt)
            .filter_map(|n| match read.attempt(n) {
                Observation::Known(a) => Some(crate::observe::attempt_on_disk(&a)),
                Observation::Absent | Observation::Unknown(_) => None,
            })
            .collect();
        launch::session_of(&earlier, self.mux)
    }

    /// The multiplexer refused before anything could appear: given up by the same protocol as any launch.
    fn refused(&mut self, read: &RunRead, attempt: u32, why: String) -> Result<Finished, EngineError> {
        let attempt = self.open_attempt(read, attempt)?;
        let view = crate::ops::give_up::give_up(&attempt, None)
            .map_err(|e| EngineError::Store(StoreError::from(e)))?;
        match &view.verdict {
            Verdict::NeverStarted { .. } => {
                let outcome = Some(Outcome::NeverStarted { why: why.clone() });
                self.end(Status::Failed, outcome, Some(why), Some(view))
            }
            _ => match self.watch(read, attempt.n(), None)? {
                Outcomes::Ended(view) => self.finish(Some(*view), read),
                Outcomes::Unclear(why) => self.pause(why),
            },
        }
    }

    /// Writes the final record of a run whose attempt has ended.
    fn finish(&mut self, view: Option<AttemptView>, read: &RunRead) -> Result<Finished, EngineError> {
        let outcome = view.as_ref().and_then(|v| Outcome::of(&v.verdict));
        let by_itself = view.as_ref().and_then(|v| Status::of_verdict(&v.verdict)).unwrap_or(Status::Stopped);
        let status = match read.stop() {
            Observation::Known(stop) if stop.why == StopWhy::Timeout => Status::TimedOut,
            Observation::Known(_) => Status::Stopped,
            Observation::Absent => by_itself,
            Observation::Unknown(why) => {
                self.journal(Event::new("engine", "unknown").text(why.to_string()))?;
                by_itself
            }
        };
        let reason = match &outcome {
            Some(Outcome::NeverStarted { why }) => Some(why.clone()),
            _ => None,
        };
        if let Some(view) = &view
            && let Observation::Known(attempt) = read.attempt(view.n)
        {
            tidy(&attempt, view);
        }
        self.end(status, outcome, reason, view)
    }

    fn end(
        &mut self,
        status: Status,
        outcome: Option<Outcome>,
        reason: Option<String>,
        view: Option<AttemptView>,
    ) -> Result<Finished, EngineError> {
        let record = self.change(Change::End { status, outcome, reason, at_ms: now_ms() })?;
        self.journal(Event::new("engine", status.as_str()))?;
        Ok(Finished { record, view })
    }

    fn pause(&mut self, reason: String) -> Result<Finished, EngineError> {
        let record = self.change(Change::Pause { reason: reason.clone() })?;
        self.journal(Event::new("engine", "paused").text(reason.clone()))?;
        (self.notice)(&Notice::Trouble(reason));
        Ok(Finished { record, view: None })
    }

    fn change(&self, change: Change) -> Result<Record, EngineError> {
        loop {
            match self.run.change_record(self.project, change.clone()) {
                // Whoever holds the run lock writes and lets go; an engine has nothing better to do than to wait.
                Err(StoreError::Busy { .. }) => {}
                other => return Ok(other?),
            }
        }
    }

    fn journal(&self, event: Event) -> Result<(), EngineError> {
        Ok(self.run.run().journal(&event)?)
    }

    fn trouble(&self, attempt: u32, text: String) -> Result<(), EngineError> {
        self.journal(Event::new("engine", "trouble").attempt(attempt).text(text.clone()))?;
        (self.notice)(&Notice::Trouble(text));
        Ok(())
    }

    fn open_attempt(&self, read: &RunRead, n: u32) -> Result<crate::run::store::AttemptRead, EngineError> {
        match read.attempt(n) {
            Observation::Known(attempt) => Ok(attempt),
            Observation::Absent => Err(EngineError::Attempt(format!("{}/{n} is not there", name::ATTEMPTS))),
            Observation::Unknown(why) => Err(EngineError::Attempt(why.to_string())),
        }
    }
}
