//! Processes that cannot be seen.

use super::{Zoo, after, says};
use crate::harness::{World, not_root};
use crate::oracle::run_dir;

/// The processes of other users are hidden from a user without rights.
#[test]
fn where_proc_hides_others_nothing_live_is_ended_or_removed() {
    if not_root("mount /proc") {
        return;
    }
    let mut zoo = Zoo::in_world(crate::support::equip(World::unprivileged()));
    let hidden = after("mount -t proc -o hidepid=2 proc /proc");
    let look = |surroundings: &[std::ffi::OsString]| {
        let mut all = surroundings.to_vec();
        all.extend(zoo.world.prefix.iter().cloned());
        says(&zoo, &all, &["ls", "/proc/1/stat"]).code
    };
    assert_eq!(look(&after("true")), Some(0));
    assert_ne!(look(&hidden), Some(0), "process 1 is hidden");
    zoo.endure(&hidden, "a /proc that hides others");
    assert!(run_dir(&zoo.world, &zoo.lost).is_some(), "what is left of it could be hidden");
    zoo.stop_tells_the_truth(&hidden, "a /proc that hides others");
    zoo.recovers("after a /proc that hid others");
}

/// There is no `/proc` at all.
#[test]
fn without_proc_nothing_live_is_ended_or_removed() {
    if not_root("mount over /proc") {
        return;
    }
    let mut zoo = Zoo::new();
    let without = after("mount -t tmpfs none /proc");
    let looked = says(&zoo, &without, &["ls", "-A", "/proc"]).exits(0);
    assert_eq!(looked.out, "", "/proc is empty");
    zoo.endure(&without, "no /proc");
    assert!(run_dir(&zoo.world, &zoo.lost).is_some(), "what is left of it could not be looked for");
    zoo.stop_tells_the_truth(&without, "no /proc");
    zoo.recovers("after no /proc");
}
