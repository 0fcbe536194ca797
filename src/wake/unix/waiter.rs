//! Sleeping until one of several descriptors is readable.

use crate::wake::Woke;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Sleeps until one of `fds` is readable, or closed at its other end, at most for `limit`.
///
/// # Errors
/// As the operating system says.
pub fn wait(fds: &[BorrowedFd<'_>], limit: Option<Duration>) -> io::Result<Woke> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let limit = limit.map(|d| Timespec {
        tv_sec: i64::try_from(d.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(d.subsec_nanos()),
    });
    match poll(&mut polled, limit.as_ref()) {
        Ok(_) => Ok(polled.iter().position(|p| !p.revents().is_empty()).map_or(Woke::Timeout, Woke::By)),
        Err(Errno::INTR) => Ok(Woke::Interrupted),
        Err(e) => Err(e.into()),
    }
}
