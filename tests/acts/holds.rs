//! One step is held while another command runs: the orders in which a removal could do harm, and does not.

use crate::harness::{Ran, World, eventually, finish, finish_child};
use crate::support::{ended, faulty, go, is_there, kept, names, reached};
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// A command that is held at a step.
struct Held {
    child: Child,
    gate: PathBuf,
}

impl Held {
    fn at(world: &World, step: &str, args: &[&str]) -> Self {
        let gate = world.file(&format!("gate-{}", step.replace(['.', '@'], "-")));
        let child = faulty(world, &format!("hold:{step}:{}", gate.display()), args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        reached(&gate);
        Self { child, gate }
    }

    fn finish(self) -> Ran {
        go(&self.gate);
        finish_child(self.child)
    }
}

/// Starts the private server so that keepers in it are held at a step.
fn server_with(world: &World, step: &str) -> PathBuf {
    let gate = world.file("gate-keeper");
    let mut tmux = world.bare("/usr/bin/tmux");
    tmux.env("LOOPMUX_FAULT", format!("hold:{step}:{}", gate.display()));
    tmux.arg("-S").arg(world.socket()).args(["new-session", "-d", "-s", "mine", "sleep", "600"]);
    finish(tmux).exits(0);
    gate
}

/// A launch whose engine died once the window was made, and whose keeper is held: the run's id.
fn launching(world: &World, gate: &std::path::Path, program: &[&str]) -> String {
    let words: Vec<&str> = ["run", "--"].into_iter().chain(program.iter().copied()).collect();
    let ran = finish(faulty(world, "die:launch.create.after", &words));
    assert_eq!(ran.code, None, "{ran:?}");
    reached(gate);
    names(world, "runs").pop().unwrap()
}

#[test]
fn while_a_run_is_away_nobody_else_has_it_and_everybody_says_so() {
    let world = World::new();
    for step in ["remove.trash.after", "remove.commit.after"] {
        let run = ended(&world, "exit 3");
        let held = Held::at(&world, step, &["delete", &run]);
        assert!(!is_there(&world, &run));
        for other in [vec!["delete", &run], vec!["archive", &run], vec!["stop", &run], vec!["resume", &run]] {
            let ran = world.loopmux(&other);
            assert!(matches!(ran.code, Some(3 | 4)), "{step} {other:?}: {ran:?}");
        }
        world.loopmux(["clean", "--hard", "--retain", "0"]).exits(0);
        world.loopmux(["list"]).exits(0);
        assert_eq!(names(&world, "trash").len(), 1, "{step}: it is the first one's");
        held.finish().exits(0);
        assert_eq!(names(&world, "trash"), Vec::<String>::new());
    }
}

#[test]
fn while_a_run_is_being_looked_at_nobody_resumes_it() {
    let world = World::new();
    let run = ended(&world, "exit 3");
    let held = Held::at(&world, "remove.trash.before", &["delete", &run]);
    let ran = world.loopmux(["resume", &run]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    held.finish().exits(0);
    assert!(!is_there(&world, &run));
}

#[test]
fn a_keeper_that_comes_late_finds_its_run_removed_and_starts_nothing() {
    let world = World::new();
    let gate = server_with(&world, "lock.lease.before");
    let started = world.file("started");
    let run = launching(&world, &gate, &["touch", started.to_str().unwrap()]);
    world.loopmux(["delete", &run]).exits(0);
    assert!(!is_there(&world, &run));
    go(&gate);
    eventually("the end of its window", || {
        let left = crate::support::sessions(&world);
        if left == ["mine"] { Ok(()) } else { Err(format!("{left:?}")) }
    });
    assert!(!started.exists(), "the program was started");
    assert!(!is_there(&world, &run), "the run came back");
}

#[test]
fn a_keeper_that_has_the_lease_forbids_removal() {
    let world = World::new();
    let gate = server_with(&world, "lock.lease.after");
    let started = world.file("started");
    let script = format!("touch {}; sleep 600", started.display());
    let run = launching(&world, &gate, &["sh", "-c", &script]);
    // Nobody can take its window away: the marker alone keeps the program from starting.
    let quiet = world.script("tmux", "#!/bin/sh\nexit 1\n");
    kept(&world.loopmux(["delete", "--json", &run]), &run, "refused-alive");
    std::fs::remove_file(quiet).unwrap();
    assert!(is_there(&world, &run));
    go(&gate);
    // It had been cancelled by then, and says so.
    eventually("its refusal", || {
        let refused = crate::support::at(&world, &run, "attempts/1/refused.json");
        if refused { Ok(()) } else { Err("no refusal".to_owned()) }
    });
    assert!(!started.exists());
    eventually("its removal", || {
        let ran = world.loopmux(["delete", &run]);
        if ran.code == Some(0) { Ok(()) } else { Err(format!("{ran:?}")) }
    });
}

#[test]
fn what_a_late_keeper_does_between_the_looks_is_seen_by_the_second_one() {
    for step in ["remove.trash.before", "remove.trash.after"] {
        let world = World::new();
        let gate = server_with(&world, "lock.lease.before");
        let started = world.file("started");
        let run = launching(&world, &gate, &["touch", started.to_str().unwrap()]);
        let held = Held::at(&world, step, &["delete", "--json", &run]);
        go(&gate);
        eventually("the end of its window", || {
            let left = crate::support::sessions(&world);
            if left == ["mine"] { Ok(()) } else { Err(format!("{left:?}")) }
        });
        let ran = held.finish();
        assert!(!started.exists(), "{step}: the program was started");
        if step == "remove.trash.before" {
            // It found its directory in its place, and wrote that it does not start.
            let said = kept(&ran, &run, "refused-unknown");
            assert!(said["data"]["kept"][0]["reason"].as_str().unwrap().contains("changed"), "{said}");
            assert!(is_there(&world, &run), "put back");
            world.loopmux(["delete", &run]).exits(0);
        } else {
            ran.exits(0);
        }
        assert!(!is_there(&world, &run));
        assert_eq!(names(&world, "trash"), Vec::<String>::new());
    }
}

#[test]
fn a_lease_that_is_taken_between_the_looks_brings_the_run_back() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    let lease = world.run_dir(&run).join("attempts/1/lease");
    let held = Held::at(&world, "remove.trash.after", &["delete", "--json", &run]);
    let away =
        crate::support::yard(&world).join("trash").join(&names(&world, "trash")[0]).join("attempts/1/lease");
    let file = std::fs::File::open(&away).unwrap();
    file.try_lock().unwrap();
    kept(&held.finish(), &run, "refused-alive");
    assert!(lease.is_file() && is_there(&world, &run));
    assert_eq!(names(&world, "trash"), Vec::<String>::new());
    drop(file);
    world.loopmux(["delete", &run]).exits(0);
}

#[test]
fn an_engine_lock_that_is_taken_between_the_looks_brings_the_run_back() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    let held = Held::at(&world, "remove.trash.after", &["delete", "--json", &run]);
    let away =
        crate::support::yard(&world).join("trash").join(&names(&world, "trash")[0]).join("engine.lock");
    let file = std::fs::File::open(&away).unwrap();
    file.try_lock().unwrap();
    kept(&held.finish(), &run, "refused-alive");
    assert!(is_there(&world, &run));
    drop(file);
    world.loopmux(["delete", &run]).exits(0);
}

#[test]
fn half_an_erasure_waits_for_whoever_holds_one_of_its_locks() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    let ran = crate::support::with_fault(&world, "die:remove.commit.after", &["delete", &run]);
    assert_eq!(ran.code, None, "{ran:?}");
    let entry = names(&world, "trash").pop().unwrap();
    let lease = crate::support::yard(&world).join("trash").join(&entry).join("attempts/1/lease");
    let file = std::fs::File::open(&lease).unwrap();
    file.try_lock().unwrap();
    let ran = world.loopmux(["clean"]).exits(0);
    assert!(ran.err.contains("held"), "{ran:?}");
    assert_eq!(names(&world, "trash"), [entry]);
    drop(file);
    world.loopmux(["clean"]).exits(0);
    assert_eq!(names(&world, "trash"), Vec::<String>::new());
}

#[test]
fn an_engine_window_that_is_being_made_is_not_closed_with_the_control_session() {
    let world = World::new();
    let first = world.detach(["true"]);
    world.loopmux(["wait", &first]).exits(0);
    let held = Held::at(&world, "launch.create.before", &["run", "-d", "--", "sleep", "600"]);
    let cleanup = world.start(["cleanup", "--json"]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let run = held.finish().exits(0).out.trim().to_owned();
    finish_child(cleanup).exits(0);
    world.until(&run, |s| s["run"]["status"] == "running");
}
