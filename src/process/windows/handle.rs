//! Handles: the system gives a number to no other process while a handle of it is open.

use super::asked;
use super::identity::{comparable, life_of};
use super::sys::{self, Look};
use crate::process::{Identity, Life, Opened, Signal};
use std::io;
use std::os::windows::io::{AsHandle, BorrowedHandle, OwnedHandle};
use windows_sys::Win32::System::Threading::{
    PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SUSPEND_RESUME, PROCESS_SYNCHRONIZE, PROCESS_TERMINATE,
};

/// The exit code of what a stop of ours has ended.
const KILLED: u32 = 137;

/// One process, and the right to end it. Its handle is signalled once the process has ended.
#[derive(Debug)]
pub struct Handle {
    process: OwnedHandle,
    id: Identity,
}

impl Handle {
    /// Opens the process of that identity, which is compared through the handle itself.
    pub fn open(id: &Identity) -> Opened {
        if let Err(why) = comparable(id) {
            return Opened::Unknown(why);
        }
        let look = PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
        let opened = match sys::open(id.pid, look | PROCESS_TERMINATE | PROCESS_SUSPEND_RESUME) {
            // To look is allowed more often than to end: then an act is refused when it is tried.
            Look::Refused(_) => sys::open(id.pid, look),
            other => other,
        };
        match opened {
            Look::Ended => Opened::Gone,
            Look::Refused(why) => match super::life(id) {
                Life::Gone => Opened::Gone,
                Life::Alive | Life::Unknown(_) => Opened::Unknown(why),
            },
            Look::Seen(process) => match life_of(id, process.as_handle()) {
                Life::Alive => Opened::Handle(Self { process, id: id.clone() }),
                Life::Gone => Opened::Gone,
                Life::Unknown(why) => Opened::Unknown(why),
            },
        }
    }

    /// A handle of whatever has that number now, good for waiting only; `None` if nothing has it.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn watch(pid: u32) -> io::Result<Option<Watch>> {
        match sys::open(pid, PROCESS_SYNCHRONIZE) {
            Look::Seen(process) => Ok((!sys::has_ended(process.as_handle())).then_some(Watch { process })),
            Look::Ended => Ok(None),
            Look::Refused(why) => Err(io::Error::other(why)),
        }
    }

    /// The process.
    pub fn identity(&self) -> &Identity {
        &self.id
    }

    /// Does to this process alone what a signal would do elsewhere. A request to end reaches keepers of ours only, which
    /// pass it on to their consoles.
    ///
    /// # Errors
    /// As the operating system says; a request that nobody takes among it.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match signal {
            Signal::Hup | Signal::Int | Signal::Term => asked::ask(&self.id),
            Signal::Kill => sys::terminate(self.process.as_handle(), KILLED),
            Signal::Stop => sys::freeze(self.process.as_handle(), true),
            Signal::Cont => sys::freeze(self.process.as_handle(), false),
        }
    }

    /// Whether it runs.
    pub fn life(&self) -> Life {
        if sys::has_ended(self.process.as_handle()) { Life::Gone } else { Life::Alive }
    }
}

impl AsHandle for Handle {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.process.as_handle()
    }
}

/// One process, to wait for. Its handle is signalled once the process has ended.
#[derive(Debug)]
pub struct Watch {
    process: OwnedHandle,
}

impl AsHandle for Watch {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.process.as_handle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::identify;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_ended_by_its_handle_and_its_end_is_seen() {
        let mut child = Command::new("cmd").args(["/c", "pause"]).stdin(Stdio::piped()).spawn().unwrap();
        let id = identify(child.id()).unwrap().unwrap();
        let Opened::Handle(handle) = Handle::open(&id) else { panic!("it runs") };
        assert_eq!(handle.life(), Life::Alive);
        handle.signal(Signal::Kill).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(KILLED.cast_signed()));
        assert_eq!(handle.life(), Life::Gone);
        assert!(matches!(Handle::open(&id), Opened::Gone));
    }

    #[test]
    fn no_handle_is_given_for_another_identity_with_the_same_number() {
        let me = crate::process::current();
        assert!(matches!(Handle::open(&Identity { start: me.start + 1, ..me.clone() }), Opened::Gone));
        assert!(matches!(Handle::open(&Identity { boot: "x".to_owned(), ..me }), Opened::Unknown(_)));
    }
}
