//! Unix: INT, TERM and HUP.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What arrived since the engine began.
#[derive(Debug)]
pub struct Signals {
    pipe: UnixStream,
    interrupts: Arc<AtomicUsize>,
    hangup: Arc<AtomicBool>,
}

impl Signals {
    /// Takes INT, TERM and HUP from now on: a terminal that goes away does not end an engine.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn take() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        let interrupts = Arc::new(AtomicUsize::new(0));
        let hangup = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            let count = Arc::clone(&interrupts);
            register(signal, move || {
                count.fetch_add(1, Ordering::SeqCst);
            })?;
        }
        signal_hook::flag::register(SIGHUP, Arc::clone(&hangup))?;
        // The flags are set before the pipe is written: actions run in the order of their registration.
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
        }
        Ok(Self { pipe: reader, interrupts, hangup })
    }

    /// How often a person asked for an end.
    pub fn interrupts(&self) -> usize {
        self.interrupts.load(Ordering::SeqCst)
    }

    /// The terminal went away; `true` once.
    pub fn hung_up(&self) -> bool {
        self.hangup.swap(false, Ordering::SeqCst)
    }

    /// Empties the pipe that wakes.
    pub fn drain(&self) {
        use std::io::Read;
        let mut buffer = [0u8; 64];
        while matches!((&self.pipe).read(&mut buffer), Ok(n) if n > 0) {}
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

#[allow(unsafe_code)]
fn register(signal: i32, action: impl Fn() + Sync + Send + 'static) -> io::Result<()> {
    // SAFETY: the action only adds to an atomic counter, which is safe in a signal handler.
    unsafe { signal_hook::low_level::register(signal, action) }.map(|_| ())
}
