//! A window that stays after the end, until somebody presses Enter in it.

use super::signals::{Arrived, Signals};
use super::terminal::Terminal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use std::os::fd::AsFd;

/// Shows `text` in a terminal that is as usable as the window was born, and waits for Enter. Ctrl-C, Ctrl-D, a
/// hang-up and a request to end are as good.
pub(super) fn park(terminal: &mut Terminal, signals: &mut Signals, text: &str) {
    terminal.take_back();
    terminal.say(&format!("\r\n[{text} · press Enter to close]"));
    loop {
        let Some(typed) = terminal.watched() else { return };
        let mut polled = [
            PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(typed, PollFlags::IN),
        ];
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        if signals.arrived().into_iter().any(closes) || terminal.hung_up() {
            return;
        }
        let mut buffer = [0; 256];
        match terminal.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) if buffer[..n].contains(&b'\n') => return,
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn closes(arrived: Arrived) -> bool {
    match arrived {
        Arrived::Hangup | Arrived::Key(_) => true,
        Arrived::Sent(signal) => {
            matches!(signal, Signal::HUP | Signal::INT | Signal::QUIT | Signal::TERM)
        }
    }
}
