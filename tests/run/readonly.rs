//! Reading a state directory that nobody may write.

use crate::harness::{Disk, Tree, World, eventually, not_root, signal};
use loopmux::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// One run of each kind.
struct Runs {
    failed: String,
    lost: String,
    stopped: String,
    orphaned: String,
    running: String,
}

impl Runs {
    fn of(world: &World) -> Self {
        let quiet = ["sh", "-c", "echo said; exec sleep 600"];
        let (lost, attempt) = world.launched(&quiet);
        world.tmux(["kill-session", "-t", attempt["mux"]["session_id"].as_str().unwrap()]).exits(0);
        world.loopmux(["wait", &lost]).exits(6);
        let (stopped, _) = world.launched(&quiet);
        world.loopmux(["stop", &stopped]).exits(0);
        let failed = world.detach(["sh", "-c", "echo said; exit 3"]);
        world.loopmux(["wait", &failed]).exits(1);
        let (orphaned, _) = world.launched(&quiet);
        let engine = world.until(&orphaned, |s| s["run"]["status"] == "running")["run"]["engine"].clone();
        signal(crate::harness::pid(&engine), Signal::Kill);
        world.until(&orphaned, |s| s["run"]["status"] == "orphaned");
        let (running, _) = world.launched(&quiet);
        world.until(&running, |s| s["run"]["status"] == "running");
        let runs = Self { failed, lost, stopped, orphaned, running };
        for ended in [&runs.failed, &runs.lost, &runs.stopped] {
            world.settled(ended);
        }
        eventually("all output", || {
            let logs: Vec<String> = runs.all().iter().map(|r| world.loopmux(["logs", r]).out).collect();
            if logs.iter().all(|l| l == "said\n") { Ok(()) } else { Err(format!("{logs:?}")) }
        });
        runs
    }

    fn all(&self) -> [&str; 5] {
        [&self.failed, &self.lost, &self.stopped, &self.orphaned, &self.running]
    }
}

/// Every command that only reads, with its exit code.
#[track_caller]
fn read_everything(world: &World, runs: &Runs) {
    let before = Tree::of(&world.state());
    let reads = |words: &[&str], code: i32| {
        let ran = world.loopmux(words).exits(code);
        Tree::of(&world.state()).is(&before, &words.join(" "));
        ran
    };
    reads(&["list"], 0);
    let list = reads(&["list", "--json", "--all-projects"], 0).json();
    assert_eq!(list["data"]["runs"].as_array().map(Vec::len), Some(5), "{list}");
    for (run, status) in runs.all().into_iter().zip(["failed", "lost", "stopped", "orphaned", "running"]) {
        assert_eq!(reads(&["status", "--json", run], 0).json()["data"]["run"]["status"], status);
        assert!(reads(&["status", run], 0).out.contains(status));
        assert_eq!(reads(&["logs", run], 0).out, "said\n");
        reads(&["logs", "--json", run], 0);
        reads(&["logs", "--raw", run], 0);
    }
    reads(&["logs", "-f", &runs.failed], 0);
    reads(&["wait", &runs.failed], 1);
    reads(&["wait", &runs.lost], 6);
    reads(&["wait", "--any", &runs.running, &runs.stopped], 1);
    reads(&["wait", "--timeout", "50ms", &runs.orphaned], 7);
    reads(&["attach", "--json", &runs.running], 0);
    reads(&["attach", "--json", &runs.failed], 3);
    reads(&["mux"], 0);
    let sessions = reads(&["mux", "ls", "--json"], 0).json();
    assert!(sessions["data"]["sessions"].as_array().is_some_and(|s| s.len() >= 3), "{sessions}");
    reads(&["archive", "--list"], 0);
    reads(&["list", "--quarantined"], 0);
    reads(&["completions", "bash"], 0);
    reads(&["man"], 0);
}

fn set_write(path: &Path, yes: bool) {
    let mode = path.symlink_metadata().unwrap().permissions().mode();
    let mode = if yes { mode | 0o200 } else { mode & !0o222 };
    if yes {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap().flatten() {
            set_write(&entry.path(), yes);
        }
    }
    if !yes {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn every_read_command_works_without_the_right_to_write() {
    let world = World::unprivileged();
    let runs = Runs::of(&world);
    set_write(&world.state(), false);
    // The right is really taken away: an act says so.
    let stop = world.loopmux(["stop", &runs.running]).exits(1);
    assert!(stop.err.contains("Permission denied"), "{}", stop.err);
    read_everything(&world, &runs);
    set_write(&world.state(), true);
    world.loopmux(["stop", &runs.running, &runs.orphaned]).exits(0);
}

#[test]
fn every_read_command_works_on_a_read_only_disk() {
    if not_root("mount a disk") {
        return;
    }
    let mut world = World::new();
    let runs = Runs::of(&world);
    let written = world.state();
    let view = Disk::read_only_view(&written, world.file("view"));
    world.state = view.path().to_owned();
    read_everything(&world, &runs);
    let stop = world.loopmux(["stop", &runs.running]).exits(1);
    assert!(stop.err.contains("Read-only file system"), "{}", stop.err);
    world.state = written;
    world.loopmux(["stop", &runs.running, &runs.orphaned]).exits(0);
}
