//! What the doctor finds, with real faults.

use crate::harness::World;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

fn healthy() -> World {
    let world = World::new();
    std::fs::set_permissions(world.state(), std::fs::Permissions::from_mode(0o700)).expect("chmod");
    world
}

fn check(object: &Value, name: &str) -> (String, String) {
    let checks = object["data"]["checks"].as_array().expect("checks");
    let found = checks.iter().find(|c| c["name"] == json!(name)).unwrap_or_else(|| panic!("no check {name}"));
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    if found["result"] == json!("fail") {
        assert!(!text("fix").is_empty(), "a failure has a fix: {found}");
    }
    (text("result"), text("what"))
}

#[test]
fn a_healthy_machine_passes_everything_and_nothing_stays() {
    let world = healthy();
    let object = world.loopmux(["doctor", "--json"]).exits(0).json();
    assert_eq!(object["ok"], json!(true));
    assert_eq!((&object["data"]["failed"], &object["data"]["skipped"]), (&json!(0), &json!(0)), "{object:#}");
    assert!(std::fs::read_dir(world.state()).expect("the state directory").next().is_none());
    crate::harness::eventually("the end of everything", || match world.processes().len() {
        0 => Ok(()),
        n => Err(format!("{n} processes")),
    });
    let text = world.loopmux(["doctor"]).exits(0).out;
    assert!(text.ends_with(" passed, 0 failed, 0 skipped\n"), "{text}");
}

#[test]
fn a_missing_multiplexer_fails_one_check_and_skips_what_needs_it() {
    let mut world = healthy();
    world.env.push(("LOOPMUX_TMUX".into(), "/no/such/tmux".into()));
    let object = world.loopmux(["doctor", "--json"]).exits(1).json();
    assert_eq!(check(&object, "multiplexer").0, "fail");
    for name in ["server", "mux-session", "mux-kill", "run"] {
        assert_eq!(check(&object, name).0, "skip", "{name}");
    }
    assert_eq!(check(&object, "locks").0, "pass");
    let text = world.loopmux(["doctor"]).exits(1).out;
    assert!(text.contains("FAIL  multiplexer") && text.contains("to fix: "), "{text}");
}

#[test]
fn a_state_directory_that_others_may_write_or_that_is_none_fails() {
    let mut world = healthy();
    std::fs::set_permissions(world.state(), std::fs::Permissions::from_mode(0o777)).expect("chmod");
    let object = world.loopmux(["doctor", "--json"]).exits(1).json();
    assert_eq!(check(&object, "state").0, "fail");
    assert_eq!(check(&object, "locks").0, "skip");
    let file = world.file("file");
    std::fs::write(&file, "").expect("a file");
    world.env.push(("LOOPMUX_STATE_DIR".into(), file.into()));
    let object = world.loopmux(["doctor", "--json"]).exits(1).json();
    assert_eq!(check(&object, "state").0, "fail");
}

#[test]
fn a_state_directory_that_is_not_there_yet_is_tried_above_and_not_made() {
    let world = healthy();
    std::fs::remove_dir(world.state()).expect("the state directory");
    let object = world.loopmux(["doctor", "--json"]).exits(0).json();
    let (result, what) = check(&object, "state");
    assert!(result == "pass" && what.contains("is made by the first run"), "{what}");
    assert!(!world.state().try_exists().expect("a look"));
}

#[test]
fn hazards_of_a_persons_configuration_are_found() {
    let world = healthy();
    std::fs::write(world.path().join("home/.tmux.conf"), "set -s exit-unattached on\n").expect("a file");
    let object = world.loopmux(["doctor", "--json"]).exits(1).json();
    let (result, what) = check(&object, "mux-session");
    assert!(result == "fail" && what.contains("exit-unattached"), "{what}");
}

#[test]
fn hazards_of_a_running_server_are_found() {
    let world = healthy();
    world.tmux(["new-session", "-d", "sleep 600"]).exits(0);
    world.tmux(["set-option", "-g", "remain-on-exit", "on"]).exits(0);
    let object = world.loopmux(["doctor", "--json"]).exits(0).json();
    let (result, what) = check(&object, "server");
    assert!(result == "pass" && what.contains("remain-on-exit is on"), "harmless to ours, and said: {what}");
}

#[test]
fn a_server_that_a_configuration_keeps_is_ended_after_the_checks() {
    let world = healthy();
    std::fs::write(world.path().join("home/.tmux.conf"), "set -s exit-empty off\n").expect("a file");
    world.loopmux(["doctor"]).exits(0);
    crate::harness::eventually("the end of everything", || match world.processes().len() {
        0 => Ok(()),
        n => Err(format!("{n} processes")),
    });
}

#[test]
fn a_configuration_that_cannot_be_used_fails_and_the_rest_is_tried() {
    let world = healthy();
    std::fs::write(world.project().join("loopmux.toml"), "[mux\n").expect("a file");
    let object = world.loopmux(["doctor", "--json"]).exits(1).json();
    assert_eq!(check(&object, "configuration").0, "fail");
    assert_eq!(check(&object, "multiplexer").0, "skip");
    assert_eq!(check(&object, "inherited").0, "pass");
}

#[test]
fn a_multiplexer_that_does_not_answer_is_bounded() {
    let world = healthy();
    let _deaf = std::os::unix::net::UnixListener::bind(world.socket()).expect("a listener");
    let object = world.loopmux(["doctor", "--json"]).exits(1).json();
    let (result, what) = check(&object, "server");
    assert!(result == "fail" && what.contains("timed-out"), "{what}");
    assert_eq!(check(&object, "run").0, "pass", "which has a socket of its own");
}
