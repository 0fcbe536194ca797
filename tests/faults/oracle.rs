//! What really lives, told by the kernel alone, and what the program may say and do then.

use crate::harness::{Ran, World, eventually};
use crate::support::{RESIDENT, SECRET};
use loopmux::process::{Handle, Life};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A process that a run started: its agent CLI, or something that the agent left behind.
#[derive(Debug)]
pub(crate) struct Living {
    pub handle: Handle,
    pub run: String,
    pub attempt: u64,
    /// The agent CLI itself.
    pub is_agent: bool,
    /// It does not wait for anybody to end it.
    pub ends_by_itself: bool,
}

/// Everything that the agents of a world are and have started, by the environment that their keeper gave them.
pub(crate) fn living(world: &World) -> Vec<Living> {
    world.processes().into_iter().filter_map(of_run).collect()
}

fn of_run(handle: Handle) -> Option<Living> {
    let pid = handle.identity().pid;
    let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let environ = read("environ");
    let value = |name: &str| {
        environ
            .split(|b| *b == 0)
            .find_map(|var| Some(String::from_utf8_lossy(var.strip_prefix(name.as_bytes())?).into_owned()))
    };
    let (run, attempt) = (value("LOOPMUX_RUN=")?, value("LOOPMUX_ATTEMPT=")?);
    let cmdline = read("cmdline");
    let words: Vec<&[u8]> = cmdline.split(|b| *b == 0).collect();
    // A command of ours that an agent called is no agent.
    if words.first().is_some_and(|w| w.ends_with(b"/loopmux")) {
        return None;
    }
    let is_agent = words.iter().any(|w| w.ends_with(b"bin/agent"));
    let ends_by_itself = words.iter().any(|w| [&b"exit"[..], b"leave", b"nap", b"0.7"].contains(w));
    Some(Living { handle, run, attempt: attempt.parse().ok()?, is_agent, ends_by_itself })
}

/// Whether it still runs.
pub(crate) fn lives(one: &Living) -> bool {
    !matches!(one.handle.life(), Life::Gone)
}

/// All runs as `list` has them.
#[track_caller]
pub(crate) fn listed(world: &World) -> Vec<Value> {
    let list = world.loopmux(["list", "--json"]).exits(0).json();
    list["data"]["runs"].as_array().expect("runs").clone()
}

/// The program's word against the kernel's: what lives is listed and not called ended, and no exit code is invented.
/// `codes` are those with which an agent may have exited.
#[track_caller]
pub(crate) fn judge(world: &World, codes: &[i64], when: &str) {
    let before = living(world);
    let runs = listed(world);
    let mut told = Vec::new();
    for run in &runs {
        let id = run["id"].as_str().expect("an id");
        told.push((id.to_owned(), world.status(id)));
    }
    // What lived all the while must be told in between.
    for one in before.iter().filter(|one| lives(one)) {
        let Some((_, status)) = told.iter().find(|(id, _)| *id == one.run) else {
            panic!("{when}: {one:?} lives, and its run is not listed: {runs:?}");
        };
        is_told_alive(one, status, when);
    }
    for (id, status) in &told {
        for attempt in status["attempts"].as_array().expect("attempts") {
            let code = &attempt["verdict"]["code"];
            let possible = code.is_null() || code.as_i64().is_some_and(|code| codes.contains(&code));
            assert!(possible, "{when}: run {id} has an exit code that no agent gave: {attempt}");
        }
    }
}

/// The same in few words, for a world in which others are at work: one listing, and what lived all the while.
#[track_caller]
pub(crate) fn judge_the_list(world: &World, when: &str) {
    let before = living(world);
    let runs = listed(world);
    for one in before.iter().filter(|one| lives(one)) {
        let run = runs.iter().find(|r| r["id"] == one.run.as_str());
        let run = run.unwrap_or_else(|| panic!("{when}: {one:?} lives, and its run is not listed: {runs:?}"));
        let status = run["status"].as_str().expect("a status");
        let over = ["succeeded", "failed", "lost", "stopped", "timed-out", "interrupted"].contains(&status);
        let of_the_latest = run["attempt"].as_u64() == Some(one.attempt);
        assert!(!(one.is_agent && over && of_the_latest), "{when}: {one:?} lives, and its run is {status}");
    }
}

#[track_caller]
pub(crate) fn is_told_alive(one: &Living, status: &Value, when: &str) {
    let attempts = status["attempts"].as_array().expect("attempts");
    let attempt = attempts.iter().find(|a| a["n"].as_u64() == Some(one.attempt));
    let attempt = attempt.unwrap_or_else(|| panic!("{when}: the attempt of {one:?} is not there: {status}"));
    let kind = attempt["verdict"]["kind"].as_str().expect("a kind");
    if one.is_agent {
        let ended = matches!(kind, "exited" | "lost" | "never-started");
        assert!(!ended, "{when}: {one:?} lives, and is called {kind}: {attempt}");
    }
    assert_eq!(status["run"]["removable"], false, "{when}: {one:?} lives, and its run may go: {status}");
}

/// An act that must not end anything: whatever lived before it lives after it.
#[track_caller]
pub(crate) fn spares(world: &World, act: &[&str]) -> Ran {
    let before = living(world);
    let ran = world.loopmux(act);
    for one in &before {
        assert!(lives(one), "{act:?} ended {one:?}\n{}{}", ran.out, ran.err);
        assert!(
            run_dir(world, &one.run).is_some(),
            "{act:?} removed the run of {one:?}\n{}{}",
            ran.out,
            ran.err
        );
    }
    ran
}

/// Everything dead can be removed: the runs are stopped, cleaned up, deleted, and nothing is left of them. With `unknown`
/// what nobody can tell of some is put aside first.
#[track_caller]
pub(crate) fn remove_all(world: &World, unknown: bool, when: &str) {
    age_empty_staging(world);
    // An act on any run settles what became of those that are in no place of their own.
    let ran = world.loopmux(["run", "--json", "--", "true"]);
    assert_eq!(ran.code, Some(0), "{when}: a run of its own\n{}{}", ran.out, ran.err);
    let own = ran.json()["data"]["run"]["id"].as_str().expect("an id").to_owned();
    let ran = world.loopmux(["delete", &own]);
    assert_eq!(ran.code, Some(0), "{when}: delete {own}\n{}{}", ran.out, ran.err);
    for run in listed(world) {
        let id = run["id"].as_str().expect("an id");
        let ran = world.loopmux(["stop", "--grace", "200ms", id]);
        let untold = unknown && ran.code == Some(8);
        assert!(ran.code == Some(0) || untold, "{when}: stop {id}: {:?}\n{}{}", ran.code, ran.out, ran.err);
        assert_eq!(leaked(world, Some(id)), Vec::<String>::new(), "{when}: after the stop of {id}");
        // Another one may have died over its environment, and is not stopped yet.
        if let Some(dir) = run_dir(world, id) {
            no_secret_in(&dir, &format!("{when}: after the stop of {id}"));
        }
    }
    no_secret(world, &format!("{when}: after all stops"));
    let ran = world.loopmux(["cleanup"]);
    assert_eq!(ran.code, Some(0), "{when}: cleanup\n{}{}", ran.out, ran.err);
    for run in listed(world) {
        let id = run["id"].as_str().expect("an id");
        let act: &[&str] = if unknown { &["delete", "--unproven", id] } else { &["delete", id] };
        let ran = world.loopmux(act);
        assert_eq!(ran.code, Some(0), "{when}: {act:?}\n{}{}", ran.out, ran.err);
    }
    remove_what_was_put_away(world, when);
    let left: Vec<PathBuf> = ["runs", "staging", "trash", "archive", "quarantine"]
        .iter()
        .flat_map(|place| entries(world, place))
        .collect();
    assert!(left.is_empty(), "{when}: {left:?} is left");
    no_secret(world, when);
    eventually(&format!("{when}: the end of every process"), || {
        let left = leaked(world, None);
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

/// Archived runs can be brought back, and quarantined ones erased.
#[track_caller]
fn remove_what_was_put_away(world: &World, when: &str) {
    let archives = world.loopmux(["archive", "--list", "--json"]).exits(0).json();
    for one in archives["data"]["archived"].as_array().expect("archives") {
        let id = one["run"].as_str().expect("an id");
        for words in [&["restore", id][..], &["delete", id]] {
            let ran = world.loopmux(words);
            assert_eq!(ran.code, Some(0), "{when}: {words:?}\n{}{}", ran.out, ran.err);
        }
    }
    let aside = world.loopmux(["list", "--quarantined", "--json"]).exits(0).json();
    for one in aside["data"]["quarantined"].as_array().expect("quarantined runs") {
        let id = one["run"].as_str().expect("an id");
        let ran = world.loopmux(["clean", "--quarantine", id, "--yes"]);
        assert_eq!(ran.code, Some(0), "{when}: clean --quarantine {id}\n{}{}", ran.out, ran.err);
    }
}

/// Processes of a run, or of all runs with everything of ours but the server.
fn leaked(world: &World, run: Option<&str>) -> Vec<String> {
    if let Some(run) = run {
        return living(world).iter().filter(|l| l.run == run).map(|l| format!("{l:?}")).collect();
    }
    let name = |pid: u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).replace('\0', " ")
    };
    let all = world.processes().into_iter().map(|h| name(h.identity().pid));
    let ours = |words: &String| {
        let resident = words.trim_end() == RESIDENT.join(" ");
        !words.is_empty() && !words.contains("/tmux ") && !words.starts_with("tmux") && !resident
    };
    all.filter(ours).collect()
}

/// The entries of a place of the world's projects.
pub(crate) fn entries(world: &World, place: &str) -> Vec<PathBuf> {
    let projects = std::fs::read_dir(world.state().join("projects")).into_iter().flatten().flatten();
    let places = projects.map(|p| p.path().join(place));
    places.flat_map(|p| std::fs::read_dir(p).into_iter().flatten().flatten()).map(|e| e.path()).collect()
}

/// The directory of a run, where it is in `runs/`.
pub(crate) fn run_dir(world: &World, id: &str) -> Option<PathBuf> {
    entries(world, "runs").into_iter().find(|p| p.file_name().is_some_and(|n| n == id))
}

/// A launch that died before it wrote anything is swept once it is older than any launch.
fn age_empty_staging(world: &World) {
    let is_empty = |p: &PathBuf| std::fs::read_dir(p).is_ok_and(|mut inside| inside.next().is_none());
    for entry in entries(world, "staging").into_iter().filter(is_empty) {
        let ran = crate::harness::finish({
            let mut touch = world.bare("touch");
            touch.args(["-d", "10 minutes ago"]).arg(&entry);
            touch
        });
        assert_eq!(ran.code, Some(0), "{}", ran.err);
    }
}

/// No file holds what stood in the environment of a launch that is over.
#[track_caller]
pub(crate) fn no_secret(world: &World, when: &str) {
    no_secret_in(&world.state(), when);
}

#[track_caller]
fn no_secret_in(dir: &Path, when: &str) {
    let found = files_with(dir, SECRET.as_bytes());
    assert!(found.is_empty(), "{when}: {found:?} hold a secret");
}

fn files_with(dir: &Path, needle: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(path) = left.pop() {
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                left.push(path);
            } else if std::fs::read(&path).is_ok_and(|b| b.windows(needle.len()).any(|w| w == needle)) {
                found.push(path);
            }
        }
    }
    found
}
