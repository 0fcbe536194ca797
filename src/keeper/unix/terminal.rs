//! The terminal of the window. It can go away at any moment and it can refuse to take more: nothing here waits
//! for it without a bound, and nothing here fails because of it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr, tcsetpgrp};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long a text may wait for a terminal that takes nothing: a server that is stopped, output held by Ctrl-S.
const PATIENCE: Duration = Duration::from_millis(300);

/// The terminal as this process has it: opened anew, so that its flags are not the program's.
#[derive(Debug)]
pub(super) struct Terminal {
    fd: Option<OwnedFd>,
    modes: Option<Termios>,
    hung_up: bool,
}

impl Terminal {
    /// Opens the terminal of this process and remembers its modes. Without one everything here does nothing.
    pub(super) fn open() -> Self {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = rustix::fs::open("/dev/tty", flags, Mode::empty()).ok();
        let modes = fd.as_ref().and_then(|fd| tcgetattr(fd).ok());
        // A terminal that went away before this gives an error of its own on the descriptor that was inherited.
        let hung_up = fd.is_none() && matches!(tcgetattr(rustix::stdio::stdin()), Err(Errno::IO));
        Self { fd, modes, hung_up }
    }

    /// The descriptor to watch for a hang-up, as long as there is one to come.
    pub(super) fn watched(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().filter(|_| !self.hung_up).map(AsFd::as_fd)
    }

    /// Whether it has gone away by now. Once it has, it has for ever.
    pub(super) fn hung_up(&mut self) -> bool {
        if let Some(fd) = self.fd.as_ref().filter(|_| !self.hung_up) {
            let mut look = [PollFd::new(fd, PollFlags::empty())];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            self.hung_up = poll(&mut look, Some(&now)).is_ok()
                && look[0].revents().intersects(PollFlags::HUP | PollFlags::ERR);
        }
        self.hung_up
    }

    /// The kernel's signal said so.
    pub(super) fn went_away(&mut self) {
        self.hung_up = true;
    }

    /// Writes as much as the terminal takes within a moment.
    pub(super) fn say(&self, text: &str) {
        let Some(fd) = self.watched() else { return };
        let end = Instant::now() + PATIENCE;
        let mut left = text.as_bytes();
        while !left.is_empty() {
            match rustix::io::write(fd, left) {
                Ok(n) => left = &left[n..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let rest = end.saturating_duration_since(Instant::now());
                    let rest = Timespec { tv_sec: 0, tv_nsec: i64::from(rest.subsec_nanos()) };
                    let mut look = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
                    if !matches!(poll(&mut look, Some(&rest)), Ok(1..) | Err(Errno::INTR)) {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }

    /// A line of our own, wherever the program left the cursor.
    pub(super) fn say_line(&self, text: &str) {
        self.say(&format!("\r\nloopmux: {text}\r\n"));
    }

    /// Gives the keyboard to a process group. A terminal that is gone has none to give.
    pub(super) fn give_to(&self, group: Pid) {
        if let Some(fd) = self.watched() {
            let _ = tcsetpgrp(fd, group);
        }
    }

    /// Takes the keyboard back and leaves the modes in which the window was born. What was typed before is
    /// forgotten: it was meant for the program.
    pub(super) fn take_back(&self) {
        let Some(fd) = self.watched() else { return };
        self.give_to(rustix::process::getpgrp());
        if let Some(modes) = &self.modes {
            let _ = tcsetattr(fd, OptionalActions::Flush, modes);
        }
        self.say(super::super::words::RESET);
    }

    /// Reads what was typed, up to the size of `buffer`. 0 is the end: Ctrl-D, or no terminal any more.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] where nothing is there now.
    pub(super) fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        match self.watched() {
            Some(fd) => rustix::io::read(fd, buffer),
            None => Ok(0),
        }
    }
}
