//! The steps of a keeper, from its first to its last.

use super::super::open::{Not, Ready, Refused, open};
use super::super::receipts::{self, Receipts, start_receipt};
use super::super::{backend, sink, words};
use super::console::Console;
use super::sentinel::Sentinel;
use super::spawn;
use crate::process::{self, Asked, Job, Note};
use crate::run::dir::{Dir, Temp, WriteError};
use crate::run::files::{
    EmptiedFile, ExitFile, HangupFile, LaunchFile, LeftoversFile, ProcessNote, Role, SCHEMA, SpawnedFile,
    name, now_ms,
};
use crate::run::locks;
use crate::verdict::End;
use crate::wake::{self, AsSource, Woke};
use loopmux_mux::spawn::child::Child;
use std::fs::File;
use std::os::windows::io::AsHandle;
use std::path::Path;
use std::time::{Duration, Instant};

/// Whoever ends a whole tree has come to the sentinel within this time after the program.
const SETTLE: Duration = Duration::from_millis(150);
/// Whoever ends a whole tree, the keeper last, has come to the keeper within this time.
const ENDED: Duration = Duration::from_secs(5);
/// How long a failed exit receipt, or a code that is not told, waits for its next try.
const AGAIN: Duration = Duration::from_secs(1);
/// How often a job is looked at that still has members.
const TURN: Duration = Duration::from_millis(100);
/// How long the end waits for the last output to be in the log.
const LOG: Duration = Duration::from_secs(1);
/// How many leftovers are listed.
const LISTED: usize = 100;

/// Runs the program of a window, and gives this process's exit code, which nobody decides by.
pub(in crate::keeper) fn keep(path: &Path) -> i32 {
    let console = Console::open();
    match open(path) {
        Ok(ready) => run(ready, &console),
        Err(Not::Ours(why)) => {
            console.say_line(&format!("nothing is started here: {why}"));
            1
        }
        Err(Not::Startable(refused)) => {
            let Refused { dir, launch, lease, why } = *refused;
            refuse(&Receipts::new(&dir, launch.as_ref()), launch.as_ref(), lease, None, &why, &console)
        }
    }
}

fn run(ready: Ready, console: &Console) -> i32 {
    let Ready { dir, launch, vars, lease } = ready;
    let receipts = Receipts::new(&dir, Some(&launch));
    let tools = match Tools::make(&launch) {
        Ok(tools) => tools,
        Err(why) => return refuse(&receipts, Some(&launch), lease, None, &why, console),
    };
    // Before the start receipt: with one there must be room for an end, and without room there must be none.
    let room = match receipts.reserve() {
        Ok(room) => room,
        Err(e) => {
            let why = format!("no room for the exit receipt: {e}");
            return refuse(&receipts, Some(&launch), lease, None, &why, console);
        }
    };
    let mux = backend::open(&launch.mux);
    let here = mux.as_ref().ok().and_then(|mux| mux.here());
    match receipts.write_durably(name::START, &start_receipt(&launch, here.as_ref())) {
        Ok(()) => {}
        Err(WriteError::Exists(_)) => {
            console.say_line("nothing is started here: another keeper was faster");
            return 1;
        }
        Err(e) => {
            let why = format!("no start receipt: {e}");
            return refuse(&receipts, Some(&launch), lease, Some(room), &why, console);
        }
    }
    let unlinked = dir.remove_file(name::ENV);
    let recording = match launch.role {
        Role::Attempt => sink::begin(&dir, mux, here.as_ref()).map(Some),
        Role::Engine => Ok(None),
    };
    let recording = recording.unwrap_or_else(|why| {
        console.say_line(&format!("the output is not recorded: {why}"));
        None
    });
    let started = unlinked
        .map_err(|e| format!("the environment could not be removed from the disk: {e}"))
        .and_then(|()| spawn::spawn(&launch, vars, lease.as_ref(), tools.job.as_ref(), console));
    let mut tend = Tend { launch: &launch, receipts: &receipts, console, tools, room };
    let end = match started {
        Ok(child) => tend.program(&child),
        Err(why) => {
            console.say_line(&words::clean(&why));
            tend.record(End::SpawnError(why), false)
        }
    };
    tend.until_nothing_is_left();
    let Tend { tools, .. } = tend;
    // The last handle of the file: the next look finds the lease free.
    drop(lease);
    receipts.settle();
    farewell(&dir, &launch, &end, recording.as_deref(), console, &tools.asked);
    tools.sentinel.dismiss();
    0
}

/// What a keeper has beside its program.
struct Tools {
    asked: Asked,
    /// An engine's program has none: a server that it starts outlives it.
    job: Option<Job>,
    sentinel: Sentinel,
}

impl Tools {
    fn make(launch: &LaunchFile) -> Result<Self, String> {
        let asked = Asked::of(&process::current()).map_err(|e| format!("cannot receive requests: {e}"))?;
        let job = match launch.role {
            Role::Engine => None,
            Role::Attempt => Some(
                Job::make(&launch.tags.token)
                    .map_err(|e| format!("its processes could not be kept together: {e}"))?,
            ),
        };
        let sentinel = Sentinel::start().map_err(|e| format!("no sentinel could be started: {e}"))?;
        Ok(Self { asked, job, sentinel })
    }
}

/// A keeper while its program runs, and while anything of it is left.
struct Tend<'a, 'd> {
    launch: &'a LaunchFile,
    receipts: &'a Receipts<'d>,
    console: &'a Console,
    tools: Tools,
    room: Temp<'d>,
}

/// The code of a program that has ended. One that the system does not tell is asked for again, and never made up: as long
/// as it is not known the lease is held, and the attempt reads running.
fn code_of(child: &Child) -> i32 {
    loop {
        match child.wait(Some(AGAIN)) {
            Ok(Some(code)) => return code,
            Ok(None) => {}
            Err(_) => std::thread::sleep(AGAIN),
        }
    }
}

impl Tend<'_, '_> {
    /// Keeps a program that was started until it has ended, and records how.
    fn program(&mut self, child: &Child) -> End {
        spawned_receipt(self.receipts, child);
        loop {
            self.receipts.settle();
            let mut sources = vec![child.as_source(), self.tools.asked.as_source()];
            // One that has told it would end every sleep.
            sources.extend(self.console.source().filter(|_| !self.console.is_going()));
            match wake::wait(&sources, None) {
                Ok(Woke::By(0)) => break,
                Ok(Woke::By(1)) => self.pass_on(),
                Ok(_) => {}
                Err(_) => std::thread::sleep(TURN),
            }
        }
        let code = code_of(child);
        let ended_by_a_killer = self.tree_is_being_ended();
        if ended_by_a_killer {
            // It comes to this process next. Where it does not, the program was ended from outside all the same.
            std::thread::sleep(ENDED);
            let said = "whoever ended the program ended its keeper's sentinel as well".to_owned();
            self.hangup(said);
        } else if self.console.is_going() {
            self.hangup("its console went away".to_owned());
        }
        self.record(End::Code(code), ended_by_a_killer || self.console.is_going())
    }

    /// Whether whoever ended the program has ended the sentinel too. What cannot be told is a yes: then nothing is
    /// recorded that may never have happened.
    fn tree_is_being_ended(&self) -> bool {
        let end = Instant::now() + SETTLE;
        loop {
            match self.tools.sentinel.was_ended() {
                Ok(false) if Instant::now() >= end => return false,
                Ok(false) => {}
                Ok(true) | Err(_) => return true,
            }
            std::thread::sleep(SETTLE / 10);
        }
    }

    /// Asks the programs of this console to end.
    fn pass_on(&self) {
        self.tools.asked.take();
        if let Err(e) = self.console.interrupt() {
            self.console.say_line(&format!("cannot pass a request to end on: {e}"));
        }
    }

    fn hangup(&self, said: String) {
        let file =
            HangupFile { schema: SCHEMA, cause: None, class: "not-asked".to_owned(), said, at_ms: now_ms() };
        // Without it the loss has no words, and stays a loss.
        let _ = self.receipts.write(name::HANGUP, &file);
    }

    /// Writes the exit receipt, and tries again for as long as there is a directory to write it into.
    fn record(&mut self, end: End, hangup: bool) -> End {
        let token = self.launch.tags.token.clone();
        let file = ExitFile { schema: SCHEMA, token, end: end.clone(), hangup, at_ms: now_ms() };
        let mut said = false;
        loop {
            match self.receipts.write_into(&mut self.room, name::EXIT, &file) {
                Ok(()) => return end,
                Err(e) if receipts::is_gone(&e) => {
                    let text = "the run's directory is gone; the end of the program is recorded nowhere";
                    self.console.say_line(text);
                    return end;
                }
                // Somebody else wrote one, and a receipt is written once.
                Err(WriteError::Exists(path)) => {
                    self.console
                        .say_line(&format!("{} is there already, and was left alone", path.display()));
                    return end;
                }
                Err(e) => {
                    if !std::mem::replace(&mut said, true) {
                        self.console.say_line(&format!("{e}; trying again until the end is recorded"));
                    }
                    std::thread::sleep(AGAIN);
                }
            }
        }
    }

    /// Waits until the job has no members, and says which it has meanwhile.
    fn until_nothing_is_left(&mut self) {
        let Some(job) = &self.tools.job else { return };
        let mut listed: Option<Vec<process::Identity>> = None;
        loop {
            match job.living() {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) => {
                    // The lease stays with this process: nothing is proven.
                    self.console.say_line(&format!("cannot look at the job: {e}"));
                    std::thread::sleep(AGAIN);
                    continue;
                }
            }
            let mut notes = process::with_token(&self.launch.tags.token).found;
            notes.truncate(LISTED);
            let now: Vec<_> = notes.iter().map(|n| n.id.clone()).collect();
            if !now.is_empty() && listed.as_ref() != Some(&now) {
                self.leftovers(notes);
                listed = Some(now);
            }
            self.receipts.settle();
            match wake::wait(&[self.tools.asked.as_source()], Some(TURN)) {
                Ok(Woke::By(_)) => self.pass_on(),
                Ok(_) => {}
                Err(_) => std::thread::sleep(TURN),
            }
        }
        if listed.is_some() {
            self.leftovers(Vec::new());
        }
        let file = EmptiedFile { schema: SCHEMA, at_ms: now_ms() };
        // Without it a removal looks for processes of this run by other means, and refuses what it cannot see.
        let _ = self.receipts.write(name::EMPTIED, &file);
    }

    fn leftovers(&self, notes: Vec<Note>) {
        let processes = notes.into_iter().map(ProcessNote::from).collect();
        let file = LeftoversFile { schema: SCHEMA, processes, at_ms: now_ms() };
        // The list helps people. The lease is what forbids a removal.
        if self.receipts.dir.replace(name::LEFTOVERS, &file).is_ok() {
            self.receipts.poke();
        }
    }
}

fn spawned_receipt(receipts: &Receipts<'_>, child: &Child) {
    let Ok(cli) = process::started_by(child.pid(), child.as_handle()) else { return };
    let file = SpawnedFile {
        schema: SCHEMA,
        group: cli.pid,
        session: std::process::id(),
        autogroup: None,
        cli,
        at_ms: now_ms(),
    };
    // It helps to find what a killed keeper leaves behind. The program runs, so a failure here stops nothing.
    let _ = receipts.write(name::SPAWNED, &file);
}

/// The window's last moments: everything it printed reaches the log, and a person sees how it ended.
fn farewell(
    dir: &Dir,
    launch: &LaunchFile,
    end: &End,
    recording: Option<&str>,
    console: &Console,
    asked: &Asked,
) {
    if let Some(mark) = recording {
        console.say(mark);
        // In vain where the multiplexer or the sink is stuck: then the log ends where it ends.
        let _ = locks::wait_free(dir, name::OUTPUT, LOG);
    }
    if parks(launch) {
        let text = format!("{} · run {}", words::ended(end), words::clean(&launch.run));
        console.park(&text, asked.as_source());
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
    console: &Console,
) -> i32 {
    receipts.refuse(why, room);
    drop(lease);
    let why = words::clean(why);
    match launch.filter(|launch| parks(launch)).zip(Asked::of(&process::current()).ok()) {
        Some((launch, asked)) => {
            let text = format!("not started: {why} · run {}", words::clean(&launch.run));
            console.park(&text, asked.as_source());
        }
        None => console.say_line(&format!("not started: {why}")),
    }
    1
}
