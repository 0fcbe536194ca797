//! Kills at random moments of whatever there is to kill about a run.

use crate::harness::{World, alive, eventually, finish_child, say};
use crate::storm::{nothing_leaks, world_with_a_server};
use loopmux::process::{self, Handle, Opened, Signal};
use serde_json::Value;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant, SystemTime};

/// Whatever can be killed about a run.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Session,
    Window,
    Program,
    Keeper,
    Engine,
    Caller,
}

const VICTIMS: [Victim; 6] =
    [Victim::Session, Victim::Window, Victim::Program, Victim::Keeper, Victim::Engine, Victim::Caller];

/// A small generator: where the storm strikes is printed, so that it can be looked at again.
struct Dice(u64);

impl Dice {
    fn thrown() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Self(u64::try_from(now.as_nanos() % u128::from(u64::MAX)).unwrap() | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Kills it, if it is there at this moment.
fn kill(world: &World, run: Option<&str>, caller: &Child, victim: Victim) {
    let file = |name: &str| -> Option<Value> {
        let path = world.state().join("projects");
        let project = std::fs::read_dir(path).ok()?.flatten().next()?.path();
        serde_json::from_slice(&std::fs::read(project.join("runs").join(run?).join(name)).ok()?).ok()
    };
    let pid = |file: Option<Value>, of: &str| file.and_then(|f| f[of]["pid"].as_u64());
    let process = match victim {
        Victim::Session | Victim::Window => {
            let Some(created) = file("attempts/1/created.json") else { return };
            let (act, of) = if matches!(victim, Victim::Session) {
                ("kill-session", "session")
            } else {
                ("kill-window", "window")
            };
            world.tmux([act, "-t", created[of].as_str().unwrap()]);
            return;
        }
        Victim::Program => pid(file("attempts/1/spawned.json"), "cli"),
        Victim::Keeper => pid(file("attempts/1/start.json"), "keeper"),
        Victim::Engine => pid(file("state.json"), "engine"),
        Victim::Caller => Some(u64::from(caller.id())),
    };
    if let Some(pid) = process.and_then(|pid| u32::try_from(pid).ok())
        && alive(pid)
        && let Ok(Some(id)) = process::identify(pid)
        && let Opened::Handle(handle) = Handle::open(&id)
    {
        let _ = handle.signal(Signal::Kill);
    }
}

/// The newest run that none of `known` is.
fn new_run(world: &World, known: &[String]) -> Option<String> {
    let project = std::fs::read_dir(world.state().join("projects")).ok()?.flatten().next()?.path();
    let runs = std::fs::read_dir(project.join("runs")).ok()?.flatten();
    runs.filter_map(|e| e.file_name().into_string().ok()).find(|id| !known.contains(id))
}

#[test]
#[ignore = "soak"]
fn kills_at_random_moments_leave_the_truth_and_nothing_else() {
    let (world, before) = world_with_a_server();
    let mut dice = Dice::thrown();
    say(&format!("dice {}", dice.0));
    let mut runs: Vec<String> = Vec::new();
    let mut engine_killed: Vec<String> = Vec::new();
    for round in 0..60 {
        let victim = VICTIMS[round % VICTIMS.len()];
        let caller = world.start(["run", "-d", "--", "sh", "-c", "sleep 0.2; exit 5"]);
        let after = Duration::from_micros(dice.below(500_000));
        let strike = Instant::now() + after;
        while Instant::now() < strike {
            std::thread::sleep(Duration::from_micros(500));
        }
        kill(&world, new_run(&world, &runs).as_deref(), &caller, victim);
        let ran = finish_child(caller);
        say(&format!("{round}: {victim:?} after {after:?}: {:?}", ran.code));
        // A caller that was killed early leaves a launch that nobody asks for any more, or none.
        let run = match ran.code {
            Some(0) => Some(ran.out.trim().to_owned()),
            _ => {
                assert!(matches!(victim, Victim::Caller | Victim::Engine), "{victim:?}: {ran:?}");
                std::thread::sleep(Duration::from_millis(500));
                new_run(&world, &runs)
            }
        };
        let Some(run) = run else { continue };
        judge(&world, &run, victim);
        if matches!(victim, Victim::Engine) {
            engine_killed.push(run.clone());
        }
        runs.push(run);
    }
    eventually("the end of every staged launch", || {
        // The next launch sweeps what is older than any launch takes; none of these is.
        let project = std::fs::read_dir(world.state().join("projects")).unwrap().flatten().next().unwrap();
        for entry in std::fs::read_dir(project.path().join("staging")).unwrap().flatten() {
            let old = filetime_two_minutes_ago(&entry.path());
            assert!(old, "{}", entry.path().display());
        }
        world.loopmux(["run", "--", "true"]).exits(0);
        let left = std::fs::read_dir(project.path().join("staging")).unwrap().count();
        if left == 0 { Ok(()) } else { Err(format!("{left} staged")) }
    });
    nothing_leaks(&world, &before, &engine_killed);
}

/// Makes a directory older than any launch takes.
fn filetime_two_minutes_ago(path: &Path) -> bool {
    let dir = std::fs::File::open(path).unwrap();
    let then = SystemTime::now() - Duration::from_secs(600);
    dir.set_times(std::fs::FileTimes::new().set_modified(then)).is_ok()
}

/// What must be true of a run, whatever was killed about it and when.
#[track_caller]
fn judge(world: &World, run: &str, victim: Victim) {
    let mut ran = world.loopmux(["wait", run]);
    if ran.code == Some(8) {
        // An engine that was killed between two steps of its launch: a stop settles it.
        assert!(matches!(victim, Victim::Engine), "{victim:?}: {ran:?}");
        world.loopmux(["stop", run]).exits(0);
        ran = world.loopmux(["wait", run]);
    }
    let status = world.status(run);
    let attempt = &status["attempts"][0];
    let verdict = &attempt["verdict"];
    let by_itself = verdict["kind"] == "exited" && verdict["code"] == 5;
    let fits = match victim {
        Victim::Session | Victim::Window => {
            by_itself || matches!(verdict["kind"].as_str(), Some("lost" | "never-started"))
        }
        Victim::Program => by_itself || (verdict["kind"] == "exited" && verdict["signal"] == 9),
        Victim::Keeper => by_itself || (verdict["kind"] == "lost" && verdict["cause"] == "keeper-killed"),
        Victim::Engine => by_itself || status["run"]["status"] == "stopped" || attempt.is_null(),
        Victim::Caller => by_itself,
    };
    assert!(fits, "{victim:?}: {status}");
    assert!(matches!(ran.code, Some(1 | 6)), "{victim:?}: {ran:?} {status}");
    // Once more, and for ever.
    let again = world.status(run)["attempts"][0]["verdict"].clone();
    for fact in ["kind", "code", "signal", "cause"] {
        assert_eq!(again[fact], verdict[fact], "{fact}: {again}");
    }
}
