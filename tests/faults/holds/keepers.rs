//! Keepers that come late, twice, or while others look.

use super::{counting, counting_once, starts};
use crate::harness::{World, eventually, finish_child};
use crate::oracle::{judge, living, remove_all};
use crate::states::{await_file, await_start, only};
use crate::support::{Gate, heal, server_with, start_with, world};
use std::time::Duration;

/// A detached run whose keeper waits at a point: the run.
#[track_caller]
fn with_keeper_at(world: &World, gate: &Gate, point: &str, program: &[String]) -> String {
    server_with(world, &gate.at(&format!("{point}~/attempts/")));
    let words = ["run", "-d", "--"].into_iter().chain(program.iter().map(String::as_str));
    let run = world.loopmux(words).exits(0).out.trim().to_owned();
    gate.reached();
    heal(world);
    run
}

/// The windows of a run's attempts are gone.
#[track_caller]
fn await_no_keeper(world: &World) {
    eventually("the end of the keepers", || {
        let keeps = |pid: u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let of_attempt = |words: &[u8]| {
            words.windows(10).any(|w| w == b"/attempts/") && words.windows(5).any(|w| w == b"\0keep")
        };
        let left: Vec<u32> =
            world.processes().iter().map(|h| h.identity().pid).filter(|p| of_attempt(&keeps(*p))).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

#[test]
fn a_keeper_that_comes_after_its_launch_was_given_up_starts_nothing() {
    let world = world();
    let gate = Gate::new(&world, "keeper");
    let run = with_keeper_at(&world, &gate, "lock.lease.before", &counting(&world));
    world.loopmux(["stop", &run]).exits(0);
    let status = world.status(&run);
    assert_eq!(status["run"]["status"], "stopped", "{status}");
    assert_eq!(status["attempts"][0]["verdict"]["kind"], "never-started", "{status}");
    gate.open();
    await_no_keeper(&world);
    assert_eq!(starts(&world), 0);
    judge(&world, &[], "after the late keeper");
    remove_all(&world, false, "after the late keeper");
}

#[test]
fn a_keeper_that_has_its_lease_when_the_launch_is_given_up_starts_nothing() {
    let world = world();
    let gate = Gate::new(&world, "keeper");
    let run = with_keeper_at(&world, &gate, "lock.lease.after", &counting(&world));
    let stop = world.start(["stop", &run]);
    await_file(&world.run_dir(&run).join("attempts/1/cancelled"));
    gate.open();
    let ran = finish_child(stop).exits(0);
    assert!(!ran.out.contains("survived"), "{ran:?}");
    await_no_keeper(&world);
    assert_eq!(starts(&world), 0);
    assert_eq!(world.status(&run)["attempts"][0]["verdict"]["kind"], "never-started");
    remove_all(&world, false, "after the keeper that refused");
}

/// It has looked for the marker already: what it starts is ended like anything else, and is no launch that came to
/// nothing.
#[test]
fn a_keeper_that_looked_before_the_launch_was_given_up_is_ended_and_told() {
    let world = world();
    let gate = Gate::new(&world, "keeper");
    let run = with_keeper_at(&world, &gate, "write.start.json.before", &counting(&world));
    let stop = world.start(["stop", "--grace", "200ms", &run]);
    await_file(&world.run_dir(&run).join("attempts/1/cancelled"));
    judge(&world, &[], "while the keeper has its lease");
    world.loopmux(["delete", &run]).exits(4);
    gate.open();
    finish_child(stop).exits(0);
    assert!(living(&world).is_empty());
    let kind = world.status(&run)["attempts"][0]["verdict"]["kind"].clone();
    assert_eq!(kind != "never-started", world.run_dir(&run).join("attempts/1/start.json").exists(), "{kind}");
    remove_all(&world, false, "after the keeper that started");
}

/// The engine has decided to give up, and the keeper starts before the marker is there.
#[test]
fn a_start_right_before_the_marker_is_seen_behind_it() {
    let world = world();
    let keeper = Gate::new(&world, "keeper");
    let marker = Gate::new(&world, "marker");
    server_with(&world, &keeper.at("lock.lease.before~/attempts/"));
    let words = counting(&world);
    let words: Vec<&str> = ["run", "-d", "--"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let launch = start_with(&world, &words, &marker.at("create.cancelled.before~engine"));
    let run = finish_child(launch).exits(0).out.trim().to_owned();
    keeper.reached();
    heal(&world);
    let stop = world.start(["stop", "--grace", "200ms", &run]);
    marker.reached();
    keeper.open();
    world.cli(&run, 1);
    marker.open();
    finish_child(stop).exits(0);
    assert_eq!((starts(&world), living(&world).len()), (1, 0));
    let status = world.status(&run);
    assert_eq!(status["run"]["status"], "stopped", "{status}");
    assert_ne!(status["attempts"][0]["verdict"]["kind"], "never-started", "{status}");
    remove_all(&world, false, "after the start behind the marker");
}

/// Somebody respawned the window, or restored a layout: the command runs once more while the first one still waits.
#[test]
fn of_two_keepers_of_one_attempt_one_starts_it() {
    let world = world();
    for (point, other) in [("lock.lease.before", 1), ("lock.lease.after", 0)] {
        let before = starts(&world);
        let gate = Gate::new(&world, &point.replace('.', "-"));
        let run = with_keeper_at(&world, &gate, point, &counting_once(&world, 7));
        let keep = world.program.with_file_name("loopmux-keep");
        let dir = world.run_dir(&run).join("attempts/1");
        let words = ["new-window", "-d", "-t", "=mine:", "--"].map(std::ffi::OsString::from);
        world.tmux(words.into_iter().chain([keep.into(), "keep".into(), dir.into()])).exits(0);
        eventually("the other keeper's end", || {
            let list = world.tmux(["list-windows", "-t", "=mine"]).exits(0).out;
            if list.lines().count() == 1 { Ok(()) } else { Err(list) }
        });
        assert_eq!(starts(&world) - before, other, "{point}");
        gate.open();
        world.loopmux(["wait", &run]).exits(1);
        await_no_keeper(&world);
        assert_eq!(starts(&world) - before, 1, "{point}: it was started twice");
        let status = world.status(&run);
        assert_eq!(status["attempts"][0]["verdict"]["code"], 7, "{status}");
        world.loopmux(["cleanup"]).exits(0);
        world.loopmux(["delete", &run]).exits(0);
        world.tmux(["kill-session", "-t", "=mine"]);
        eventually("the end of the server", || {
            let ran = world.tmux(["list-sessions"]);
            if ran.code == Some(0) { Err(ran.out) } else { Ok(()) }
        });
    }
}

#[test]
fn a_late_keeper_of_an_earlier_attempt_starts_nothing() {
    let world = world();
    let gate = Gate::new(&world, "keeper");
    let run = with_keeper_at(&world, &gate, "lock.lease.before", &counting(&world));
    world.loopmux(["stop", &run]).exits(0);
    world.loopmux(["resume", "-d", &run]).exits(0);
    world.cli(&run, 2);
    gate.open();
    eventually("the refusal", || {
        let dir = world.run_dir(&run).join("attempts/1");
        dir.join("refused.json").exists().then_some(()).ok_or_else(|| format!("nothing in {}", dir.display()))
    });
    let text = std::fs::read_to_string(world.file("starts")).unwrap();
    assert_eq!(text, "2\n", "only the second attempt was started");
    judge(&world, &[], "with a late keeper of attempt 1");
    remove_all(&world, false, "after a late keeper of attempt 1");
}

/// Observers hold a lock shared for a moment: whoever takes it tries again.
#[test]
fn a_look_at_the_lease_does_not_keep_a_keeper_from_it() {
    let world = world();
    let gate = Gate::new(&world, "keeper");
    let run = with_keeper_at(&world, &gate, "lock.lease.before", &counting(&world));
    let lease = std::fs::File::open(world.run_dir(&run).join("attempts/1/lease")).unwrap();
    lease.lock_shared().unwrap();
    gate.open();
    // The keeper meets the shared lock: that long, far less than its patience.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(starts(&world), 0);
    drop(lease);
    await_start(&world, &run);
    assert_eq!(starts(&world), 1);
    remove_all(&world, false, "after the look at the lease");
}

#[test]
fn an_explanation_that_comes_late_does_not_change_how_a_run_ended() {
    let world = world();
    let gate = Gate::new(&world, "explainer");
    server_with(&world, &gate.at("write.hangup.json.before~explain"));
    let words = counting(&world);
    let words = ["run", "-d", "--"].into_iter().chain(words.iter().map(String::as_str));
    let run = world.loopmux(words).exits(0).out.trim().to_owned();
    await_start(&world, &run);
    let session = world.read(&run, "attempts/1/launch.json")["session"].as_str().unwrap().to_owned();
    world.tmux(["kill-session", "-t", &format!("={session}")]).exits(0);
    gate.reached();
    world.loopmux(["wait", &run]).exits(6);
    let record = world.read(&run, "state.json");
    assert_eq!(record["outcome"]["cause"], "unexplained", "{record}");
    gate.open();
    await_file(&world.run_dir(&run).join("attempts/1/hangup.json"));
    assert_eq!(world.read(&run, "state.json"), record);
    assert_eq!(only(&world, "runs"), Some(run));
    heal(&world);
    remove_all(&world, false, "after a late explanation");
}
