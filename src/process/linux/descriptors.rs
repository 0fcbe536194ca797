//! The descriptors of this process.

use std::io;

/// Where a process finds its own descriptors.
pub const OWN_DESCRIPTORS: &str = "/proc/self/fd";

/// Has every descriptor from 3 on closed when this process executes a program. It may be called in a forked child.
///
/// # Errors
/// As the operating system says.
#[allow(unsafe_code)]
pub fn close_on_exec() -> io::Result<()> {
    // SAFETY: the call takes numbers, and only sets a flag of our own descriptors.
    let result = unsafe { libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
