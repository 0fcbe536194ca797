//! Handles: a pidfd stays with its process, whatever becomes of the number.

use super::identity::{comparable, life};
use crate::process::{Identity, Life, Opened, Signal};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// One process, and the right to signal it. Its descriptor is readable once the process has ended.
#[derive(Debug)]
pub struct Handle {
    fd: OwnedFd,
    id: Identity,
}

impl Handle {
    /// Opens the process of that identity. The identity is looked at again once the handle is open, so that the
    /// handle is of that process and of no later one with its number.
    pub fn open(id: &Identity) -> Opened {
        if let Err(why) = comparable(id) {
            return Opened::Unknown(why);
        }
        let opened = open(id.pid);
        match (life(id), opened) {
            // The process was there after the open, so its number was its own during it.
            (Life::Alive, Ok(Some(fd))) => Opened::Handle(Self { fd, id: id.clone() }),
            (Life::Alive, Ok(None)) => Opened::Unknown(format!("process {} gave no handle", id.pid)),
            (Life::Alive, Err(e)) => {
                Opened::Unknown(format!("cannot open a handle of process {}: {e}", id.pid))
            }
            (Life::Gone, _) => Opened::Gone,
            (Life::Unknown(why), _) => Opened::Unknown(why),
        }
    }

    /// A handle of whatever has that number now, good for waiting only; `None` if nothing has it.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn watch(pid: u32) -> io::Result<Option<Watch>> {
        Ok(open(pid)?.map(|fd| Watch { fd }))
    }

    /// The process.
    pub fn identity(&self) -> &Identity {
        &self.id
    }

    /// Sends a signal to this process alone.
    ///
    /// # Errors
    /// As the operating system says: `ESRCH` if it has ended, `EPERM` if it is another user's.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        use rustix::process::Signal as S;
        let signal = match signal {
            Signal::Hup => S::HUP,
            Signal::Int => S::INT,
            Signal::Term => S::TERM,
            Signal::Kill => S::KILL,
            Signal::Stop => S::STOP,
            Signal::Cont => S::CONT,
        };
        Ok(rustix::process::pidfd_send_signal(&self.fd, signal)?)
    }

    /// Whether it runs.
    pub fn life(&self) -> Life {
        ended(&self.fd).map_or_else(
            |e| Life::Unknown(format!("cannot look at process {}: {e}", self.id.pid)),
            |ended| if ended { Life::Gone } else { Life::Alive },
        )
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// One process, to wait for. Its descriptor is readable once the process has ended.
#[derive(Debug)]
pub struct Watch {
    fd: OwnedFd,
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn open(pid: u32) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::SRCH) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

fn ended(fd: &OwnedFd) -> io::Result<bool> {
    loop {
        let mut poll = [PollFd::new(fd, PollFlags::IN)];
        match rustix::event::poll(&mut poll, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(n) => return Ok(n > 0),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::identify;
    use std::process::Command;

    #[test]
    fn a_signal_reaches_the_process_and_its_end_is_seen() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let id = identify(child.id()).unwrap().unwrap();
        let Opened::Handle(handle) = Handle::open(&id) else { panic!("it runs") };
        assert_eq!(handle.life(), Life::Alive);
        handle.signal(Signal::Kill).unwrap();
        child.wait().unwrap();
        assert_eq!(handle.life(), Life::Gone);
        assert_eq!(handle.signal(Signal::Kill).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        assert!(matches!(Handle::open(&id), Opened::Gone));
        assert!(Handle::watch(id.pid).unwrap().is_none());
    }

    #[test]
    fn no_handle_is_given_for_another_identity_with_the_same_number() {
        let me = crate::process::current();
        assert!(matches!(Handle::open(&Identity { start: me.start + 1, ..me.clone() }), Opened::Gone));
        assert!(matches!(Handle::open(&Identity { boot: "x".to_owned(), ..me }), Opened::Unknown(_)));
    }
}
