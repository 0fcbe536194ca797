//! What Linux has for a keeper.

use crate::run::dir::Dir;
use rustix::process::Pid;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;

/// Every descendant that loses its parent becomes a child of this process, and of no other.
pub(super) fn adopt_descendants() -> Result<(), String> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|e| format!("its descendants could not be followed: {e}"))
}

/// A program whose keeper is killed gets TERM: nobody could tell any more how it ended. The kernel's HUP does not
/// reach one that left the terminal's session.
pub(super) fn die_with(keeper: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    if rustix::process::getppid() != Some(keeper) {
        return Err(io::Error::other("the keeper ended"));
    }
    Ok(())
}

/// The running program and an open directory: the paths that both had may lead elsewhere by now.
pub(super) fn without_paths(dir: &Dir) -> (PathBuf, PathBuf) {
    let directory = format!("/proc/self/fd/{}", dir.at().as_fd().as_raw_fd());
    (PathBuf::from("/proc/self/exe"), PathBuf::from(directory))
}

/// From here on this process sleeps, beside hundreds like it: what the start took and freed goes back to the system.
#[allow(unsafe_code)]
pub(super) fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call only releases what the allocator holds free.
    unsafe {
        libc::malloc_trim(0);
    }
}
