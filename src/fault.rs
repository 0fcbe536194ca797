//! Faults on purpose, for tests: every durable step of the program has a name, and can be made to die right before
//! or right after it, or be held there while another command runs; and each that needs the disk can find it full.
//!
//! `LOOPMUX_FAULT` holds faults separated by commas:
//!
//! * `die:POINT`: the process ends there, as by SIGKILL.
//! * `hold:POINT:FILE`: it makes `FILE.reached` there, and goes on once `FILE` exists.
//! * `full:STEP`: the disk has no room for that step, which fails and does nothing.
//! * `clock:FILE`: the wall clock is off by the milliseconds that `FILE` holds at the moment.
//! * `trace:FILE`: a line is added to `FILE` at each point: the point, which time, the process id and its arguments.
//!
//! A step of [`POINTS`] has two points, `NAME.before` and `NAME.after`. `POINT@N` and `STEP@N` mean the Nth time that a
//! process comes there, and not the first. `~WORD` behind it means only a process with `WORD` among its arguments; a word
//! with a slash in it may be a part of one. A release build has none of this.

#[cfg(debug_assertions)]
mod active;
#[cfg(all(debug_assertions, unix))]
mod unix;
#[cfg(all(debug_assertions, windows))]
mod windows;
#[cfg(all(debug_assertions, unix))]
use unix as system;
#[cfg(all(debug_assertions, windows))]
use windows as system;

/// The name of every step.
pub const POINTS: &[&str] = &[
    // Names of files, wherever they are written.
    "write.run.json",
    "write.state.json",
    "replace.state.json",
    "write.stop.json",
    "write.project.json",
    "replace.control.json",
    "write.launch.json",
    "write.env.json",
    "write.start.json",
    "write.created.json",
    "write.spawned.json",
    "write.refused.json",
    "write.exit.json",
    "write.hangup.json",
    "replace.leftovers.json",
    "write.emptied.json",
    "replace.handover.json",
    "create.engine.lock",
    "create.control.lock",
    "create.run.lock",
    "create.lease",
    "create.cancelled",
    "create.output.log",
    "unlink.env.json",
    "make.projects",
    "make.project",
    "make.runs",
    "make.staging",
    "make.locks",
    "make.trash",
    "make.quarantine",
    "make.archive",
    "make.attempts",
    "make.engine",
    "make.run",
    "make.attempt",
    // Locks.
    "lock.run",
    "lock.engine",
    "lock.lease",
    "lock.control",
    // Beginning a run.
    "launch.publish",
    "launch.give-up",
    "launch.create",
    "resume.put-stop-aside",
    // The keeper.
    "keeper.spawn",
    "keeper.reap",
    // Ending.
    "stop.ask",
    "stop.kill-window",
    "stop.kill",
    // Removing.
    "remove.trash",
    "remove.put-back",
    "remove.commit",
    "remove.unlink",
    "remove.rmdir",
    "quarantine.move",
    "quarantine.restore",
    "archive.stage",
    "archive.publish",
    "archive.withdraw",
    "archive.unlink",
    "archive.sweep",
    "restore.stage",
    "restore.publish",
    "cleanup.kill",
];

/// Executes one step, with a point before and one after it.
#[inline]
pub fn around<T>(name: &str, step: impl FnOnce() -> T) -> T {
    let full = point(name, "before");
    let done = step();
    let _ = point(name, "after");
    settle(full, name);
    done
}

/// The same, for a step that does something to a file of that name.
#[inline]
pub fn around_file<T>(verb: &str, file: &str, step: impl FnOnce() -> T) -> T {
    #[cfg(debug_assertions)]
    if active::any() && !file.starts_with('.') {
        return around(&format!("{verb}.{}", active::plain(file)), step);
    }
    #[cfg(not(debug_assertions))]
    let _ = (verb, file);
    step()
}

/// Whether the disk has room for what the step under way is about to do; asked right before it is done.
///
/// # Errors
/// A full disk, where a test wants it.
#[inline]
pub fn room() -> std::io::Result<()> {
    #[cfg(debug_assertions)]
    if active::is_full() {
        return Err(crate::at::full());
    }
    Ok(())
}

/// The wall clock.
#[inline]
pub fn now() -> std::time::SystemTime {
    #[cfg(debug_assertions)]
    return active::wrong(std::time::SystemTime::now());
    #[cfg(not(debug_assertions))]
    std::time::SystemTime::now()
}

/// A release build knows no faults.
#[cfg(not(debug_assertions))]
#[inline]
fn point(_name: &str, _side: &str) -> bool {
    false
}

/// The same.
#[cfg(not(debug_assertions))]
#[inline]
fn settle(_full: bool, _name: &str) {}

#[cfg(debug_assertions)]
use active::{point, settle};
