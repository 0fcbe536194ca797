//! loopmux replaced while its runs live, and files that a newer one wrote.

use crate::harness::{Tree, World, alive, eventually, pid};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A world with a copy of the programs of its own, as an installation is.
fn installed() -> (World, PathBuf) {
    let mut world = World::new();
    let dir = world.file("installed");
    std::fs::create_dir(&dir).unwrap();
    for program in [env!("CARGO_BIN_EXE_loopmux"), env!("CARGO_BIN_EXE_loopmux-keep")] {
        std::fs::copy(program, dir.join(Path::new(program).file_name().unwrap())).unwrap();
    }
    world.program = dir.join("loopmux");
    (world, dir)
}

/// Replaces a program as an upgrade does: another file of that name.
fn replace(program: &Path, script: &str) {
    let new = program.with_extension("new");
    std::fs::write(&new, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(new, program).unwrap();
}

/// A script that ends with `code` when it is told to.
fn told(world: &World, code: i32) -> (PathBuf, String) {
    let go = world.file(&format!("go{code}"));
    let script = format!("until [ -e {} ]; do sleep 0.05; done; echo the end; exit {code}", go.display());
    (go, script)
}

#[test]
fn a_run_goes_on_while_its_programs_are_replaced() {
    let (mut world, dir) = installed();
    let (go, script) = told(&world, 5);
    let (run, _) = world.launched(&["sh", "-c", &script]);
    world.until(&run, |s| s["run"]["status"] == "running");
    for name in ["loopmux", "loopmux-keep"] {
        replace(&dir.join(name), "echo replaced >&2; exit 99");
    }
    world.program = env!("CARGO_BIN_EXE_loopmux").into();
    assert_eq!(world.status(&run)["run"]["status"], "running");
    std::fs::write(go, "").unwrap();
    world.loopmux(["wait", &run]).exits(1);
    let record = world.read(&run, "state.json");
    assert_eq!(
        (&record["status"], &record["outcome"]["end"]["code"]),
        (&"failed".into(), &5.into()),
        "{record}"
    );
    assert_eq!(world.loopmux(["logs", &run]).exits(0).out, "the end\n");
}

#[test]
fn a_run_whose_programs_were_removed_is_explained_and_stopped() {
    let (mut world, dir) = installed();
    let (run, attempt) = world.launched(&["sleep", "600"]);
    let (deaf, _) = world.launched(&["sh", "-c", "trap '' HUP; exec sleep 600"]);
    std::fs::remove_dir_all(dir).unwrap();
    world.program = env!("CARGO_BIN_EXE_loopmux").into();
    world.tmux(["kill-session", "-t", attempt["mux"]["session_id"].as_str().unwrap()]).exits(0);
    world.loopmux(["wait", &run]).exits(6);
    assert_eq!(world.status(&run)["attempts"][0]["verdict"]["cause"], "session-killed");
    let cli = world.cli(&deaf, 1);
    world.loopmux(["stop", &deaf]).exits(0);
    assert!(!alive(cli));
}

#[test]
fn a_launch_with_a_keeper_of_another_protocol_pauses_and_goes_on_with_the_right_one() {
    let (world, dir) = installed();
    world.loopmux(["run", "--", "sh", "-c", "exit 3"]).exits(1);
    let run = world.status("@last")["run"]["id"].as_str().unwrap().to_owned();
    let keeper = dir.join("loopmux-keep");
    let right = dir.join("right");
    std::fs::rename(&keeper, &right).unwrap();
    replace(&keeper, "if [ \"$1\" = --protocol ]; then echo 4711; else exit 99; fi");
    let ran = world.loopmux(["resume", &run]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let status = world.status(&run);
    assert_eq!(status["run"]["status"], "paused", "{status}");
    let reason = status["run"]["reason"].as_str().unwrap();
    assert!(reason.contains("4711") && reason.contains("protocol"), "{reason}");
    assert_eq!(status["attempts"].as_array().unwrap().len(), 1, "nothing was launched: {status}");
    let page = world.loopmux(["status", &run]).exits(0).out;
    assert!(page.contains("paused") && page.contains("4711"), "{page}");
    std::fs::rename(&right, &keeper).unwrap();
    world.loopmux(["resume", &run]).exits(1);
    let status = world.status(&run);
    assert_eq!(
        (&status["run"]["status"], &status["run"]["attempt"]),
        (&"failed".into(), &2.into()),
        "{status}"
    );
}

#[test]
fn a_detached_launch_with_a_keeper_of_another_protocol_says_so_and_leaves_nothing() {
    let (world, dir) = installed();
    for (script, word) in [("echo 4711", "4711"), ("exit 1", "protocol")] {
        replace(&dir.join("loopmux-keep"), script);
        let ran = world.loopmux(["run", "-d", "--", "sleep", "600"]).exits(1);
        assert!(ran.err.contains(word) && ran.err.contains("loopmux-keep"), "{}", ran.err);
    }
    let runs = world.loopmux(["list", "--json"]).exits(0).json()["data"]["runs"].clone();
    assert_eq!(runs, json!([]));
    assert!(!world.socket().exists(), "no server was started");
}

/// Writes `schema` of a file anew.
fn make_newer(path: &Path, more: impl Fn(&mut Value)) {
    let mut file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    file["schema"] = 99.into();
    more(&mut file);
    std::fs::write(path, file.to_string()).unwrap();
}

#[test]
fn files_of_a_newer_loopmux_read_unknown_and_are_left_alone() {
    let world = World::new();
    for (file, shape) in [
        ("state.json", false),
        ("state.json", true),
        ("run.json", false),
        ("run.json", true),
        ("attempts/1/start.json", false),
        ("attempts/1/exit.json", false),
        ("attempts/1/exit.json", true),
        ("attempts/1/launch.json", true),
        ("attempts/1/created.json", false),
        ("attempts/1/spawned.json", true),
        ("attempts/1/emptied.json", false),
    ] {
        world.loopmux(["run", "--", "sh", "-c", "exit 3"]).exits(1);
        let run = world.status("@last")["run"]["id"].as_str().unwrap().to_owned();
        world.settled(&run);
        let dir = world.run_dir(&run);
        make_newer(&dir.join(file), |value| {
            if shape {
                // And nothing in it is as this program knows it.
                *value = json!({ "schema": 99, "status": { "new": [1] }, "end": "new", "id": 7, "argv": {} });
            }
        });
        let before = Tree::of(&dir);
        let status = world.status(&run);
        let unknown = status["run"]["unknown"].to_string();
        assert!(unknown.contains("newer loopmux") && unknown.contains("schema 99"), "{file}: {status}");
        if file == "state.json" {
            assert_eq!(status["run"]["status"], "unknown", "{file}: {status}");
        }
        if ["attempts/1/start.json", "attempts/1/exit.json"].contains(&file) {
            assert_eq!(status["attempts"][0]["verdict"]["kind"], "unknown", "{file}: {status}");
        }
        let list = world.loopmux(["list", "--json"]).exits(0).json();
        let listed = list["data"]["runs"].as_array().unwrap();
        assert!(listed.iter().any(|r| r["id"] == run.as_str()), "{file}: {list}");
        world.loopmux(["list"]).exits(0);
        world.loopmux(["wait", "--timeout", "1s", &run]);
        // What is over by every file that a stop decides by is over.
        let over = !["state.json", "attempts/1/start.json", "attempts/1/exit.json"].contains(&file);
        let already = world.loopmux(["stop", "--json", &run]);
        assert_eq!(already.code, Some(if over { 0 } else { 4 }), "{file}: {already:?}");
        for act in ["resume", "stop"].into_iter().take(if over { 1 } else { 2 }) {
            let ran = world.loopmux([act, "--json", &run]).exits(4);
            let error = ran.json()["error"].clone();
            assert_eq!(error["code"], "unsupported-schema", "{act} {file}: {error}");
            assert!(error["message"].as_str().unwrap().contains("newer"), "{act} {file}: {error}");
        }
        Tree::of(&dir).is(&before, file);
    }
}

#[test]
fn a_live_run_with_files_of_a_newer_loopmux_is_not_touched() {
    let world = World::new();
    let (run, _) = world.launched(&["sleep", "600"]);
    world.until(&run, |s| s["run"]["status"] == "running");
    let dir = world.run_dir(&run);
    // The engine's last write of a start: from here on it only waits.
    eventually("the journal's line of the start", || {
        let journal = std::fs::read_to_string(dir.join("journal.jsonl")).unwrap_or_default();
        if journal.contains("\"started\"") { Ok(()) } else { Err(journal) }
    });
    let state = std::fs::read(dir.join("state.json")).unwrap();
    make_newer(&dir.join("state.json"), |_| {});
    let before = Tree::of(&dir);
    world.loopmux(["stop", &run]).exits(4);
    world.loopmux(["stop", "--force", &run]).exits(4);
    world.loopmux(["resume", &run]).exits(4);
    Tree::of(&dir).is(&before, "the run");
    assert!(alive(world.cli(&run, 1)));
    std::fs::write(dir.join("state.json"), state).unwrap();
    world.loopmux(["stop", &run]).exits(0);
}

#[test]
fn a_project_of_a_newer_loopmux_takes_no_new_detached_run() {
    let world = World::new();
    let run = world.detach(["true"]);
    world.loopmux(["wait", &run]).exits(0);
    let project = world.run_dir(&run).join("../..");
    make_newer(&project.join("control.json"), |_| {});
    let before = std::fs::read(project.join("control.json")).unwrap();
    let ran = world.loopmux(["run", "-d", "--", "true"]).exits(4);
    assert!(ran.err.contains("newer loopmux"), "{}", ran.err);
    assert_eq!(std::fs::read(project.join("control.json")).unwrap(), before);
    assert_eq!(std::fs::read_dir(project.join("staging")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(project.join("runs")).unwrap().count(), 1);
    // What needs no control session goes on.
    world.loopmux(["run", "--", "true"]).exits(0);
}

#[test]
fn a_keeper_from_before_the_upgrade_is_waited_for_by_its_identity() {
    let (world, dir) = installed();
    let (go, script) = told(&world, 0);
    let (run, _) = world.launched(&["sh", "-c", &script]);
    let keeper = pid(&world.read(&run, "attempts/1/start.json")["keeper"]);
    // The file is gone; the process goes on and has its identity.
    std::fs::remove_file(dir.join("loopmux-keep")).unwrap();
    assert_eq!(world.status(&run)["attempts"][0]["verdict"]["kind"], "running");
    std::fs::write(go, "").unwrap();
    world.loopmux(["wait", &run]).exits(0);
    eventually("the keeper's end", || if alive(keeper) { Err("it runs".to_owned()) } else { Ok(()) });
}
