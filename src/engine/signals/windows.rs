//! Windows: the events of a console.

use crate::wake::{AsSource, Inbox, Source};
use std::io;
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT,
    SetConsoleCtrlHandler,
};

static INTERRUPTS: AtomicUsize = AtomicUsize::new(0);
static HANGUP: AtomicBool = AtomicBool::new(false);
static WAKE: OnceLock<PathBuf> = OnceLock::new();

/// What arrived since the engine began.
#[derive(Debug)]
pub struct Signals {
    event: Inbox,
}

impl Signals {
    /// Takes Ctrl-C, Ctrl-Break and the end of the console from now on. A console that closes ends its processes here
    /// whatever they do; what they wrote is on disk.
    ///
    /// # Errors
    /// As the operating system says.
    #[allow(unsafe_code)]
    pub fn take() -> io::Result<Self> {
        let event = Inbox::bind(&format!("signals-{}", std::process::id()))?;
        WAKE.get_or_init(|| event.path().to_owned());
        // SAFETY: without a function the call takes back that Ctrl-C is ignored, which a server may have passed on;
        // the function lives as long as the program, and only sets flags and an event.
        let taken = unsafe {
            SetConsoleCtrlHandler(None, 0);
            SetConsoleCtrlHandler(Some(arrived), 1)
        };
        if taken == 0 { Err(io::Error::last_os_error()) } else { Ok(Self { event }) }
    }

    /// How often a person asked for an end.
    pub fn interrupts(&self) -> usize {
        INTERRUPTS.load(Ordering::SeqCst)
    }

    /// The console went away; `true` once.
    pub fn hung_up(&self) -> bool {
        HANGUP.swap(false, Ordering::SeqCst)
    }

    /// Takes back what wakes.
    pub fn drain(&self) {
        self.event.drain();
    }
}

impl AsHandle for Signals {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        let source: Source<'_> = self.event.as_source();
        source
    }
}

/// In a thread that the system makes for it.
extern "system" fn arrived(event: u32) -> i32 {
    match event {
        CTRL_C_EVENT | CTRL_BREAK_EVENT => {
            INTERRUPTS.fetch_add(1, Ordering::SeqCst);
        }
        CTRL_CLOSE_EVENT | CTRL_LOGOFF_EVENT | CTRL_SHUTDOWN_EVENT => HANGUP.store(true, Ordering::SeqCst),
        _ => return 0,
    }
    if let Some(path) = WAKE.get() {
        crate::wake::poke(path);
    }
    1
}
