//! Waiting for a lease to fall free, without polling.

use crate::run::dir::Dir;
use crate::run::locks::Waiter;
use crate::wake::{self, AsSource, Latch, Source};
use std::time::{Duration, Instant};

/// A thread that sleeps in the kernel until the lease is free. It takes the lock shared, for a moment, and gives
/// it up; if nobody waits any more it goes on sleeping until the process ends.
#[derive(Debug)]
pub struct LeaseWait {
    ended: Option<Latch>,
}

impl LeaseWait {
    /// Starts to wait. Where the file cannot be opened or no thread can be had, every wait lasts its whole limit.
    pub fn start(dir: &Dir, name: &str) -> Self {
        let Ok(waiter) = Waiter::open(dir, name) else { return Self { ended: None } };
        let Ok((latch, ringer)) = wake::latch() else { return Self { ended: None } };
        let thread = std::thread::Builder::new().name("lease".to_owned()).spawn(move || {
            if waiter.until_free(|| ringer.is_wanted()).is_ok() {
                drop(ringer);
            } else {
                // No answer is no end: it never rings for as long as this process lives.
                std::mem::forget(ringer);
            }
        });
        Self { ended: thread.is_ok().then_some(latch) }
    }

    /// Tells once the lease was free.
    pub fn source(&self) -> Option<Source<'_>> {
        self.ended.as_ref().map(AsSource::as_source)
    }

    /// Waits until the lease was free; `false` after `limit`, or when `urgent` says so after one of `wake` told
    /// something.
    pub fn wait(&self, limit: Duration, wake: &[Source<'_>], urgent: &dyn Fn() -> bool) -> bool {
        let end = Instant::now() + limit;
        loop {
            if urgent() {
                // Whoever lost patience does not wait, but what has happened has happened.
                return self.source().is_some_and(wake::is_ready);
            }
            let left = end.saturating_duration_since(Instant::now());
            let mut sources: Vec<Source<'_>> = self.source().into_iter().collect();
            let mine = sources.len();
            sources.extend_from_slice(wake);
            match wake::wait(&sources, Some(left.min(wake::SAFETY))) {
                Ok(wake::Woke::By(i)) if i < mine => return true,
                _ if left.is_zero() => return false,
                _ => {}
            }
        }
    }
}
