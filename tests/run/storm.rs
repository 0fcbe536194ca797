//! Many at once, and ends at any moment. One at a time: `cargo xtask test` runs these last.

use crate::harness::{World, eventually, finish_child, say};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A world whose server has a session of the test's own, so that it lives on when everything else has ended.
pub(crate) fn world_with_a_server() -> (World, Resources) {
    let world = World::new();
    world.tmux(["new-session", "-d", "-s", "base", "sleep", "100000"]).exits(0);
    // The first client of all makes what stays.
    let resources = Resources::of(&world);
    (world, resources)
}

/// What a server has open.
pub(crate) struct Resources {
    descriptors: usize,
}

impl Resources {
    fn of(world: &World) -> Self {
        let descriptors = std::fs::read_dir(format!("/proc/{}/fd", world.server())).unwrap().count();
        Self { descriptors }
    }
}

fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                dirs.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found
}

/// Nothing of ended runs is left but their files: no process, mux session, descriptor or temporary file; and no file
/// is torn. Parked windows end with their session, which is ended here. `engine_killed` are runs whose engine was.
#[track_caller]
pub(crate) fn nothing_leaks(world: &World, before: &Resources, engine_killed: &[String]) {
    for file in files(&world.state()).iter().filter(|f| f.extension().is_some_and(|e| e == "json")) {
        let text = std::fs::read(file).unwrap();
        assert!(serde_json::from_slice::<Value>(&text).is_ok(), "{} is torn: {text:?}", file.display());
    }
    let control = world.loopmux(["mux", "ls", "--json"]).exits(0).json()["data"]["sessions"].clone();
    for session in control.as_array().unwrap().iter().filter(|s| s["run"] == "ctl") {
        world.tmux(["kill-session", "-t", session["id"].as_str().unwrap()]).exits(0);
    }
    eventually("the end of every session but the test's own", || {
        let sessions = world.tmux(["list-sessions", "-F", "#{session_name}"]).exits(0).out;
        if sessions == "base\n" { Ok(()) } else { Err(sessions) }
    });
    let server = world.server();
    eventually("the end of every process but the server", || {
        let left = world.processes().into_iter().map(|h| h.identity().pid).filter(|pid| *pid != server);
        let command = |pid: u32| {
            String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default())
                .replace('\0', " ")
        };
        let left: Vec<String> =
            left.map(command).filter(|c| !c.is_empty() && !c.starts_with("sleep 100000")).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    eventually("the server's descriptors", || {
        let now = Resources::of(world).descriptors;
        if now == before.descriptors {
            Ok(())
        } else {
            Err(format!("{} before, {now} now", before.descriptors))
        }
    });
    // What an engine was writing when it was killed stays with its run.
    let excused = |f: &Path| engine_killed.iter().any(|run| f.iter().any(|part| part == run.as_str()));
    let temporary = |f: &&PathBuf| f.extension().is_some_and(|e| e == "tmp") && !excused(f);
    let all = files(&world.state());
    let left: Vec<_> = all.iter().filter(temporary).collect();
    assert!(left.is_empty(), "{left:?}");
    let env = all.iter().find(|f| f.ends_with("env.json"));
    assert_eq!(env, None, "an environment stays on the disk");
    for project in std::fs::read_dir(world.state().join("projects")).unwrap().flatten() {
        let staging = std::fs::read_dir(project.path().join("staging")).unwrap().flatten();
        let staging: Vec<_> = staging.map(|e| e.path()).collect();
        assert!(staging.is_empty(), "{staging:?}");
    }
}

/// The sockets that engines and callers waited at.
fn sockets(world: &World) -> Vec<PathBuf> {
    let dir = world.file("run/loopmux");
    if dir.is_dir() { files(&dir) } else { Vec::new() }
}

#[test]
#[ignore = "soak"]
fn a_session_killed_right_behind_its_launch_is_never_a_start_without_an_end() {
    let (world, before) = world_with_a_server();
    let mut seen: BTreeMap<(String, bool), usize> = BTreeMap::new();
    for _ in 0..150 {
        let run = world.detach(["sleep", "600"]);
        let launch = world.run_dir(&run).join("attempts/1/launch.json");
        eventually("the launch", || if launch.exists() { Ok(()) } else { Err("no launch file".to_owned()) });
        let session = world.read(&run, "attempts/1/launch.json")["session"].as_str().unwrap().to_owned();
        eventually("the session", || {
            let ran = world.tmux(["kill-session", "-t", &format!("={session}")]);
            if ran.code == Some(0) { Ok(()) } else { Err(ran.err) }
        });
        let ran = world.loopmux(["wait", &run]);
        assert!(matches!(ran.code, Some(1 | 6)), "{ran:?}");
        let status = world.status(&run);
        let attempt = &status["attempts"][0];
        let kind = attempt["verdict"]["kind"].as_str().unwrap();
        let (start, exit) =
            (attempt["evidence"]["start"] == "present", attempt["evidence"]["exit"] == "present");
        match kind {
            "lost" => assert!(start && exit, "a start without an end: {status}"),
            "never-started" => assert!(!start && !exit, "{status}"),
            _ => panic!("{status}"),
        }
        *seen.entry((kind.to_owned(), start)).or_default() += 1;
    }
    say(&format!("{seen:?}"));
    nothing_leaks(&world, &before, &[]);
}

#[test]
#[ignore = "soak"]
fn no_byte_of_five_hundred_short_programs_is_missing() {
    let (world, before) = world_with_a_server();
    let small: Vec<u8> = (0..160u32).map(|n| b'a' + u8::try_from(n % 26).unwrap()).collect();
    let large: Vec<u8> = (0..65_536u32).map(|n| b'A' + u8::try_from(n * 7 % 26).unwrap()).collect();
    let sizes = [("small", small), ("large", large)];
    for (name, bytes) in &sizes {
        std::fs::write(world.file(name), bytes).unwrap();
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::SeqCst);
                    if n >= 500 {
                        return;
                    }
                    let (name, bytes) = &sizes[n % 2];
                    let file = world.file(name);
                    let label = format!("--name=program {n}");
                    world.loopmux(["run", &label, "--", "cat", file.to_str().unwrap()]).exits(0);
                    let ran = world.loopmux(["logs", "--raw", &format!("program {n}")]).exits(0);
                    assert!(
                        ran.out.as_bytes() == bytes,
                        "program {n}: {} of {} bytes",
                        ran.out.len(),
                        bytes.len()
                    );
                }
            });
        }
    });
    nothing_leaks(&world, &before, &[]);
    assert_eq!(sockets(&world), Vec::<PathBuf>::new());
}

/// Starts so many detached runs at once, run `n` of a program that exits with `n`.
fn launch_at_once(world: &World, n: usize) -> Vec<Child> {
    (0..n).map(|n| world.start(["run", "-d", "--", "sh", "-c", &format!("exit {n}")])).collect()
}

#[track_caller]
fn right_answers(world: &World, launched: Vec<Child>) {
    let ids: Vec<String> =
        launched.into_iter().map(|child| finish_child(child).exits(0).out.trim().to_owned()).collect();
    for (n, run) in ids.iter().enumerate() {
        world.loopmux(["wait", run]).exits(i32::from(n != 0));
        let status = world.status(run);
        assert_eq!(status["run"]["status"], if n == 0 { "succeeded" } else { "failed" }, "{n}: {status}");
        assert_eq!(status["attempts"][0]["verdict"]["code"], n, "{status}");
        assert_eq!(world.read(run, "state.json")["outcome"]["end"]["code"], n);
    }
    let list = world.loopmux(["list", "--json"]).exits(0).json();
    assert_eq!(list["data"]["runs"].as_array().map(Vec::len), Some(ids.len()));
}

#[test]
#[ignore = "soak"]
fn fifty_launches_at_once_give_fifty_right_answers() {
    let (world, before) = world_with_a_server();
    let launched = launch_at_once(&world, 50);
    right_answers(&world, launched);
    nothing_leaks(&world, &before, &[]);
    assert_eq!(sockets(&world), Vec::<PathBuf>::new());
}

#[test]
#[ignore = "soak"]
fn launches_are_not_disturbed_by_four_that_list_without_end() {
    let (world, before) = world_with_a_server();
    let done = AtomicBool::new(false);
    let listed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let list = world.loopmux(["list", "--json"]).exits(0).json();
                    for run in list["data"]["runs"].as_array().unwrap() {
                        assert!(
                            run["unknown"] == Value::from(vec![0; 0]) || run["status"] != "unknown",
                            "{run}"
                        );
                    }
                    listed.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let launched = launch_at_once(&world, 50);
            right_answers(&world, launched);
        }));
        done.store(true, Ordering::SeqCst);
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
    say(&format!("{} listings", listed.load(Ordering::SeqCst)));
    nothing_leaks(&world, &before, &[]);
}
