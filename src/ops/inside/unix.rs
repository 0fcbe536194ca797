//! Unix: a session of its own, and no descriptor of ours.

use crate::process::{OWN_DESCRIPTORS, close_on_exec};
use crate::run::files::name;
use crate::run::store::AttemptRead;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Whether this process has a descriptor of the lease of an attempt.
pub(super) fn holds_lease(attempt: &AttemptRead) -> bool {
    let lease = attempt.dir().open_lock(name::LEASE).and_then(|f| f.metadata()).map(|m| (m.dev(), m.ino()));
    let (Ok(lease), Ok(mine)) = (lease, std::fs::read_dir(OWN_DESCRIPTORS)) else { return false };
    mine.flatten()
        .filter_map(|entry| std::fs::metadata(entry.path()).ok())
        .any(|open| (open.dev(), open.ino()) == lease)
}

/// Starts a command outside the window.
///
/// # Errors
/// As the operating system says.
#[allow(unsafe_code)]
pub(super) fn spawn_outside(command: &mut Command) -> io::Result<Child> {
    // SAFETY: between fork and exec only system calls are made, which are safe after a fork.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            // The lease of the run may be among the inherited descriptors.
            close_on_exec()
        });
    }
    command.spawn()
}
