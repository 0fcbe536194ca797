//! A stop from inside the run that it stops.

use crate::harness::{World, eventually, python};

/// Starts a program that stops its own run in some way, and waits for the end and for the report.
#[track_caller]
fn stops_itself(argv: &[&str]) {
    let world = World::new();
    let run = world.detach(argv);
    world.loopmux(["wait", &run]).exits(1);
    let status = world.status(&run);
    assert_eq!(status["run"]["status"], "stopped", "{status}");
    let attempt = &status["attempts"][0];
    assert!(matches!(attempt["verdict"]["kind"].as_str(), Some("exited" | "lost")), "{status}");
    let report = world.run_dir(&run).join("../../reports").join(format!("{run}.stop.txt"));
    let said = eventually("the report", || {
        let text = std::fs::read_to_string(&report).map_err(|e| format!("{}: {e}", report.display()))?;
        if text.contains("now: stopped") { Ok(text) } else { Err(text) }
    });
    assert!(!said.contains("survived") && !said.contains("unknown"), "{said}");
    eventually("a free lease", || {
        let status = world.status(&run);
        let lease = status["attempts"][0]["evidence"]["lease"].clone();
        if lease == "free" && status["run"]["leftovers"] == false { Ok(()) } else { Err(status.to_string()) }
    });
    // The stopper itself ends too.
    eventually("the stopper's end", || {
        let pids = || world.processes().into_iter().map(|h| h.identity().pid);
        let named = |pid: &u32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|b| *b == 0).any(|w| w == b"stop")
        };
        let left: Vec<u32> = pids().filter(named).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

const LOOPMUX: &str = env!("CARGO_BIN_EXE_loopmux");

#[test]
fn a_child_of_the_agent_stops_the_run() {
    stops_itself(&["sh", "-c", &format!("{LOOPMUX} stop $LOOPMUX_RUN; sleep 600")]);
}

#[test]
fn the_agent_itself_becomes_the_stopper() {
    stops_itself(&["sh", "-c", &format!("exec {LOOPMUX} stop $LOOPMUX_RUN")]);
}

#[test]
fn a_shell_in_the_background_of_the_agent_stops_the_run() {
    stops_itself(&["sh", "-c", &format!("( sleep 0.1; exec {LOOPMUX} stop $LOOPMUX_RUN ) & sleep 600")]);
}

#[test]
fn a_program_that_closes_descriptors_stops_the_run() {
    let script = format!(
        "import os, subprocess, time\nsubprocess.run([{LOOPMUX:?}, 'stop', os.environ['LOOPMUX_RUN']])\ntime.sleep(600)"
    );
    stops_itself(&[python(), "-c", &script]);
}

#[test]
fn a_stopper_without_the_runs_names_stops_the_run() {
    let clean = "env -i PATH=$PATH HOME=$HOME LOOPMUX_STATE_DIR=$LOOPMUX_STATE_DIR";
    stops_itself(&["sh", "-c", &format!("{clean} {LOOPMUX} stop $LOOPMUX_RUN; sleep 600")]);
}

#[test]
fn a_stopper_without_names_and_descriptors_stops_the_run() {
    let script = format!(
        "import os, subprocess, time\nkeep = {{n: os.environ[n] for n in ('PATH', 'HOME', 'LOOPMUX_STATE_DIR')}}\n\
         subprocess.run([{LOOPMUX:?}, 'stop', os.environ['LOOPMUX_RUN']], env=keep)\ntime.sleep(600)"
    );
    stops_itself(&[python(), "-c", &script]);
}

#[test]
fn a_stopper_in_a_session_of_its_own_stops_the_run() {
    stops_itself(&["sh", "-c", &format!("setsid {LOOPMUX} stop $LOOPMUX_RUN & sleep 600")]);
}

#[test]
fn an_agent_that_ignores_requests_is_stopped_from_inside() {
    let script =
        format!("trap '' HUP TERM; {LOOPMUX} stop --grace 200ms $LOOPMUX_RUN; while :; do sleep 600; done");
    stops_itself(&["sh", "-c", &script]);
}

#[test]
fn a_stop_of_another_run_from_inside_one_stays_where_it_is() {
    let world = World::new();
    let (other, _) = world.launched(&["sleep", "600"]);
    let script = format!("{LOOPMUX} stop {other}; echo stop said $?");
    let ran = world.loopmux(["run", "--json", "--", "sh", "-c", &script]).exits(0).json();
    let run = ran["data"]["run"]["id"].as_str().unwrap();
    let said = world.loopmux(["logs", run]).exits(0).out;
    assert!(said.contains("now: stopped") && said.contains("stop said 0"), "{said}");
    assert_eq!(world.status(&other)["run"]["status"], "stopped");
}
