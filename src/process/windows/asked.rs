//! A request to end, for a keeper: an event that is named after the keeper's identity.

use super::sys::{owned, wide};
use crate::process::Identity;
use std::ffi::OsStr;
use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use windows_sys::Win32::System::Threading::{
    CreateEventW, EVENT_MODIFY_STATE, OpenEventW, ResetEvent, SetEvent,
};

fn name(id: &Identity) -> Vec<u16> {
    wide(OsStr::new(&format!(r"Global\loopmux-ask-{}-{:x}", id.pid, id.start)))
}

/// Requests to end for this process. Its handle is signalled when one has arrived.
#[derive(Debug)]
pub struct Asked(OwnedHandle);

impl Asked {
    /// Those for the process of that identity, which is this one.
    ///
    /// # Errors
    /// As the operating system says.
    #[allow(unsafe_code)]
    pub fn of(me: &Identity) -> io::Result<Self> {
        let name = name(me);
        // SAFETY: the name ends in a zero and outlives the call; null stands for the default rights.
        owned(unsafe { CreateEventW(std::ptr::null(), 1, 0, name.as_ptr()) }).map(Self)
    }

    /// Takes a request that has arrived.
    #[allow(unsafe_code)]
    pub fn take(&self) {
        // SAFETY: the handle is open.
        unsafe { ResetEvent(self.0.as_raw_handle()) };
    }
}

impl AsHandle for Asked {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.0.as_handle()
    }
}

/// Asks the process of that identity to end.
///
/// # Errors
/// It takes no requests, or as the operating system says.
#[allow(unsafe_code)]
pub(super) fn ask(id: &Identity) -> io::Result<()> {
    let name = name(id);
    // SAFETY: the name ends in a zero and outlives the call.
    let event = owned(unsafe { OpenEventW(EVENT_MODIFY_STATE, 0, name.as_ptr()) }).map_err(|e| {
        let why = format!("process {} takes no request to end on Windows: {e}", id.pid);
        io::Error::new(io::ErrorKind::Unsupported, why)
    })?;
    // SAFETY: the handle is open.
    match unsafe { SetEvent(event.as_raw_handle()) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
