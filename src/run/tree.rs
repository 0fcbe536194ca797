//! Walking and erasing a directory tree through open handles.
//!
//! A symbolic link is never followed, and a mount point is never crossed: whatever is mounted in a run directory is
//! not the run's.

use super::dir::Dir;
use crate::fault;
use rustix::fs::{AtFlags, Mode, OFlags, Statx, StatxFlags};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Directories inside each other at most; one descriptor is open for each.
const DEPTH: usize = 256;

/// What kind of thing a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device.
    Special,
}

/// One name in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path below the tree's root; empty for the root itself.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// Who owns it.
    pub uid: u32,
    /// Its permissions.
    pub mode: u32,
    /// Its length in bytes.
    pub len: u64,
    /// When its content changed, in seconds and nanoseconds.
    pub modified: (i64, u32),
    /// When it changed in any way.
    pub changed: (i64, u32),
    /// Its inode.
    pub inode: u64,
    mount: Mount,
}

/// What tells one mounted file system from another, also of one that is mounted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mount {
    dev: (u32, u32),
    id: Option<u64>,
}

/// A tree that cannot be walked to its end, or has something in it that is not the run's.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// Something is mounted there.
    #[error("{} is a mount point, and what is mounted there is not the run's", .0.display())]
    MountPoint(PathBuf),
    /// Another user's.
    #[error("{} belongs to user {uid}", .path.display())]
    ForeignOwner {
        /// Which.
        path: PathBuf,
        /// Whose.
        uid: u32,
    },
    /// Directories inside each other without end.
    #[error("{} is more than {DEPTH} directories deep", .0.display())]
    TooDeep(PathBuf),
    /// It became something else while it was looked at.
    #[error("{} was changed while it was looked at", .0.display())]
    Changed(PathBuf),
    /// The operating system refused.
    #[error("cannot {what} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// What came back.
        source: io::Error,
    },
}

/// An open directory of the tree.
#[derive(Debug)]
pub struct Node<'t> {
    fd: OwnedFd,
    /// The tree's root, for messages.
    root: &'t Path,
    path: PathBuf,
    mount: Mount,
}

impl<'t> Node<'t> {
    /// The root of the tree in `dir`. It must not be a mount point itself: `parent` is the directory that it is in.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn root(dir: &'t Dir, parent: &Dir) -> Result<Self, TreeError> {
        let root = dir.path();
        let io = |what| {
            move |e: rustix::io::Errno| TreeError::Io { what, path: root.to_owned(), source: e.into() }
        };
        let fd = rustix::fs::openat(dir, ".", directory(), Mode::empty()).map_err(io("open"))?;
        let (own, around) =
            (look_at(fd.as_fd()).map_err(io("look at"))?, look_at(parent.as_fd()).map_err(io("look at"))?);
        if mount_of(&own) != mount_of(&around) {
            return Err(TreeError::MountPoint(root.to_owned()));
        }
        Ok(Self { fd, root, path: PathBuf::new(), mount: mount_of(&own) })
    }

    /// The directory itself, as an entry.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn entry(&self) -> Result<Entry, TreeError> {
        let stat = look_at(self.fd.as_fd()).map_err(|e| self.failed("look at", None, e.into()))?;
        Ok(entry(self.path.clone(), &stat))
    }

    /// Everything in it, by name.
    ///
    /// # Errors
    /// It cannot be listed, or something in it cannot be looked at.
    pub fn entries(&self) -> Result<Vec<Entry>, TreeError> {
        let mut names: Vec<OsString> = Vec::new();
        let list = rustix::fs::Dir::read_from(&self.fd).map_err(|e| self.failed("list", None, e.into()))?;
        for found in list {
            let found = found.map_err(|e| self.failed("list", None, e.into()))?;
            let name = found.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name.to_vec()));
            }
        }
        names.sort();
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            let stat =
                look(self.fd.as_fd(), &name).map_err(|e| self.failed("look at", Some(&name), e.into()))?;
            entries.push(entry(self.path.join(&name), &stat));
        }
        Ok(entries)
    }

    /// Opens a directory in it: the one that was seen, and no other.
    ///
    /// # Errors
    /// It is another one by now, a mount point, or too deep.
    pub fn open(&self, entry: &Entry) -> Result<Node<'t>, TreeError> {
        let shown = || self.root.join(&entry.path);
        if entry.mount != self.mount {
            return Err(TreeError::MountPoint(shown()));
        }
        if entry.path.components().count() > DEPTH {
            return Err(TreeError::TooDeep(shown()));
        }
        let name = entry.path.file_name().unwrap_or_default();
        let open = || rustix::fs::openat(&self.fd, name, directory(), Mode::empty());
        let fd = match open() {
            // Our own directory, which its owner may open up again.
            Err(rustix::io::Errno::ACCESS) => {
                let _ = rustix::fs::chmodat(&self.fd, name, Mode::RWXU, AtFlags::empty());
                open()
            }
            other => other,
        };
        let fd = fd.map_err(|e| self.failed("open", Some(name), e.into()))?;
        let stat = look_at(fd.as_fd()).map_err(|e| self.failed("look at", Some(name), e.into()))?;
        if stat.stx_ino != entry.inode || mount_of(&stat) != entry.mount {
            return Err(TreeError::Changed(shown()));
        }
        Ok(Node { fd, root: self.root, path: entry.path.clone(), mount: entry.mount })
    }

    /// Opens a regular file in it for reading: the one that was seen, and no other.
    ///
    /// # Errors
    /// It is another one by now, or cannot be opened.
    pub fn open_file(&self, entry: &Entry) -> Result<std::fs::File, TreeError> {
        if entry.mount != self.mount {
            return Err(TreeError::MountPoint(self.root.join(&entry.path)));
        }
        let name = entry.path.file_name().unwrap_or_default();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty())
            .map_err(|e| self.failed("open", Some(name), e.into()))?;
        let stat = look_at(fd.as_fd()).map_err(|e| self.failed("look at", Some(name), e.into()))?;
        if stat.stx_ino != entry.inode {
            return Err(TreeError::Changed(self.root.join(&entry.path)));
        }
        Ok(fd.into())
    }

    /// Where a symbolic link in it leads. It is read, not followed.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_link(&self, entry: &Entry) -> Result<OsString, TreeError> {
        let name = entry.path.file_name().unwrap_or_default();
        let target = rustix::fs::readlinkat(&self.fd, name, Vec::new())
            .map_err(|e| self.failed("read the link", Some(name), e.into()))?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    fn failed(&self, what: &'static str, name: Option<&OsStr>, source: io::Error) -> TreeError {
        let mut path = self.root.join(&self.path);
        path.extend(name);
        TreeError::Io { what, path, source }
    }
}

/// Everything of a tree in the order of its paths, the root first.
///
/// # Errors
/// [`TreeError`]; nothing was changed.
pub fn survey(dir: &Dir, parent: &Dir) -> Result<Vec<Entry>, TreeError> {
    let root = Node::root(dir, parent)?;
    let mut all = vec![root.entry()?];
    descend(&root, &mut |_, entry| {
        all.push(entry.clone());
        Ok(())
    })?;
    Ok(all)
}

/// Calls `each` for everything below a directory, a directory before what is in it.
///
/// # Errors
/// [`TreeError`], or what `each` gives.
pub fn descend<E: From<TreeError>>(
    node: &Node<'_>,
    each: &mut impl FnMut(&Node<'_>, &Entry) -> Result<(), E>,
) -> Result<(), E> {
    for entry in node.entries()? {
        if entry.mount != node.mount {
            return Err(TreeError::MountPoint(node.root.join(&entry.path)).into());
        }
        each(node, &entry)?;
        if entry.kind == Kind::Directory {
            descend(&node.open(&entry)?, each)?;
        }
    }
    Ok(())
}

/// The first thing in a tree that is another user's.
///
/// # Errors
/// [`TreeError::ForeignOwner`].
pub fn all_ours(root: &Path, entries: &[Entry]) -> Result<(), TreeError> {
    let me = rustix::process::geteuid().as_raw();
    match entries.iter().find(|e| e.uid != me) {
        Some(e) => Err(TreeError::ForeignOwner { path: root.join(&e.path), uid: e.uid }),
        None => Ok(()),
    }
}

/// Erases everything in a tree, and leaves its root. What cannot be erased stays, with everything above it.
///
/// # Errors
/// [`TreeError`], the first one met.
pub fn erase(dir: &Dir, parent: &Dir) -> Result<(), TreeError> {
    empty(&Node::root(dir, parent)?)
}

fn empty(node: &Node<'_>) -> Result<(), TreeError> {
    for entry in node.entries()? {
        if entry.mount != node.mount {
            return Err(TreeError::MountPoint(node.root.join(&entry.path)));
        }
        let name = entry.path.file_name().unwrap_or_default();
        if entry.kind == Kind::Directory {
            empty(&node.open(&entry)?)?;
            fault::around("remove.rmdir", || unlink(node, name, AtFlags::REMOVEDIR))?;
        } else {
            fault::around("remove.unlink", || unlink(node, name, AtFlags::empty()))?;
        }
    }
    Ok(())
}

fn unlink(node: &Node<'_>, name: &OsStr, flags: AtFlags) -> Result<(), TreeError> {
    let unlink = || fault::room().and_then(|()| rustix::fs::unlinkat(&node.fd, name, flags));
    let done = match unlink() {
        // Our own directory, which its owner may open up again.
        Err(rustix::io::Errno::ACCESS) => {
            let _ = rustix::fs::fchmod(&node.fd, Mode::RWXU);
            unlink()
        }
        other => other,
    };
    match done {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(e) => Err(node.failed("remove", Some(name), e.into())),
    }
}

fn directory() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn look(dir: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    rustix::fs::statx(dir, name, flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)
}

fn look_at(fd: BorrowedFd<'_>) -> rustix::io::Result<Statx> {
    rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)
}

fn mount_of(stat: &Statx) -> Mount {
    // Kernels before 5.8 do not tell mounts apart; the device is what is left then.
    let told = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::MNT_ID);
    Mount { dev: (stat.stx_dev_major, stat.stx_dev_minor), id: told.then_some(stat.stx_mnt_id) }
}

fn entry(path: PathBuf, stat: &Statx) -> Entry {
    let kind = match rustix::fs::FileType::from_raw_mode(stat.stx_mode.into()) {
        rustix::fs::FileType::Directory => Kind::Directory,
        rustix::fs::FileType::RegularFile => Kind::File,
        rustix::fs::FileType::Symlink => Kind::Link,
        _ => Kind::Special,
    };
    Entry {
        path,
        kind,
        uid: stat.stx_uid,
        mode: u32::from(stat.stx_mode) & 0o7777,
        len: stat.stx_size,
        modified: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
        changed: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
        inode: stat.stx_ino,
        mount: mount_of(stat),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree() -> (tempfile::TempDir, Dir, Dir) {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join("run/a/b")).unwrap();
        std::fs::write(top.path().join("outside"), "kept").unwrap();
        std::fs::write(top.path().join("run/a/b/file"), "x").unwrap();
        symlink("../outside", top.path().join("run/link")).unwrap();
        symlink("../../..", top.path().join("run/a/up")).unwrap();
        let parent = Dir::open(top.path()).unwrap();
        let dir = parent.sub("run").unwrap();
        (top, parent, dir)
    }

    #[test]
    fn a_survey_has_everything_and_follows_no_link() {
        let (_top, parent, dir) = tree();
        let all = survey(&dir, &parent).unwrap();
        let paths: Vec<_> = all.iter().map(|e| (e.path.to_str().unwrap(), e.kind)).collect();
        assert_eq!(
            paths,
            [
                ("", Kind::Directory),
                ("a", Kind::Directory),
                ("a/b", Kind::Directory),
                ("a/b/file", Kind::File),
                ("a/up", Kind::Link),
                ("link", Kind::Link),
            ]
        );
        assert!(all_ours(dir.path(), &all).is_ok());
    }

    #[test]
    fn erasing_leaves_what_a_link_leads_to() {
        let (top, parent, dir) = tree();
        erase(&dir, &parent).unwrap();
        assert_eq!(std::fs::read_dir(top.path().join("run")).unwrap().count(), 0);
        assert_eq!(std::fs::read_to_string(top.path().join("outside")).unwrap(), "kept");
    }

    #[test]
    fn a_directory_that_was_swapped_is_not_entered() {
        let (top, parent, dir) = tree();
        let root = Node::root(&dir, &parent).unwrap();
        let seen = root.entries().unwrap().into_iter().find(|e| e.path == Path::new("a")).unwrap();
        std::fs::rename(top.path().join("run/a"), top.path().join("away")).unwrap();
        symlink("/", top.path().join("run/a")).unwrap();
        assert!(root.open(&seen).is_err(), "a link took its place");
        std::fs::remove_file(top.path().join("run/a")).unwrap();
        std::fs::create_dir(top.path().join("run/a")).unwrap();
        assert!(matches!(root.open(&seen), Err(TreeError::Changed(_))));
    }

    #[test]
    fn another_users_file_is_told() {
        let (_top, parent, dir) = tree();
        let mut all = survey(&dir, &parent).unwrap();
        all[3].uid += 1;
        let error = all_ours(Path::new("/r"), &all).unwrap_err().to_string();
        assert!(error.starts_with("/r/a/b/file belongs to user"), "{error}");
    }
}
