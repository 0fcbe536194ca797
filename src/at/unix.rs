//! Unix: the calls that end in `at`. What Linux and macOS do differently is in their own files.

#[cfg(target_os = "linux")]
use super::linux as system;
#[cfg(target_os = "macos")]
use super::macos as system;
use super::{Kind, Open, Stat, Taken};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;

/// Whether a directory can be renamed while somebody has a file in it open.
pub const MOVES_WITH_OPEN_FILES: bool = true;

/// An open directory.
#[derive(Debug)]
pub struct Handle(OwnedFd);

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Handle {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, DIRECTORY, Mode::empty())?))
    }

    /// Opens a directory in it.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn sub(&self, name: &OsStr) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(&self.0, name, DIRECTORY, Mode::empty())?))
    }

    /// Makes a directory in it, for this user alone. Fails if the name is taken.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn make(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, Mode::RWXU)?)
    }

    /// Opens a file in it. One that is made is for this user alone.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn file(&self, name: &OsStr, how: Open) -> io::Result<File> {
        let flags = match how {
            Open::Read => OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY,
            Open::ReadWrite => OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK,
            Open::New => OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
            Open::NewReadWrite => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
            Open::Append => OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE,
        };
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    /// The names in it, unsorted.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        all_names(rustix::fs::Dir::read_from(&self.0)?)
    }

    /// The same of a handle that was opened for that alone.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn into_names(self) -> io::Result<Vec<OsString>> {
        all_names(rustix::fs::Dir::new(self.0)?)
    }

    /// What is known of the directory itself.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn stat(&self) -> io::Result<Stat> {
        system::stat(self.0.as_fd())
    }

    /// Device and number of the directory itself.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.0)?;
        Ok(system::identity(&stat))
    }

    /// The same of the directory `levels` above it, wherever that is by now.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn above(&self, levels: usize) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::statat(&self.0, "../".repeat(levels), AtFlags::empty())?;
        Ok(system::identity(&stat))
    }

    /// What is known of a name in it.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn look(&self, name: &OsStr) -> io::Result<Stat> {
        system::look(self.0.as_fd(), name)
    }

    /// Whether a name is there, of whatever kind.
    ///
    /// # Errors
    /// It cannot be told.
    pub fn has(&self, name: &OsStr) -> io::Result<bool> {
        match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Where a symbolic link in it leads.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn read_link(&self, name: &OsStr) -> io::Result<OsString> {
        Ok(OsString::from_vec(rustix::fs::readlinkat(&self.0, name, Vec::new())?.into_bytes()))
    }

    /// Makes a symbolic link in it.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn symlink(&self, target: &Path, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.0, name)?)
    }

    /// Removes a name that is no directory.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn unlink(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes an empty directory in it.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn rmdir(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Gives its owner the rights to it, or to a directory in it, that an owner can always take back.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn open_up(&self, name: Option<&OsStr>) -> io::Result<()> {
        match name {
            Some(name) => rustix::fs::chmodat(&self.0, name, Mode::RWXU, AtFlags::empty())?,
            None => rustix::fs::fchmod(&self.0, Mode::RWXU)?,
        }
        Ok(())
    }

    /// Sets permissions and the time of the last change, in seconds.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn finish(&self, mode: u32, modified: i64) -> io::Result<()> {
        set(self.0.as_fd(), mode, modified)
    }

    /// It was given another path, which changes nothing about what is open.
    pub fn moved_to(&mut self, _path: &Path) {}

    /// Makes the names in it durable.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }

    /// Gives something in it another name, in this directory or in another one of the same file system.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn rename(&self, from: &OsStr, to_dir: &Self, to: &OsStr, taken: Taken) -> io::Result<()> {
        if taken == Taken::Replace {
            return Ok(rustix::fs::renameat(&self.0, from, &to_dir.0, to)?);
        }
        match system::rename_new(self.0.as_fd(), from, to_dir.0.as_fd(), to) {
            // File systems without the flag: a hard link has the same "fails if it exists". It works for files
            // only, and a directory that is given this way comes back as the error of the link.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(&self.0, from, &to_dir.0, to, AtFlags::empty())?;
                Ok(rustix::fs::unlinkat(&self.0, from, AtFlags::empty())?)
            }
            other => Ok(other?),
        }
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The error of a full disk.
pub fn full() -> io::Error {
    Errno::NOSPC.into()
}

/// What is known of an open file.
///
/// # Errors
/// As the operating system says.
pub fn stat(file: &File) -> io::Result<Stat> {
    system::stat(file.as_fd())
}

/// Kind, owner and length of an open file.
///
/// # Errors
/// As the operating system says.
pub fn kind_and_owner(file: &File) -> io::Result<(Kind, u32, u64)> {
    let stat = rustix::fs::fstat(file)?;
    let kind = kind(FileType::from_raw_mode(stat.st_mode));
    Ok((kind, stat.st_uid, u64::try_from(stat.st_size).unwrap_or(0)))
}

pub(super) fn kind(kind: FileType) -> Kind {
    match kind {
        FileType::Directory => Kind::Directory,
        FileType::RegularFile => Kind::File,
        FileType::Symlink => Kind::Link,
        _ => Kind::Special,
    }
}

/// The number of this user. Asked once: a listing reads thousands of files, and no process of ours changes its user.
pub fn me() -> u32 {
    static USER: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *USER.get_or_init(|| rustix::process::geteuid().as_raw())
}

/// The number of this user's group.
pub fn my_group() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Sets permissions and the time of the last change, in seconds.
///
/// # Errors
/// As the operating system says.
pub fn finish(file: &File, mode: u32, modified: i64) -> io::Result<()> {
    set(file.as_fd(), mode, modified)
}

fn set(fd: BorrowedFd<'_>, mode: u32, modified: i64) -> io::Result<()> {
    use rustix::fs::{Timespec, Timestamps, UTIME_OMIT};
    rustix::fs::fchmod(fd, Mode::from_raw_mode(mode as rustix::fs::RawMode))?;
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: modified, tv_nsec: 0 },
    };
    Ok(rustix::fs::futimens(fd, &times)?)
}

/// Reads at a position.
///
/// # Errors
/// As the operating system says.
pub fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    file.read_at(buffer, at)
}

/// Writes all of `bytes` at a position.
///
/// # Errors
/// As the operating system says.
pub fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(bytes, at)
}

/// Takes room for a file without writing. `false` where the file system cannot promise it.
///
/// # Errors
/// As the operating system says, a full disk foremost.
pub fn take_room(file: &File, bytes: u64) -> io::Result<bool> {
    system::take_room(file, bytes)
}

/// The same beyond its end, without making it longer.
///
/// # Errors
/// As the operating system says, a full disk foremost.
pub fn take_room_ahead(file: &File, from: u64, bytes: u64) -> io::Result<bool> {
    system::take_room_ahead(file, from, bytes)
}

/// Locks a file exclusively, if nobody has it locked.
///
/// # Errors
/// Somebody has, or as the operating system says.
pub fn try_lock(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

/// Locks a file together with others, if nobody has it locked exclusively.
///
/// # Errors
/// Somebody has, or as the operating system says.
pub fn try_lock_shared(file: &File) -> Result<(), TryLockError> {
    file.try_lock_shared()
}

/// Fills a buffer with random bytes of the kernel.
///
/// # Errors
/// It gives none.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    system::random(bytes)
}

/// The kind of a file system whose locks do not reach every process that can see its files, by its type; `None`
/// for all others, and where the type cannot be read: the lock test then decides alone.
pub fn network_kind(dir: &Handle) -> Option<&'static str> {
    system::network_kind(dir.0.as_fd())
}

/// How directories are made that are for this user alone.
pub fn private_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
}

/// How a file is opened for writing that is for this user alone; what it held before goes.
pub fn new_private_file() -> OpenOptions {
    let mut options = File::options();
    options.create(true).write(true).truncate(true).mode(0o600);
    options
}

fn all_names(entries: rustix::fs::Dir) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}
