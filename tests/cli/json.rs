//! The JSON object, field by field.

use crate::harness::World;
use crate::samples::{Samples, THEN, Zoo, gone};
use loopmux::run::record::Outcome;
use loopmux::verdict::{Cause, End, Status};
use serde_json::{Value, json};

fn status(world: &World, run: &str) -> Value {
    world.loopmux(["status", "--json", run]).exits(0).json()["data"].clone()
}

#[test]
fn every_state_is_listed_newest_first_and_none_is_skipped() {
    let world = World::new();
    let samples = Samples::new(&world);
    let zoo = Zoo::new(&samples);
    let ran = world.loopmux(["list", "--json"]).exits(0);
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
    let runs = ran.json()["data"]["runs"].clone();
    let listed: Vec<(&str, &str)> = runs
        .as_array()
        .expect("runs")
        .iter()
        .map(|r| (r["id"].as_str().expect("an id"), r["status"].as_str().expect("a status")))
        .collect();
    // Of one second the run's own time counts, and what cannot be read has none: those come last.
    let mut listed_sorted = listed.clone();
    listed_sorted.sort();
    let mut expected = zoo.expected.clone();
    expected.sort();
    assert_eq!(listed_sorted, expected);
    assert_eq!(listed[0].0, "20261129-160042-0017");
    for (id, word) in &zoo.expected {
        assert_eq!(status(&world, id)["run"]["status"], json!(word), "{id}");
    }
}

#[test]
fn causes_and_ends_are_told_apart() {
    let world = World::new();
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    let verdict = |run: &str| status(&world, run)["attempts"][0]["verdict"].clone();
    for (run, kind, cause) in [
        ("0004", "lost", "session-killed"),
        ("0005", "lost", "server-gone"),
        ("0006", "lost", "keeper-killed"),
        ("0007", "lost", "host-restarted"),
    ] {
        let verdict = verdict(run);
        assert_eq!((&verdict["kind"], &verdict["cause"]), (&json!(kind), &json!(cause)), "{run}");
        assert_eq!(verdict["code"], Value::Null, "a lost attempt has no code: {run}");
    }
    assert_eq!(verdict("0002")["code"], json!(3));
    assert_eq!(verdict("0003")["spawn_error"], json!("no such file"));
    assert_eq!(verdict("0008")["kind"], json!("never-started"));
    assert_eq!(verdict("0015")["signal"], json!(15));
    assert_eq!(verdict("0010")["kind"], json!("running"));
}

#[test]
fn what_cannot_be_read_is_null_and_says_why() {
    let world = World::new();
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    for (run, part) in [
        ("0012", "run.json cannot be read as JSON"),
        ("0013", "state.json was written by a newer loopmux (schema 2, this one reads up to 1)"),
        ("0014", "Not a directory"),
    ] {
        let run = status(&world, run)["run"].clone();
        let unknown = run["unknown"].to_string();
        assert!(unknown.contains(part), "{unknown}");
    }
    let run = status(&world, "0014")["run"].clone();
    for field in ["name", "project", "created", "ended", "agent", "attempt", "leftovers", "removable"] {
        let expected = if field == "removable" { json!(false) } else { Value::Null };
        assert_eq!(run[field], expected, "{field}");
    }
    assert_eq!(run["engine"], json!({ "state": "unknown", "pid": null }));
}

/// Only root can give a file away; whoever else runs this tries nothing here.
#[test]
fn files_of_another_user_are_unknown() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    let samples = Samples::new(&world);
    let run = samples.over("20261129-160042-7f3a", Some("given-away"), Status::Failed, |a| {
        a.started().exited(End::Code(1), false).emptied();
        Some(Outcome::Exited { end: End::Code(1) })
    });
    std::os::unix::fs::chown(run.join("state.json"), Some(65_534), None).expect("chown");
    std::os::unix::fs::chown(run.join("attempts/1/exit.json"), Some(65_534), None).expect("chown");
    let status = status(&world, "7f3a");
    assert_eq!(status["run"]["status"], json!("unknown"));
    assert_eq!(status["run"]["removable"], json!(false));
    assert_eq!(status["attempts"][0]["evidence"]["exit"], json!("unknown"));
    let unknown = status["run"]["unknown"].to_string();
    assert!(unknown.contains("state.json belongs to user 65534"), "{unknown}");
    assert!(unknown.contains("exit.json belongs to user 65534"), "{unknown}");
}

#[test]
fn a_lost_run_in_full() {
    let world = World::new();
    let samples = Samples::new(&world);
    let server = gone();
    let dir = samples.over("20261129-160042-7f3a", Some("fix-login"), Status::Lost, |a| {
        a.started().hung_up(Some(Cause::SessionKilled));
        Some(Outcome::Lost { cause: Cause::SessionKilled, end: None })
    });
    let project = world.project().canonicalize().expect("a project");
    let mut object = world.loopmux(["status", "--json", "7f3a"]).exits(0).json();
    // What the multiplexer said is another test's.
    let asked = object["data"]["mux"].take();
    // The words of an obstacle are the verdict's.
    let why = object["data"]["run"]["why_not_removable"].take().to_string();
    assert!(why.contains("no receipt that no descendant is left"), "{why}");
    assert_eq!(asked[0]["class"], json!("no-socket"));
    let expected = json!({
        "schema": 1,
        "ok": true,
        "command": "status",
        "data": {
            "ref": "7f3a",
            "run": {
                "id": "20261129-160042-7f3a",
                "name": "fix-login",
                "project": project,
                "status": "lost",
                "leftovers": false,
                "created": "2026-11-29T16:00:42Z",
                "ended": "2026-11-29T16:03:10Z",
                "agent": "sh",
                "attempt": 1,
                "engine": { "state": "gone", "pid": null },
                "resumable": true,
                "removable": null,
                "why_not_removable": null,
                "reason": null,
                "unknown": [],
            },
            "attempts": [{
                "n": 1,
                "task": null,
                "agent": "sh",
                "started": "2026-11-29T16:00:42Z",
                "ended": null,
                "dir": dir.join("attempts/1"),
                "verdict": {
                    "kind": "lost",
                    "code": null,
                    "signal": null,
                    "spawn_error": null,
                    "cause": "session-killed",
                    "leftovers": [],
                    "why": "lost: its mux session was killed (lost mid-run, not a CLI exit)",
                },
                "evidence": {
                    "start": "present",
                    "lease": "free",
                    "exit": "none",
                    "hangup": "present",
                    "session": "not-served",
                    "window": "not-served",
                    "server": "gone",
                },
                "holders": null,
                "mux": {
                    "backend": "tmux",
                    "version": "3.3a",
                    "socket": world.socket(),
                    "server_pid": server.pid,
                    "session": "lm-sample",
                    "session_id": "$1",
                    "window_id": "@3",
                    "pane_id": "%3",
                    "pane_pid": server.pid,
                },
                "turns": null,
                "usage": null,
            }],
            "mux": null,
        },
    });
    assert_eq!(object, expected, "{object:#}");
}

#[test]
fn who_holds_a_lease_is_named() {
    let world = World::new();
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    let orphan = status(&world, "orphan");
    let holders = orphan["attempts"][0]["holders"].as_array().expect("holders").clone();
    assert!(holders.iter().any(|h| h["pid"] == json!(std::process::id())), "{holders:?}");
    assert_eq!(orphan["run"]["engine"], json!({ "state": "gone", "pid": null }));
    let done = status(&world, "0009");
    assert_eq!(done["run"]["leftovers"], json!(true));
    assert_eq!(done["run"]["removable"], json!(false));
    let left = &done["attempts"][0]["verdict"]["leftovers"][0];
    assert_eq!(left["command"], json!("node build-server.js"));
    assert_eq!(left["started"], json!("2026-11-29T16:01:12Z"));
}

#[test]
fn the_engine_of_a_running_run_has_its_pid() {
    let world = World::new();
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    let run = status(&world, "busy")["run"].clone();
    assert_eq!(run["engine"], json!({ "state": "running", "pid": std::process::id() }));
    assert_eq!((&run["resumable"], &run["removable"]), (&json!(false), &json!(false)));
}

#[test]
fn a_filter_a_limit_and_other_projects() {
    let world = World::new();
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    let elsewhere = world.file("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let others = Samples::of(&world, &elsewhere);
    others.over("20261130-000000-0001", None, Status::Succeeded, |a| {
        a.started().exited(End::Code(0), false).emptied();
        Some(Outcome::Exited { end: End::Code(0) })
    });
    let ids = |args: &[&str]| -> Vec<String> {
        let all = [&["list", "--json"], args].concat();
        let object = world.loopmux(all).exits(0).json();
        let runs = object["data"]["runs"].as_array().expect("runs").clone();
        runs.iter().map(|r| r["id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(ids(&["--status", "lost"]).len(), 4);
    assert_eq!(ids(&["--status", "lost", "--status", "orphaned"]).len(), 5);
    assert_eq!(ids(&["--status", "lost", "--limit", "2"]).len(), 2);
    assert_eq!(ids(&["--limit", "1"]), ["20261129-160042-0017"]);
    assert_eq!(ids(&["--limit", "0"]), Vec::<String>::new());
    assert_eq!(ids(&["--all-projects"]).len(), 18);
    assert_eq!(ids(&["--all-projects", "--limit", "1"]), ["20261130-000000-0001"]);
    assert_eq!(ids(&["--project", elsewhere.to_str().expect("unicode")]), ["20261130-000000-0001"]);
    std::fs::remove_dir(&elsewhere).expect("a directory");
    let gone = elsewhere.to_str().expect("unicode");
    assert_eq!(ids(&["--project", gone]), ["20261130-000000-0001"], "the project is gone, its runs are not");
    let object = world.loopmux(["list", "--json", "--all-projects"]).exits(0).json();
    let canonical = world.path().canonicalize().expect("a path").join("elsewhere");
    assert_eq!(object["data"]["vanished"], json!([canonical]));
}

#[test]
fn nothing_at_all_is_an_empty_list() {
    let world = World::new();
    std::fs::remove_dir(world.state()).expect("the state directory");
    for args in [&["list", "--json"][..], &["list", "--json", "--all-projects"]] {
        let object = world.loopmux(args).exits(0).json();
        assert_eq!(object["data"]["runs"], json!([]));
        assert_eq!(object["data"]["parked"], json!(0));
    }
    assert!(!world.state().try_exists().expect("a look"), "reading makes nothing");
}

#[test]
fn times_are_utc_and_the_newest_is_told_within_a_second() {
    let world = World::new();
    let samples = Samples::new(&world);
    // Made in one second, the one with the larger id first.
    for (id, at) in [("20261129-160042-ffff", THEN), ("20261129-160042-0000", THEN + 700)] {
        let run = samples.run(id, None, &["true"], at);
        run.end(Status::Stopped, None);
    }
    assert_eq!(status(&world, "@last")["run"]["id"], json!("20261129-160042-0000"));
    let object = world.loopmux(["list", "--json"]).exits(0).json();
    assert_eq!(object["data"]["runs"][0]["created"], json!("2026-11-29T16:00:42.7Z"));
    assert_eq!(object["data"]["runs"][1]["id"], json!("20261129-160042-ffff"));
}
