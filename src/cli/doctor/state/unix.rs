//! Unix: owners and permissions, inherited descriptors, sockets.

use super::super::super::page;
use super::super::Found;
use super::sleeper as sleeping;
use crate::process;
use crate::run::dir::Dir;
use crate::run::locks;
use crate::verdict::Lease;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

pub(super) const PROCESSES: &str = "loopmux needs a readable /proc and pidfds (Linux 5.3 or newer)";
pub(super) const INBOX: &str = "socket";
pub(super) const WAKE_UPS: &str =
    "set XDG_RUNTIME_DIR to a short path of your own; without sockets everything waits up to a second";

/// A program that does nothing for a minute.
pub(super) fn sleeper() -> Command {
    let mut sleep = Command::new("sleep");
    sleep.arg("60");
    sleep
}

/// Whether the state directory is this user's alone to write.
pub(super) fn private(state: &Path, meta: &Metadata) -> Result<(), Found> {
    let me = crate::at::me();
    if meta.uid() != me {
        return Err(Found::fail(
            format!("{} belongs to user {}, and you are user {me}", state.display(), meta.uid()),
            "set LOOPMUX_STATE_DIR to a directory of your own",
        ));
    }
    if meta.mode() & 0o022 != 0 {
        return Err(Found::fail(
            format!("{} can be written by other users (mode {:o})", state.display(), meta.mode() & 0o777),
            format!("chmod 700 {}", page::quoted(&state.to_string_lossy())),
        ));
    }
    Ok(())
}

/// The lease rests on this: a lock stays held while a child that got its descriptor lives, and no longer.
pub(super) fn inheritance(dir: &Dir) -> Found {
    let name = "inherited.lock";
    let tried = (|| -> io::Result<Result<(), &'static str>> {
        dir.create_empty(name).map_err(io::Error::other)?;
        let lock: File = dir.open_lock(name)?;
        locks::take(&lock).map_err(io::Error::other)?;
        let child = sleeping(Stdio::from(lock.try_clone()?))?;
        drop(lock);
        if locks::probe(dir, name) != Lease::Held {
            return Ok(Err("a lock falls while a child that inherited it lives"));
        }
        let meta = dir.path().join(name).metadata()?;
        let seen = process::holders(meta.dev(), meta.ino());
        if !seen.found.iter().any(|note| note.id.pid == child.0.id()) {
            return Ok(Err("the child that holds a lock is not found by its descriptors"));
        }
        drop(child);
        match locks::probe(dir, name) {
            Lease::Free => Ok(Ok(())),
            _ => Ok(Err("a lock stays held after the child that inherited it has ended")),
        }
    })();
    let fix = "set LOOPMUX_STATE_DIR to a directory on a local file system";
    match tried {
        Ok(Ok(())) => Found::pass("a child inherits a lock, is found by it, and frees it when it ends"),
        Ok(Err(why)) => Found::fail(why, fix),
        Err(e) => Found::fail(format!("cannot try a lock with a child: {e}"), fix),
    }
}
