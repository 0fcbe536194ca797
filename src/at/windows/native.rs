//! The calls themselves, each in a small function.

use super::super::Kind;
use super::{
    AsRawHandle, BorrowedHandle, FromRawHandle, OsStr, OsStrExt, OsString, OwnedHandle, PathBuf,
    TryLockError, errors, fs, io, wdk,
};
use std::mem::{MaybeUninit, offset_of, size_of};
use std::os::windows::ffi::OsStringExt;
use windows_sys::Wdk::Foundation::OBJECT_ATTRIBUTES;
use windows_sys::Win32::Foundation::{NTSTATUS, RtlNtStatusToDosError, UNICODE_STRING};
use windows_sys::Win32::Security::Cryptography::{BCRYPT_USE_SYSTEM_PREFERRED_RNG, BCryptGenRandom};
use windows_sys::Win32::System::IO::{IO_STATUS_BLOCK, OVERLAPPED};

/// Others may read, write, rename and remove it.
pub(super) const SHARE_ALL: u32 = fs::FILE_SHARE_READ | fs::FILE_SHARE_WRITE | fs::FILE_SHARE_DELETE;

/// How something is opened.
pub(super) struct Wanted {
    pub(super) access: u32,
    pub(super) share: u32,
    pub(super) disposition: u32,
    pub(super) options: u32,
}

impl Wanted {
    /// To look at what is there.
    pub(super) const EXISTING: Self = Self {
        access: fs::FILE_READ_ATTRIBUTES | fs::SYNCHRONIZE,
        share: SHARE_ALL,
        disposition: wdk::FILE_OPEN,
        options: 0,
    };
}

/// A name in the wide form, relative to a directory: with backslashes, and never upwards.
fn wide(name: &OsStr) -> io::Result<Vec<u16>> {
    let words: Vec<u16> = name.encode_wide().map(|c| if c == u16::from(b'/') { 0x5c } else { c }).collect();
    let parts = words.split(|c| *c == 0x5c);
    let upwards = |part: &[u16]| part.is_empty() || part == [0x2e] || part == [0x2e, 0x2e];
    // A colon would name another stream of the file.
    if parts.into_iter().any(upwards) || words.iter().any(|c| matches!(*c, 0 | 0x3a)) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is no name here", name.display()),
        ));
    }
    Ok(words)
}

fn unicode(words: &mut [u16]) -> io::Result<UNICODE_STRING> {
    let bytes = u16::try_from(words.len() * 2).map_err(|_| io::ErrorKind::InvalidFilename)?;
    Ok(UNICODE_STRING { Length: bytes, MaximumLength: bytes, Buffer: words.as_mut_ptr() })
}

#[allow(unsafe_code)]
fn failed(status: NTSTATUS) -> io::Error {
    // SAFETY: it only looks a number up.
    let code = unsafe { RtlNtStatusToDosError(status) };
    io::Error::from_raw_os_error(code.cast_signed())
}

fn checked(ok: i32) -> io::Result<()> {
    if ok == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Somebody has it open without sharing it, or is about to be done with it.
pub(super) fn is_sharing(e: &io::Error) -> bool {
    let codes = [errors::ERROR_SHARING_VIOLATION, errors::ERROR_ACCESS_DENIED, errors::ERROR_LOCK_VIOLATION];
    e.raw_os_error().is_some_and(|code| codes.contains(&code.cast_unsigned()))
}

/// Opens a name relative to a directory, as itself and not where it leads. The handle is not inherited.
pub(super) fn open(dir: BorrowedHandle<'_>, name: &OsStr, wanted: &Wanted) -> io::Result<OwnedHandle> {
    open_words(dir, wide(name)?, wanted)
}

/// Opens a directory once more, by no name.
pub(super) fn again(dir: BorrowedHandle<'_>, access: u32) -> io::Result<OwnedHandle> {
    let wanted = Wanted { access, options: wdk::FILE_DIRECTORY_FILE, ..Wanted::EXISTING };
    open_words(dir, Vec::new(), &wanted)
}

#[allow(unsafe_code)]
fn open_words(dir: BorrowedHandle<'_>, mut words: Vec<u16>, wanted: &Wanted) -> io::Result<OwnedHandle> {
    let name = unicode(&mut words)?;
    let attributes = OBJECT_ATTRIBUTES {
        Length: u32::try_from(size_of::<OBJECT_ATTRIBUTES>()).unwrap_or_default(),
        RootDirectory: dir.as_raw_handle(),
        ObjectName: &raw const name,
        Attributes: errors::OBJ_CASE_INSENSITIVE,
        SecurityDescriptor: std::ptr::null(),
        SecurityQualityOfService: std::ptr::null(),
    };
    let options = wanted.options | wdk::FILE_OPEN_REPARSE_POINT | wdk::FILE_SYNCHRONOUS_IO_NONALERT;
    let mut handle = std::ptr::null_mut();
    let mut done = MaybeUninit::<IO_STATUS_BLOCK>::zeroed();
    // SAFETY: every pointer is to a value of this function that outlives the call, and the directory is open.
    let status = unsafe {
        wdk::NtCreateFile(
            &raw mut handle,
            wanted.access,
            &raw const attributes,
            done.as_mut_ptr(),
            std::ptr::null(),
            fs::FILE_ATTRIBUTE_NORMAL,
            wanted.share,
            wanted.disposition,
            options,
            std::ptr::null(),
            0,
        )
    };
    if status < 0 {
        return Err(failed(status));
    }
    // SAFETY: the call succeeded, so the handle is open and nobody else's.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// What is known of something open.
pub(super) struct Information {
    pub(super) kind: Kind,
    pub(super) read_only: bool,
    pub(super) len: u64,
    pub(super) modified: (i64, u32),
    pub(super) changed: (i64, u32),
    pub(super) volume: u64,
    pub(super) number: u64,
}

#[allow(unsafe_code)]
pub(super) fn information(handle: BorrowedHandle<'_>) -> io::Result<Information> {
    let mut found = MaybeUninit::<fs::BY_HANDLE_FILE_INFORMATION>::zeroed();
    // SAFETY: the handle is open, and the value is as large as the call fills.
    checked(unsafe { fs::GetFileInformationByHandle(handle.as_raw_handle(), found.as_mut_ptr()) })?;
    // SAFETY: the call succeeded; all of it is plain numbers.
    let found = unsafe { found.assume_init() };
    let mut basic = MaybeUninit::<fs::FILE_BASIC_INFO>::zeroed();
    // SAFETY: as above.
    let told = unsafe {
        fs::GetFileInformationByHandleEx(
            handle.as_raw_handle(),
            fs::FileBasicInfo,
            basic.as_mut_ptr().cast(),
            u32::try_from(size_of::<fs::FILE_BASIC_INFO>()).unwrap_or_default(),
        )
    };
    // SAFETY: it was zeroed, and is plain numbers.
    let basic = unsafe { basic.assume_init() };
    let join = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let modified =
        join(found.ftLastWriteTime.dwHighDateTime, found.ftLastWriteTime.dwLowDateTime).cast_signed();
    let kind = match found.dwFileAttributes {
        a if a & fs::FILE_ATTRIBUTE_REPARSE_POINT != 0 => Kind::Link,
        a if a & fs::FILE_ATTRIBUTE_DIRECTORY != 0 => Kind::Directory,
        a if a & fs::FILE_ATTRIBUTE_DEVICE != 0 => Kind::Special,
        _ => Kind::File,
    };
    Ok(Information {
        kind,
        read_only: found.dwFileAttributes & fs::FILE_ATTRIBUTE_READONLY != 0,
        len: join(found.nFileSizeHigh, found.nFileSizeLow),
        modified: since_epoch(modified),
        changed: since_epoch(if told == 0 { modified } else { basic.ChangeTime }),
        volume: u64::from(found.dwVolumeSerialNumber),
        number: join(found.nFileIndexHigh, found.nFileIndexLow),
    })
}

/// From tenths of microseconds since 1601 to seconds and nanoseconds since 1970.
fn since_epoch(tenths: i64) -> (i64, u32) {
    let tenths = tenths - 116_444_736_000_000_000;
    (tenths.div_euclid(10_000_000), u32::try_from(tenths.rem_euclid(10_000_000) * 100).unwrap_or_default())
}

#[allow(unsafe_code)]
pub(super) fn names(dir: BorrowedHandle<'_>) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    let mut buffer = vec![0u64; 8 << 10];
    let bytes = buffer.len() * 8;
    let mut class = fs::FileFullDirectoryRestartInfo;
    loop {
        // SAFETY: the buffer is as large as is said, and aligned for what is written into it.
        let ok = unsafe {
            fs::GetFileInformationByHandleEx(
                dir.as_raw_handle(),
                class,
                buffer.as_mut_ptr().cast(),
                u32::try_from(bytes).unwrap_or_default(),
            )
        };
        if let Err(e) = checked(ok) {
            let done = [errors::ERROR_NO_MORE_FILES, errors::ERROR_FILE_NOT_FOUND];
            return match e.raw_os_error() {
                Some(code) if done.contains(&code.cast_unsigned()) => Ok(names),
                _ => Err(e),
            };
        }
        class = fs::FileFullDirectoryInfo;
        let mut at = 0;
        loop {
            // SAFETY: the call put an entry here, whose name follows it within the buffer.
            let (next, name) = unsafe {
                let entry = buffer.as_ptr().cast::<u8>().add(at).cast::<fs::FILE_FULL_DIR_INFO>();
                let len = (&raw const (*entry).FileNameLength).read() as usize / 2;
                let first =
                    entry.cast::<u8>().add(offset_of!(fs::FILE_FULL_DIR_INFO, FileName)).cast::<u16>();
                let next = (&raw const (*entry).NextEntryOffset).read() as usize;
                (next, OsString::from_wide(std::slice::from_raw_parts(first, len)))
            };
            if name != "." && name != ".." {
                names.push(name);
            }
            if next == 0 {
                break;
            }
            at += next;
        }
    }
}

#[allow(unsafe_code)]
pub(super) fn final_path(handle: BorrowedHandle<'_>) -> io::Result<PathBuf> {
    let mut buffer = vec![0u16; 1024];
    loop {
        let room = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        // SAFETY: the handle is open, and the buffer is as large as is said.
        let len = unsafe {
            fs::GetFinalPathNameByHandleW(
                handle.as_raw_handle(),
                buffer.as_mut_ptr(),
                room,
                fs::FILE_NAME_NORMALIZED,
            )
        } as usize;
        match len {
            0 => return Err(io::Error::last_os_error()),
            len if len < buffer.len() => return Ok(PathBuf::from(OsString::from_wide(&buffer[..len]))),
            len => buffer.resize(len + 1, 0),
        }
    }
}

/// Removes what is open: at once where the system can do that, else with its last handle.
#[allow(unsafe_code)]
pub(super) fn dispose(handle: BorrowedHandle<'_>) -> io::Result<()> {
    let flags = fs::FILE_DISPOSITION_FLAG_DELETE
        | fs::FILE_DISPOSITION_FLAG_POSIX_SEMANTICS
        | fs::FILE_DISPOSITION_FLAG_IGNORE_READONLY_ATTRIBUTE;
    let now = fs::FILE_DISPOSITION_INFO_EX { Flags: flags };
    let later = fs::FILE_DISPOSITION_INFO { DeleteFile: true };
    let size = |n: usize| u32::try_from(n).unwrap_or_default();
    // SAFETY: the handle is open, and the value is as large as is said.
    let at_once = checked(unsafe {
        fs::SetFileInformationByHandle(
            handle.as_raw_handle(),
            fs::FileDispositionInfoEx,
            (&raw const now).cast(),
            size(size_of::<fs::FILE_DISPOSITION_INFO_EX>()),
        )
    });
    match at_once {
        Err(e) if is_missing_call(&e) => checked(
            // SAFETY: as above.
            unsafe {
                fs::SetFileInformationByHandle(
                    handle.as_raw_handle(),
                    fs::FileDispositionInfo,
                    (&raw const later).cast(),
                    size(size_of::<fs::FILE_DISPOSITION_INFO>()),
                )
            },
        ),
        other => other,
    }
}

/// An older system, or a file system, has no such call.
fn is_missing_call(e: &io::Error) -> bool {
    let codes = [
        errors::ERROR_INVALID_PARAMETER,
        errors::ERROR_NOT_SUPPORTED,
        errors::ERROR_CALL_NOT_IMPLEMENTED,
        errors::ERROR_INVALID_FUNCTION,
        errors::ERROR_INVALID_LEVEL,
    ];
    e.raw_os_error().is_some_and(|code| codes.contains(&code.cast_unsigned()))
}

/// Gives what is open another name in a directory.
#[allow(unsafe_code)]
pub(super) fn rename(
    handle: BorrowedHandle<'_>,
    dir: BorrowedHandle<'_>,
    name: &OsStr,
    replace: bool,
) -> io::Result<()> {
    // By its number: so that a name that is open can be replaced all the same.
    const EX: i32 = 65;
    const POSIX: u32 = 2;
    let words = wide(name)?;
    let head = offset_of!(wdk::FILE_RENAME_INFORMATION, FileName);
    let bytes = (head + words.len() * 2).max(size_of::<wdk::FILE_RENAME_INFORMATION>());
    let mut buffer = vec![0u64; bytes.div_ceil(8)];
    let information = buffer.as_mut_ptr().cast::<wdk::FILE_RENAME_INFORMATION>();
    let set = |class: i32, flags: u32| {
        let mut done = MaybeUninit::<IO_STATUS_BLOCK>::zeroed();
        // SAFETY: the buffer is aligned and large enough for the value and the name behind it; both handles are open.
        let status = unsafe {
            (&raw mut (*information).Anonymous.Flags).write(flags);
            (&raw mut (*information).RootDirectory).write(dir.as_raw_handle());
            (&raw mut (*information).FileNameLength)
                .write(u32::try_from(words.len() * 2).unwrap_or_default());
            let first = information.cast::<u8>().add(head).cast::<u16>();
            std::ptr::copy_nonoverlapping(words.as_ptr(), first, words.len());
            wdk::NtSetInformationFile(
                handle.as_raw_handle(),
                done.as_mut_ptr(),
                information.cast(),
                u32::try_from(bytes).unwrap_or_default(),
                class,
            )
        };
        if status < 0 { Err(failed(status)) } else { Ok(()) }
    };
    let replace = u32::from(replace);
    if replace != 0 {
        match set(EX, replace | POSIX) {
            Err(e) if is_missing_call(&e) => {}
            other => return other,
        }
    }
    set(wdk::FileRenameInformation, replace)
}

/// A byte beyond the end of any file that could be written.
const LOCKED: u64 = 1 << 62;

#[allow(unsafe_code)]
pub(super) fn lock(handle: BorrowedHandle<'_>, flags: u32) -> Result<(), TryLockError> {
    let mut at = MaybeUninit::<OVERLAPPED>::zeroed();
    // SAFETY: all of it is plain numbers and null pointers; the call does not wait, so nothing outlives it.
    let ok = unsafe {
        let overlapped = at.as_mut_ptr();
        (*overlapped).Anonymous.Anonymous.OffsetHigh = (LOCKED >> 32) as u32;
        fs::LockFileEx(handle.as_raw_handle(), flags, 0, 1, 0, overlapped)
    };
    match checked(ok) {
        Ok(()) => Ok(()),
        Err(e) if is_locked(&e) => Err(TryLockError::WouldBlock),
        Err(e) => Err(TryLockError::Error(e)),
    }
}

fn is_locked(e: &io::Error) -> bool {
    let codes = [errors::ERROR_LOCK_VIOLATION, errors::ERROR_IO_PENDING];
    e.raw_os_error().is_some_and(|code| codes.contains(&code.cast_unsigned()))
}

#[allow(unsafe_code)]
pub(super) fn random(bytes: &mut [u8]) -> io::Result<()> {
    let len = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let none = std::ptr::null_mut();
    // SAFETY: the buffer is as large as is said.
    let status = unsafe { BCryptGenRandom(none, bytes.as_mut_ptr(), len, BCRYPT_USE_SYSTEM_PREFERRED_RNG) };
    if status < 0 { Err(failed(status)) } else { Ok(()) }
}
