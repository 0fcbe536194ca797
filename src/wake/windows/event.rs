//! Events, and the wait.

use super::{AsHandle, AsRawHandle, BorrowedHandle, Duration, Path, io};
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{HandleOrNull, OwnedHandle};
use windows_sys::Win32::Foundation::{HANDLE, WAIT_FAILED, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{
    CreateEventW, EVENT_MODIFY_STATE, OpenEventW, ResetEvent, SetEvent, WaitForMultipleObjects,
};

/// An event that stays set until it is reset.
#[derive(Debug)]
pub(super) struct Event(OwnedHandle);

fn wide(name: &Path) -> Vec<u16> {
    name.as_os_str().encode_wide().chain([0]).collect()
}

#[allow(unsafe_code)]
fn owned(handle: HANDLE) -> io::Result<Event> {
    // SAFETY: whoever gives the handle here has just got it, and nobody else has it.
    let handle = unsafe { HandleOrNull::from_raw_handle(handle) };
    OwnedHandle::try_from(handle).map(Event).map_err(|_| io::Error::last_os_error())
}

impl Event {
    /// One without a name.
    #[allow(unsafe_code)]
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: null stands for the default rights and for no name.
        owned(unsafe { CreateEventW(std::ptr::null(), 1, 0, std::ptr::null()) })
    }

    /// The one of that name, made if it is not there.
    #[allow(unsafe_code)]
    pub(super) fn named(name: &Path) -> io::Result<Self> {
        let name = wide(name);
        // SAFETY: the name ends in a zero and outlives the call.
        owned(unsafe { CreateEventW(std::ptr::null(), 1, 0, name.as_ptr()) })
    }

    /// The one of that name, to set it.
    #[allow(unsafe_code)]
    pub(super) fn existing(name: &Path) -> io::Result<Self> {
        let name = wide(name);
        // SAFETY: as above.
        owned(unsafe { OpenEventW(EVENT_MODIFY_STATE, 0, name.as_ptr()) })
    }

    #[allow(unsafe_code)]
    pub(super) fn set(&self) {
        // SAFETY: the handle is open; it can fail only where it is no event.
        unsafe { SetEvent(self.0.as_raw_handle()) };
    }

    #[allow(unsafe_code)]
    pub(super) fn reset(&self) {
        // SAFETY: as above.
        unsafe { ResetEvent(self.0.as_raw_handle()) };
    }
}

impl AsHandle for Event {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.0.as_handle()
    }
}

/// The place of a signalled one among at most 64; `None` after `limit`.
#[allow(unsafe_code)]
pub(super) fn wait(sources: &[BorrowedHandle<'_>], limit: Option<Duration>) -> io::Result<Option<usize>> {
    let handles: Vec<HANDLE> = sources.iter().map(AsRawHandle::as_raw_handle).collect();
    let count = u32::try_from(handles.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // Rounded up, so that what is due is due when this returns; the largest number means without end.
    let limit = limit.map_or(u32::MAX, |limit| {
        u32::try_from(limit.as_micros().div_ceil(1000)).unwrap_or(u32::MAX - 1).min(u32::MAX - 1)
    });
    // SAFETY: the list is as long as is said, and its handles are open while it lives.
    match unsafe { WaitForMultipleObjects(count, handles.as_ptr(), 0, limit) } {
        WAIT_FAILED => Err(io::Error::last_os_error()),
        n if n < WAIT_OBJECT_0 + count => Ok(Some((n - WAIT_OBJECT_0) as usize)),
        _ => Ok(None),
    }
}
