//! Files by an open directory and a name in it: what the operating system offers, one file for each platform behind
//! one surface.
//!
//! A directory that was renamed stays the one that is open, and in one that was removed nothing can be made. A link at
//! the end of a name is never followed.

use std::io;
use std::path::Path;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{
    Handle, MOVES_WITH_OPEN_FILES, finish, full, kind_and_owner, me, my_group, network_kind,
    new_private_file, private_builder, random, read_at, stat, take_room, take_room_ahead, try_lock,
    try_lock_shared, write_all_at,
};
#[cfg(windows)]
pub use windows::is_held;
#[cfg(windows)]
pub use windows::{
    Handle, MOVES_WITH_OPEN_FILES, finish, full, kind_and_owner, me, my_group, network_kind,
    new_private_file, private_builder, random, read_at, stat, take_room, take_room_ahead, try_lock,
    try_lock_shared, write_all_at,
};

/// What kind of thing a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link, or what else leads elsewhere.
    Link,
    /// A pipe, a socket or a device.
    Special,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Open {
    /// For reading, or for locking: a reader of a read-only copy can probe a lock.
    Read,
    /// For reading and writing, made if it is not there. Some network file systems lock nothing else exclusively.
    ReadWrite,
    /// For writing, and made; fails if it is there.
    New,
    /// For reading and writing, and made; fails if it is there.
    NewReadWrite,
    /// For appending, made if it is not there.
    Append,
}

/// What a rename does with a name that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Taken {
    /// It never touches it, and fails.
    Refuse,
    /// It takes its place. For files only.
    Replace,
}

/// What is known of a file or a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Who owns it, where the platform has numbers for that.
    pub uid: u32,
    /// Its permissions, as Unix has them.
    pub mode: u32,
    /// Its length in bytes.
    pub len: u64,
    /// When its content changed, in seconds and nanoseconds since the Unix epoch.
    pub modified: (i64, u32),
    /// When it changed in any way.
    pub changed: (i64, u32),
    /// Its device.
    pub device: u64,
    /// Its number on that device.
    pub inode: u64,
    /// Which file system it is in.
    pub mount: Mount,
}

/// What tells one mounted file system from another, also of one that is mounted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mount {
    device: u64,
    id: Option<u64>,
}

/// Opens a directory by its path; a link at its end is refused.
///
/// # Errors
/// As the operating system says.
pub fn open(path: &Path) -> io::Result<Handle> {
    Handle::open(path)
}
