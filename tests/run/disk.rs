//! State directories that cannot carry a run: a clear error before anything is launched, and nothing left behind.

use crate::harness::{Disk, Ran, STRANGER, Tree, World, eventually, interpose, not_root};
use std::os::unix::fs::PermissionsExt;

const LAUNCHES: [&[&str]; 2] = [&["run", "--", "sleep", "600"], &["run", "-d", "--", "sleep", "600"]];

/// A world whose state is on a disk of its own, with one run that has ended.
fn on_a_disk(options: &str) -> (World, Disk) {
    let mut world = World::new();
    let disk = Disk::mount(world.file("disk"), options);
    world.state = disk.path().join("state");
    world.loopmux(["run", "--", "sh", "-c", "echo before"]).exits(0);
    world.settled("@last");
    (world, disk)
}

/// No launch works, and each says why; nothing was started, and nothing stays. An id is reserved for ever.
#[track_caller]
fn refuses_launches(world: &World, words: &[&str]) {
    let before = Tree::of(&world.state());
    for launch in LAUNCHES {
        let ran = world.loopmux(launch);
        assert!(!matches!(ran.code, Some(0) | None), "{ran:?}");
        for word in words.iter().chain(&[world.state().to_str().unwrap()]) {
            assert!(ran.err.contains(word), "{word:?} in {ran:?}");
        }
        nothing_is_left(world, &before, &ran);
    }
}

#[track_caller]
fn nothing_is_left(world: &World, before: &Tree, ran: &Ran) {
    let known: Vec<_> = before.paths().collect();
    let after = Tree::of(&world.state());
    let new = after.paths().filter(|p| !known.contains(p));
    let left: Vec<_> = new.filter(|p| !p.parent().unwrap().ends_with("locks")).collect();
    assert!(left.is_empty(), "{left:?} after {ran:?}");
    let tmux = world.tmux(["list-sessions"]);
    assert_ne!(tmux.code, Some(0), "nothing was launched: {tmux:?}");
    let programs = world.processes().into_iter().map(|h| h.identity().pid);
    let sleeps = programs.filter(|pid| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words.starts_with(b"sleep\0"))
    });
    assert_eq!(sleeps.count(), 0, "{ran:?}");
}

/// `doctor` fails, with the same words.
#[track_caller]
fn doctor_says_it(world: &World, word: &str) {
    let report = world.loopmux(["doctor", "--json"]).exits(1).json()["data"].clone();
    let failed = report["checks"].as_array().unwrap().iter().filter(|c| c["result"] == "fail");
    let said: Vec<String> = failed.map(|c| format!("{} {} {}", c["name"], c["what"], c["fix"])).collect();
    assert!(said.iter().any(|s| s.contains(word)), "{word:?} in {said:?}");
}

/// What is there can be read all the same.
#[track_caller]
fn still_reads(world: &World) {
    let list = world.loopmux(["list", "--json"]).exits(0).json();
    assert_eq!(list["data"]["runs"].as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(world.status("@last")["run"]["status"], "succeeded");
    assert_eq!(world.loopmux(["logs", "@last"]).exits(0).out, "before\n");
    world.loopmux(["wait", "@last"]).exits(0);
}

#[test]
fn a_full_disk_refuses_a_launch() {
    if not_root("mount a disk") {
        return;
    }
    let (world, disk) = on_a_disk("size=512k");
    disk.fill();
    refuses_launches(&world, &["No space left"]);
    doctor_says_it(&world, "No space left");
    still_reads(&world);
    disk.empty();
    world.loopmux(["run", "--", "true"]).exits(0);
}

#[test]
fn a_disk_without_inodes_refuses_a_launch() {
    if not_root("mount a disk") {
        return;
    }
    let (world, disk) = on_a_disk("size=4m,nr_inodes=200");
    disk.take_inodes();
    refuses_launches(&world, &["No space left"]);
    doctor_says_it(&world, "No space left");
    still_reads(&world);
    disk.give_inodes();
    world.loopmux(["run", "--", "true"]).exits(0);
}

#[test]
fn a_read_only_disk_refuses_a_launch() {
    if not_root("mount a disk") {
        return;
    }
    let (world, disk) = on_a_disk("size=4m");
    disk.read_only(true);
    refuses_launches(&world, &["Read-only file system"]);
    doctor_says_it(&world, "Read-only file system");
    still_reads(&world);
    disk.read_only(false);
    world.loopmux(["run", "--", "true"]).exits(0);
}

#[test]
fn a_disk_that_fills_up_under_a_run_does_not_change_how_it_ended() {
    if not_root("mount a disk") {
        return;
    }
    let (world, disk) = on_a_disk("size=2m");
    for (code, exit, word) in [(0, 0, "succeeded"), (3, 1, "failed")] {
        let go = world.file(&format!("go{code}"));
        let script = format!("until [ -e {} ]; do sleep 0.05; done; exit {code}", go.display());
        let (run, _) = world.launched(&["sh", "-c", &script]);
        world.until(&run, |s| s["run"]["status"] == "running");
        disk.fill();
        std::fs::write(&go, "").unwrap();
        world.loopmux(["wait", &run]).exits(exit);
        let status = world.status(&run);
        assert_eq!(status["run"]["status"], word, "{status}");
        assert_eq!(status["attempts"][0]["verdict"]["code"], code, "{status}");
        disk.empty();
        world.until(&run, |s| s["run"]["status"] == word && s["run"]["engine"]["state"] == "gone");
    }
}

#[test]
fn a_disk_that_fills_up_under_a_run_does_not_keep_it_from_being_stopped() {
    if not_root("mount a disk") {
        return;
    }
    let (world, disk) = on_a_disk("size=2m");
    let (run, _) = world.launched(&["sleep", "600"]);
    world.until(&run, |s| s["run"]["status"] == "running");
    let cli = world.cli(&run, 1);
    disk.fill();
    let ran = world.loopmux(["stop", &run]);
    if ran.code == Some(0) {
        assert!(!crate::harness::alive(cli), "{ran:?}");
    } else {
        assert!(ran.err.contains("No space left"), "{ran:?}");
        disk.empty();
        world.loopmux(["stop", &run]).exits(0);
    }
    eventually("the program's end", || {
        if crate::harness::alive(cli) { Err("it runs".to_owned()) } else { Ok(()) }
    });
}

#[test]
fn a_state_directory_without_the_right_to_write_refuses_a_launch() {
    let world = World::unprivileged();
    world.loopmux(["run", "--", "sh", "-c", "echo before"]).exits(0);
    world.settled("@last");
    let mode = |mode| std::fs::set_permissions(world.state(), std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o500);
    refuses_launches(&world, &["Permission denied"]);
    doctor_says_it(&world, "Permission denied");
    still_reads(&world);
    mode(0o700);
    world.loopmux(["run", "--", "true"]).exits(0);
}

#[test]
fn a_state_directory_that_cannot_be_made_refuses_a_launch() {
    let mut world = World::unprivileged();
    world.state = world.file("project/file/state");
    std::fs::write(world.file("project/file"), "").unwrap();
    for launch in LAUNCHES {
        let ran = world.loopmux(launch).exits(1);
        assert!(ran.err.contains("Not a directory") && ran.err.contains("project/file"), "{ran:?}");
    }
    doctor_says_it(&world, "Not a directory");
    let list = world.loopmux(["list"]).exits(1);
    assert!(list.err.contains("Not a directory"), "it is not known that there are none: {list:?}");
}

#[test]
fn another_users_state_directory_refuses_a_launch() {
    if not_root("give a directory to another user") {
        return;
    }
    let world = World::new();
    world.loopmux(["run", "--", "sh", "-c", "echo before"]).exits(0);
    world.settled("@last");
    std::os::unix::fs::chown(world.state(), Some(STRANGER), None).unwrap();
    refuses_launches(&world, &["belongs to user 65534", "LOOPMUX_STATE_DIR"]);
    doctor_says_it(&world, "belongs to user 65534");
    std::os::unix::fs::chown(world.state(), Some(0), None).unwrap();
    world.loopmux(["run", "--", "true"]).exits(0);
}

/// What file systems whose locks do not work were seen to answer.
#[test]
fn locks_that_do_not_work_refuse_a_launch() {
    for (body, word) in [
        ("errno = ENOLCK; return -1;", "No locks available"),
        ("errno = ENOSYS; return -1;", "not implemented"),
        ("return 0;", "does not exclude"),
    ] {
        let mut world = World::new();
        world.loopmux(["run", "--", "sh", "-c", "echo before"]).exits(0);
        world.settled("@last");
        let code =
            format!("#include <errno.h>\nint flock(int fd, int how) {{ (void)fd; (void)how; {body} }}\n");
        let library = interpose(world.path(), &code);
        world.env.push(("LD_PRELOAD".into(), library.into()));
        refuses_launches(&world, &["locks do not work", word, "LOOPMUX_STATE_DIR"]);
        doctor_says_it(&world, word);
        world.loopmux(["list"]).exits(0);
        world.env.clear();
        world.loopmux(["run", "--", "true"]).exits(0);
    }
}
