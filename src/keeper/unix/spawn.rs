//! Starting the program of the window.

use crate::fault;
use crate::run::files::{LaunchFile, Role};
use crate::run::text::OsText;
use rustix::io::FdFlags;
use rustix::process::Pid;
use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What the multiplexer alone knows about the terminal; it is the program's whatever the caller's own terminal was.
const FROM_THE_PANE: [&str; 3] = ["TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"];

/// Starts the program in a process group of its own, which has the keyboard. It inherits the lease, if there is
/// one; nothing else of ours but its standard streams.
///
/// # Errors
/// Why it could not be executed, with its name, in words for a person.
pub(super) fn spawn(
    launch: &LaunchFile,
    vars: Vec<(OsText, OsText)>,
    lease: Option<BorrowedFd<'_>>,
) -> Result<Pid, String> {
    let (program, args) = launch.argv.split_first().ok_or("no program was named")?;
    let mut command = Command::new(program.as_os_str());
    command.args(args.iter().map(OsText::as_os_str)).current_dir(launch.cwd.as_os_str());
    command.env_clear().envs(vars.into_iter().map(|(name, value)| (name.0, value.0)));
    for name in FROM_THE_PANE {
        match std::env::var_os(name) {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    prepare(&mut command, lease, launch.role);
    let child = fault::around("keeper.spawn", || command.spawn())
        .map_err(|e| explain(launch, program.as_os_str(), &e))?;
    Ok(Pid::from_child(&child))
}

/// What the child does between fork and exec.
#[allow(unsafe_code)]
fn prepare(command: &mut Command, lease: Option<BorrowedFd<'_>>, role: Role) {
    // The caller keeps the lease open until after the spawn.
    let lease = lease.map(|fd| std::os::fd::AsRawFd::as_raw_fd(&fd));
    let keeper = rustix::process::getpid();
    let in_child = move || {
        // First, so that a signal from here on acts on the child and not on a copy of our handlers.
        super::signals::back_to_default();
        let me = rustix::process::getpid();
        rustix::process::setpgid(None, None)?;
        take_keyboard(me);
        if let Some(lease) = lease {
            // SAFETY: the parent holds this descriptor open, and the child is its copy.
            let lease = unsafe { BorrowedFd::borrow_raw(lease) };
            rustix::io::fcntl_setfd(lease, FdFlags::empty())?;
        }
        if role == Role::Attempt {
            super::system::die_with(keeper)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec it only makes system calls; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(in_child) };
}

/// From a group that has not the keyboard this call stops the caller, unless the signal for that is ignored.
fn take_keyboard(group: Pid) {
    super::signals::ignore(&[libc::SIGTTOU]);
    // Without a terminal there is no keyboard, and the program runs all the same.
    let _ = rustix::termios::tcsetpgrp(rustix::stdio::stdin(), group);
    super::signals::act_by_default(&[libc::SIGTTOU]);
}

fn explain(launch: &LaunchFile, program: &OsStr, e: &io::Error) -> String {
    let cwd = launch.cwd.as_os_str();
    // The system reports a directory that cannot be entered in the same words as a missing program.
    match enterable(cwd) {
        Err(why) => format!("cannot start in {}: {}", cwd.to_string_lossy(), reason(&why)),
        Ok(()) => format!("cannot execute {}: {}", program.to_string_lossy(), reason(e)),
    }
}

fn enterable(dir: &OsStr) -> io::Result<()> {
    if !std::fs::metadata(dir)?.is_dir() {
        return Err(rustix::io::Errno::NOTDIR.into());
    }
    Ok(rustix::fs::access(dir, rustix::fs::Access::EXEC_OK)?)
}

/// The system's words without its number.
fn reason(e: &io::Error) -> String {
    let text = e.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
