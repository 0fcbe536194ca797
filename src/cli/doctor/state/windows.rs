//! Windows: rights that a profile directory gives, files that are not shared, named events.

use super::super::Found;
use crate::run::dir::Dir;
use std::fs::Metadata;
use std::path::Path;
use std::process::Command;

pub(super) const PROCESSES: &str = "loopmux needs the rights to open processes of its own user";
pub(super) const INBOX: &str = "event";
pub(super) const WAKE_UPS: &str = "without events everything waits up to a second";

/// A program that does nothing for a minute, without a console to wait at.
pub(super) fn sleeper() -> Command {
    let mut sleep = Command::new("ping");
    sleep.args(["-n", "60", "127.0.0.1"]);
    sleep
}

/// The rights to a directory are not compared here: those of a profile are its user's.
pub(super) fn private(_state: &Path, _meta: &Metadata) -> Result<(), Found> {
    Ok(())
}

/// Not tried here by itself: the run at the end of the checks rests on it.
pub(super) fn inheritance(_dir: &Dir) -> Found {
    Found::skip("whether a child inherits a lease is tried by the run below")
}
