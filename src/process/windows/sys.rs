//! The calls themselves, each in a small function.

use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::os::windows::ffi::{OsStrExt, OsStringExt};
use std::os::windows::io::{AsRawHandle, BorrowedHandle, HandleOrNull, OwnedHandle};
use windows_sys::Wdk::System::SystemInformation::{
    NtQuerySystemInformation, SYSTEM_INFORMATION_CLASS, SystemProcessInformation, SystemTimeOfDayInformation,
};
use windows_sys::Wdk::System::Threading::NtQueryInformationProcess;
use windows_sys::Win32::Foundation::{
    ERROR_INVALID_PARAMETER, FILETIME, HANDLE, NTSTATUS, RtlNtStatusToDosError, STATUS_INFO_LENGTH_MISMATCH,
    UNICODE_STRING, WAIT_OBJECT_0,
};
use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RegGetValueW};
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, OpenProcess, QueryFullProcessImageNameW, TerminateProcess, WaitForSingleObject,
};
use windows_sys::Win32::System::WindowsProgramming::SYSTEM_PROCESS_INFORMATION;

/// What a look at one process gave.
pub(super) enum Look<T> {
    Seen(T),
    /// The system has no such process.
    Ended,
    /// Why it could not be looked at.
    Refused(String),
}

/// A text with a zero at its end.
pub(super) fn wide(text: &OsStr) -> Vec<u16> {
    text.encode_wide().chain([0]).collect()
}

fn size(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[allow(unsafe_code)]
fn failed(status: NTSTATUS) -> io::Error {
    // SAFETY: it only looks a number up.
    io::Error::from_raw_os_error(unsafe { RtlNtStatusToDosError(status) }.cast_signed())
}

/// Takes a handle that a call has just given, or its error.
#[allow(unsafe_code)]
pub(super) fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    // SAFETY: the caller has it from a call that gives it to nobody else.
    let handle = unsafe { HandleOrNull::from_raw_handle(handle) };
    OwnedHandle::try_from(handle).map_err(|_| io::Error::last_os_error())
}

/// Opens whatever process has that number now.
#[allow(unsafe_code)]
pub(super) fn open(pid: u32, access: u32) -> Look<OwnedHandle> {
    // SAFETY: the call takes numbers only.
    match owned(unsafe { OpenProcess(access, 0, pid) }) {
        Ok(handle) => Look::Seen(handle),
        Err(e) if e.raw_os_error() == Some(ERROR_INVALID_PARAMETER.cast_signed()) => Look::Ended,
        Err(e) => Look::Refused(format!("cannot open process {pid}: {e}")),
    }
}

/// When a process was made, in tenths of microseconds since 1601. It stays after its end.
#[allow(unsafe_code)]
pub(super) fn created(process: BorrowedHandle<'_>) -> io::Result<u64> {
    let mut times = [MaybeUninit::<FILETIME>::zeroed(); 4];
    let [made, ended, kernel, user] = times.each_mut().map(MaybeUninit::as_mut_ptr);
    // SAFETY: the handle is open, and the four values are this function's.
    if unsafe { GetProcessTimes(process.as_raw_handle(), made, ended, kernel, user) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was zeroed, and is plain numbers.
    let made = unsafe { times[0].assume_init() };
    Ok(u64::from(made.dwHighDateTime) << 32 | u64::from(made.dwLowDateTime))
}

/// Whether a process has ended.
#[allow(unsafe_code)]
pub(super) fn has_ended(process: BorrowedHandle<'_>) -> bool {
    // SAFETY: the handle is open, and nothing is waited for.
    unsafe { WaitForSingleObject(process.as_raw_handle(), 0) == WAIT_OBJECT_0 }
}

#[allow(unsafe_code)]
pub(super) fn terminate(process: BorrowedHandle<'_>, code: u32) -> io::Result<()> {
    // SAFETY: the handle is open.
    match unsafe { TerminateProcess(process.as_raw_handle(), code) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[allow(unsafe_code)]
mod nt {
    use super::{HANDLE, NTSTATUS};
    #[link(name = "ntdll")]
    unsafe extern "system" {
        pub(super) fn NtSuspendProcess(process: HANDLE) -> NTSTATUS;
        pub(super) fn NtResumeProcess(process: HANDLE) -> NTSTATUS;
    }
}

/// Freezes all threads of a process, or lets them go on.
#[allow(unsafe_code)]
pub(super) fn freeze(process: BorrowedHandle<'_>, freeze: bool) -> io::Result<()> {
    let handle = process.as_raw_handle();
    // SAFETY: the handle is open.
    let status = unsafe { if freeze { nt::NtSuspendProcess(handle) } else { nt::NtResumeProcess(handle) } };
    if status < 0 { Err(failed(status)) } else { Ok(()) }
}

/// The command line of a process.
#[allow(unsafe_code)]
pub(super) fn command_line(process: BorrowedHandle<'_>) -> Option<OsString> {
    // By its number: it is in no header.
    const COMMAND_LINE: i32 = 60;
    let mut buffer = vec![0u64; 16 << 10];
    let mut len = 0;
    // SAFETY: the handle is open, and the buffer is aligned and as large as is said.
    let status = unsafe {
        NtQueryInformationProcess(
            process.as_raw_handle(),
            COMMAND_LINE,
            buffer.as_mut_ptr().cast(),
            size(buffer.len() * 8),
            &raw mut len,
        )
    };
    if status < 0 {
        return None;
    }
    // SAFETY: the call put a string's head at the beginning, whose text lies in the same buffer.
    Some(unsafe { text(buffer.as_ptr().cast()) })
}

/// The path of the program of a process.
#[allow(unsafe_code)]
pub(super) fn program(process: BorrowedHandle<'_>) -> Option<OsString> {
    let mut buffer = vec![0u16; 32 << 10];
    let mut len = size(buffer.len());
    // SAFETY: the handle is open, and the buffer is as large as is said.
    let ok =
        unsafe { QueryFullProcessImageNameW(process.as_raw_handle(), 0, buffer.as_mut_ptr(), &raw mut len) };
    (ok != 0).then(|| OsString::from_wide(&buffer[..len as usize]))
}

/// # Safety
/// The pointer is to a string's head, and that to as many characters as it says, or to none.
#[allow(unsafe_code)]
unsafe fn text(head: *const UNICODE_STRING) -> OsString {
    // SAFETY: as the caller says.
    let head = unsafe { head.read_unaligned() };
    if head.Buffer.is_null() {
        return OsString::new();
    }
    // SAFETY: as the caller says.
    OsString::from_wide(unsafe { std::slice::from_raw_parts(head.Buffer, usize::from(head.Length) / 2) })
}

/// One process of a list.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) created: u64,
    pub(super) name: String,
}

/// All processes, at one moment.
#[allow(unsafe_code)]
pub(super) fn all() -> Result<Vec<Row>, String> {
    let buffer =
        query(SystemProcessInformation, 64 << 10).map_err(|e| format!("cannot list processes: {e}"))?;
    let mut rows = Vec::new();
    let mut at = 0;
    loop {
        // SAFETY: the call put an entry here; its parts are read without moving it.
        let (next, row) = unsafe {
            let entry = buffer.as_ptr().cast::<u8>().add(at).cast::<SYSTEM_PROCESS_INFORMATION>();
            let number = |p: *const HANDLE| u32::try_from(p.read_unaligned().addr()).unwrap_or_default();
            // Undocumented by its name only: the creation time stands behind four other numbers.
            let created = entry.cast::<u8>().add(offset_of!(SYSTEM_PROCESS_INFORMATION, Reserved1) + 24);
            let row = Row {
                pid: number((&raw const (*entry).UniqueProcessId).cast()),
                parent: number((&raw const (*entry).Reserved2).cast()),
                created: created.cast::<u64>().read_unaligned(),
                name: text(&raw const (*entry).ImageName).to_string_lossy().into_owned(),
            };
            ((&raw const (*entry).NextEntryOffset).read_unaligned() as usize, row)
        };
        rows.push(row);
        if next == 0 {
            return Ok(rows);
        }
        at += next;
    }
}

/// When the system was started, as it says itself.
pub(super) fn boot_time() -> Option<u64> {
    query(SystemTimeOfDayInformation, 64).ok()?.first().copied().filter(|time| *time != 0)
}

#[allow(unsafe_code)]
fn query(class: SYSTEM_INFORMATION_CLASS, bytes: usize) -> io::Result<Vec<u64>> {
    let mut buffer = vec![0u64; bytes.div_ceil(8)];
    loop {
        let mut len = 0;
        // SAFETY: the buffer is aligned and as large as is said.
        let status = unsafe {
            NtQuerySystemInformation(class, buffer.as_mut_ptr().cast(), size(buffer.len() * 8), &raw mut len)
        };
        if status == STATUS_INFO_LENGTH_MISMATCH && buffer.len() < 16 << 20 {
            // Some systems know only one length, which is told; a list grows meanwhile.
            let told = len as usize;
            let wanted = if told < buffer.len() * 8 { told } else { told.max(buffer.len() * 8) * 2 };
            buffer = vec![0; wanted.max(8).div_ceil(8)];
        } else if status < 0 {
            return Err(failed(status));
        } else {
            return Ok(buffer);
        }
    }
}

/// The id of the machine; empty where it has none.
#[allow(unsafe_code)]
pub(super) fn machine() -> String {
    let mut buffer = [0u16; 64];
    let mut bytes = size(size_of::<[u16; 64]>());
    let (key, value) =
        (wide(OsStr::new(r"SOFTWARE\Microsoft\Cryptography")), wide(OsStr::new("MachineGuid")));
    // SAFETY: both names end in a zero, and the buffer is as large as is said.
    let code = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            key.as_ptr(),
            value.as_ptr(),
            RRF_RT_REG_SZ,
            std::ptr::null_mut(),
            buffer.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    if code != 0 {
        return String::new();
    }
    String::from_utf16_lossy(&buffer[..bytes as usize / 2]).trim_end_matches('\0').to_owned()
}
