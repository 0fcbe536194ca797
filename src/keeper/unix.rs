//! Unix: signals, a controlling terminal, and children that are waited for.
//!
//! Linux makes the keeper the parent of every orphan among its descendants. On macOS nothing does: a descendant that lost
//! its parent is seen by the lease alone.

mod explain;
mod keep;
mod leftovers;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod park;
mod signals;
mod spawn;
mod tend;
mod terminal;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;

pub(in crate::keeper) use keep::keep;

use std::ffi::OsStr;
use std::path::Path;

/// What runs beside a keeper as a program of its own.
pub(super) const PARTS: [&str; 1] = ["explain"];

/// Runs one of [`PARTS`].
pub(super) fn part(_name: &str, words: &[&OsStr]) -> i32 {
    match words {
        [dir] => explain::main(Path::new(dir)),
        _ => super::usage(),
    }
}

/// The end of the server, or of a login, is told by the end of the input, after the last byte.
pub(super) fn outlive_the_terminal() {
    signals::ignore(&[libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE]);
}
