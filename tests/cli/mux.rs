//! The multiplexers, their sessions and whose they are, on a real tmux.

use crate::harness::{World, eventually};
use serde_json::{Value, json};

fn session(object: &Value, name: impl Fn(&str) -> bool) -> Value {
    let sessions = object["data"]["sessions"].as_array().expect("sessions").clone();
    sessions.into_iter().find(|s| name(s["name"].as_str().expect("a name"))).unwrap_or_default()
}

#[test]
fn every_session_is_told_by_its_tags_and_not_by_its_name() {
    let mut world = World::new();
    let running = |world: &World, id: &str| world.until(id, |s| s["run"]["status"] == json!("running"));
    let id = world.detach(["sleep", "600"]);
    running(&world, &id);
    // The name of a session of ours says nothing.
    world.tmux(["new-session", "-d", "-s", "lm-project-000000-ctl", "sleep 600"]).exits(0);
    let other = world.file("other");
    std::fs::create_dir(&other).expect("a directory");
    let other = other.to_str().expect("unicode").to_owned();
    let others = world
        .loopmux(["--project", &other, "run", "-d", "--", "sleep", "600"])
        .exits(0)
        .out
        .trim()
        .to_owned();
    eventually("the other project's run", || {
        let object = world.loopmux(["--project", &other, "status", "--json", &others]).exits(0).json();
        if object["data"]["run"]["status"] == json!("running") { Ok(()) } else { Err(object.to_string()) }
    });
    let strange = world.file("strange-state");
    world.env.push(("LOOPMUX_STATE_DIR".into(), strange.into()));
    let strangers = world.detach(["sleep", "600"]);
    running(&world, &strangers);
    world.env.pop();
    let object = world.loopmux(["mux", "ls", "--json"]).exits(0).json();
    assert_eq!(object["data"]["server"]["pid"], json!(world.server()));
    for (run, whose) in [(&id, "ours"), (&others, "other-project"), (&strangers, "foreign")] {
        let found = session(&object, |name| name.ends_with(run.as_str()));
        assert_eq!((&found["ownership"], &found["run"]), (&json!(whose), &json!(run)), "{found}");
    }
    let plain = session(&object, |name| name == "lm-project-000000-ctl");
    assert_eq!((&plain["ownership"], &plain["run"]), (&json!("untagged"), &Value::Null), "{plain}");
    let control = session(&object, |name| {
        name.starts_with("lm-project-") && name.ends_with("-ctl") && name != "lm-project-000000-ctl"
    });
    assert_eq!((&control["ownership"], &control["run"]), (&json!("ours"), &json!("ctl")), "{control}");
    assert_eq!(control["holds"], json!([id]), "the window of its engine");
    let text = world.loopmux(["mux", "ls"]).exits(0).out;
    assert!(text.starts_with("session ") && text.contains("untagged"), "{text}");
    assert!(text.contains("foreign: of another state directory"), "{text}");
}

#[test]
fn a_listing_shows_windows_and_counts_the_parked_ones() {
    let world = World::new();
    let id = world.detach(["sleep", "600"]);
    world.until(&id, |s| s["run"]["status"] == json!("running"));
    let done = world.detach(["true"]);
    world.loopmux(["wait", &done]).exits(0);
    let object = eventually("the parked window", || {
        let object = world.loopmux(["list", "--json"]).exits(0).json();
        if object["data"]["parked"] == json!(1) { Ok(object) } else { Err(object.to_string()) }
    });
    let runs = object["data"]["runs"].as_array().expect("runs").clone();
    let of = |id: &str| runs.iter().find(|r| r["id"] == json!(id)).expect("a run")["window"].clone();
    let window = of(&id);
    assert_eq!(window["state"], json!("open"));
    let there = world.tmux(["list-windows", "-a", "-F", "#{window_id}"]).exits(0).out;
    assert!(there.lines().any(|w| json!(w) == window["id"]), "{window} {there}");
    assert_eq!(of(&done), json!({ "state": "closed", "id": null }));
    let text = world.loopmux(["list"]).exits(0).out;
    let hint = "1 window is parked: its command has ended, and Enter or loopmux cleanup closes it\n";
    assert!(text.ends_with(hint), "{text}");
}

#[test]
fn no_server_is_no_session_and_a_deaf_one_is_no_answer() {
    let world = World::new();
    let object = world.loopmux(["mux", "ls", "--json"]).exits(0).json();
    assert_eq!(object["data"]["sessions"], json!([]));
    assert!(object["data"]["trouble"].as_str().expect("trouble").contains("no-socket"), "{object}");
    let _deaf = std::os::unix::net::UnixListener::bind(world.socket()).expect("a listener");
    let object = world.loopmux(["mux", "ls", "--json"]).exits(0).json();
    assert_eq!(object["data"]["sessions"], Value::Null, "unknown is no empty list");
    assert!(object["data"]["trouble"].as_str().expect("trouble").contains("timed-out"), "{object}");
    let object = world.loopmux(["mux", "--json"]).exits(0).json();
    assert!(object["data"]["backends"][0]["no_server"].as_str().expect("why").contains("timed-out"));
}

#[test]
fn a_choice_is_written_with_everything_else_left_as_it_is() {
    let mut world = World::new();
    let file = world.project().join("loopmux.toml");
    std::fs::write(&file, "# ours\n[run]\npark = true # yes\n").expect("a file");
    let ran = world.loopmux(["mux", "set", "psmux", "--json"]).exits(0);
    assert!(ran.err.starts_with("warning: psmux cannot be used here"), "{}", ran.err);
    let object = ran.json();
    assert_eq!(object["data"]["backend"], json!("psmux"));
    assert_eq!(object["data"]["overridden_by"], Value::Null);
    let text = std::fs::read_to_string(&file).expect("the file");
    assert_eq!(text, "# ours\n[run]\npark = true # yes\n\n[mux]\nbackend = \"psmux\"\n");
    let object = world.loopmux(["mux", "--json"]).exits(0).json();
    assert_eq!(object["data"]["selected"], json!("psmux"));
    let why = object["data"]["backends"][1]["why"].as_str().expect("why").to_owned();
    assert!(why.contains("loopmux.toml:6"), "{why}");
    world.env.push(("LOOPMUX_MUX".into(), "psmux".into()));
    let ran = world.loopmux(["mux", "set", "auto"]).exits(0);
    assert!(ran.out.contains("environment variable LOOPMUX_MUX says otherwise"), "{}", ran.out);
    std::fs::write(&file, "[mux\n").expect("a file");
    world.loopmux(["mux", "set", "tmux"]).exits(2);
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), "[mux\n");
}

#[test]
fn a_client_that_differs_from_its_server_is_warned_about() {
    let mut world = World::new();
    world.tmux(["new-session", "-d", "sleep 600"]).exits(0);
    let object = world.loopmux(["mux", "--json"]).exits(0).json();
    assert_eq!(object["data"]["backends"][0]["warning"], Value::Null);
    let script = "#!/bin/sh\n[ \"$1\" = -V ] && { echo tmux 9.9; exit 0; }\nexec /usr/bin/tmux \"$@\"\n";
    let newer = world.script("newer", script);
    world.env.push(("LOOPMUX_TMUX".into(), newer.into()));
    let object = world.loopmux(["mux", "--json"]).exits(0).json();
    let warning = object["data"]["backends"][0]["warning"].as_str().expect("a warning").to_owned();
    assert!(warning.contains("9.9"), "{warning}");
    let older = world.script("older", "#!/bin/sh\necho tmux 2.9a\n");
    world.env.push(("LOOPMUX_TMUX".into(), older.into()));
    let object = world.loopmux(["mux", "--json"]).exits(0).json();
    let backend = &object["data"]["backends"][0];
    assert_eq!(backend["usable"], json!(false));
    assert!(backend["trouble"].as_str().expect("why").contains("3.2a or newer is needed"), "{backend}");
}
