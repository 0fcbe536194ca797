//! What is needed of the machine and of the state directory's file system.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

use super::super::Context;
use super::{Doctor, Found};
use crate::process::{self, Handle, Opened, Signal};
use crate::run::dir::{Dir, WriteError, random_hex};
use crate::run::files::{ControlFile, SCHEMA};
use crate::run::fskind;
use crate::run::write::check_locks;
use crate::wake::{self, AsSource, Inbox};
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const ON_DISK: [&str; 4] = ["file-system", "locks", "inherited", "writing"];

/// How long a poke may take to arrive.
const POKE: Duration = Duration::from_secs(5);

/// Checks the configuration, the machine and the state directory. Gives a directory to try things in, on the
/// state directory's file system; it is gone when it is dropped.
pub(super) fn check(ctx: &Context, doctor: &mut Doctor) -> Option<tempfile::TempDir> {
    let began = Instant::now();
    let found = match ctx.settings() {
        Ok(_) => Found::pass("the files and variables that configure loopmux can be used"),
        Err(e) => Found::fail(e.to_string(), "correct that place"),
    };
    doctor.note("configuration", found, began);
    doctor.check("processes", processes);
    doctor.check("wake-ups", wake_ups);
    let began = Instant::now();
    let dir = match ctx.state_dir() {
        Ok(dir) => dir,
        Err(e) => {
            doctor.note("state", Found::fail(e.to_string(), "set LOOPMUX_STATE_DIR"), began);
            doctor.skip(&ON_DISK, "there is no state directory");
            return None;
        }
    };
    match scratch(&dir.value) {
        Ok((scratch, found)) => {
            doctor.note("state", found, began);
            let path = scratch.path().to_owned();
            for (name, check) in
                ON_DISK.into_iter().zip([file_system, exclusion, system::inheritance, writing])
            {
                let path = path.clone();
                doctor.check(name, move || match Dir::open(&path) {
                    Ok(dir) => check(&dir),
                    Err(e) => failed("open", &path, &e),
                });
            }
            Some(scratch)
        }
        Err(found) => {
            doctor.note("state", found, began);
            doctor.skip(&ON_DISK, "the state directory cannot be used");
            None
        }
    }
}

fn failed(what: &str, path: &Path, e: &io::Error) -> Found {
    Found::fail(
        format!("cannot {what} {}: {e}", path.display()),
        "set LOOPMUX_STATE_DIR to a directory of your own on a local file system",
    )
}

/// The state directory must be this user's and writable; where it is not there yet, the nearest directory above.
fn scratch(state: &Path) -> Result<(tempfile::TempDir, Found), Found> {
    let (base, meta) = nearest(state).map_err(|(path, e)| failed("look at", &path, &e))?;
    let there = base == state;
    if there && !meta.is_dir() {
        return Err(failed("use", state, &io::Error::from(io::ErrorKind::NotADirectory)));
    }
    if there {
        system::private(state, &meta)?;
    }
    let scratch = tempfile::Builder::new()
        .prefix(".doctor-")
        .tempdir_in(&base)
        .map_err(|e| failed("make a directory in", &base, &e))?;
    let what = if there {
        format!("{} is yours and writable", state.display())
    } else {
        format!("{} is made by the first run; {} is writable", state.display(), base.display())
    };
    Ok((scratch, Found::pass(what)))
}

fn nearest(path: &Path) -> Result<(PathBuf, Metadata), (PathBuf, io::Error)> {
    let mut last = (path.to_owned(), io::Error::from(io::ErrorKind::NotFound));
    for dir in path.ancestors() {
        match dir.metadata() {
            Ok(meta) => return Ok((dir.to_owned(), meta)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => last = (dir.to_owned(), e),
            Err(e) => return Err((dir.to_owned(), e)),
        }
    }
    Err(last)
}

fn file_system(dir: &Dir) -> Found {
    match fskind::network_kind(dir) {
        Some(kind) => Found::fail(
            format!("the state directory is on {kind}, whose locks do not reach every process"),
            "set LOOPMUX_STATE_DIR to a directory on a local file system",
        ),
        None => Found::pass("the state directory is on no network file system"),
    }
}

fn exclusion(dir: &Dir) -> Found {
    match check_locks(dir) {
        Ok(()) => Found::pass("a held lock excludes, and falls with its last descriptor"),
        Err(e) => Found::fail(e.to_string(), "set LOOPMUX_STATE_DIR to a directory on a local file system"),
    }
}

/// A child that is ended with the check.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It is gone already where these fail.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sleeper(stdin: Stdio) -> io::Result<Ended> {
    let mut sleep = system::sleeper();
    sleep.stdin(stdin).stdout(Stdio::null()).stderr(Stdio::null());
    sleep.spawn().map(Ended)
}

fn writing(dir: &Dir) -> Found {
    let name = "once.json";
    let value = ControlFile { schema: SCHEMA, ..ControlFile::default() };
    let fix = "set LOOPMUX_STATE_DIR to a directory on a local file system with room";
    if let Err(e) = dir.write_once(name, &value) {
        return Found::fail(e.to_string(), fix);
    }
    match dir.write_once(name, &value) {
        Err(WriteError::Exists(_)) => {}
        Err(e) => return Found::fail(e.to_string(), fix),
        Ok(()) => return Found::fail("a file that must be written once was replaced", fix),
    }
    match dir.reserve("room", 4096) {
        Ok(_) => Found::pass("files are written once, durably, and room can be reserved"),
        Err(e) => Found::fail(e.to_string(), fix),
    }
}

fn processes() -> Found {
    let fix = system::PROCESSES;
    let child = match sleeper(Stdio::null()) {
        Ok(child) => child,
        Err(e) => return Found::fail(format!("cannot start a program: {e}"), fix),
    };
    let id = match process::identify(child.0.id()) {
        Ok(Some(id)) => id,
        Ok(None) => return Found::fail("a child that runs is not in the kernel's list", fix),
        Err(why) => return Found::fail(why, fix),
    };
    let handle = match Handle::open(&id) {
        Opened::Handle(handle) => handle,
        Opened::Gone => return Found::fail("a child that runs reads as gone", fix),
        Opened::Unknown(why) => return Found::fail(why, fix),
    };
    if let Err(e) = handle.signal(Signal::Kill) {
        return Found::fail(format!("cannot signal a child through its handle: {e}"), fix);
    }
    match wake::wait(&[handle.as_source()], Some(POKE)) {
        Ok(wake::Woke::By(_)) => Found::pass("processes are identified, signalled and waited for by handle"),
        other => Found::fail(format!("the end of a child was not seen: {other:?}"), fix),
    }
}

fn wake_ups() -> Found {
    let fix = system::WAKE_UPS;
    let inbox = match Inbox::bind(&format!("d-{}", random_hex(6))) {
        Ok(inbox) => inbox,
        Err(e) => return Found::fail(format!("no {} can be made: {e}", system::INBOX), fix),
    };
    wake::poke(inbox.path());
    match wake::wait(&[inbox.as_source()], Some(POKE)) {
        Ok(wake::Woke::By(_)) => {}
        other => return Found::fail(format!("a poke did not arrive: {other:?}"), fix),
    }
    let files = match wake::Files::new() {
        Ok(_) => "and so do files".to_owned(),
        // Whoever follows a log then looks once a second.
        Err(e) => format!("files do not ({e}), so that logs -f looks once a second"),
    };
    Found::pass(format!("{}s wake a waiting process ({}), {files}", system::INBOX, inbox.path().display()))
}
