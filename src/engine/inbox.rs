//! What wakes an engine: pokes, signals, and processes that end.

use super::Signals;
use crate::wake::{self, AsSource, Inbox, Source, Woke};
use std::path::Path;
use std::time::Duration;

/// How often an engine looks for itself that waits for nothing but pokes and the end of a process.
const PATIENCE: Duration = Duration::from_secs(10);

/// What an engine sleeps on.
#[derive(Debug)]
pub struct Wakes {
    /// Where the keeper and a stop poke; without it the engine looks once a second.
    pub inbox: Option<Inbox>,
    /// Signals.
    pub signals: Signals,
}

impl Wakes {
    /// Where to poke.
    pub fn poke_path(&self) -> Option<&Path> {
        self.inbox.as_ref().map(Inbox::path)
    }

    /// Sleeps until something happens, at most for `limit`, and never longer than a lost poke may cost. Where nothing
    /// but a poke or the end of the process `also` can happen, that may be longer.
    pub fn sleep(&self, also: Option<Source<'_>>, limit: Duration) {
        let sure = self.inbox.is_some() && also.is_some() && limit == Duration::MAX;
        let limit = limit.min(if sure { PATIENCE } else { wake::SAFETY });
        let mut sources = vec![self.signals.as_source()];
        sources.extend(self.inbox.as_ref().map(AsSource::as_source));
        sources.extend(also);
        match wake::wait(&sources, Some(limit)) {
            Ok(Woke::By(_)) => {
                self.signals.drain();
                if let Some(inbox) = &self.inbox {
                    inbox.drain();
                }
            }
            Ok(Woke::Interrupted | Woke::Timeout) => {}
            // Nothing to sleep on is left to the clock.
            Err(e) => {
                tracing::warn!("cannot wait for events: {e}");
                std::thread::sleep(wake::SAFETY);
            }
        }
    }
}
