//! The program inside a window: it starts the agent CLI, stays its parent, and writes down how it ended.
//!
//! One thread and one `poll`. In order:
//!
//! 1. `open`: is this directory what it was launched for, and not used before? Then the lease is taken. Only then
//!    may anything be written.
//! 2. `keep`: room for the exit receipt, the start receipt, the output pipe, the program (`spawn`).
//! 3. `tend`: signals go to the program by their origin, every child is reaped; when the program has ended its exit
//!    receipt is written at once, and what still runs is said (`leftovers`) and waited for.
//! 4. The lease is closed, the log is waited for, the window waits for Enter if it was asked to (`park`).
//!
//! A receipt is written after the fact that it tells and before anything that somebody could take for that fact: a
//! start receipt before the spawn, an exit receipt before the lease is free. So whoever reads start receipt, lease
//! and exit receipt in this order is never misled, whenever this program is killed. The start receipt is durable
//! before the spawn; what follows is durable a moment after it can be read, for a power failure ends everything that
//! it tells of.
//!
//! Beside it: `sink` records what the pane prints, `explain` asks the multiplexer once after a hang-up.

mod backend;
mod open;
mod receipts;
pub mod sink;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
mod words;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

use crate::run::files::KEEPER_PROTOCOL;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Runs what `args` (the program's name first) ask of this module, and gives the exit code; `None` if they ask for
/// nothing of it.
///
/// * `keep DIR`: the program of a window, for the directory of an attempt or an engine.
/// * `sink DIR MARK`: records its standard input as the output log of DIR, to its end or to the mark.
/// * what is a part of the keeper on one platform only: `explain DIR` on Unix writes what the multiplexer says about a
///   terminal that went away, `sentinel PID` on Windows dies with its keeper.
/// * `--protocol`: prints [`KEEPER_PROTOCOL`].
pub fn dispatch(args: &[OsString]) -> Option<i32> {
    let words: Vec<&std::ffi::OsStr> = args.iter().skip(1).map(OsString::as_os_str).collect();
    match (words.first()?.to_str()?, &words[1..]) {
        ("keep", [dir]) => Some(system::keep(Path::new(dir))),
        ("sink", [dir, mark]) => Some(sink::main(Path::new(dir), mark)),
        (part, more) if system::PARTS.contains(&part) => Some(system::part(part, more)),
        ("--protocol", []) => Some(i32::from(writeln!(std::io::stdout(), "{KEEPER_PROTOCOL}").is_err())),
        _ => None,
    }
}

/// Says how this program is used, and gives the exit code for that.
pub fn usage() -> i32 {
    // A closed standard error changes nothing about the code.
    let _ = writeln!(
        std::io::stderr(),
        "usage: loopmux-keep keep DIR | sink DIR MARK | explain DIR | --protocol\n\
         It runs inside the windows that loopmux makes; there is nothing to call by hand."
    );
    2
}

/// The path by which another process can execute this program: as it was called, else as the kernel has it.
fn own_path() -> PathBuf {
    let called = std::env::args_os().next().map(PathBuf::from).filter(|p| p.is_absolute() && p.exists());
    called.or_else(|| std::env::current_exe().ok()).unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}
