//! The steps of a keeper, from its first to its last.

use super::super::open::{Not, Ready, Refused, open};
use super::super::receipts::{Receipts, start_receipt};
use super::super::{backend, sink, words};
use super::signals::Signals;
use super::tend::Tend;
use super::terminal::Terminal;
use super::{park, spawn, system};
use crate::process;
use crate::run::dir::{Dir, Temp, WriteError};
use crate::run::files::{LaunchFile, Role, SCHEMA, SpawnedFile, name, now_ms};
use crate::run::locks;
use crate::verdict::End;
use rustix::process::Pid;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// A multiplexer can drop the last output of a program that ends at once: it is still on its way through the
/// kernel when the end is seen (tmux 3.3a). Used where no log says that everything has arrived.
const LINGER: Duration = Duration::from_millis(15);
/// How long the end waits for the last output to be in the log.
const LOG: Duration = Duration::from_secs(1);

/// Runs the program of a window, and gives this process's exit code, which nobody decides by.
pub(in crate::keeper) fn keep(path: &Path) -> i32 {
    let mut signals = match Signals::install() {
        Ok(signals) => signals,
        Err(e) => {
            Terminal::open().say_line(&format!("not started: cannot receive signals: {e}"));
            return 1;
        }
    };
    let mut terminal = Terminal::open();
    match open(path) {
        Ok(ready) => run(ready, &mut signals, &mut terminal),
        Err(Not::Ours(why)) => {
            terminal.say_line(&format!("nothing is started here: {why}"));
            std::thread::sleep(LINGER);
            1
        }
        Err(Not::Startable(refused)) => {
            let Refused { dir, launch, lease, why } = *refused;
            let receipts = Receipts::new(&dir, launch.as_ref());
            refuse(&receipts, launch.as_ref(), lease, None, &why, &mut signals, &mut terminal)
        }
    }
}

fn run(ready: Ready, signals: &mut Signals, terminal: &mut Terminal) -> i32 {
    let Ready { dir, launch, vars, lease } = ready;
    let receipts = Receipts::new(&dir, Some(&launch));
    if terminal.hung_up() {
        let why = "its terminal went away before it started";
        return refuse(&receipts, Some(&launch), lease, None, why, signals, terminal);
    }
    // Before the start receipt: with one there must be room for an end, and without room there must be none.
    let room = match receipts.reserve() {
        Ok(room) => room,
        Err(e) => {
            let why = format!("no room for the exit receipt: {e}");
            return refuse(&receipts, Some(&launch), lease, None, &why, signals, terminal);
        }
    };
    let mux = backend::open(&launch.mux);
    let here = mux.as_ref().ok().and_then(|mux| mux.here());
    let start = start_receipt(&launch, here.as_ref());
    match receipts.write_durably(name::START, &start) {
        Ok(()) => {}
        Err(WriteError::Exists(_)) => {
            terminal.say_line("nothing is started here: another keeper was faster");
            std::thread::sleep(LINGER);
            return 1;
        }
        Err(e) => {
            let why = format!("no start receipt: {e}");
            return refuse(&receipts, Some(&launch), lease, Some(room), &why, signals, terminal);
        }
    }
    let unlinked = dir.remove_file(name::ENV);
    let recording = match launch.role {
        Role::Attempt => sink::begin(&dir, mux, here.as_ref()).map(Some),
        Role::Engine => Ok(None),
    };
    let recording = recording.unwrap_or_else(|why| {
        terminal.say_line(&format!("the output is not recorded: {why}"));
        None
    });
    let started = unlinked
        .map_err(|e| format!("the environment could not be removed from the disk: {e}"))
        .and_then(|()| if launch.role == Role::Engine { Ok(()) } else { system::adopt_descendants() })
        .and_then(|()| if terminal.hung_up() { Err(TERMINAL_GONE.to_owned()) } else { Ok(()) })
        .and_then(|()| spawn::spawn(&launch, vars, lease.as_ref().map(AsFd::as_fd)));
    let mut tend = Tend::new(&launch, &receipts, signals, terminal, room, start.server);
    let end = match started {
        Ok(program) => {
            spawned_receipt(&receipts, program);
            system::give_back_memory();
            tend.program(program)
        }
        Err(why) => tend.not_started(why),
    };
    // Closed, never unlocked: an unlock through any inherited copy frees it for all.
    drop(lease);
    receipts.settle();
    tend.explained();
    let gone = tend.hung_up();
    if !gone {
        farewell(&dir, &launch, &end, recording.as_deref(), signals, terminal);
    }
    0
}

const TERMINAL_GONE: &str = "its terminal went away before it was started";

/// The window's last moments: everything it printed reaches the log, and a person sees how it ended.
fn farewell(
    dir: &Dir,
    launch: &LaunchFile,
    end: &End,
    recording: Option<&str>,
    signals: &mut Signals,
    terminal: &mut Terminal,
) {
    if let Some(mark) = recording {
        terminal.say(mark);
        // In vain where the multiplexer or the sink is stuck: then the log ends where it ends.
        let _ = locks::wait_free(dir, name::OUTPUT, LOG);
    }
    if parks(launch) {
        let text = format!("{} · run {}", words::ended(end), words::clean(&launch.run));
        park::park(terminal, signals, &text);
    } else if recording.is_none() {
        std::thread::sleep(LINGER);
    }
}

fn parks(launch: &LaunchFile) -> bool {
    launch.park || launch.role == Role::Engine
}

/// Says, on disk and in the window, that nothing starts here.
fn refuse(
    receipts: &Receipts<'_>,
    launch: Option<&LaunchFile>,
    lease: Option<File>,
    room: Option<Temp<'_>>,
    why: &str,
    signals: &mut Signals,
    terminal: &mut Terminal,
) -> i32 {
    receipts.refuse(why, room);
    drop(lease);
    let why = words::clean(why);
    match launch.filter(|launch| parks(launch)) {
        Some(launch) => {
            park::park(terminal, signals, &format!("not started: {why} · run {}", words::clean(&launch.run)));
        }
        None => {
            terminal.say_line(&format!("not started: {why}"));
            std::thread::sleep(LINGER);
        }
    }
    1
}

fn spawned_receipt(receipts: &Receipts<'_>, program: Pid) {
    let Ok(pid) = u32::try_from(program.as_raw_nonzero().get()) else { return };
    // The program has not been reaped: whatever became of it, the kernel still knows who it is.
    let Ok(Some(cli)) = process::identify(pid) else { return };
    let number = |pid: Pid| u32::try_from(pid.as_raw_nonzero().get()).ok();
    let session = rustix::process::getsid(None).ok().and_then(number);
    let group = rustix::process::getpgid(Some(program)).ok().and_then(number);
    let file = SpawnedFile {
        schema: SCHEMA,
        cli,
        group: group.unwrap_or(pid),
        session: session.unwrap_or_default(),
        autogroup: process::autogroup(pid).ok().flatten(),
        at_ms: now_ms(),
    };
    // It helps to find what a killed keeper leaves behind. The program runs, so a failure here stops nothing.
    let _ = receipts.write(name::SPAWNED, &file);
}
