//! A child that does nothing: whoever ends the keeper's tree ends it too, and by that it tells.

use crate::process::Handle;
use crate::wake::{self, AsSource};
use loopmux_mux::spawn::child::{Child, Start};
use std::ffi::{OsStr, OsString};
use std::io;
use std::time::Duration;
use windows_sys::Win32::System::Threading::{CREATE_NO_WINDOW, DETACHED_PROCESS};

/// The running sentinel.
#[derive(Debug)]
pub(super) struct Sentinel(Child);

impl Sentinel {
    /// Starts it, outside the program's job.
    ///
    /// # Errors
    /// As the operating system says.
    pub(super) fn start() -> io::Result<Self> {
        let vars: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let words = ["sentinel".into(), std::process::id().to_string().into()];
        let program = std::env::current_exe()?;
        let start = |flags| Start {
            program: &program,
            args: &words,
            vars: &vars,
            cwd: None,
            streams: None,
            inherited: &[],
            job: None,
            flags,
        };
        // It needs no console; a system that wants one for it makes one that nobody sees.
        start(DETACHED_PROCESS).spawn().or_else(|_| start(CREATE_NO_WINDOW).spawn()).map(Self)
    }

    /// Whether it was ended. Nobody but whoever ends the whole tree does that.
    ///
    /// # Errors
    /// It cannot be told.
    pub(super) fn was_ended(&self) -> io::Result<bool> {
        Ok(self.0.wait(Some(Duration::ZERO))?.is_some())
    }

    /// Ends it: nobody asks it any more.
    pub(super) fn dismiss(self) {
        // It ends with this process all the same.
        let _ = self.0.kill();
    }
}

/// The sentinel's program: it ends with its keeper.
pub(super) fn main(keeper: &OsStr) -> i32 {
    let Some(pid) = keeper.to_str().and_then(|pid| pid.parse().ok()) else { return 2 };
    let Ok(Some(keeper)) = Handle::watch(pid) else { return 1 };
    while !wake::is_ready(keeper.as_source()) {
        if wake::wait(&[keeper.as_source()], None).is_err() {
            return 1;
        }
    }
    0
}
