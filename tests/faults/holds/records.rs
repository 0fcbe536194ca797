//! Two who would write the end of one run.

use super::Held;
use crate::harness::{eventually, finish_child, pid, signal};
use crate::oracle::{judge, living, remove_all, spares};
use crate::states::{self, await_start};
use crate::support::{Gate, start_with, world};
use loopmux::process::Signal;

/// The engine has seen the end, and is about to write it down. A stop that comes then changes nothing of it.
#[test]
fn a_stop_does_not_change_an_end_that_the_engine_is_writing() {
    for point in ["lock.run.before@3~engine", "replace.state.json.before@3~engine"] {
        let world = world();
        let gate = Gate::new(&world, "engine");
        let launch = start_with(&world, &["run", "-d", "--", "agent", "exit", "7"], &gate.at(point));
        let run = finish_child(launch).exits(0).out.trim().to_owned();
        gate.reached();
        let stop = world.start(["stop", &run]);
        if point.starts_with("lock") {
            states::await_file(&world.run_dir(&run).join("stop.json"));
        }
        judge(&world, &[7], point);
        gate.open();
        let ran = finish_child(stop);
        assert!(matches!(ran.code, Some(0)), "{point}: {ran:?}");
        let record = world.until(&run, |s| s["run"]["engine"]["state"] == "gone");
        assert_eq!(record["run"]["status"], "failed", "{point}: {record}");
        assert_eq!(record["attempts"][0]["verdict"]["code"], 7, "{point}: {record}");
        let record = world.read(&run, "state.json");
        assert_eq!(record["outcome"]["end"]["code"], 7, "{point}: {record}");
        remove_all(&world, false, point);
    }
}

/// A stop has ended the orphan and is about to write that down; a resume is faster, and its attempt goes on.
#[test]
fn a_stop_that_writes_late_does_not_stop_the_next_attempt() {
    let world = world();
    let run = states::orphan(&world).unwrap();
    let held = Held::at(&world, "lock.run.before@2", &["stop", &run]);
    assert!(living(&world).is_empty(), "the orphan has ended");
    spares(&world, &["resume", "-d", &run]).exits(0);
    world.until(&run, |s| s["run"]["status"] == "running" && s["run"]["attempt"] == 2);
    world.cli(&run, 2);
    let ran = held.finish();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let status = world.status(&run);
    assert_eq!(status["run"]["status"], "running", "{status}");
    assert_eq!(living(&world).iter().filter(|l| l.is_agent && l.attempt == 2).count(), 1, "{status}");
    judge(&world, &[143], "after the late stop");
    remove_all(&world, false, "after the late stop");
}

/// The same where the resume is only about to take the run up.
#[test]
fn a_resume_behind_a_stop_that_writes_waits_and_then_has_its_turn() {
    let world = world();
    let run = states::orphan(&world).unwrap();
    let held = Held::at(&world, "replace.state.json.before", &["stop", &run]);
    let resume = world.start(["resume", "-d", &run]);
    let ran = held.finish();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = finish_child(resume);
    assert!(matches!(ran.code, Some(0 | 4)), "{ran:?}");
    if ran.code == Some(0) {
        world.until(&run, |s| s["run"]["status"] == "running" && s["run"]["attempt"] == 2);
    }
    let record = world.read(&run, "state.json");
    let earlier = if ran.code == Some(0) { &record["earlier"][0] } else { &record };
    assert_eq!(earlier["status"], "stopped", "{earlier}");
    remove_all(&world, false, "after stop and resume");
}

#[test]
fn of_two_stops_at_once_both_tell_the_truth() {
    for point in ["stop.ask.before", "stop.ask.after", "lock.run.before@2", "replace.state.json.before"] {
        let world = world();
        let run = states::orphan(&world).unwrap();
        let held = Held::at(&world, point, &["stop", &run]);
        let other = world.start(["stop", &run]);
        if point.starts_with("replace") {
            // It holds the run lock.
            let ran = finish_child(other);
            assert!(matches!(ran.code, Some(0 | 4)), "{point}: {ran:?}");
        } else {
            finish_child(other).exits(0);
            assert!(living(&world).is_empty(), "{point}: the second one said so");
        }
        held.finish().exits(0);
        assert!(living(&world).is_empty(), "{point}");
        assert_eq!(world.status(&run)["run"]["status"], "stopped", "{point}");
        remove_all(&world, false, point);
    }
}

/// An engine that is stopped in the middle of things is no engine that is gone.
#[test]
fn an_engine_that_is_frozen_is_not_taken_for_dead() {
    let world = world();
    let run = states::running(&world).unwrap();
    let engine = pid(&world.read(&run, "state.json")["engine"]);
    signal(engine, Signal::Stop);
    for act in [&["delete", &run][..], &["archive", &run], &["resume", "-d", &run], &["cleanup"]] {
        let ran = spares(&world, act);
        let code = if act[0] == "cleanup" { 0 } else { 4 };
        assert_eq!(ran.code, Some(code), "{act:?}: {ran:?}");
    }
    judge(&world, &[], "with a frozen engine");
    signal(engine, Signal::Cont);
    await_start(&world, &run);
    remove_all(&world, false, "after the frozen engine");
}

#[test]
fn an_archive_that_is_being_made_does_not_disturb_who_asks_and_is_not_disturbed() {
    for point in ["archive.stage.after", "archive.publish.before", "archive.publish.after"] {
        let world = world();
        let run = states::ended(&world).unwrap();
        let held = Held::at(&world, point, &["archive", &run]);
        let ran = world.loopmux(["stop", &run]).exits(0);
        assert!(ran.out.contains("over already"), "{point}: {ran:?}");
        for other in [&["delete", &run][..], &["resume", &run], &["archive", &run], &["restore", &run]] {
            let ran = world.loopmux(other);
            assert!(matches!(ran.code, Some(3 | 4)), "{point} {other:?}: {ran:?}");
        }
        judge(&world, &[7], point);
        held.finish().exits(0);
        assert_eq!(states::only(&world, "archive"), Some(format!("{run}.tar.gz")), "{point}");
        world.loopmux(["restore", &run]).exits(0);
        assert_eq!(world.status(&run)["attempts"][0]["verdict"]["code"], 7);
        eventually("nothing else", || {
            let left = crate::oracle::entries(&world, "archive");
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        });
        remove_all(&world, false, point);
    }
}
