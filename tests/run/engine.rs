//! Engines that are killed, and engines that lose their window.

use crate::harness::{World, alive, eventually, pid, signal};
use loopmux::process::Signal;
use loopmux::verdict::Lease;
use serde_json::Value;

/// A detached run of a program that goes on until it is told to end with that code.
struct Told<'w> {
    world: &'w World,
    run: String,
    go: std::path::PathBuf,
}

impl<'w> Told<'w> {
    #[track_caller]
    fn launch(world: &'w World, code: i32) -> Self {
        let go = world.file(&format!("go{code}"));
        let script = format!("trap '' HUP; until [ -e {} ]; do sleep 0.05; done; exit {code}", go.display());
        let (run, _) = world.launched(&["sh", "-c", &script]);
        world.until(&run, |s| s["run"]["status"] == "running");
        Self { world, run, go }
    }

    fn tell(&self) {
        std::fs::write(&self.go, "").unwrap();
    }

    #[track_caller]
    fn kill_engine(&self) {
        let engine = pid(&self.world.read(&self.run, "state.json")["engine"]);
        signal(engine, Signal::Kill);
        eventually("the engine's end", || if alive(engine) { Err("it runs".to_owned()) } else { Ok(()) });
    }

    #[track_caller]
    fn status(&self) -> Value {
        self.world.status(&self.run)
    }

    fn journal(&self) -> String {
        std::fs::read_to_string(self.world.run_dir(&self.run).join("journal.jsonl")).unwrap()
    }
}

#[test]
fn a_run_without_its_engine_is_orphaned_and_then_what_its_receipts_say() {
    let world = World::new();
    for (code, word, exit) in [(0, "succeeded", 0), (3, "failed", 1)] {
        let told = Told::launch(&world, code);
        told.kill_engine();
        let status = told.status();
        assert_eq!(status["run"]["status"], "orphaned", "{status}");
        assert_eq!(status["run"]["engine"]["state"], "gone", "{status}");
        assert_eq!(status["attempts"][0]["verdict"]["kind"], "running", "{status}");
        let waiting = world.start(["wait", &told.run]);
        world.loopmux(["wait", "--timeout", "200ms", &told.run]).exits(7);
        told.tell();
        crate::harness::finish_child(waiting).exits(exit);
        let status = told.status();
        assert_eq!(status["run"]["status"], word, "{status}");
        assert_eq!(status["attempts"][0]["verdict"]["code"], code, "{status}");
        // Derived by whoever reads, and written by nobody.
        assert_eq!(world.read(&told.run, "state.json")["status"], "running");
    }
}

#[test]
fn an_orphan_whose_session_is_killed_is_lost() {
    let world = World::new();
    let (run, attempt) = world.launched(&["sleep", "600"]);
    world.until(&run, |s| s["run"]["status"] == "running");
    signal(pid(&world.read(&run, "state.json")["engine"]), Signal::Kill);
    world.until(&run, |s| s["run"]["status"] == "orphaned");
    world.tmux(["kill-session", "-t", attempt["mux"]["session_id"].as_str().unwrap()]).exits(0);
    world.loopmux(["wait", &run]).exits(6);
    let status = world.status(&run);
    assert_eq!(status["run"]["status"], "lost", "{status}");
    assert_eq!(status["attempts"][0]["verdict"]["cause"], "session-killed", "{status}");
}

#[test]
fn an_orphan_is_stopped_and_the_stopper_writes_it_down() {
    let world = World::new();
    let told = Told::launch(&world, 0);
    told.kill_engine();
    let cli = world.cli(&told.run, 1);
    world.loopmux(["stop", &told.run]).exits(0);
    assert!(!alive(cli));
    assert_eq!(told.status()["run"]["status"], "stopped");
    assert_eq!(world.read(&told.run, "state.json")["status"], "stopped");
}

#[test]
fn what_could_not_be_observed_is_in_the_journal_once_with_its_reason() {
    let world = World::new();
    let told = Told::launch(&world, 3);
    let unknowns = || told.journal().lines().filter(|l| l.contains("\"unknown\"")).count();
    assert_eq!(unknowns(), 0, "{}", told.journal());
    let torn = world.run_dir(&told.run).join("attempts/1/exit.json");
    std::fs::write(&torn, "torn").unwrap();
    let noted = |what: &str, times: usize| {
        eventually(what, || if unknowns() == times { Ok(()) } else { Err(told.journal()) });
    };
    noted("the torn receipt", 1);
    assert!(told.journal().contains("exit receipt") && told.journal().contains("cannot be read as JSON"));
    let status = told.status();
    assert_eq!(status["attempts"][0]["verdict"]["kind"], "unknown", "{status}");
    // The engine looks once a second, and says it once.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert_eq!(unknowns(), 1, "{}", told.journal());
    std::fs::write(&torn, "[]").unwrap();
    noted("another reason", 2);
    std::fs::remove_file(&torn).unwrap();
    world.until(&told.run, |s| s["attempts"][0]["verdict"]["kind"] == "running");
    told.tell();
    world.loopmux(["wait", &told.run]).exits(1);
    assert_eq!(told.status()["run"]["status"], "failed");
}

#[test]
fn an_engine_outlives_its_window_and_records_the_end() {
    let world = World::new();
    let told = Told::launch(&world, 3);
    let control = control_session(&world);
    world.tmux(["kill-session", "-t", &control]).exits(0);
    eventually("the journal", || {
        let journal = told.journal();
        if journal.contains("\"hangup\"") { Ok(()) } else { Err(journal) }
    });
    let status = told.status();
    assert_eq!(status["run"]["status"], "running", "{status}");
    assert_eq!(status["run"]["engine"]["state"], "running", "{status}");
    // The agent's own window is another session's.
    assert_eq!(status["attempts"][0]["evidence"]["window"], "present", "{status}");
    told.tell();
    world.loopmux(["wait", &told.run]).exits(1);
    let record = world.read(&told.run, "state.json");
    assert_eq!(
        (&record["status"], &record["outcome"]["end"]["code"]),
        (&"failed".into(), &3.into()),
        "{record}"
    );
}

#[test]
fn an_engine_outlives_its_server_and_records_the_loss() {
    let world = World::new();
    let told = Told::launch(&world, 3);
    world.tmux(["kill-server"]).exits(0);
    let status = world.until(&told.run, |s| s["attempts"][0]["evidence"]["hangup"] == "present");
    assert_eq!(status["run"]["status"], "running", "it ignores the hang-up: {status}");
    assert_eq!(status["run"]["engine"]["state"], "running", "{status}");
    told.tell();
    world.loopmux(["wait", &told.run]).exits(6);
    let record = world.read(&told.run, "state.json");
    assert_eq!(
        (&record["status"], &record["outcome"]["cause"]),
        (&"lost".into(), &"server-gone".into()),
        "{record}"
    );
}

/// The id of the project's control session, by its tag.
#[track_caller]
fn control_session(world: &World) -> String {
    let sessions = world.loopmux(["mux", "ls", "--json"]).exits(0).json()["data"]["sessions"].clone();
    let ours: Vec<&Value> = sessions
        .as_array()
        .unwrap()
        .iter()
        .filter(|s| s["run"] == "ctl" && s["ownership"] == "ours")
        .collect();
    assert_eq!(ours.len(), 1, "{sessions}");
    ours[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn the_next_launch_makes_the_control_session_anew_with_its_tags() {
    let world = World::new();
    let (first, _) = world.launched(&["sleep", "600"]);
    let before = control_session(&world);
    world.tmux(["kill-session", "-t", &before]).exits(0);
    let (second, _) = world.launched(&["sleep", "600"]);
    let after = control_session(&world);
    assert_ne!(before, after);
    for run in [&first, &second] {
        assert_eq!(world.status(run)["run"]["status"], "running");
    }
    // A session of the same name that somebody else made is not taken for it.
    world.tmux(["kill-session", "-t", &after]).exits(0);
    let name = world.run_dir(&second).join("../../control.json");
    let control: Value = serde_json::from_slice(&std::fs::read(name).unwrap()).unwrap();
    let name = control["sessions"][0]["name"].as_str().unwrap().to_owned();
    world.tmux(["new-session", "-d", "-s", &name, "sleep", "600"]).exits(0);
    let (third, _) = world.launched(&["sleep", "600"]);
    let anew = control_session(&world);
    let theirs =
        world.tmux(["display-message", "-p", "-t", &format!("={name}:"), "#{session_id} #{session_windows}"]);
    let theirs = theirs.exits(0).out;
    assert!(theirs.trim().ends_with(" 1") && !theirs.starts_with(&format!("{anew} ")), "{theirs} {anew}");
    world.loopmux(["stop", &first, &second, &third]).exits(0);
}

#[test]
fn a_server_that_our_own_client_started_does_not_hold_the_engine_lock() {
    let world = World::new();
    // The engine's own client makes the server here, and in the control session's window there the caller's.
    world.loopmux(["run", "--", "true"]).exits(0);
    let first = world.status("@last")["run"]["id"].as_str().unwrap().to_owned();
    // The session of a run that ended is gone; a detached one keeps its server.
    let second = world.detach(["true"]);
    world.loopmux(["wait", &second]).exits(0);
    let third = {
        world.loopmux(["run", "--park", "--", "true"]).exits(0);
        world.status("@last")["run"]["id"].as_str().unwrap().to_owned()
    };
    for run in [first, second, third] {
        let status = world.status(&run);
        assert_eq!(status["run"]["engine"]["state"], "gone", "{status}");
        assert_eq!(status["attempts"][0]["evidence"]["lease"], "free", "{status}");
        let dir = loopmux::run::dir::Dir::open(&world.run_dir(&run)).unwrap();
        assert_eq!(loopmux::run::locks::probe(&dir, "engine.lock"), Lease::Free);
    }
    assert!(alive(world.server()), "the server lives on");
}

#[test]
fn a_server_that_a_foreground_engine_started_does_not_hold_its_lock() {
    let world = World::new();
    world.loopmux(["run", "--park", "--", "true"]).exits(0);
    assert!(alive(world.server()), "the parked window keeps the server");
    let status = world.status("@last");
    assert_eq!(status["run"]["engine"]["state"], "gone", "{status}");
    let run = status["run"]["id"].as_str().unwrap();
    for lock in [world.run_dir(run).join("engine.lock"), world.run_dir(run).join("attempts/1/lease")] {
        let open = std::fs::read_dir(format!("/proc/{}/fd", world.server())).unwrap().flatten();
        let open: Vec<_> =
            open.filter_map(|e| std::fs::read_link(e.path()).ok()).filter(|p| *p == lock).collect();
        assert!(open.is_empty(), "{open:?}");
    }
}
