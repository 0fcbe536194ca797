//! Runs in the states that an act meets.

use crate::harness::{Ran, World, eventually, finish, pid, signal};
use loopmux::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A run of `sh -c` that has ended, and of which nothing is on its way any more: its id.
#[track_caller]
pub(crate) fn ended(world: &World, script: &str) -> String {
    let run = just_ended(world, script);
    settled(world, &run);
    run
}

/// Waits until everything of a run is written.
#[track_caller]
pub(crate) fn settled(world: &World, run: &str) {
    world.until(run, |s| s["run"]["removable"] == true && s["run"]["engine"]["state"] == "gone");
    let log = world.run_dir(run).join("attempts/1/output.log");
    eventually("the end of the log", || match std::fs::File::open(&log) {
        Ok(file) => file.try_lock_shared().map_err(|e| e.to_string()),
        Err(e) => Err(e.to_string()),
    });
}

/// A run of `sh -c` whose command has just returned: its id.
#[track_caller]
pub(crate) fn just_ended(world: &World, script: &str) -> String {
    let ran = world.loopmux(["run", "--json", "--", "sh", "-c", script]);
    ran.json()["data"]["run"]["id"].as_str().unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

/// The pid of a run's engine, by its record.
#[track_caller]
pub(crate) fn engine(world: &World, run: &str) -> u32 {
    pid(&world.read(run, "state.json")["engine"])
}

/// A run whose program lives and whose engine was killed: its id and the program's pid.
#[track_caller]
pub(crate) fn orphaned(world: &World, argv: &[&str]) -> (String, u32) {
    let (run, _) = world.launched(argv);
    let cli = world.cli(&run, 1);
    signal(engine(world, &run), Signal::Kill);
    world.until(&run, |s| s["run"]["status"] == "orphaned");
    (run, cli)
}

/// A run whose keeper and program were killed: lost, without the receipt that nothing is left.
#[track_caller]
pub(crate) fn keeper_killed(world: &World, argv: &[&str]) -> String {
    let (run, _) = world.launched(argv);
    let keeper = pid(&world.read(&run, "attempts/1/start.json")["keeper"]);
    let cli = world.cli(&run, 1);
    signal(keeper, Signal::Kill);
    eventually("the program's end", || {
        if crate::harness::alive(cli) { Err(format!("{cli} lives")) } else { Ok(()) }
    });
    world.loopmux(["wait", &run]).exits(6);
    assert!(!at(world, &run, "attempts/1/emptied.json"), "a killed keeper wrote a receipt");
    run
}

/// Whether a file of a run is there.
pub(crate) fn at(world: &World, run: &str, file: &str) -> bool {
    world.run_dir(run).join(file).symlink_metadata().is_ok()
}

/// The project's directory in the state directory of whichever project has runs.
pub(crate) fn yard(world: &World) -> PathBuf {
    let mut found = std::fs::read_dir(world.state().join("projects")).unwrap();
    found.next().unwrap().unwrap().path()
}

/// What lies in one place of the project.
pub(crate) fn names(world: &World, place: &str) -> Vec<String> {
    match std::fs::read_dir(yard(world).join(place)) {
        Ok(list) => {
            let mut names: Vec<String> =
                list.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(e) => panic!("{place}: {e}"),
    }
}

/// Whether a run is among the runs.
pub(crate) fn is_there(world: &World, run: &str) -> bool {
    names(world, "runs").iter().any(|n| n == run)
}

/// Asserts that a run was kept with that code, and gives what was said.
#[track_caller]
pub(crate) fn kept(ran: &Ran, run: &str, code: &str) -> Value {
    let said = ran.json();
    assert_eq!(ran.code, Some(4), "{said}");
    assert_eq!(said["error"]["code"], code, "{said}");
    assert_eq!(said["data"]["kept"][0]["run"], run, "{said}");
    for list in ["removed", "archived", "quarantined"] {
        assert_eq!(said["data"][list], serde_json::json!([]), "{said}");
    }
    said
}

/// A command with faults.
pub(crate) fn faulty(world: &World, fault: &str, args: &[&str]) -> Command {
    let mut command = world.command(args);
    command.env("LOOPMUX_FAULT", fault);
    command
}

/// Runs a command with faults to its end.
#[track_caller]
pub(crate) fn with_fault(world: &World, fault: &str, args: &[&str]) -> Ran {
    finish(faulty(world, fault, args))
}

/// Waits until a held step was reached.
#[track_caller]
pub(crate) fn reached(go: &Path) {
    let mut mark = go.as_os_str().to_owned();
    mark.push(".reached");
    eventually("the held step", || match Path::new(&mark).symlink_metadata() {
        Ok(_) => Ok(()),
        Err(e) => Err(e.to_string()),
    });
}

/// Lets a held step go on.
pub(crate) fn go(go: &Path) {
    std::fs::write(go, "").unwrap();
}

/// The names of all mux sessions.
#[track_caller]
pub(crate) fn sessions(world: &World) -> Vec<String> {
    let ran = world.tmux(["list-sessions", "-F", "#{session_name}"]);
    let mut names: Vec<String> = ran.out.lines().map(str::to_owned).collect();
    names.sort();
    names
}

/// The mux session of a run's attempt, by name.
#[track_caller]
pub(crate) fn session(world: &World, run: &str) -> String {
    world.read(run, "attempts/1/launch.json")["session"].as_str().unwrap().to_owned()
}
