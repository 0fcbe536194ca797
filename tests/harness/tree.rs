//! A directory tree as it was at one moment.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Everything below a directory: kinds, modes, owners, times of change, and contents.
#[derive(Clone, PartialEq, Eq)]
pub struct Tree(BTreeMap<PathBuf, String>);

impl Tree {
    /// Looks at everything below `root`, `root` itself included.
    #[track_caller]
    pub fn of(root: &Path) -> Self {
        let mut all = BTreeMap::new();
        let mut left = vec![root.to_owned()];
        while let Some(path) = left.pop() {
            let meta = path.symlink_metadata().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let content = if meta.is_symlink() {
                format!("{:?}", std::fs::read_link(&path))
            } else if meta.is_dir() {
                left.extend(
                    std::fs::read_dir(&path).expect("a directory").map(|e| e.expect("an entry").path()),
                );
                String::new()
            } else if meta.is_file() {
                String::from_utf8_lossy(&std::fs::read(&path).expect("a file")).into_owned()
            } else {
                "special".to_owned()
            };
            let facts = format!(
                "{:o} {}:{} {} {}.{:09}",
                meta.mode(),
                meta.uid(),
                meta.gid(),
                meta.ino(),
                meta.mtime(),
                meta.mtime_nsec()
            );
            all.insert(path, format!("{facts} {content}"));
        }
        Self(all)
    }

    /// Every path in it.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// Asserts that both are the same, and names what is not.
    #[track_caller]
    pub fn is(&self, before: &Self, what: &str) {
        let changed: Vec<String> = self
            .0
            .keys()
            .chain(before.0.keys())
            .filter(|path| self.0.get(*path) != before.0.get(*path))
            .map(|path| {
                format!("{}:\n  was {:?}\n  is  {:?}", path.display(), before.0.get(path), self.0.get(path))
            })
            .collect();
        assert!(changed.is_empty(), "{what} changed:\n{}", changed.join("\n"));
    }
}
