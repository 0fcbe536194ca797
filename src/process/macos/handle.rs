//! Handles: a kqueue tells of the end; the number itself cannot be pinned.

use super::identity::life;
use crate::process::{Identity, Life, Opened, Signal};
use rustix::event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, kevent, kqueue};
use rustix::io::Errno;
use rustix::process::Pid;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// One process, and the right to signal it. Its descriptor is readable once the process has ended.
#[derive(Debug)]
pub struct Handle {
    fd: OwnedFd,
    id: Identity,
}

impl Handle {
    /// Opens the process of that identity. The identity is looked at once the end would be told.
    pub fn open(id: &Identity) -> Opened {
        let opened = open(id.pid);
        match (life(id), opened) {
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

    /// Sends a signal to this process alone, right after its identity was looked at.
    ///
    /// # Errors
    /// As the operating system says: `ESRCH` if it has ended, `EPERM` if it is another user's.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        use rustix::process::Signal as S;
        match self.life() {
            Life::Alive => {}
            Life::Gone => return Err(Errno::SRCH.into()),
            Life::Unknown(why) => return Err(io::Error::other(why)),
        }
        let signal = match signal {
            Signal::Hup => S::HUP,
            Signal::Int => S::INT,
            Signal::Term => S::TERM,
            Signal::Kill => S::KILL,
            Signal::Stop => S::STOP,
            Signal::Cont => S::CONT,
        };
        let pid = i32::try_from(self.id.pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        Ok(rustix::process::kill_process(pid, signal)?)
    }

    /// Whether it runs.
    pub fn life(&self) -> Life {
        life(&self.id)
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

#[allow(unsafe_code)]
fn open(pid: u32) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
    let queue = kqueue()?;
    rustix::io::fcntl_setfd(&queue, rustix::io::FdFlags::CLOEXEC)?;
    let wanted = EventFilter::Proc { pid, flags: ProcessEvents::EXIT };
    let event = Event::new(wanted, EventFlags::ADD, std::ptr::null_mut());
    let mut none: [Event; 0] = [];
    // SAFETY: the event names no descriptor.
    match unsafe { kevent(&queue, &[event], &mut none, None) } {
        Ok(_) => Ok(Some(queue)),
        Err(Errno::SRCH) => Ok(None),
        Err(e) => Err(e.into()),
    }
}
