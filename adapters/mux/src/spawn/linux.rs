//! Seeing a child's end on Linux: a descriptor of the process itself.

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;
use std::process::Child;

/// A descriptor that becomes readable when the child ends; `None` where the kernel has none to give.
pub(super) fn end_of(child: &Child) -> Option<OwnedFd> {
    // The child has not been waited for, so its pid is still its own.
    let pid = Pid::from_raw(i32::try_from(child.id()).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}
