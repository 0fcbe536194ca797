//! Signals with their origin: one that the kernel sent tells of the terminal, one that a process sent is for the
//! program.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

const HANDLED: [i32; 8] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCHLD];

/// A signal that arrived, and who sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    /// The terminal went away: a HUP that the kernel sent.
    Hangup,
    /// The terminal's own interrupt or quit reached this process, so it did not reach the program: the kernel sends
    /// it to one group, and the two are never in the same.
    Key(Signal),
    /// A process sent it to this one.
    Sent(Signal),
}

/// The signals of this process, from now on.
pub(super) struct Signals {
    delivery: SignalDelivery<UnixStream, WithOrigin>,
}

impl Signals {
    /// Starts to collect them. What arrives before this ends the process, as it would any.
    ///
    /// # Errors
    /// As the operating system says.
    pub(super) fn install() -> io::Result<Self> {
        // A server may have been started with anything blocked, and its windows inherit that.
        unblock_all();
        // A process in the background must be able to set its terminal: it would be stopped otherwise.
        ignore(&[libc::SIGTTOU, libc::SIGTTIN]);
        let (read, write) = UnixStream::pair()?;
        let delivery = SignalDelivery::with_pipe(read, write, WithOrigin::default(), HANDLED)?;
        Ok(Self { delivery })
    }

    /// Takes what has arrived. An ended child is not told: whoever is woken looks for ended children anyway.
    pub(super) fn arrived(&mut self) -> Vec<Arrived> {
        let mut arrived = Vec::new();
        for origin in self.delivery.pending() {
            let by_kernel = matches!(origin.cause, Cause::Kernel);
            let Some(signal) = Signal::from_named_raw(origin.signal) else { continue };
            match (signal, by_kernel) {
                (Signal::CHILD, _) => {}
                (Signal::HUP, true) => arrived.push(Arrived::Hangup),
                // The kernel tells the group in the foreground itself.
                (Signal::WINCH, true) => {}
                (_, true) => arrived.push(Arrived::Key(signal)),
                (_, false) => arrived.push(Arrived::Sent(signal)),
            }
        }
        arrived
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }
}

/// Passes a signal on to the program, which has not been reaped: its number is still its own.
///
/// What ends or interrupts goes to its whole process group, as a terminal would send it. The rest goes to the
/// program alone: a helper that does not expect it would die of it.
pub(super) fn forward(program: Pid, signal: Signal) {
    let to_group = matches!(signal, Signal::HUP | Signal::INT | Signal::QUIT | Signal::TERM | Signal::CONT);
    // The only failure is that it has ended meanwhile, and then it is reaped in a moment.
    if to_group {
        let _ = kill_process_group(program, signal);
    }
    if !to_group || rustix::process::getpgid(Some(program)) != Ok(program) {
        let _ = kill_process(program, signal);
    }
}

/// Ignores signals in this process and, until it says otherwise, in what it executes.
pub(super) fn ignore(signals: &[i32]) {
    for signal in signals {
        set(*signal, libc::SIG_IGN);
    }
}

/// Gives signals their default effect.
pub(super) fn act_by_default(signals: &[i32]) {
    for signal in signals {
        set(*signal, libc::SIG_DFL);
    }
}

/// In a forked child: every signal that this process handles or ignores has its default effect again.
pub(super) fn back_to_default() {
    act_by_default(&HANDLED);
    act_by_default(&[libc::SIGTTOU, libc::SIGTTIN, libc::SIGTSTP]);
}

#[allow(unsafe_code)]
fn set(signal: i32, action: libc::sighandler_t) {
    // SAFETY: the two actions that are given here run no code of ours, and the call may be made in a forked child.
    unsafe { libc::signal(signal, action) };
}

#[allow(unsafe_code)]
fn unblock_all() {
    // SAFETY: the set is a plain value that the first call fills, and the second call only reads it.
    unsafe {
        let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}
