//! Windows: a job that nothing leaves, a console, and a sentinel.
//!
//! A multiplexer here takes a window away by ending its processes from the leaves to the root, without a word. So a
//! keeper can see its program end a moment before it is ended itself, and the exit code it sees is the killer's. It has
//! another child beside the program, the *sentinel*, which does nothing: whoever ends the tree ends that as well. An end
//! is recorded only when the sentinel still lives a moment later.
//!
//! No keeper has time for a last word when its window goes. That an attempt is lost is told by its lease, and what went
//! away by whoever looks later.

mod console;
mod keep;
mod sentinel;
mod spawn;

pub(in crate::keeper) use keep::keep;

use std::ffi::OsStr;

/// What runs beside a keeper as a program of its own.
pub(super) const PARTS: [&str; 1] = ["sentinel"];

/// Runs one of [`PARTS`].
pub(super) fn part(_name: &str, words: &[&OsStr]) -> i32 {
    match words {
        [pid] => sentinel::main(pid),
        _ => super::usage(),
    }
}

/// The events of a console end no process that has none of its own; nothing else is sent to a sink here.
pub(super) fn outlive_the_terminal() {
    console::ignore_events();
}
