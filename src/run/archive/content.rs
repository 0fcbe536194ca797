//! What a run consists of, so that a directory and an archive can be compared.

use super::ArchiveError;
use crate::run::dir::Dir;
use crate::run::files::name;
use crate::run::text::to_hex;
use crate::run::tree::{Entry, Kind, Node, descend};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Everything of a run that an archive holds, by its path below the run's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    items: BTreeMap<PathBuf, Item>,
}

/// One thing of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A directory with its permissions.
    Directory(u32),
    /// A file.
    File {
        /// Its permissions.
        mode: u32,
        /// Its length.
        len: u64,
        /// The SHA-256 of its content, in hex digits.
        sha256: String,
    },
    /// A symbolic link, and where it leads.
    Link(OsString),
}

impl Content {
    /// Reads a run's directory.
    ///
    /// # Errors
    /// It cannot be read, or holds what an archive does not.
    pub fn of_tree(dir: &Dir, parent: &Dir) -> Result<Self, ArchiveError> {
        let root = Node::root(dir, parent)?;
        let mut content = Self::default();
        content.add(PathBuf::new(), Item::Directory(permissions(&root.entry()?)));
        descend::<ArchiveError>(&root, &mut |node, entry| {
            if is_secret(&entry.path) {
                return Ok(());
            }
            let item = match entry.kind {
                Kind::Directory => Item::Directory(permissions(entry)),
                Kind::Link => Item::Link(node.read_link(entry)?),
                Kind::Special => return Err(ArchiveError::Special(dir.path().join(&entry.path))),
                Kind::File => {
                    let path = || dir.path().join(&entry.path);
                    let (len, sha256) = digest(node.open_file(entry)?).map_err(|source| {
                        ArchiveError::File { what: "compare with", path: path(), source }
                    })?;
                    Item::File { mode: permissions(entry), len, sha256 }
                }
            };
            content.add(entry.path.clone(), item);
            Ok(())
        })?;
        Ok(content)
    }

    /// Adds one thing; `false` if there is one of that path already.
    pub(super) fn add(&mut self, path: PathBuf, item: Item) -> bool {
        self.items.insert(path, item).is_none()
    }

    /// The first thing that differs.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let shown = |path: &Path| {
            if path.as_os_str().is_empty() {
                "the run's directory".to_owned()
            } else {
                path.display().to_string()
            }
        };
        let mine = self.items.iter().find(|(path, item)| other.items.get(*path) != Some(item));
        let theirs = || other.items.keys().find(|path| !self.items.contains_key(*path));
        mine.map(|(path, _)| shown(path)).or_else(|| theirs().map(|path| shown(path)))
    }
}

/// Permissions as they are stored. The owner of a directory can always open it up, and must, to read it.
pub(super) fn permissions(entry: &Entry) -> u32 {
    let own = if entry.kind == Kind::Directory { 0o700 } else { 0 };
    entry.mode & 0o777 | own
}

/// The environment of an attempt or an engine; also where writing it was interrupted.
pub(super) fn is_secret(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|p| p.to_str()).collect();
    let named = |file: &str, name: &str| {
        file == name
            || file.strip_prefix('.').and_then(|f| f.strip_prefix(name)).is_some_and(|f| f.starts_with('.'))
    };
    match parts[..] {
        [name::ATTEMPTS | name::ENGINE, _, file] => named(file, name::ENV),
        _ => false,
    }
}

/// Length and SHA-256 of everything that a reader gives.
pub(super) fn digest(mut reader: impl Read) -> io::Result<(u64, String)> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut len = 0;
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok((len, to_hex(&hash.finalize()))),
            Ok(n) => {
                hash.update(&buffer[..n]);
                len += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_a_secret_wherever_it_was_being_written() {
        for secret in ["attempts/1/env.json", "engine/2/env.json", "attempts/1/.env.json.0123.tmp"] {
            assert!(is_secret(Path::new(secret)), "{secret}");
        }
        for other in
            ["attempts/1/exit.json", "env.json", "attempts/1/events/env.json", "run.json", "engine/1"]
        {
            assert!(!is_secret(Path::new(other)), "{other}");
        }
    }

    #[test]
    fn every_difference_is_told() {
        let item = |sha: &str| Item::File { mode: 0o600, len: 1, sha256: sha.to_owned() };
        let mut a = Content::default();
        a.add("x".into(), item("1"));
        let mut b = a.clone();
        assert_eq!(a.difference(&b), None);
        b.add("y".into(), item("2"));
        assert_eq!((a.difference(&b), b.difference(&a)), (Some("y".to_owned()), Some("y".to_owned())));
        a.add("y".into(), item("3"));
        assert_eq!(a.difference(&b), Some("y".to_owned()));
    }
}
