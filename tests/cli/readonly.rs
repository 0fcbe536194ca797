//! Reading writes nothing (rule L9).

use crate::harness::World;
use crate::samples::{Samples, Zoo};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What one entry is: kind and mode, time of change, content.
type Entry = (u32, Option<(i64, i64)>, Vec<u8>);

/// Everything that a tree is.
fn tree(root: &Path, with_times: bool) -> BTreeMap<PathBuf, Entry> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let meta = path.symlink_metadata().expect("an entry");
        let content = if meta.is_dir() {
            open.extend(std::fs::read_dir(&path).expect("a directory").map(|e| e.expect("an entry").path()));
            Vec::new()
        } else {
            std::fs::read(&path).expect("a file")
        };
        let times = with_times.then(|| (meta.mtime(), meta.mtime_nsec()));
        found.insert(path, (meta.mode(), times, content));
    }
    found
}

/// Takes every right to write away, and gives it back.
struct ReadOnly(Vec<(PathBuf, u32)>);

impl ReadOnly {
    fn make(root: &Path) -> Self {
        let entries: Vec<(PathBuf, u32)> =
            tree(root, false).into_iter().map(|(path, (mode, ..))| (path, mode)).collect();
        for (path, mode) in entries.iter().rev() {
            std::fs::set_permissions(path, Permissions::from_mode(mode & !0o222)).expect("chmod");
        }
        Self(entries)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        for (path, mode) in &self.0 {
            let _ = std::fs::set_permissions(path, Permissions::from_mode(*mode));
        }
    }
}

#[test]
fn every_read_command_leaves_the_tree_as_it_was() {
    let mut world = World::new();
    let samples = Samples::new(&world);
    let zoo = Zoo::new(&samples);
    let _read_only = ReadOnly::make(&world.state());
    let before = tree(&world.state(), true);
    let mut commands: Vec<Vec<&str>> = vec![
        vec!["list"],
        vec!["list", "--all-projects", "--json"],
        vec!["list", "--status", "lost"],
        vec!["mux"],
        vec!["mux", "ls"],
        vec!["mux", "--json"],
        vec!["attach"],
        vec!["wait", "0010", "--timeout", "50ms"],
    ];
    for (id, _) in &zoo.expected {
        commands.push(vec!["status", id]);
        commands.push(vec!["status", "--json", id]);
        commands.push(vec!["logs", id]);
        commands.push(vec!["logs", "--raw", id]);
        commands.push(vec!["attach", "--json", id]);
    }
    commands.push(vec!["logs", "-f", "0001"]);
    commands.push(vec!["wait", "0001", "0004"]);
    for trouble in [None, Some("/no/such/tmux")] {
        if let Some(program) = trouble {
            world.env.push(("LOOPMUX_TMUX".into(), program.into()));
        }
        for command in &commands {
            let ran = world.loopmux(command);
            assert!(ran.code.is_some_and(|c| c != 101), "{command:?} broke off: {}", ran.err);
            let after = tree(&world.state(), true);
            assert!(before == after, "{command:?} changed {:?}", difference(&before, &after));
        }
    }
    // It tries things in a directory of its own, which is gone afterwards.
    let without_times = tree(&world.state(), false);
    world.loopmux(["doctor"]);
    assert!(without_times == tree(&world.state(), false), "doctor left something");
}

fn difference<V: PartialEq>(before: &BTreeMap<PathBuf, V>, after: &BTreeMap<PathBuf, V>) -> Vec<PathBuf> {
    let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    paths.into_iter().filter(|p| before.get(*p) != after.get(*p)).cloned().collect()
}

#[test]
fn a_change_is_seen_by_this_test() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("a"), "1").expect("a file");
    let before = tree(dir.path(), true);
    assert!(before == tree(dir.path(), true));
    std::fs::write(dir.path().join("a"), "2").expect("a file");
    assert_eq!(difference(&before, &tree(dir.path(), true)), [dir.path().join("a")]);
}
