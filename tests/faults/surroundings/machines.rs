//! Another boot, another machine, and no multiplexer.

use super::{Zoo, after, says, words};
use crate::harness::{World, not_root};

/// A file in the place of one of the kernel's or the system's.
fn in_the_place_of(world: &World, path: &str, text: &str) -> Vec<std::ffi::OsString> {
    let name = path.rsplit('/').next().expect("a name");
    let file = world.file(name);
    std::fs::write(&file, format!("{text}\n")).expect("a file");
    after(&format!("mount --bind {} {path}", file.display()))
}

const BOOT: &str = "/proc/sys/kernel/random/boot_id";

#[test]
fn in_another_boot_what_holds_its_lease_is_alive() {
    if not_root("mount over the boot id") {
        return;
    }
    let mut zoo = Zoo::new();
    let other = in_the_place_of(&zoo.world, BOOT, "00000000-0000-0000-0000-000000000000");
    assert!(says(&zoo, &other, &["cat", BOOT]).exits(0).out.starts_with("00000000-"));
    zoo.endure(&other, "another boot");
    zoo.stop_tells_the_truth(&other, "another boot");
    zoo.recovers("after another boot");
}

#[test]
fn on_another_machine_nothing_is_proven() {
    if not_root("mount over the machine id") {
        return;
    }
    let mut zoo = Zoo::new();
    let id = "/etc/machine-id";
    let machine = in_the_place_of(&zoo.world, id, "0123456789abcdef0123456789abcdef");
    let boot = in_the_place_of(&zoo.world, BOOT, "00000000-0000-0000-0000-000000000000");
    // One that shares the directory has both.
    let mut both = machine;
    both.extend(boot);
    assert!(says(&zoo, &both, &["cat", id]).exits(0).out.starts_with("0123456789abcdef"));
    zoo.endure(&both, "another machine");
    let ended = zoo.ended.clone();
    let refused = zoo.spares(&both, &["delete", &ended], "another machine");
    assert!(refused.code == Some(4) && refused.err.contains("--unproven"), "{refused:?}");
    // What is put aside there comes back here.
    zoo.spares(&both, &["delete", "--unproven", &ended], "another machine").exits(0);
    zoo.world.loopmux(["restore", &ended]).exits(0);
    zoo.stop_tells_the_truth(&both, "another machine");
    zoo.recovers("after another machine");
}

#[test]
fn without_a_multiplexer_nothing_live_is_ended_or_removed() {
    let mut zoo = Zoo::new();
    let bin = zoo.world.bin();
    let without = words(["env", &format!("PATH={}", bin.display())]);
    zoo.endure(&without, "a PATH without tmux");
    zoo.stop_tells_the_truth(&without, "a PATH without tmux");
    zoo.recovers("after a PATH without tmux");
}
