//! A person's way to a window: from a terminal, from inside the multiplexer, and the honest refusals.

use crate::harness::{World, eventually};
use crate::samples::{Samples, Zoo};
use serde_json::json;

/// A session, with a shell in it that runs `script`; the world's environment is its.
fn terminal(world: &World, socket: &str, name: &str, script: &str) {
    let mut command = std::process::Command::new("/usr/bin/tmux");
    command
        .args([
            "-u",
            "-S",
            socket,
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "30",
            "-s",
            name,
        ])
        .args(["sh", "-c", script])
        .env_remove("TMUX")
        .env("HOME", world.path())
        .env("XDG_RUNTIME_DIR", world.path().join("run"))
        .env("LOOPMUX_STATE_DIR", world.state())
        .env("LOOPMUX_SOCKET", world.socket());
    assert!(command.current_dir(world.project()).status().expect("tmux").success());
}

fn on(world: &World, socket: &str, args: &[&str]) -> String {
    let mut command = std::process::Command::new("/usr/bin/tmux");
    command.args(["-u", "-S", socket]).args(args).env_remove("TMUX").env("HOME", world.path());
    String::from_utf8_lossy(&command.output().expect("tmux").stdout).into_owned()
}

fn program() -> String {
    format!("'{}'", env!("CARGO_BIN_EXE_loopmux"))
}

#[test]
fn a_terminal_becomes_a_client_of_the_runs_window() {
    let world = World::new();
    let id = world.detach(["sh", "-c", "echo hello from the run; sleep 600"]);
    world.until(&id, |s| s["run"]["status"] == json!("running"));
    let outer = world.file("o").display().to_string();
    // In a terminal that is no window of the multiplexer, as far as the environment says.
    terminal(&world, &outer, "t", &format!("unset TMUX TMUX_PANE; exec {} attach", program()));
    eventually("the run's window in the terminal", || {
        let text = on(&world, &outer, &["capture-pane", "-p", "-t", "=t:"]);
        if text.contains("hello from the run") { Ok(()) } else { Err(text) }
    });
    let attached = world.tmux(["list-clients", "-F", "#{session_name}"]).exits(0).out;
    assert!(attached.contains(&id), "{attached}");
}

#[test]
fn from_another_server_it_is_refused_with_the_command_to_use() {
    let world = World::new();
    let id = world.detach(["sleep", "600"]);
    world.until(&id, |s| s["run"]["status"] == json!("running"));
    let outer = world.file("o").display().to_string();
    let said = world.file("said");
    terminal(&world, &outer, "t", &format!("{} attach --json > '{}'; sleep 600", program(), said.display()));
    let object: serde_json::Value = eventually("the refusal", || {
        let text = std::fs::read_to_string(&said).map_err(|e| e.to_string())?;
        serde_json::from_str(&text).map_err(|e| e.to_string())
    });
    assert_eq!(object["error"]["code"], json!("mux-unreachable"), "{object}");
    let command = object["error"]["details"]["command"].to_string();
    assert!(command.contains(&world.socket().display().to_string()), "{command}");
}

#[test]
fn inside_the_same_server_the_client_is_moved() {
    let world = World::new();
    let id = world.detach(["sh", "-c", "echo hello from the run; sleep 600"]);
    world.until(&id, |s| s["run"]["status"] == json!("running"));
    let outer = world.file("o").display().to_string();
    let inner = world.socket().display().to_string();
    // A client of the world's server, with a shell of that server in it.
    let shell = format!(
        "exec /usr/bin/tmux -u -S '{inner}' new-session -s person \"{} attach; sleep 600\"",
        program()
    );
    terminal(&world, &outer, "t", &format!("unset TMUX TMUX_PANE; {shell}"));
    eventually("the client in the run's session", || {
        let clients = world.tmux(["list-clients", "-F", "#{session_name}"]).out;
        let there = world.tmux(["capture-pane", "-p", "-t", "=person:"]);
        if clients.contains(&id) { Ok(()) } else { Err(format!("{clients} {}{}", there.out, there.err)) }
    });
}

#[test]
fn without_a_terminal_it_says_what_to_type_in_one() {
    let world = World::new();
    let id = world.detach(["sleep", "600"]);
    world.until(&id, |s| s["run"]["status"] == json!("running"));
    let ran = world.loopmux(["attach", &id]).exits(2);
    assert!(ran.err.contains("attach needs a terminal"), "{}", ran.err);
    assert!(ran.err.contains(&world.socket().display().to_string()), "{}", ran.err);
    let object = world.loopmux(["attach", "--json"]).exits(0).json();
    assert_eq!((&object["data"]["run"], &object["data"]["how"]), (&json!(id), &json!("attach")));
}

#[test]
fn a_window_is_found_by_its_id_whatever_it_is_called_and_wherever_it_is() {
    let world = World::new();
    let id = world.detach(["sh", "-c", "echo hello from the run; sleep 600"]);
    let status = world.until(&id, |s| {
        s["attempts"][0]["mux"]["pane_id"].is_string() && s["run"]["status"] == json!("running")
    });
    let mux = status["attempts"][0]["mux"].clone();
    let part = |name: &str| mux[name].as_str().expect("an id").to_owned();
    world.tmux(["new-session", "-d", "-s", "mine", "sleep 600"]).exits(0);
    world.tmux(["rename-session", "-t", &part("session_id"), "renamed"]).exits(0);
    world.tmux(["rename-window", "-t", &part("window_id"), "also"]).exits(0);
    let before = world.loopmux(["attach", "--json", &id]).exits(0).json()["data"]["command"].clone();
    assert!(before.to_string().contains(&part("pane_id")), "{before}");
    world.tmux(["move-window", "-s", &part("window_id"), "-t", "mine:"]).exits(0);
    let after = world.loopmux(["attach", "--json", &id]).exits(0).json()["data"]["command"].clone();
    assert_ne!(before, after, "it is in another session now");
    assert!(after.to_string().contains(&part("pane_id")), "{after}");
    assert_eq!(world.status(&id)["run"]["status"], json!("running"));
}

#[test]
fn a_run_without_a_window_is_told_apart() {
    let world = World::new();
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    for (run, exit, code) in [
        ("0001", 3, "not-found"),
        ("0011", 3, "not-found"),
        ("0010", 4, "refused-alive"),
        ("0014", 8, "unknown"),
    ] {
        let object = world.loopmux(["attach", "--json", run]).exits(exit).json();
        assert_eq!(object["error"]["code"], json!(code), "{object}");
    }
    let object = world.loopmux(["attach", "--json"]).exits(3).json();
    assert_eq!(object["error"]["code"], json!("ambiguous"), "two are active: {object}");
    let candidates = object["error"]["details"]["candidates"].to_string();
    assert!(candidates.contains("\"busy\"") && candidates.contains("\"orphan\""), "{candidates}");
}

#[test]
fn with_nothing_active_it_says_so() {
    let world = World::new();
    let object = world.loopmux(["attach", "--json"]).exits(3).json();
    assert_eq!(object["error"]["code"], json!("not-found"));
}
