//! Launches under way, and what others do meanwhile.

use super::{Held, counting, starts};
use crate::harness::{World, eventually, finish_child};
use crate::oracle::{entries, judge, living, remove_all};
use crate::states::{self, await_file, await_start};
use crate::support::{Gate, server, start_with, world};

/// A detached launch whose engine waits at a point: the run.
#[track_caller]
fn with_engine_at(world: &World, gate: &Gate, point: &str) -> String {
    let words = counting(world);
    let words: Vec<&str> = ["run", "-d", "--"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let launch = start_with(world, &words, &gate.at(&format!("{point}~engine")));
    let run = finish_child(launch).exits(0).out.trim().to_owned();
    gate.reached();
    run
}

#[test]
fn a_stop_of_a_launch_under_way_leaves_nothing_that_starts_later() {
    let points = [
        "replace.state.json.before@1",
        "write.launch.json.before",
        "launch.create.before",
        "launch.create.after",
    ];
    for point in points {
        let world = world();
        let gate = Gate::new(&world, "engine");
        let run = with_engine_at(&world, &gate, point);
        let holds_run_lock = point.starts_with("replace");
        let stop = world.start(["stop", "--grace", "200ms", &run]);
        if !holds_run_lock {
            await_file(&world.run_dir(&run).join("stop.json"));
            let ran = world.loopmux(["delete", &run]);
            assert_eq!(ran.code, Some(4), "{point}: {ran:?}");
        }
        gate.open();
        finish_child(stop).exits(0);
        assert!(living(&world).is_empty(), "{point}: stopped, and something of it lives");
        let status = world.status(&run);
        assert_eq!(status["run"]["status"], "stopped", "{point}: {status}");
        let before = starts(&world);
        remove_all(&world, false, point);
        assert_eq!(starts(&world), before, "{point}: it started later");
    }
}

/// The launch of another run sweeps what nobody makes any more, and this one is being made.
#[test]
fn a_launch_that_is_being_made_is_not_swept_by_another() {
    let points =
        ["write.run.json.before", "create.engine.lock.after", "make.engine.after", "lock.engine.before"];
    for point in points {
        let world = world();
        let held = Held::at(&world, point, &["run", "--", "agent", "exit", "7"]);
        assert_eq!(entries(&world, "staging").len(), 1, "{point}");
        world.loopmux(["run", "--", "true"]).exits(0);
        assert_eq!(entries(&world, "staging").len(), 1, "{point}: swept");
        held.finish().exits(1);
        assert_eq!(entries(&world, "runs").len(), 2, "{point}");
        remove_all(&world, false, point);
    }
}

#[test]
fn an_engine_that_is_about_to_begin_is_not_swept_by_another_launch() {
    let world = world();
    let gate = Gate::new(&world, "engine");
    let words = ["run", "-d", "--", "agent", "stay"];
    let launch = start_with(&world, &words, &gate.at("lock.engine.before~engine"));
    gate.reached();
    world.loopmux(["run", "--", "true"]).exits(0);
    gate.open();
    let run = finish_child(launch).exits(0).out.trim().to_owned();
    await_start(&world, &run);
    remove_all(&world, false, "after the engine that was late");
}

#[test]
fn two_first_launches_at_once_share_one_control_session() {
    let world = world();
    // The server is there, so that both launches find it without a control session.
    server(&world);
    let held = Held::at(&world, "launch.create.before~run", &["run", "-d", "--", "agent", "stay"]);
    let other = world.start(["run", "-d", "--", "agent", "stay"]);
    let first = held.finish().exits(0).out.trim().to_owned();
    let second = finish_child(other).exits(0).out.trim().to_owned();
    await_start(&world, &first);
    await_start(&world, &second);
    let sessions = world.tmux(["list-sessions", "-F", "#{session_name}"]).exits(0).out;
    let of_engines = sessions.lines().filter(|s| s.contains("ctl")).count();
    assert_eq!(of_engines, 1, "{sessions}");
    remove_all(&world, false, "after two launches at once");
}

/// A cleanup has seen that the run had ended. It is resumed in the session of its parked window before the kill.
#[test]
fn a_cleanup_that_kills_late_does_not_reach_the_next_attempt() {
    let world = world();
    let ran = world.loopmux(["run", "--json", "--park", "--", "agent", "exit", "7"]).exits(1);
    let run = ran.json()["data"]["run"]["id"].as_str().unwrap().to_owned();
    for point in ["lock.control.before", "cleanup.kill.before"] {
        let held = Held::at(&world, point, &["cleanup"]);
        let resume = world.start(["resume", "-d", "--env", "A=1", &run]);
        if point == "lock.control.before" {
            finish_child(resume).exits(0);
            held.finish();
        } else {
            held.finish().exits(0);
            finish_child(resume).exits(0);
        }
        world.loopmux(["wait", &run]).exits(1);
        let status = world.status(&run);
        let attempts = status["attempts"].as_array().unwrap();
        assert!(attempts.iter().all(|a| a["verdict"]["code"] == 7), "{point}: {status}");
        judge(&world, &[7], point);
    }
    assert_eq!(world.status(&run)["attempts"].as_array().unwrap().len(), 3);
    remove_all(&world, false, "after the cleanups");
}

/// Whoever gives a launch up and the engine that begins it: the rename decides, and one of both.
#[test]
fn a_launch_that_is_given_up_while_its_engine_begins_is_one_or_the_other() {
    let world = world();
    let gate = Gate::new(&world, "giving-up");
    // The window's first process ends at once, so that the launch is given up; an engine comes by another way.
    let faults = format!("die:write.spawned.json.after~/engine/,{}", gate.at("launch.give-up.before~run"));
    let launch = start_with(&world, &["run", "-d", "--", "agent", "stay"], &faults);
    gate.reached();
    // The engine was spawned before its keeper died, and publishes the run, or was ended with its terminal.
    eventually("the engine's decision", || {
        let staged = entries(&world, "staging");
        let engine = world.processes().iter().any(|h| {
            let words = std::fs::read(format!("/proc/{}/cmdline", h.identity().pid)).unwrap_or_default();
            words.split(|b| *b == 0).nth(1) == Some(b"engine")
        });
        if staged.is_empty() || !engine { Ok(()) } else { Err(format!("{staged:?}")) }
    });
    let published = !entries(&world, "runs").is_empty();
    gate.open();
    let ran = finish_child(launch);
    assert_eq!(ran.code == Some(0), published, "{ran:?}");
    crate::support::heal(&world);
    if published {
        let run = states::only(&world, "runs").unwrap();
        await_start(&world, &run);
    }
    assert!(entries(&world, "staging").is_empty());
    remove_all(&world, false, "after the rename");
}
