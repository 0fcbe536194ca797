//! Walking and erasing a directory tree through open handles.
//!
//! A symbolic link is never followed, and a mount point is never crossed: whatever is mounted in a run directory is
//! not the run's.

use super::dir::Dir;
use crate::at::{self, Mount, Open};
use crate::fault;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

pub use crate::at::Kind;

/// Directories inside each other at most; one descriptor is open for each.
const DEPTH: usize = 256;

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
    at: at::Handle,
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
        let io = |what| move |source| TreeError::Io { what, path: root.to_owned(), source };
        let at = dir.at().sub(OsStr::new(".")).map_err(io("open"))?;
        let (own, around) = (at.stat().map_err(io("look at"))?, parent.at().stat().map_err(io("look at"))?);
        if own.mount != around.mount {
            return Err(TreeError::MountPoint(root.to_owned()));
        }
        Ok(Self { at, root, path: PathBuf::new(), mount: own.mount })
    }

    /// The directory itself, as an entry.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn entry(&self) -> Result<Entry, TreeError> {
        let stat = self.at.stat().map_err(|e| self.failed("look at", None, e))?;
        Ok(entry(self.path.clone(), &stat))
    }

    /// Everything in it, by name.
    ///
    /// # Errors
    /// It cannot be listed, or something in it cannot be looked at.
    pub fn entries(&self) -> Result<Vec<Entry>, TreeError> {
        let mut names = self.at.names().map_err(|e| self.failed("list", None, e))?;
        names.sort();
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            let stat = self.at.look(&name).map_err(|e| self.failed("look at", Some(&name), e))?;
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
        let open = || self.at.sub(name);
        let at = match open() {
            // Our own directory, which its owner may open up again.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                let _ = self.at.open_up(Some(name));
                open()
            }
            other => other,
        };
        let at = at.map_err(|e| self.failed("open", Some(name), e))?;
        let stat = at.stat().map_err(|e| self.failed("look at", Some(name), e))?;
        if stat.inode != entry.inode || stat.mount != entry.mount {
            return Err(TreeError::Changed(shown()));
        }
        Ok(Node { at, root: self.root, path: entry.path.clone(), mount: entry.mount })
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
        let file = self.at.file(name, Open::Read).map_err(|e| self.failed("open", Some(name), e))?;
        let stat = at::stat(&file).map_err(|e| self.failed("look at", Some(name), e))?;
        if stat.inode != entry.inode {
            return Err(TreeError::Changed(self.root.join(&entry.path)));
        }
        Ok(file)
    }

    /// Where a symbolic link in it leads. It is read, not followed.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_link(&self, entry: &Entry) -> Result<OsString, TreeError> {
        let name = entry.path.file_name().unwrap_or_default();
        self.at.read_link(name).map_err(|e| self.failed("read the link", Some(name), e))
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
    let me = at::me();
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
            fault::around("remove.rmdir", || unlink(node, name, Kind::Directory))?;
        } else {
            fault::around("remove.unlink", || unlink(node, name, entry.kind))?;
        }
    }
    Ok(())
}

fn unlink(node: &Node<'_>, name: &OsStr, kind: Kind) -> Result<(), TreeError> {
    let unlink = || {
        fault::room()?;
        if kind == Kind::Directory { node.at.rmdir(name) } else { node.at.unlink(name) }
    };
    let done = match unlink() {
        // Our own directory, which its owner may open up again.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            let _ = node.at.open_up(None);
            unlink()
        }
        other => other,
    };
    match done {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(node.failed("remove", Some(name), e)),
    }
}

fn entry(path: PathBuf, stat: &at::Stat) -> Entry {
    Entry {
        path,
        kind: stat.kind,
        uid: stat.uid,
        mode: stat.mode,
        len: stat.len,
        modified: stat.modified,
        changed: stat.changed,
        inode: stat.inode,
        mount: stat.mount,
    }
}

#[cfg(unix)]
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
