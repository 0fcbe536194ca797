//! Starting the program of the window.

use super::console::Console;
use crate::fault;
use crate::process::Job;
use crate::run::files::LaunchFile;
use crate::run::text::OsText;
use loopmux_mux::spawn::child::{Child, Start, Streams};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::windows::io::AsHandle;
use std::path::{Path, PathBuf};

/// What the multiplexer alone knows about the terminal.
const FROM_THE_PANE: [&str; 3] = ["TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"];

/// Starts the program in the job, on the console. It inherits the lease, if there is one; nothing else of ours but its
/// standard streams.
///
/// # Errors
/// Why it could not be executed, with its name, in words for a person.
pub(super) fn spawn(
    launch: &LaunchFile,
    vars: Vec<(OsText, OsText)>,
    lease: Option<&File>,
    job: Option<&Job>,
    console: &Console,
) -> Result<Child, String> {
    let (program, args) = launch.argv.split_first().ok_or("no program was named")?;
    let cwd = Path::new(launch.cwd.as_os_str());
    if !cwd.is_dir() {
        return Err(format!("cannot start in {}: it is no directory, or cannot be looked at", cwd.display()));
    }
    let mut vars: Vec<(OsString, OsString)> = vars.into_iter().map(|(n, v)| (n.0, v.0)).collect();
    for name in FROM_THE_PANE {
        vars.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        vars.extend(std::env::var_os(name).map(|value| (OsString::from(name), value)));
    }
    let found = find(program.as_os_str(), &vars, cwd)?;
    let args: Vec<OsString> = args.iter().map(|arg| arg.0.clone()).collect();
    let streams = console.handles().map(|(input, output)| Streams {
        input: input.as_handle(),
        out: output.as_handle(),
        err: output.as_handle(),
    });
    let inherited: Vec<_> = lease.map(AsHandle::as_handle).into_iter().collect();
    let start = Start {
        program: &found,
        args: &args,
        vars: &vars,
        cwd: Some(cwd),
        streams,
        inherited: &inherited,
        job: job.map(AsHandle::as_handle),
        flags: 0,
    };
    fault::around("keeper.spawn", || start.spawn())
        .map_err(|e| format!("cannot execute {}: {}", found.display(), reason(&e)))
}

/// The program as the caller's own terminal would find it: with its `PATH`, and with the usual ends of names.
fn find(program: &OsStr, vars: &[(OsString, OsString)], cwd: &Path) -> Result<PathBuf, String> {
    let paths = vars.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case("PATH")).map(|(_, v)| v);
    which::which_in(program, paths, cwd)
        .map_err(|_| format!("cannot execute {}: it was not found", program.to_string_lossy()))
}

/// The system's words without its number.
fn reason(e: &io::Error) -> String {
    let text = e.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
