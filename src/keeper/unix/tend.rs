//! From the spawn to the last descendant's end.

use super::super::receipts::{self, Receipts};
use super::explain;
use super::leftovers::{Leftovers, Own};
use super::signals::{self, Arrived, Signals};
use super::terminal::Terminal;
use crate::fault;
use crate::process::{self, Identity};
use crate::run::dir::Temp;
use crate::run::files::{EmptiedFile, ExitFile, HangupFile, LaunchFile, Role, SCHEMA, name, now_ms};
use crate::verdict::{Cause, End, Observation};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, wait};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long a failed exit receipt waits for its next try.
const AGAIN: Duration = Duration::from_secs(1);
/// A server that ends takes its terminals away first. A moment later the kernel knows, and nobody needs to be asked.
const MOMENT: Duration = Duration::from_millis(25);
/// An explainer that has not ended by then never will: its own deadlines are far shorter.
const EXPLAINER: Duration = Duration::from_secs(10);

/// A keeper while its program runs, and while anything of it is left.
pub(super) struct Tend<'a, 'd> {
    pub(super) launch: &'a LaunchFile,
    pub(super) receipts: &'a Receipts<'d>,
    pub(super) signals: &'a mut Signals,
    pub(super) terminal: &'a mut Terminal,
    pub(super) room: Temp<'d>,
    /// The terminal has gone away, and that was acted upon.
    hung_up: bool,
    /// The program, until it is reaped.
    program: Option<Pid>,
    exit: Option<Exit>,
    own: Own,
    /// The server around this window, where it could be identified.
    server: Option<Identity>,
    explain_at: Option<Instant>,
    explainer_until: Option<Instant>,
    childless: bool,
}

/// The program's end, and what follows it.
struct Exit {
    file: ExitFile,
    /// Written down, or nothing to write it into.
    settled: bool,
    again: Option<Instant>,
    leftovers: Leftovers,
}

impl<'a, 'd> Tend<'a, 'd> {
    pub(super) fn new(
        launch: &'a LaunchFile,
        receipts: &'a Receipts<'d>,
        signals: &'a mut Signals,
        terminal: &'a mut Terminal,
        room: Temp<'d>,
        server: Option<Identity>,
    ) -> Self {
        Self {
            launch,
            receipts,
            signals,
            terminal,
            room,
            hung_up: false,
            program: None,
            exit: None,
            own: Own::default(),
            server,
            explain_at: None,
            explainer_until: None,
            childless: false,
        }
    }

    /// Keeps a program that was started until nothing of it is left.
    pub(super) fn program(&mut self, program: Pid) -> End {
        self.program = Some(program);
        self.until_nothing_is_left()
    }

    /// Writes down a program that was not started.
    pub(super) fn not_started(&mut self, why: String) -> End {
        self.terminal.give_to(rustix::process::getpgrp());
        self.terminal.say_line(&super::super::words::clean(&why));
        self.take_signals();
        self.record(End::SpawnError(why));
        self.until_nothing_is_left()
    }

    /// Waits until the multiplexer's word on a hang-up is written. Whoever writes the end down waits for it while
    /// this process lives.
    pub(super) fn explained(&mut self) {
        while self.explain_at.is_some() || self.own.explainer.is_some() {
            self.sleep();
            self.signals.arrived();
            self.reap();
            self.explain();
        }
    }

    /// The terminal has gone away.
    pub(super) fn hung_up(&mut self) -> bool {
        self.hung_up || self.terminal.hung_up()
    }

    fn until_nothing_is_left(&mut self) -> End {
        loop {
            self.take_signals();
            self.reap();
            self.explain();
            self.settle();
            if let Some(end) = self.nothing_is_left() {
                return end;
            }
            self.sleep();
        }
    }

    /// Signals first: what they tell came no later than what is reaped next.
    fn take_signals(&mut self) {
        for arrived in self.signals.arrived() {
            match arrived {
                Arrived::Hangup => self.terminal.went_away(),
                Arrived::Key(signal) => self.forward(signal),
                // A program that was stopped would not see its HUP.
                Arrived::Sent(Signal::HUP) => {
                    self.forward(Signal::HUP);
                    self.forward(Signal::CONT);
                }
                Arrived::Sent(signal) => self.forward(signal),
            }
        }
        if self.terminal.hung_up() && !self.hung_up {
            self.hung_up = true;
            self.forward(Signal::HUP);
            self.forward(Signal::CONT);
            // After the program's end a hang-up explains nothing any more.
            if self.exit.is_none() && self.launch.role == Role::Attempt {
                self.explain_at = Some(Instant::now() + MOMENT);
            }
        }
    }

    fn forward(&self, signal: Signal) {
        if let Some(program) = self.program {
            signals::forward(program, signal);
        }
    }

    fn reap(&mut self) {
        loop {
            let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
            match fault::around("keeper.reap", || wait(options)) {
                Ok(Some((pid, status))) => self.child_changed(pid, status),
                Ok(None) => {
                    self.childless = false;
                    return;
                }
                Err(Errno::INTR) => {}
                // There is no child; the call has no other way to fail.
                Err(_) => {
                    self.childless = true;
                    return;
                }
            }
        }
    }

    fn child_changed(&mut self, pid: Pid, status: WaitStatus) {
        if let Some(signal) = status.stopping_signal() {
            if Some(pid) == self.program {
                self.program_stopped(pid, signal);
            }
            return;
        }
        if Some(pid) == self.program {
            // From here on its number is free for others: nothing may be sent to it any more.
            self.program = None;
            // A hang-up that came no later than this end makes it a loss: look again, now that it is reaped.
            self.take_signals();
            self.record(end_of(status));
        } else if Some(pid) == self.own.explainer {
            self.own.explainer = None;
            self.explainer_ended();
        }
        if let Some(exit) = &mut self.exit {
            exit.leftovers.touch();
        }
    }

    /// A program that the terminal stopped would stay so: no shell is here to continue it. A SIGSTOP is somebody's
    /// wish.
    fn program_stopped(&self, program: Pid, signal: i32) {
        if signal != libc::SIGSTOP {
            self.terminal.give_to(program);
            signals::forward(program, Signal::CONT);
        }
    }

    fn record(&mut self, end: End) {
        let file = ExitFile {
            schema: SCHEMA,
            token: self.launch.tags.token.clone(),
            end,
            hangup: self.hung_up,
            at_ms: now_ms(),
        };
        self.exit = Some(Exit { file, settled: false, again: None, leftovers: Leftovers::new() });
        self.write_exit();
    }

    fn write_exit(&mut self) {
        let Some(exit) = self.exit.as_mut().filter(|exit| !exit.settled) else { return };
        if exit.again.is_some_and(|again| Instant::now() < again) {
            return;
        }
        let first = exit.again.is_none();
        exit.again = None;
        match self.receipts.write_into(&mut self.room, name::EXIT, &exit.file) {
            Ok(()) => exit.settled = true,
            Err(e) if receipts::is_gone(&e) => {
                exit.settled = true;
                self.terminal
                    .say_line("the run's directory is gone; the end of the program is recorded nowhere");
            }
            // Somebody else wrote one, and a receipt is written once.
            Err(crate::run::dir::WriteError::Exists(path)) => {
                exit.settled = true;
                self.terminal.say_line(&format!("{} is there already, and was left alone", path.display()));
            }
            Err(e) => {
                exit.again = Some(Instant::now() + AGAIN);
                if first {
                    self.terminal.say_line(&format!("{e}; trying again until the end is recorded"));
                }
            }
        }
    }

    /// What is to be done after the end, apart from waiting.
    fn settle(&mut self) {
        if self.exit.is_none() {
            return;
        }
        self.write_exit();
        if self.has_leftovers() {
            self.own.look_for_stopper(self.receipts);
            if let Some(exit) = &mut self.exit {
                exit.leftovers.publish(self.receipts, self.terminal, &self.own);
            }
        }
    }

    /// An engine's keeper adopts nobody, so it has none.
    fn has_leftovers(&self) -> bool {
        self.launch.role == Role::Attempt && !self.childless
    }

    /// The end, once it is written down and nothing of the program is left.
    fn nothing_is_left(&mut self) -> Option<End> {
        let exit = self.exit.as_mut().filter(|exit| exit.settled)?;
        if self.launch.role == Role::Attempt {
            if !self.childless && !self.own.alone() {
                return None;
            }
            exit.leftovers.finish(self.receipts);
            let file = EmptiedFile { schema: SCHEMA, at_ms: now_ms() };
            // Without it a removal looks for processes of this run by other means, and refuses what it cannot see.
            let _ = self.receipts.write(name::EMPTIED, &file);
        }
        Some(exit.file.end.clone())
    }

    /// Finds out what went away, when that is due: from the kernel, else from the multiplexer. The multiplexer is
    /// asked by a process of its own, so that this one goes on reaping.
    fn explain(&mut self) {
        let now = Instant::now();
        if self.explain_at.is_some_and(|at| now >= at) {
            self.explain_at = None;
            match &self.server {
                Some(server) if process::life(server) == process::Life::Gone => {
                    let said = format!("server {} is gone", server.pid);
                    self.explained_by(Some(Cause::ServerGone), explain::NOT_ASKED, said);
                }
                _ => self.start_explainer(),
            }
        }
        if let (Some(pid), Some(until)) = (self.own.explainer, self.explainer_until)
            && now >= until
        {
            // It has not been reaped, so its number is its own.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            self.explainer_until = None;
        }
    }

    fn start_explainer(&mut self) {
        match explain::start(self.receipts.dir) {
            Ok(pid) => {
                self.own.explainer = Some(pid);
                self.explainer_until = Some(Instant::now() + EXPLAINER);
            }
            Err(e) => {
                let said = format!("the multiplexer could not be asked: {e}");
                self.explained_by(None, explain::NOT_ASKED, said);
            }
        }
    }

    fn explainer_ended(&mut self) {
        self.explainer_until = None;
        if matches!(self.receipts.dir.has(name::HANGUP), Observation::Absent) {
            let said = "whoever asked the multiplexer ended without an answer".to_owned();
            self.explained_by(None, loopmux_mux::ReplyClass::Failed.as_str(), said);
        }
    }

    fn explained_by(&self, cause: Option<Cause>, class: &str, said: String) {
        let file = HangupFile { schema: SCHEMA, cause, class: class.to_owned(), said, at_ms: now_ms() };
        // Without it the loss has no cause, and stays a loss.
        let _ = self.receipts.write(name::HANGUP, &file);
    }

    /// Sleeps until a signal arrives, the terminal goes away, or something is due.
    fn sleep(&mut self) {
        self.receipts.settle();
        let exit = self.exit.as_ref();
        let dues = [
            self.explain_at,
            self.explainer_until,
            exit.and_then(|exit| exit.again),
            exit.filter(|_| self.has_leftovers()).and_then(|exit| exit.leftovers.due()),
        ];
        let rest = dues.into_iter().flatten().min().map(|due| {
            let rest = due.saturating_duration_since(Instant::now());
            // Rounded up, so that what is due is due when this returns.
            Timespec {
                tv_sec: i64::try_from(rest.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(rest.subsec_nanos()),
            }
        });
        let signals = PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN);
        // Interrupted or not, the caller looks at everything.
        let _ = match self.terminal.watched() {
            // No event is asked for: a hang-up is always told.
            Some(fd) => poll(&mut [signals, PollFd::from_borrowed_fd(fd, PollFlags::empty())], rest.as_ref()),
            None => poll(&mut [signals], rest.as_ref()),
        };
    }
}

fn end_of(status: WaitStatus) -> End {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => End::Code(code),
        (None, Some(signal)) => End::Signal(signal),
        // A changed child has stopped, exited or been ended; stops were handled before.
        (None, None) => End::Code(-1),
    }
}
