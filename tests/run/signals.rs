//! Signals, keys and terminals: each reaches the one that it is meant for, once, and every end has a receipt.

use crate::harness::{Screen, World, eventually, fixture, python, signal};
use loopmux::process::Signal;
use serde_json::Value;

/// Presses keys in the window of an attempt.
#[track_caller]
fn press(world: &World, attempt: &Value, keys: &[&str]) {
    let pane = attempt["mux"]["pane_id"].as_str().unwrap();
    world.tmux([&["send-keys", "-t", pane], keys].concat()).exits(0);
}

/// Waits until the window of an attempt shows a text, and gives all that it shows.
#[track_caller]
fn shows(world: &World, attempt: &Value, text: &str) -> String {
    let pane = attempt["mux"]["pane_id"].as_str().unwrap();
    eventually(&format!("{text:?} in the window"), || {
        let ran = world.tmux(["capture-pane", "-p", "-J", "-t", pane]);
        if ran.out.contains(text) { Ok(ran.out) } else { Err(format!("{ran:?}")) }
    })
}

/// The verdict on a run's first attempt, once the run has ended with that exit code.
#[track_caller]
fn ends(world: &World, run: &str, code: i32) -> Value {
    world.loopmux(["wait", run]).exits(code);
    let status = world.status(run);
    assert_eq!(status["attempts"][0]["evidence"]["exit"], "present", "{status}");
    status["attempts"][0]["verdict"].clone()
}

/// A run of the fixture that records every signal, and what it recorded.
struct Recorder {
    run: String,
    attempt: Value,
    log: std::path::PathBuf,
}

impl Recorder {
    fn start(world: &World, survived: &[&str]) -> Self {
        let log = world.file("signals");
        let script = fixture("recorder.py");
        let argv = [&[python(), &script, log.to_str().unwrap()], survived].concat();
        let (run, attempt) = world.launched(&argv);
        let recorder = Self { run, attempt, log };
        recorder.says("start");
        recorder
    }

    /// What arrived, without the first line.
    fn seen(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().skip(1).map(|l| l.split(' ').next().unwrap_or_default().to_owned()).collect()
    }

    fn says(&self, word: &str) {
        eventually(word, || {
            let text = std::fs::read_to_string(&self.log).unwrap_or_default();
            if text.lines().any(|l| l.starts_with(word)) { Ok(()) } else { Err(text) }
        });
    }
}

#[test]
fn ctrl_c_in_the_window_reaches_the_program_once() {
    let world = World::new();
    let recorder = Recorder::start(&world, &["INT"]);
    press(&world, &recorder.attempt, &["C-c"]);
    recorder.says("INT");
    press(&world, &recorder.attempt, &["C-\\"]);
    let verdict = ends(&world, &recorder.run, 1);
    assert_eq!((&verdict["kind"], &verdict["code"]), (&"exited".into(), &(100 + 3).into()), "{verdict}");
    assert_eq!(recorder.seen(), ["INT", "QUIT"]);
}

#[test]
fn ctrl_z_does_not_leave_the_program_stopped() {
    let world = World::new();
    let (run, attempt) = world.launched(&["cat"]);
    press(&world, &attempt, &["C-z"]);
    press(&world, &attempt, &["still", "Space", "here", "Enter"]);
    shows(&world, &attempt, "still here\nstill here");
    press(&world, &attempt, &["C-d"]);
    assert_eq!(ends(&world, &run, 0)["code"], 0);
}

#[test]
fn a_program_that_kills_its_whole_group_leaves_a_receipt() {
    let world = World::new();
    let killed = world.loopmux(["run", "--json", "--", "sh", "-c", "kill -9 0; sleep 600"]).exits(1).json();
    let verdict = &killed["data"]["attempts"][0]["verdict"];
    assert_eq!((&verdict["kind"], &verdict["signal"]), (&"exited".into(), &9.into()), "{verdict}");
    let script = "trap 'echo trapped' TERM; kill -TERM 0; echo after; exit 7";
    let trapped = world.loopmux(["run", "--json", "--", "sh", "-c", script]).exits(1).json();
    assert_eq!(trapped["data"]["attempts"][0]["verdict"]["code"], 7, "{trapped}");
    assert_eq!(world.loopmux(["logs", "@last"]).exits(0).out, "trapped\nafter\n", "the trap runs once");
}

#[test]
fn a_program_that_leaves_the_session_has_its_end_told() {
    let world = World::new();
    for (argv, code) in [
        (&["setsid", "--wait", "sh", "-c", "exit 4"][..], 4),
        (&["sh", "-c", "setsid sh -c 'exit 5'; exit $?"], 5),
        (
            &[
                python(),
                "-c",
                "import os\nif os.fork(): os._exit(os.waitstatus_to_exitcode(os.wait()[1]))\nos.setsid()\nos._exit(6)",
            ],
            6,
        ),
    ] {
        let ran = world.loopmux([&["run", "--json", "--"], argv].concat()).exits(1).json();
        assert_eq!(ran["data"]["attempts"][0]["verdict"]["code"], code, "{ran}");
    }
}

#[test]
fn an_interactive_shell_keeps_its_job_control() {
    let mut world = World::new();
    world.env.push(("PS1".into(), "ready> ".into()));
    let (run, attempt) = world.launched(&["bash", "--norc", "--noprofile", "-i"]);
    shows(&world, &attempt, "ready>");
    let pane = attempt["mux"]["pane_id"].as_str().unwrap();
    let in_front = |program: &str| {
        eventually(program, || {
            let format = "#{pane_current_command}";
            let now = world.tmux(["display-message", "-p", "-t", pane, format]).exits(0).out;
            if now.trim() == program { Ok(()) } else { Err(now) }
        });
    };
    press(&world, &attempt, &["sleep 600", "Enter"]);
    in_front("sleep");
    press(&world, &attempt, &["C-z"]);
    shows(&world, &attempt, "Stopped");
    in_front("bash");
    press(&world, &attempt, &["fg", "Enter"]);
    in_front("sleep");
    press(&world, &attempt, &["C-c"]);
    in_front("bash");
    shows(&world, &attempt, "^C\nready>");
    press(&world, &attempt, &["exit 6", "Enter"]);
    assert_eq!(ends(&world, &run, 1)["code"], 6);
}

#[test]
fn a_killed_full_screen_program_leaves_a_usable_window_that_is_parked() {
    let world = World::new();
    let argv = ["run", "-d", "--park", "--", python(), &fixture("tui.py"), "unfinished"];
    let run = world.loopmux(argv).exits(0).out.trim().to_owned();
    let status = world.until(&run, |s| s["attempts"][0]["verdict"]["kind"] == "running");
    let attempt = &status["attempts"][0];
    let pane = attempt["mux"]["pane_id"].as_str().unwrap();
    let fact = |format: &str| {
        world.tmux(["display-message", "-p", "-t", pane, format]).exits(0).out.trim().to_owned()
    };
    eventually("the full screen", || {
        let on = fact("#{alternate_on}#{mouse_any_flag}");
        if on == "11" { Ok(()) } else { Err(on) }
    });
    signal(world.cli(&run, 1), Signal::Kill);
    assert_eq!(ends(&world, &run, 1)["signal"], 9);
    let shown = shows(&world, attempt, "press Enter to close");
    assert!(shown.contains("before") && shown.contains("signal 9"), "{shown}");
    let modes = "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{insert_flag} #{wrap_flag} #{origin_flag} #{keypad_cursor_flag}";
    assert_eq!(fact(modes), "0 1 0 0 1 0 0");
    let list = world.loopmux(["list"]).exits(0).out;
    assert!(list.contains("parked"), "{list}");
    press(&world, attempt, &["Enter"]);
    eventually("the window's end", || {
        let panes = world.tmux(["list-panes", "-a", "-F", "#{pane_id}"]).exits(0).out;
        if panes.lines().any(|p| p == pane) { Err(panes) } else { Ok(()) }
    });
    assert_eq!(world.status(&run)["run"]["status"], "failed");
}

#[test]
fn a_window_that_is_parked_by_a_stop_is_no_survivor() {
    let world = World::new();
    let run = world.loopmux(["run", "-d", "--park", "--", "sleep", "600"]).exits(0).out.trim().to_owned();
    let status = world.until(&run, |s| s["attempts"][0]["verdict"]["kind"] == "running");
    let attempt = &status["attempts"][0];
    // Without the conditional kill, which takes the window along.
    let report = world.loopmux(["stop", "--json", &run]).exits(0).json()["data"].clone();
    assert_eq!(report["survived"].as_array().map(Vec::len), Some(0), "{report}");
    shows(&world, attempt, "press Enter to close");
    let status = world.status(&run);
    assert_eq!(status["run"]["status"], "stopped", "{status}");
    assert_eq!(status["attempts"][0]["evidence"]["lease"], "free", "{status}");
}

/// `loopmux run` in a terminal of its own.
fn foreground<'w>(world: &'w World, options: &[&str], script: &str) -> (Screen<'w>, String) {
    let program = world.program.to_str().unwrap();
    let argv = [&[program, "run"], options, &["--", "sh", "-c", script]].concat();
    let screen = Screen::new(world, "person", &argv);
    screen.shows("running;");
    let run = world.status("@last")["run"]["id"].as_str().unwrap().to_owned();
    (screen, run)
}

#[test]
fn ctrl_c_at_a_foreground_run_stops_it() {
    let world = World::new();
    let (screen, run) =
        foreground(&world, &[], "trap 'echo asked; exit 9' TERM; while :; do sleep 0.05; done");
    screen.press(&["C-c"]);
    assert_eq!(screen.ends(), "130");
    let status = world.status(&run);
    assert_eq!(status["run"]["status"], "stopped", "{status}");
    assert_eq!(status["attempts"][0]["verdict"]["code"], 9, "{status}");
    let said = world.loopmux(["logs", &run]).exits(0).out;
    assert_eq!(said.matches("asked").count(), 1, "it was asked once: {said}");
}

#[test]
fn a_second_ctrl_c_insists_at_once() {
    let world = World::new();
    let stubborn = "trap '' TERM HUP INT; while :; do sleep 600; done";
    // Far longer than the guard against hanging.
    let (screen, run) = foreground(&world, &["--grace", "1h"], stubborn);
    screen.press(&["C-c"]);
    screen.shows("once more to insist");
    assert_eq!(world.status(&run)["run"]["status"], "running");
    screen.press(&["C-c"]);
    assert_eq!(screen.ends(), "130");
    let status = world.status(&run);
    assert_eq!(status["run"]["status"], "stopped", "{status}");
    assert_eq!(status["attempts"][0]["evidence"]["lease"], "free", "{status}");
}

#[test]
fn a_request_to_end_at_a_foreground_run_stops_it() {
    let world = World::new();
    let child = world.start(["run", "--", "sleep", "600"]);
    let run = eventually("the run", || {
        let ran = world.loopmux(["status", "--json", "@last"]);
        let status = if ran.code == Some(0) { ran.json()["data"]["run"].clone() } else { Value::Null };
        if status["status"] == "running" {
            Ok(status["id"].as_str().unwrap().to_owned())
        } else {
            Err(ran.out)
        }
    });
    signal(child.id(), Signal::Term);
    crate::harness::finish_child(child).exits(130);
    assert_eq!(world.status(&run)["run"]["status"], "stopped");
}

#[test]
fn a_run_that_takes_too_long_is_ended_and_timed_out() {
    let world = World::new();
    for before in
        [&["run", "--timeout", "500ms", "--"][..], &["run", "--timeout", "500ms", "--grace", "200ms", "--"]]
    {
        let stubborn = if before.contains(&"--grace") { "trap '' TERM HUP;" } else { "" };
        let script = format!("{stubborn} while :; do sleep 0.05; done");
        world.loopmux([before, &["sh", "-c", &script]].concat()).exits(7);
        let status = world.status("@last");
        assert_eq!(status["run"]["status"], "timed-out", "{status}");
        assert_eq!(status["attempts"][0]["evidence"]["lease"], "free", "{status}");
    }
    let run = world.loopmux(["run", "-d", "--timeout", "500ms", "--", "sleep", "600"]).exits(0).out;
    world.loopmux(["wait", run.trim()]).exits(7);
    assert_eq!(world.read(run.trim(), "state.json")["status"], "timed-out");
}

#[test]
fn a_time_that_is_not_over_changes_nothing() {
    let world = World::new();
    world.loopmux(["run", "--timeout", "1h", "--", "sh", "-c", "exit 3"]).exits(1);
    assert_eq!(world.status("@last")["run"]["status"], "failed");
}

#[test]
fn a_closed_terminal_leaves_the_engine_going() {
    let world = World::new();
    let go = world.file("go");
    let script = format!("until [ -e {} ]; do sleep 0.05; done; exit 5", go.display());
    let (screen, run) = foreground(&world, &[], &script);
    let engine = crate::harness::pid(&world.read(&run, "state.json")["engine"]);
    screen.close();
    eventually("the journal", || {
        let journal = std::fs::read_to_string(world.run_dir(&run).join("journal.jsonl")).unwrap();
        if journal.contains("\"hangup\"") { Ok(()) } else { Err(journal) }
    });
    let status = world.status(&run);
    assert_eq!(
        (&status["run"]["status"], &status["run"]["engine"]["pid"]),
        (&"running".into(), &engine.into())
    );
    std::fs::write(go, "").unwrap();
    world.loopmux(["wait", &run]).exits(1);
    let record = world.read(&run, "state.json");
    assert_eq!(
        (&record["status"], &record["outcome"]["end"]["code"]),
        (&"failed".into(), &5.into()),
        "{record}"
    );
}
