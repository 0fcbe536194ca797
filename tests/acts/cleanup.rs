//! Cleanup ends windows of ended runs, and says of everything else why it stays.

use crate::harness::Tree;
use crate::harness::{World, alive, signal};
use crate::support::{session, sessions};
use loopmux::process::Signal;
use serde_json::json;

fn parked(world: &World) -> String {
    let run = world.loopmux(["run", "-d", "--park", "--", "true"]).exits(0).out.trim().to_owned();
    world.loopmux(["wait", &run]).exits(0);
    run
}

#[test]
fn it_ends_what_is_parked_and_touches_no_run_directory() {
    let world = World::new();
    let run = parked(&world);
    let (live, _) = world.launched(&["sleep", "600"]);
    let cli = world.cli(&live, 1);
    world.tmux(["new-session", "-d", "-s", "work", "sleep", "600"]).exits(0);
    let before = Tree::of(&world.run_dir(&run));
    let dry = world.loopmux(["cleanup", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(dry["data"]["would_end"].as_array().unwrap().len(), 2, "its window and its engine's: {dry}");
    assert_eq!(dry["data"]["ended"], json!([]), "{dry}");
    assert!(sessions(&world).contains(&session(&world, &run)));
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    let ended = said["data"]["ended"].as_array().unwrap();
    assert_eq!(ended.len(), 2, "{said}");
    assert!(ended.iter().all(|w| w["run"] == run.as_str()), "{said}");
    assert!(!sessions(&world).contains(&session(&world, &run)));
    let kept = said["data"]["kept"].as_array().unwrap();
    assert_eq!(kept.len(), 3, "the live one, the control session, and the person's: {said}");
    assert!(kept.iter().all(|k| !k["reason"].as_str().unwrap().is_empty()), "{said}");
    assert!(kept.iter().any(|k| k["session"] == "work" && k["run"].is_null()), "{said}");
    assert!(kept.iter().any(|k| k["run"] == live.as_str()), "{said}");
    assert!(alive(cli));
    Tree::of(&world.run_dir(&run)).is(&before, "a run directory");
    let text = world.loopmux(["cleanup"]).exits(0).out;
    assert!(text.contains("work") && text.contains(&session(&world, &live)), "{text}");
}

#[test]
fn the_control_session_goes_with_its_last_engine_and_no_sooner() {
    let world = World::new();
    let run = world.detach(["true"]);
    world.loopmux(["wait", &run]).exits(0);
    assert_eq!(sessions(&world).len(), 1);
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    assert_eq!(said["data"]["ended"].as_array().unwrap().len(), 1, "{said}");
    assert_eq!(sessions(&world), Vec::<String>::new());
    // The server went with its last session, and that is no trouble the next time.
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    assert_eq!(said["data"]["ended"], json!([]), "{said}");
    let again = world.detach(["true"]);
    world.loopmux(["wait", &again]).exits(0);
}

#[test]
fn a_window_with_a_persons_window_in_the_control_session_leaves_it() {
    let world = World::new();
    let run = world.detach(["true"]);
    world.loopmux(["wait", &run]).exits(0);
    let control = sessions(&world).pop().unwrap();
    world.tmux(["new-window", "-d", "-t", &format!("={control}:"), "sleep", "600"]).exits(0);
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    assert_eq!(said["data"]["ended"].as_array().unwrap().len(), 1, "{said}");
    assert_eq!(sessions(&world), [control]);
}

#[test]
fn a_kill_that_returns_0_and_does_nothing_is_told() {
    let world = World::new();
    let run = parked(&world);
    // Everything is passed on but the kill, which claims to be done.
    let server = world.server();
    world.script(
        "tmux",
        &format!(
            "#!/bin/sh\ncase \"$*\" in *kill-pane*|*kill-p*) printf 'loopmux-done\\t{server}\\n'; exit 0;; esac\n\
             exec /usr/bin/tmux \"$@\"\n"
        ),
    );
    let said = world.loopmux(["cleanup", "--json"]).exits(1).json();
    assert_eq!(said["error"]["code"], "survived", "{said}");
    assert_eq!(said["data"]["ended"], json!([]), "{said}");
    assert_eq!(said["data"]["survived"].as_array().unwrap().len(), 2, "{said}");
    assert!(sessions(&world).contains(&session(&world, &run)));
}

#[test]
fn a_multiplexer_that_cannot_be_asked_is_an_error_and_ends_nothing() {
    let world = World::new();
    let run = parked(&world);
    let server = world.server();
    signal(server, Signal::Stop);
    let said = world.loopmux(["cleanup", "--json"]).exits(5).json();
    signal(server, Signal::Cont);
    assert_eq!(said["error"]["code"], "mux-unreachable", "{said}");
    assert!(
        said["data"]["unverifiable"].as_array().unwrap().iter().any(|k| k["run"] == run.as_str()),
        "{said}"
    );
    assert!(sessions(&world).contains(&session(&world, &run)));
    let mut without = world.command(["cleanup", "--json"]);
    without.env("PATH", world.bin());
    let said = crate::harness::finish(without).exits(5).json();
    assert_eq!(said["error"]["code"], "mux-missing", "{said}");
}

#[test]
fn a_server_whose_socket_was_unlinked_is_unverifiable_and_one_that_is_gone_is_not() {
    let world = World::new();
    let run = parked(&world);
    let server = world.server();
    std::fs::rename(world.socket(), world.file("hidden")).unwrap();
    let said = world.loopmux(["cleanup", "--json"]).exits(8).json();
    assert!(
        said["data"]["unverifiable"].as_array().unwrap().iter().any(|k| k["run"] == run.as_str()),
        "{said}"
    );
    std::fs::rename(world.file("hidden"), world.socket()).unwrap();
    signal(server, Signal::Kill);
    crate::harness::eventually(
        "the server's end",
        || if alive(server) { Err(String::new()) } else { Ok(()) },
    );
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    assert_eq!(said["data"]["unverifiable"], json!([]), "{said}");
}

#[test]
fn a_project_without_runs_has_nothing_to_clean_up() {
    let world = World::new();
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    assert_eq!(said["data"]["kept"], json!([]), "{said}");
    assert!(std::fs::read_dir(world.state()).unwrap().next().is_none(), "it made a state directory");
}

/// The window of an engine that came to nothing, on a disk that had no room for what its keeper is: whoever cleans up after
/// another run does not forget it.
#[test]
fn a_window_whose_keeper_is_not_known_is_remembered_until_it_is_gone() {
    let world = World::new();
    let failed = crate::support::with_fault(
        &world,
        "full:write.start.json~/engine/",
        &["run", "-d", "--", "sleep", "600"],
    );
    assert_eq!(failed.code, Some(1), "{failed:?}");
    world.tmux(["set-environment", "-gu", "LOOPMUX_FAULT"]).exits(0);
    let windows = || world.tmux(["list-panes", "-a", "-F", "#{pane_start_command}"]).out;
    assert!(windows().contains("/staging/"), "its window was to stay: {}", windows());
    let run = crate::support::ended(&world, "exit 0");
    world.loopmux(["delete", "--force", &run]).exits(0);
    assert!(windows().contains("/staging/"), "{}", windows());
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    assert_eq!(said["data"]["ended"].as_array().unwrap().len(), 1, "{said}");
    assert_eq!(sessions(&world), Vec::<String>::new());
}
