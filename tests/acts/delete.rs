//! Runs that have ended go, at once and completely.

use crate::harness::signal;
use crate::harness::{World, eventually, finish_child};
use crate::support::{ended, engine, is_there, just_ended, names};
use loopmux::process::Signal;

#[test]
fn a_run_goes_right_behind_its_end_however_it_ended() {
    let world = World::new();
    for script in ["exit 0", "exit 3", "kill -9 $$", "kill -HUP $$"] {
        let run = just_ended(&world, script);
        let said = world.loopmux(["delete", "--json", &run]).exits(0).json();
        assert_eq!(said["data"]["removed"][0]["run"], run.as_str(), "{script}: {said}");
        assert!(!is_there(&world, &run), "{script}");
    }
    let missing = world.loopmux(["run", "--json", "--", "/no/such/program"]).exits(1).json();
    world.loopmux(["delete", missing["data"]["run"]["id"].as_str().unwrap()]).exits(0);
    for turn in 0..5 {
        let run = world.detach(["true"]);
        world.loopmux(["wait", &run]).exits(0);
        let ran = world.loopmux(["delete", &run]);
        assert_eq!(ran.code, Some(0), "turn {turn}: {ran:?}");
    }
    assert_eq!(names(&world, "trash"), Vec::<String>::new());
    assert_eq!(names(&world, "runs"), Vec::<String>::new());
    assert_eq!(world.loopmux(["list"]).exits(0).out, "");
}

#[test]
fn a_lost_run_goes_and_so_does_one_that_was_stopped() {
    let world = World::new();
    let (run, attempt) = world.launched(&["sleep", "600"]);
    world.tmux(["kill-session", "-t", attempt["mux"]["session_id"].as_str().unwrap()]).exits(0);
    world.loopmux(["wait", &run]).exits(6);
    world.loopmux(["delete", &run]).exits(0);
    let (run, _) = world.launched(&["sleep", "600"]);
    world.loopmux(["stop", &run]).exits(0);
    world.loopmux(["delete", &run]).exits(0);
    assert_eq!(names(&world, "runs"), Vec::<String>::new());
}

#[test]
fn a_run_whose_engine_died_goes_once_its_program_has_ended() {
    let world = World::new();
    let gate = world.file("gate");
    let script = format!("while ! [ -e {} ]; do sleep 0.05; done; exit 3", gate.display());
    let (run, _) = world.launched(&["sh", "-c", &script]);
    signal(engine(&world, &run), Signal::Kill);
    std::fs::write(&gate, "").unwrap();
    world.until(&run, |s| s["run"]["status"] == "failed");
    world.loopmux(["delete", &run]).exits(0);
    assert!(!is_there(&world, &run));
}

#[test]
fn a_launch_that_nobody_drives_is_given_up_and_goes() {
    let world = World::new();
    let ran = crate::support::with_fault(&world, "die:launch.create.before", &["run", "--", "true"]);
    assert_eq!(ran.code, None, "{ran:?}");
    let run = names(&world, "runs").pop().unwrap();
    assert_eq!(world.status(&run)["attempts"][0]["verdict"]["kind"], "launching");
    assert!(crate::support::at(&world, &run, "attempts/1/env.json"));
    world.loopmux(["delete", &run]).exits(0);
    assert!(!is_there(&world, &run));
}

#[test]
fn several_at_once_each_by_its_own_proof() {
    let world = World::new();
    let (a, b) = (ended(&world, "exit 0"), ended(&world, "exit 1"));
    let (live, _) = world.launched(&["sleep", "600"]);
    let ran = world.loopmux(["delete", "--json", &a, &live, &b, &a]).exits(4);
    let said = ran.json();
    let removed: Vec<_> =
        said["data"]["removed"].as_array().unwrap().iter().map(|r| r["run"].clone()).collect();
    assert_eq!(removed, [a.as_str(), b.as_str()], "{said}");
    assert_eq!(said["data"]["kept"][0]["run"], live.as_str(), "{said}");
    assert!(is_there(&world, &live));
}

#[test]
fn two_deletes_of_one_run_are_one_delete() {
    let world = World::new();
    for _ in 0..10 {
        let run = ended(&world, "exit 0");
        let both = [world.start(["delete", "--json", &run]), world.start(["delete", "--json", &run])];
        let codes = both.map(|child| finish_child(child).code);
        assert!(codes.contains(&Some(0)), "{codes:?}");
        assert!(codes.iter().all(|c| matches!(c, Some(0 | 3 | 4))), "{codes:?}");
        assert_eq!(codes.iter().filter(|c| **c == Some(0)).count(), 1, "{codes:?}");
        assert!(!is_there(&world, &run));
    }
    assert_eq!(names(&world, "trash"), Vec::<String>::new());
}

#[test]
fn a_delete_and_a_resume_do_not_both_win() {
    let world = World::new();
    let mut deleted = 0;
    for _ in 0..6 {
        let run = ended(&world, "exit 3");
        let resume = world.start(["resume", &run]);
        let delete = finish_child(world.start(["delete", &run]));
        let resume = finish_child(resume);
        match delete.code {
            Some(0) => {
                deleted += 1;
                assert!(!is_there(&world, &run), "{delete:?}");
                assert!(matches!(resume.code, Some(1 | 3 | 4)), "{resume:?}");
            }
            Some(4) => assert!(is_there(&world, &run), "{delete:?} {resume:?}"),
            _ => panic!("{delete:?} {resume:?}"),
        }
        // Whoever won, nothing of the run lives when both have ended, and it can be removed.
        if is_there(&world, &run) {
            eventually("its removal", || {
                let ran = world.loopmux(["delete", &run]);
                if ran.code == Some(0) { Ok(()) } else { Err(format!("{ran:?}")) }
            });
        }
    }
    let _ = deleted;
    assert_eq!(names(&world, "trash"), Vec::<String>::new());
}

#[test]
fn the_window_of_a_removed_runs_engine_is_closed_by_a_cleanup() {
    let world = World::new();
    let run = world.detach(["true"]);
    world.loopmux(["wait", &run]).exits(0);
    world.loopmux(["delete", &run]).exits(0);
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    assert_eq!(said["data"]["ended"][0]["run"], run.as_str(), "{said}");
    assert_eq!(crate::support::sessions(&world), Vec::<String>::new());
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    assert_eq!(said["data"]["ended"], serde_json::json!([]), "no phantom: {said}");
    let control = std::fs::read_to_string(crate::support::yard(&world).join("control.json")).unwrap();
    assert!(!control.contains(&run), "{control}");
}

#[test]
fn an_id_is_never_used_again() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    world.loopmux(["delete", &run]).exits(0);
    assert_eq!(names(&world, "locks"), [format!("{run}.lock")]);
}
