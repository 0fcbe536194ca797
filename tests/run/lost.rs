//! What takes a window away, and how each is told from an exit.

use crate::harness::{World, alive, eventually, signal};
use loopmux::process::Signal;

#[track_caller]
fn is_lost(world: &World, run: &str, cause: &str) {
    world.loopmux(["wait", run]).exits(6);
    let status = world.status(run);
    assert_eq!(status["run"]["status"], "lost", "{status}");
    assert_eq!(status["attempts"][0]["verdict"]["kind"], "lost", "{status}");
    assert_eq!(status["attempts"][0]["verdict"]["cause"], cause, "{status}");
    let record = world.read(run, "state.json");
    assert_eq!(record["outcome"]["cause"], cause, "{record}");
    let list = world.loopmux(["list", "--json"]).exits(0).json();
    assert_eq!(list["data"]["runs"][0]["status"], "lost");
}

#[test]
fn a_killed_session_is_told() {
    let world = World::new();
    let (run, attempt) = world.launched(&["sleep", "600"]);
    let session = attempt["mux"]["session_id"].as_str().unwrap();
    world.tmux(["kill-session", "-t", session]).exits(0);
    is_lost(&world, &run, "session-killed");
}

#[test]
fn a_killed_window_is_told_from_its_session() {
    let world = World::new();
    let (run, attempt) = world.launched(&["sleep", "600"]);
    let session = attempt["mux"]["session_id"].as_str().unwrap();
    world.tmux(["new-window", "-d", "-t", session, "sleep", "600"]).exits(0);
    world.tmux(["kill-window", "-t", attempt["mux"]["window_id"].as_str().unwrap()]).exits(0);
    is_lost(&world, &run, "window-killed");
}

#[test]
fn the_only_window_of_a_session_takes_it_along() {
    let world = World::new();
    let (run, attempt) = world.launched(&["sleep", "600"]);
    world.tmux(["kill-window", "-t", attempt["mux"]["window_id"].as_str().unwrap()]).exits(0);
    is_lost(&world, &run, "session-killed");
}

#[test]
fn a_server_that_was_asked_to_end_is_gone() {
    let world = World::new();
    let (run, _) = world.launched(&["sleep", "600"]);
    world.tmux(["kill-server"]).exits(0);
    is_lost(&world, &run, "server-gone");
}

#[test]
fn a_server_that_was_killed_is_gone() {
    let world = World::new();
    let (run, _) = world.launched(&["sleep", "600"]);
    signal(world.server(), Signal::Kill);
    is_lost(&world, &run, "server-gone");
}

#[test]
fn a_killed_keeper_is_told() {
    let world = World::new();
    let (run, _) = world.launched(&["sleep", "600"]);
    let keeper = world.read(&run, "attempts/1/start.json")["keeper"]["pid"].as_u64().unwrap() as u32;
    let cli = world.read(&run, "attempts/1/spawned.json")["cli"]["pid"].as_u64().unwrap() as u32;
    signal(keeper, Signal::Kill);
    if alive(cli) {
        signal(cli, Signal::Kill);
    }
    is_lost(&world, &run, "keeper-killed");
}

#[test]
fn an_exit_before_the_server_went_stays_an_exit() {
    let world = World::new();
    let run = world.detach(["sh", "-c", "exit 0"]);
    eventually("the exit receipt", || {
        let path = world.run_dir(&run).join("attempts/1/exit.json");
        path.exists().then_some(()).ok_or_else(|| "not there".to_owned())
    });
    world.tmux(["kill-server"]).exits(0);
    world.loopmux(["wait", &run]).exits(0);
    let status = world.status(&run);
    assert_eq!(status["run"]["status"], "succeeded", "{status}");
    assert_eq!(status["attempts"][0]["verdict"]["code"], 0, "{status}");
}
