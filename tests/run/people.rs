//! What people do to the windows.

use crate::harness::{Screen, World, alive};
use serde_json::Value;

const ECHO: &str = "echo the agent speaks; exec cat";

#[track_caller]
fn still_runs(world: &World, run: &str, what: &str) -> Value {
    let status = world.status(run);
    let attempt = &status["attempts"][0];
    assert_eq!(status["run"]["status"], "running", "{what}: {status}");
    assert_eq!(attempt["verdict"]["kind"], "running", "{what}: {status}");
    assert_eq!(attempt["evidence"]["window"], "present", "{what}: {status}");
    attempt.clone()
}

/// Attaches in a terminal of its own, types into the agent's window, leaves again.
#[track_caller]
fn attach_finds_it(world: &World, run: &str, name: &str) {
    let program = world.program.to_str().unwrap();
    let screen = Screen::new(world, name, &[program, "attach", run]);
    screen.shows("the agent speaks");
    screen.press(&[name, "Enter"]);
    // Once as the terminal's echo, once from the agent.
    let twice = |shown: &str| shown.matches(name).count() >= 2;
    let shown = screen.shows(name);
    assert!(twice(&shown) || twice(&screen.shows(&format!("{name}\n{name}"))), "{shown}");
    screen.press(&["C-b", "d"]);
    assert_eq!(screen.ends(), "0");
    screen.close();
}

#[test]
fn a_renamed_session_and_window_are_found() {
    let world = World::new();
    let (run, attempt) = world.launched(&["sh", "-c", ECHO]);
    let (session, window) = ids(&attempt);
    world.tmux(["rename-session", "-t", &session, "mine"]).exits(0);
    still_runs(&world, &run, "the session was renamed");
    world.tmux(["rename-window", "-t", &window, "also mine"]).exits(0);
    still_runs(&world, &run, "the window was renamed");
    attach_finds_it(&world, &run, "renamed");
    stop_finds_it(&world, &run);
}

#[test]
fn a_window_that_was_moved_to_another_session_is_found() {
    let world = World::new();
    let (run, attempt) = world.launched(&["sh", "-c", ECHO]);
    let (session, window) = ids(&attempt);
    world.tmux(["new-session", "-d", "-s", "mine", "sleep", "600"]).exits(0);
    world.tmux(["move-window", "-s", &window, "-t", "=mine:"]).exits(0);
    // It was the only one, so its session is gone.
    let left = world.tmux(["has-session", "-t", &session]);
    assert_eq!(left.code, Some(1), "{left:?}");
    still_runs(&world, &run, "the window was moved");
    attach_finds_it(&world, &run, "moved");
    stop_finds_it(&world, &run);
    world.tmux(["has-session", "-t", "=mine"]).exits(0);
}

#[test]
fn a_pane_that_was_joined_to_another_window_is_found() {
    let world = World::new();
    let (run, attempt) = world.launched(&["sh", "-c", ECHO]);
    world.tmux(["new-session", "-d", "-s", "mine", "sleep", "600"]).exits(0);
    let pane = attempt["mux"]["pane_id"].as_str().unwrap();
    world.tmux(["join-pane", "-d", "-s", pane, "-t", "=mine:"]).exits(0);
    still_runs(&world, &run, "the pane was joined");
    attach_finds_it(&world, &run, "joined");
    stop_finds_it(&world, &run);
    let panes = world.tmux(["list-panes", "-t", "=mine:", "-F", "#{pane_id}"]).exits(0).out;
    assert!(!panes.contains(pane) && panes.lines().count() == 1, "the person's own pane stays: {panes}");
}

#[test]
fn the_end_of_a_persons_split_is_not_the_agents() {
    let world = World::new();
    let (run, attempt) = world.launched(&["sh", "-c", ECHO]);
    let (_, window) = ids(&attempt);
    let panes = || world.tmux(["list-panes", "-t", &window, "-F", "#{pane_id}"]).exits(0).out;
    let split = |command: &[&str]| {
        let head = ["split-window", "-d", "-P", "-F", "#{pane_id}", "-t", &window, "--"];
        world.tmux([&head[..], command].concat()).exits(0).out.trim().to_owned()
    };
    split(&["sh", "-c", "exit 7"]);
    crate::harness::eventually("the end of the split", || {
        let now = panes();
        if now.lines().count() == 1 { Ok(()) } else { Err(now) }
    });
    still_runs(&world, &run, "a split exited");
    let second = split(&["sleep", "600"]);
    world.tmux(["kill-pane", "-t", &second]).exits(0);
    still_runs(&world, &run, "a split was closed");
    let third = split(&["sleep", "600"]);
    attach_finds_it(&world, &run, "split");
    stop_finds_it(&world, &run);
    assert_eq!(panes().trim(), third, "what a person opened beside the agent stays");
}

#[test]
fn a_window_of_another_server_is_not_switched_to() {
    let world = World::new();
    let (run, _) = world.launched(&["sh", "-c", ECHO]);
    let ran = {
        let mut command = world.command(["attach", &run]);
        command.env("TMUX", format!("{},1,0", world.file("elsewhere").display())).env("TMUX_PANE", "%0");
        crate::harness::finish(command)
    };
    let ran = ran.exits(5);
    assert!(ran.err.contains("in another terminal:") && ran.err.contains("attach"), "{}", ran.err);
    stop_finds_it(&world, &run);
}

fn ids(attempt: &Value) -> (String, String) {
    let id = |key: &str| attempt["mux"][key].as_str().unwrap().to_owned();
    (id("session_id"), id("window_id"))
}

#[track_caller]
fn stop_finds_it(world: &World, run: &str) {
    let cli = world.cli(run, 1);
    world.loopmux(["stop", run]).exits(0);
    assert!(!alive(cli));
    assert_eq!(world.status(run)["run"]["status"], "stopped");
}
