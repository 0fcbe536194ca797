//! Programs that outlive their window.

use crate::harness::{STRANGER, Screen, World, alive, eventually, not_root, signal};
use loopmux::process::Signal;
use serde_json::Value;

const DEAF: &str = "trap '' HUP; exec sleep 600";
const STUBBORN: &str = "trap '' HUP TERM INT; while :; do sleep 600; done";

/// Status, list and wait say that it runs, and that its window is gone.
#[track_caller]
fn runs_without_window(world: &World, run: &str) -> Value {
    let status = world.until(run, |s| s["attempts"][0]["evidence"]["hangup"] == "present");
    assert_eq!(status["run"]["status"], "running", "{status}");
    let attempt = status["attempts"][0].clone();
    assert_eq!(attempt["verdict"]["kind"], "running", "{status}");
    assert_eq!(attempt["evidence"]["lease"], "held", "{status}");
    let page = world.loopmux(["status", run]).exits(0).out;
    assert!(page.contains("its window is gone"), "{page}");
    let list = world.loopmux(["list"]).exits(0).out;
    let row = list.lines().nth(1).unwrap_or_default();
    assert!(row.contains("running") && row.contains("gone"), "{list}");
    world.loopmux(["wait", "--timeout", "200ms", run]).exits(7);
    attempt
}

#[track_caller]
fn stop_proves_it(world: &World, run: &str, args: &[&str]) {
    let cli = world.cli(run, 1);
    assert!(alive(cli));
    let report = world.loopmux([&["stop", "--json", run], args].concat()).exits(0).json()["data"].clone();
    assert!(!alive(cli), "{report}");
    let gone = report["gone"].as_array().unwrap();
    assert!(gone.iter().any(|g| g["pid"] == cli), "{report}");
    assert_eq!(
        (&report["survived"], &report["unknown"]),
        (&Value::from(vec![0; 0]), &Value::from(vec![0; 0]))
    );
    let status = world.status(run);
    assert_eq!(status["run"]["status"], "stopped", "{status}");
    assert_eq!(world.read(run, "state.json")["status"], "stopped");
    assert_eq!(status["attempts"][0]["evidence"]["lease"], "free", "{status}");
}

#[test]
fn a_program_that_ignores_the_end_of_its_session_runs_until_it_is_stopped() {
    let world = World::new();
    let (run, attempt) = world.launched(&["sh", "-c", DEAF]);
    world.tmux(["kill-session", "-t", attempt["mux"]["session_id"].as_str().unwrap()]).exits(0);
    let attempt = runs_without_window(&world, &run);
    let why = attempt["verdict"]["why"].as_str().unwrap();
    assert!(why.contains("session was killed"), "{why}");
    stop_proves_it(&world, &run, &[]);
}

#[test]
fn a_program_that_ignores_the_end_of_its_server_runs_until_it_is_stopped() {
    let world = World::new();
    let (run, _) = world.launched(&["sh", "-c", DEAF]);
    signal(world.server(), Signal::Kill);
    let attempt = runs_without_window(&world, &run);
    let why = attempt["verdict"]["why"].as_str().unwrap();
    assert!(why.contains("server is gone"), "{why}");
    let page = world.loopmux(["status", &run]).exits(0).out;
    assert!(page.contains(&format!("loopmux stop {}", run.rsplit('-').next().unwrap())), "{page}");
    stop_proves_it(&world, &run, &[]);
}

#[test]
fn a_program_that_ignores_every_request_is_killed() {
    let world = World::new();
    let (run, attempt) = world.launched(&["sh", "-c", STUBBORN]);
    world.tmux(["kill-window", "-t", attempt["mux"]["window_id"].as_str().unwrap()]).exits(0);
    runs_without_window(&world, &run);
    stop_proves_it(&world, &run, &["--grace", "200ms"]);
}

#[test]
fn a_program_whose_window_is_gone_still_ends_by_itself_as_lost_with_its_own_code() {
    let world = World::new();
    let go = world.file("go");
    let script = format!("trap '' HUP; until [ -e {} ]; do sleep 0.05; done; exit 4", go.display());
    let (run, attempt) = world.launched(&["sh", "-c", &script]);
    world.tmux(["kill-session", "-t", attempt["mux"]["session_id"].as_str().unwrap()]).exits(0);
    runs_without_window(&world, &run);
    std::fs::write(go, "").unwrap();
    world.loopmux(["wait", &run]).exits(6);
    let status = world.status(&run);
    let verdict = &status["attempts"][0]["verdict"];
    assert_eq!((&verdict["kind"], &verdict["code"]), (&"lost".into(), &4.into()), "{status}");
}

#[test]
fn what_may_not_be_signalled_is_named_as_a_survivor() {
    if not_root("become another user") {
        return;
    }
    let world = World::without_kill();
    let user = format!("--reuid={STRANGER}");
    let (run, attempt) = world.launched(&["setpriv", &user, "sh", "-c", DEAF]);
    let cli = world.cli(&run, 1);
    eventually("the other user's program", || {
        let words = std::fs::read_to_string(format!("/proc/{cli}/cmdline")).unwrap_or_default();
        if words.starts_with("sleep") { Ok(()) } else { Err(words) }
    });
    world.tmux(["kill-session", "-t", attempt["mux"]["session_id"].as_str().unwrap()]).exits(0);
    runs_without_window(&world, &run);
    let ran = world.loopmux(["stop", "--json", "--grace", "100ms", &run]).exits(1);
    let data = ran.json()["data"].clone();
    let survived = data["survived"].as_array().unwrap();
    let named = survived.iter().find(|s| s["pid"] == cli).unwrap_or_else(|| panic!("{data}"));
    assert!(named["command"].as_str().unwrap().contains("sleep 600"), "{data}");
    assert!(named["why"].as_str().unwrap().contains("not permitted"), "{data}");
    assert!(alive(cli));
    let status = world.status(&run);
    assert_eq!(status["run"]["status"], "running", "{status}");
    // Whoever will write the end down is not killed, and the agent's keeper is not killed before its program.
    let engine = crate::harness::pid(&world.read(&run, "state.json")["engine"]);
    let page = world.loopmux(["stop", "--force", &run]).exits(1).out;
    assert!(page.contains("survived") && page.contains("sleep 600"), "{page}");
    assert!(alive(cli) && alive(engine), "{page}");
    assert!(
        page.contains(&format!("(user {STRANGER})")) && page.contains(&format!("--force {run}")),
        "{page}"
    );
    // The test itself may.
    signal(cli, Signal::Kill);
    world.loopmux(["wait", &run]).exits(1);
    assert_eq!(world.status(&run)["run"]["status"], "stopped");
}

#[test]
fn each_ctrl_c_tries_again_what_could_not_be_ended() {
    if not_root("become another user") {
        return;
    }
    let world = World::without_kill();
    let (program, user) = (world.program.to_str().unwrap(), format!("--reuid={STRANGER}"));
    let argv = [program, "run", "--grace", "100ms", "--", "setpriv", &user, "sh", "-c", DEAF];
    let screen = Screen::new(&world, "person", &argv);
    screen.shows("running;");
    let run = world.status("@last")["run"]["id"].as_str().unwrap().to_owned();
    let cli = world.cli(&run, 1);
    eventually("the other user's program", || {
        let words = std::fs::read_to_string(format!("/proc/{cli}/cmdline")).unwrap_or_default();
        if words.starts_with("sleep") { Ok(()) } else { Err(words) }
    });
    for times in 1..=2 {
        screen.press(&["C-c"]);
        eventually("the survivor's name", || {
            let shown = screen.text();
            let named = shown.matches(&format!("not everything has ended: {cli} `sleep 600`")).count();
            if named == times { Ok(()) } else { Err(shown) }
        });
        assert_eq!(world.status(&run)["run"]["status"], "running");
    }
    // The test itself may.
    signal(cli, Signal::Kill);
    assert_eq!(screen.ends(), "130");
    assert_eq!(world.status(&run)["run"]["status"], "stopped");
}
