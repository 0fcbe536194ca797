//! Waiting for a lease to fall free, without polling.

use crate::run::dir::Dir;
use crate::wake;
use std::io::PipeReader;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// A thread that sleeps in the kernel until the lease is free. It takes the lock shared, for a moment, and gives
/// it up; if nobody waits any more it goes on sleeping until the process ends.
#[derive(Debug)]
pub struct LeaseWait {
    ended: Option<PipeReader>,
}

impl LeaseWait {
    /// Starts to wait. Where the file cannot be opened or no thread can be had, every wait lasts its whole limit.
    pub fn start(dir: &Dir, name: &str) -> Self {
        let Ok(file) = dir.open_lock(name) else { return Self { ended: None } };
        let Ok((reader, writer)) = std::io::pipe() else { return Self { ended: None } };
        let thread = std::thread::Builder::new().name("lease".to_owned()).spawn(move || {
            if file.lock_shared().is_ok() {
                drop(writer);
            } else {
                // No answer is no end: keep the pipe open for as long as this process lives.
                std::mem::forget(writer);
            }
        });
        Self { ended: thread.is_ok().then_some(reader) }
    }

    /// Readable at its end once the lease was free.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.ended.as_ref().map(AsFd::as_fd)
    }

    /// Waits until the lease was free; `false` after `limit`, or when `urgent` says so after one of `wake` became
    /// readable.
    pub fn wait(&self, limit: Duration, wake: &[BorrowedFd<'_>], urgent: &dyn Fn() -> bool) -> bool {
        let end = Instant::now() + limit;
        loop {
            if urgent() {
                // Whoever lost patience does not wait, but what has happened has happened.
                return self.as_fd().is_some_and(|fd| {
                    matches!(wake::wait(&[fd], Some(Duration::ZERO)), Ok(wake::Woke::By(_)))
                });
            }
            let left = end.saturating_duration_since(Instant::now());
            let mut fds: Vec<BorrowedFd<'_>> = self.as_fd().into_iter().collect();
            let mine = fds.len();
            fds.extend_from_slice(wake);
            match wake::wait(&fds, Some(left.min(wake::SAFETY))) {
                Ok(wake::Woke::By(i)) if i < mine => return true,
                _ if left.is_zero() => return false,
                _ => {}
            }
        }
    }
}
