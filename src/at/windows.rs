//! Windows: the native calls, which take a name relative to an open directory as Unix does.
//!
//! Everything is opened so that others may read, write, rename and remove it meanwhile. What leads elsewhere (links,
//! junctions) is opened as itself and refused. Permissions and owners are those of the directory that the state lies
//! in, which a profile directory restricts to its user; they are not compared here.
//!
//! Seen under Wine only. NTFS refuses to rename a directory in which anything is open, and Wine does not.

mod native;

use super::{Kind, Mount, Open, Stat, Taken};
use native::{Information, Wanted};
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, FileTimes, OpenOptions, TryLockError};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use windows_sys::Wdk::Storage::FileSystem as wdk;
use windows_sys::Win32::Foundation as errors;
use windows_sys::Win32::Storage::FileSystem as fs;

/// Whether a directory can be renamed while somebody has a file in it open.
pub const MOVES_WITH_OPEN_FILES: bool = false;

/// How long a name is tried again that somebody has open without sharing it: a scanner, or an observer of ours.
const SHARING: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

/// An open directory.
#[derive(Debug)]
pub struct Handle(OwnedHandle);

const LIST: u32 = fs::FILE_LIST_DIRECTORY | fs::FILE_TRAVERSE | fs::FILE_READ_ATTRIBUTES | fs::SYNCHRONIZE;

impl Handle {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options()
            .access_mode(LIST)
            .share_mode(native::SHARE_ALL)
            .custom_flags(fs::FILE_FLAG_BACKUP_SEMANTICS | fs::FILE_FLAG_OPEN_REPARSE_POINT)
            .open(path)?;
        Self::if_directory(file.into())
    }

    fn if_directory(handle: OwnedHandle) -> io::Result<Self> {
        match native::information(handle.as_handle())?.kind {
            Kind::Directory => Ok(Self(handle)),
            _ => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        }
    }

    /// Opens a directory in it.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn sub(&self, name: &OsStr) -> io::Result<Self> {
        if name == "." {
            return Ok(Self(self.0.try_clone()?));
        }
        let wanted = Wanted { access: LIST, options: wdk::FILE_DIRECTORY_FILE, ..Wanted::EXISTING };
        Self::if_directory(native::open(self.0.as_handle(), name, &wanted)?)
    }

    /// Makes a directory in it. Fails if the name is taken.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn make(&self, name: &OsStr) -> io::Result<()> {
        let options = wdk::FILE_DIRECTORY_FILE;
        let wanted = Wanted { access: LIST, options, disposition: wdk::FILE_CREATE, ..Wanted::EXISTING };
        native::open(self.0.as_handle(), name, &wanted).map(drop)
    }

    /// Opens a file in it.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn file(&self, name: &OsStr, how: Open) -> io::Result<File> {
        let append = fs::FILE_GENERIC_WRITE & !fs::FILE_WRITE_DATA;
        let both = fs::FILE_GENERIC_READ | fs::FILE_GENERIC_WRITE;
        let (access, disposition) = match how {
            Open::Read => (fs::FILE_GENERIC_READ, wdk::FILE_OPEN),
            Open::ReadWrite => (both, wdk::FILE_OPEN_IF),
            Open::New => (fs::FILE_GENERIC_WRITE, wdk::FILE_CREATE),
            Open::NewReadWrite => (both, wdk::FILE_CREATE),
            Open::Append => (append, wdk::FILE_OPEN_IF),
        };
        let options = wdk::FILE_NON_DIRECTORY_FILE;
        let wanted = Wanted { access, options, disposition, ..Wanted::EXISTING };
        let handle = native::open(self.0.as_handle(), name, &wanted)?;
        if native::information(handle.as_handle())?.kind == Kind::Link {
            return Err(io::Error::other("it leads elsewhere"));
        }
        Ok(File::from(handle))
    }

    /// Makes a file that nobody else can open while this handle, or one that a child inherited from it, is open. Fails
    /// if the name is taken.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn lease(&self, name: &OsStr) -> io::Result<File> {
        let wanted = Wanted {
            access: fs::FILE_GENERIC_READ | fs::FILE_GENERIC_WRITE,
            share: fs::FILE_SHARE_NONE,
            disposition: wdk::FILE_CREATE,
            options: wdk::FILE_NON_DIRECTORY_FILE,
        };
        Ok(File::from(native::open(self.0.as_handle(), name, &wanted)?))
    }

    /// The names in it, unsorted.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        // A handle of its own: a list that was begun on a shared one may go on with what was there then.
        let again = native::again(self.0.as_handle(), LIST)
            .or_else(|_| Ok::<_, io::Error>(Self::open(&self.path()?)?.0))?;
        native::names(again.as_handle())
    }

    /// The same of a handle that was opened for that alone.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn into_names(self) -> io::Result<Vec<OsString>> {
        self.names()
    }

    /// What is known of the directory itself.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn stat(&self) -> io::Result<Stat> {
        Ok(of(&native::information(self.0.as_handle())?))
    }

    /// Device and number of the directory itself.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        let found = native::information(self.0.as_handle())?;
        Ok((found.volume, found.number))
    }

    /// The same of the directory `levels` above it, wherever that is by now.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn above(&self, levels: usize) -> io::Result<(u64, u64)> {
        self.higher(levels)?.identity()
    }

    fn higher(&self, levels: usize) -> io::Result<Self> {
        let path = self.path()?;
        let above = path.ancestors().nth(levels).ok_or(io::ErrorKind::NotFound)?;
        Self::open(above)
    }

    /// Where it is now.
    fn path(&self) -> io::Result<PathBuf> {
        native::final_path(self.0.as_handle())
    }

    /// What is known of a name in it.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn look(&self, name: &OsStr) -> io::Result<Stat> {
        let handle = native::open(self.0.as_handle(), name, &Wanted::EXISTING)?;
        Ok(of(&native::information(handle.as_handle())?))
    }

    /// Whether a name is there, of whatever kind. It may begin with `../`.
    ///
    /// # Errors
    /// It cannot be told.
    pub fn has(&self, name: &OsStr) -> io::Result<bool> {
        if let Some(beside) = name.to_str().and_then(|name| name.strip_prefix("../")) {
            return self.higher(1)?.has(OsStr::new(beside));
        }
        match self.look(name) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            // It is there: attributes are not looked at through a share mode, so this is somebody's other wish.
            Err(e) if is_held(&e) => Ok(true),
            Err(e) => Err(e),
        }
    }

    /// Where a symbolic link in it leads.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn read_link(&self, name: &OsStr) -> io::Result<OsString> {
        Ok(std::fs::read_link(self.path()?.join(name))?.into_os_string())
    }

    /// Symbolic links are not made here: that takes a right that few users have.
    ///
    /// # Errors
    /// Always.
    pub fn symlink(&self, _target: &Path, name: &OsStr) -> io::Result<()> {
        let why = format!("symbolic links ({}) are not unpacked on Windows", name.display());
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// Removes a name that is no directory.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn unlink(&self, name: &OsStr) -> io::Result<()> {
        self.remove(name, wdk::FILE_NON_DIRECTORY_FILE)
    }

    /// Removes an empty directory in it.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn rmdir(&self, name: &OsStr) -> io::Result<()> {
        self.remove(name, wdk::FILE_DIRECTORY_FILE)
    }

    fn remove(&self, name: &OsStr, options: u32) -> io::Result<()> {
        let access = fs::DELETE | fs::FILE_READ_ATTRIBUTES | fs::FILE_WRITE_ATTRIBUTES | fs::SYNCHRONIZE;
        let wanted = Wanted { access, options, ..Wanted::EXISTING };
        while_shared(|| {
            let handle = native::open(self.0.as_handle(), name, &wanted)?;
            native::dispose(handle.as_handle())
        })
    }

    /// An owner has every right here as long as the directory's list of rights says so; nothing is changed.
    ///
    /// # Errors
    /// None.
    pub fn open_up(&self, _name: Option<&OsStr>) -> io::Result<()> {
        Ok(())
    }

    /// Sets the time of the last change, in seconds. Permissions are the parent's.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn finish(&self, _mode: u32, modified: i64) -> io::Result<()> {
        let file = File::options()
            .access_mode(fs::FILE_WRITE_ATTRIBUTES)
            .share_mode(native::SHARE_ALL)
            .custom_flags(fs::FILE_FLAG_BACKUP_SEMANTICS | fs::FILE_FLAG_OPEN_REPARSE_POINT)
            .open(self.path()?)?;
        set_modified(&file, modified)
    }

    /// It was given another path. Where that leads to the same directory it is opened there anew: some systems look a
    /// name up below the path that a handle was opened by (Wine 8).
    pub fn moved_to(&mut self, path: &Path) {
        let there = Self::open(path);
        if let (Ok(mine), Ok(there)) = (self.identity(), there)
            // The volume is the same: nothing is renamed from one to another, and Wine tells it by the path.
            && there.identity().is_ok_and(|there| there.1 == mine.1)
        {
            *self = there;
        }
    }

    /// Names are durable here with what they name: a directory cannot be flushed, and renames are written through.
    ///
    /// # Errors
    /// None.
    pub fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// Gives something in it another name, in this directory or in another one of the same volume.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn rename(&self, from: &OsStr, to_dir: &Self, to: &OsStr, taken: Taken) -> io::Result<()> {
        let wanted = Wanted {
            access: fs::DELETE | fs::FILE_READ_ATTRIBUTES | fs::SYNCHRONIZE,
            options: wdk::FILE_WRITE_THROUGH,
            ..Wanted::EXISTING
        };
        while_shared(|| {
            let handle = native::open(self.0.as_handle(), from, &wanted)?;
            native::rename(handle.as_handle(), to_dir.0.as_handle(), to, taken == Taken::Replace)
        })
    }
}

/// Tries again for a moment where somebody has the name open without sharing it.
fn while_shared<T>(mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let end = Instant::now() + SHARING;
    loop {
        match act() {
            Err(e) if native::is_sharing(&e) && Instant::now() < end => std::thread::sleep(PAUSE),
            other => return other,
        }
    }
}

fn of(found: &Information) -> Stat {
    let directory = found.kind == Kind::Directory;
    let mode = match (directory, found.read_only) {
        (true, _) => 0o700,
        (false, true) => 0o400,
        (false, false) => 0o600,
    };
    Stat {
        kind: found.kind,
        uid: me(),
        mode,
        len: if directory { 0 } else { found.len },
        modified: found.modified,
        changed: found.changed,
        device: found.volume,
        inode: found.number,
        mount: Mount { device: found.volume, id: None },
    }
}

/// The error of a full disk.
pub fn full() -> io::Error {
    io::Error::from_raw_os_error(errors::ERROR_DISK_FULL.cast_signed())
}

/// What is known of an open file.
///
/// # Errors
/// As the operating system says.
pub fn stat(file: &File) -> io::Result<Stat> {
    Ok(of(&native::information(file.as_handle())?))
}

/// Kind, owner and length of an open file.
///
/// # Errors
/// As the operating system says.
pub fn kind_and_owner(file: &File) -> io::Result<(Kind, u32, u64)> {
    let found = native::information(file.as_handle())?;
    Ok((found.kind, me(), found.len))
}

/// Users have no numbers here: everybody is this one.
pub fn me() -> u32 {
    0
}

/// Groups have no numbers either.
pub fn my_group() -> u32 {
    0
}

/// Sets the time of the last change, in seconds; a file that its owner may not write becomes read-only.
///
/// # Errors
/// As the operating system says.
pub fn finish(file: &File, mode: u32, modified: i64) -> io::Result<()> {
    set_modified(file, modified)?;
    if mode & 0o200 != 0 {
        return Ok(());
    }
    let mut permissions = file.metadata()?.permissions();
    permissions.set_readonly(true);
    file.set_permissions(permissions)
}

fn set_modified(file: &File, modified: i64) -> io::Result<()> {
    let by = Duration::from_secs(modified.unsigned_abs());
    let epoch = SystemTime::UNIX_EPOCH;
    let time = if modified < 0 { epoch.checked_sub(by) } else { epoch.checked_add(by) };
    file.set_times(FileTimes::new().set_modified(time.unwrap_or(epoch)))
}

/// Reads at a position.
///
/// # Errors
/// As the operating system says.
pub fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    file.seek_read(buffer, at)
}

/// Writes all of `bytes` at a position.
///
/// # Errors
/// As the operating system says.
pub fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = &bytes[n..];
                at += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// No call here promises room that every file system keeps: only what was written has it.
///
/// # Errors
/// None.
pub fn take_room(_file: &File, _bytes: u64) -> io::Result<bool> {
    Ok(false)
}

/// No room can be taken in advance here.
///
/// # Errors
/// None.
pub fn take_room_ahead(_file: &File, _from: u64, _bytes: u64) -> io::Result<bool> {
    Ok(false)
}

/// Locks a file exclusively, if nobody has it locked. The lock is of one byte far beyond any content, because a lock
/// here forbids reading and writing what it covers.
///
/// # Errors
/// Somebody has, or as the operating system says.
pub fn try_lock(file: &File) -> Result<(), TryLockError> {
    native::lock(file.as_handle(), fs::LOCKFILE_FAIL_IMMEDIATELY | fs::LOCKFILE_EXCLUSIVE_LOCK)
}

/// Locks a file together with others, if nobody has it locked exclusively.
///
/// # Errors
/// Somebody has, or as the operating system says.
pub fn try_lock_shared(file: &File) -> Result<(), TryLockError> {
    native::lock(file.as_handle(), fs::LOCKFILE_FAIL_IMMEDIATELY)
}

/// Fills a buffer with random bytes of the system.
///
/// # Errors
/// It gives none.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    native::random(bytes)
}

/// What locks of the network's file systems reach is not known here: a remote drive is named as what it is.
pub fn network_kind(dir: &Handle) -> Option<&'static str> {
    let path = dir.path().ok()?;
    path.as_os_str().to_str()?.starts_with(r"\\?\UNC\").then_some("a network share")
}

/// How directories are made; their rights are their parent's.
pub fn private_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    builder
}

/// How a file is opened for writing; what it held before goes.
pub fn new_private_file() -> OpenOptions {
    let mut options = File::options();
    options.create(true).write(true).truncate(true);
    options
}

/// Whether an error says that somebody has a file open without sharing it.
pub fn is_held(e: &io::Error) -> bool {
    e.raw_os_error() == Some(errors::ERROR_SHARING_VIOLATION as i32)
}
