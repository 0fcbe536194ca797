//! What macOS does in its own way. Written from Apple's headers, and type-checked; it has not been run.

use super::unix::kind;
use super::{Mount, Stat};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

pub(super) fn stat(fd: BorrowedFd<'_>) -> io::Result<Stat> {
    Ok(of(&rustix::fs::fstat(fd)?))
}

pub(super) fn look(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<Stat> {
    Ok(of(&rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?))
}

fn of(stat: &rustix::fs::Stat) -> Stat {
    let nanos = |n: i64| u32::try_from(n).unwrap_or_default();
    let (device, inode) = identity(stat);
    Stat {
        kind: kind(FileType::from_raw_mode(stat.st_mode)),
        uid: stat.st_uid,
        mode: u32::from(stat.st_mode) & 0o7777,
        len: u64::try_from(stat.st_size).unwrap_or_default(),
        modified: (stat.st_mtime, nanos(stat.st_mtime_nsec)),
        changed: (stat.st_ctime, nanos(stat.st_ctime_nsec)),
        device,
        inode,
        // Nothing is mounted twice here.
        mount: Mount { device, id: None },
    }
}

pub(super) fn identity(stat: &rustix::fs::Stat) -> (u64, u64) {
    (u64::from(stat.st_dev.cast_unsigned()), stat.st_ino)
}

#[allow(unsafe_code)]
pub(super) fn rename_new(
    from_dir: BorrowedFd<'_>,
    from: &OsStr,
    to_dir: BorrowedFd<'_>,
    to: &OsStr,
) -> Result<(), Errno> {
    let name = |text: &OsStr| std::ffi::CString::new(text.as_bytes()).map_err(|_| Errno::ILSEQ);
    let (from, to) = (name(from)?, name(to)?);
    // SAFETY: both descriptors are open, and both names end in a zero byte.
    let result = unsafe {
        libc::renameatx_np(
            from_dir.as_raw_fd(),
            from.as_ptr(),
            to_dir.as_raw_fd(),
            to.as_ptr(),
            libc::RENAME_EXCL,
        )
    };
    if result == 0 {
        return Ok(());
    }
    match Errno::from_io_error(&io::Error::last_os_error()) {
        // A file system without the flag, as Linux says it.
        Some(Errno::NOTSUP) => Err(Errno::INVAL),
        other => Err(other.unwrap_or(Errno::IO)),
    }
}

/// No file system here promises it by a call.
pub(super) fn take_room(_file: &File, _bytes: u64) -> io::Result<bool> {
    Ok(false)
}

/// No room can be taken in advance here.
pub(super) fn take_room_ahead(_file: &File, _from: u64, _bytes: u64) -> io::Result<bool> {
    Ok(false)
}

#[allow(unsafe_code)]
pub(super) fn random(bytes: &mut [u8]) -> io::Result<()> {
    for part in bytes.chunks_mut(256) {
        // SAFETY: the buffer is as large as is said, and the call takes up to 256 bytes.
        if unsafe { libc::getentropy(part.as_mut_ptr().cast(), part.len()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Nothing is known by type here, and the lock test decides alone.
pub(super) fn network_kind(_dir: BorrowedFd<'_>) -> Option<&'static str> {
    None
}
