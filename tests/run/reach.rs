//! A live run says, in its directory alone, how it is found and ended (rules L16 and L18), and no number in a file is ever
//! signalled for whatever process has it by now (rule L7).

use crate::harness::{World, alive, finish, pid, signal};
use loopmux::process::Signal;
use serde_json::Value;
use std::process::{Command, Stdio};

/// Ignores every request, and outlives its window.
const STUBBORN: &str = "trap '' HUP TERM INT; while :; do sleep 600; done";

/// The files that name what lives, with their bytes.
#[track_caller]
fn names(world: &World, run: &str) -> Vec<(&'static str, Vec<u8>)> {
    [
        "run.json",
        "attempts/1/launch.json",
        "attempts/1/start.json",
        "attempts/1/created.json",
        "attempts/1/spawned.json",
    ]
    .into_iter()
    .map(|file| {
        world.read(run, file);
        (file, std::fs::read(world.run_dir(run).join(file)).unwrap())
    })
    .collect()
}

/// What has the lease is named, by anybody who asks.
#[track_caller]
fn is_named(world: &World, run: &str, cli: u32, was: &[(&'static str, Vec<u8>)], when: &str) {
    assert!(alive(cli), "{when}");
    assert!(names(world, run) == was, "{when}: a file that names what lives has changed");
    let refused = world.loopmux(["delete", "--json", run]).exits(4).json();
    let holders = refused["data"]["kept"][0]["holders"].as_array().unwrap();
    assert!(holders.iter().any(|h| h["pid"] == cli), "{when}: {refused}");
    let launch = world.read(run, "attempts/1/launch.json");
    for known in
        [&launch["mux"]["binary"], &launch["mux"]["socket"], &launch["session"], &launch["tags"]["token"]]
    {
        assert!(known.as_str().is_some_and(|text| !text.is_empty()), "{when}: {launch}");
    }
}

#[test]
fn whatever_becomes_of_a_live_run_its_directory_names_what_lives() {
    let world = World::new();
    let (run, attempt) = world.launched(&["sh", "-c", STUBBORN]);
    let cli = world.cli(&run, 1);
    world.until(&run, |s| s["run"]["status"] == "running");
    let was = names(&world, &run);
    assert_eq!(world.read(&run, "attempts/1/spawned.json")["cli"]["pid"], cli);
    let record = || std::fs::read(world.run_dir(&run).join("state.json")).unwrap();
    let mut records = vec![record()];
    is_named(&world, &run, cli, &was, "running");
    world.tmux(["kill-session", "-t", attempt["mux"]["session_id"].as_str().unwrap()]).exits(0);
    world.until(&run, |s| s["attempts"][0]["evidence"]["hangup"] == "present");
    is_named(&world, &run, cli, &was, "without its window");
    signal(pid(&world.read(&run, "state.json")["engine"]), Signal::Kill);
    world.until(&run, |s| s["run"]["status"] == "orphaned");
    is_named(&world, &run, cli, &was, "without its engine");
    world.tmux(["kill-server"]);
    is_named(&world, &run, cli, &was, "without its server");
    let keeper = pid(&world.read(&run, "attempts/1/start.json")["keeper"]);
    signal(keeper, Signal::Kill);
    world.until(&run, |_| !alive(keeper));
    // Everything that ends a run by its record is refused, and so is another attempt.
    for act in [&["resume", "-d", &run][..], &["archive", &run], &["delete", "--unproven", &run]] {
        world.loopmux(act).exits(4);
    }
    is_named(&world, &run, cli, &was, "without its keeper");
    world.loopmux(["stop", "--grace", "100ms", &run]).exits(0);
    assert!(!alive(cli));
    records.push(record());
    assert_ne!(records[0], records[1], "the record is what changes");
    assert!(names(&world, &run) == was, "the end changes nothing of it");
}

/// A command with nothing but the state directory and the project, from a place of its own.
#[track_caller]
fn elsewhere(world: &World, args: &[&str]) -> Command {
    let empty = world.file("elsewhere");
    std::fs::create_dir_all(&empty).unwrap();
    let mut command = Command::new(&world.program);
    command
        .args(["--project", world.project().to_str().unwrap()])
        .args(args)
        .env_clear()
        .env("LOOPMUX_STATE_DIR", world.state())
        .env("PATH", &empty)
        .env("HOME", &empty)
        .current_dir(&empty)
        .stdin(Stdio::null());
    command
}

#[test]
fn a_run_is_found_and_ended_by_its_directory_alone() {
    for (script, engine_lives) in
        [("exec sleep 600", true), ("exec sleep 600", false), (STUBBORN, true), (STUBBORN, false)]
    {
        let world = World::new();
        let (run, _) = world.launched(&["sh", "-c", script]);
        let cli = world.cli(&run, 1);
        world.until(&run, |s| s["run"]["status"] == "running");
        if !engine_lives {
            signal(pid(&world.read(&run, "state.json")["engine"]), Signal::Kill);
            world.until(&run, |s| s["run"]["status"] == "orphaned");
        }
        let said = finish(elsewhere(&world, &["status", "--json", &run])).exits(0).json();
        let evidence = &said["data"]["attempts"][0]["evidence"];
        assert_eq!(
            (&evidence["lease"], &evidence["server"], &evidence["window"]),
            (&"held".into(), &"same".into(), &"present".into()),
            "{said}"
        );
        let attach = finish(elsewhere(&world, &["attach", "--json", &run])).exits(0).json();
        assert!(attach.to_string().contains(world.socket().to_str().unwrap()), "{attach}");
        let stop = finish(elsewhere(&world, &["stop", "--json", "--grace", "100ms", &run])).exits(0).json();
        let gone = stop["data"]["gone"].as_array().unwrap();
        assert!(!alive(cli) && gone.iter().any(|g| g["pid"] == cli), "{stop}");
        assert_eq!(world.status(&run)["run"]["status"], "stopped");
    }
}

/// At every moment of a launch the directory says enough to end what it comes to.
#[test]
fn a_launch_is_found_and_ended_by_its_directory_alone() {
    for point in [
        "launch.create.before",
        "launch.create.after~engine",
        "lock.lease.before~/attempts/",
        "write.start.json.before~/attempts/",
        "write.start.json.after~/attempts/",
        "keeper.spawn.after~/attempts/",
        "write.spawned.json.before~/attempts/",
        "write.created.json.before~engine",
    ] {
        let mut world = World::new();
        let gate = world.file("gate");
        let fault = if point.starts_with("launch.create.before") {
            // The first window is the engine's own.
            format!("hold:{point}~engine:{}", gate.display())
        } else {
            format!("hold:{point}:{}", gate.display())
        };
        world.env.push(("LOOPMUX_FAULT".into(), fault.into()));
        let mut launch = world.start(["run", "-d", "--", "sleep", "600"]);
        let reached = world.file("gate.reached");
        crate::harness::eventually(point, || {
            reached.exists().then_some(()).ok_or_else(|| format!("no {}", reached.display()))
        });
        let runs = world.state().join("projects");
        let project = std::fs::read_dir(runs).unwrap().flatten().next().unwrap().path();
        let run = std::fs::read_dir(project.join("runs")).unwrap().flatten().next().unwrap();
        let run = run.file_name().into_string().unwrap();
        let mut stop = elsewhere(&world, &["stop", "--json", "--grace", "100ms", &run]);
        let stop = stop.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The stop may wait for whoever is held; it was asked first.
        let asked = project.join("runs").join(&run).join("stop.json");
        crate::harness::eventually("the request", || {
            asked.exists().then_some(()).ok_or_else(|| format!("no {}", asked.display()))
        });
        std::fs::write(&gate, "").unwrap();
        let ran = crate::harness::finish_child(stop).exits(0);
        launch.wait().unwrap();
        let sleeps: Vec<u32> = world
            .processes()
            .into_iter()
            .map(|h| h.identity().pid)
            .filter(|pid| {
                std::fs::read(format!("/proc/{pid}/cmdline"))
                    .is_ok_and(|words| words.starts_with(b"sleep\x00600"))
            })
            .collect();
        assert!(sleeps.is_empty(), "{point}: {sleeps:?} after {ran:?}");
        world.env.clear();
        let status = world.until(&run, |s| s["run"]["engine"]["state"] == "gone");
        assert_eq!(status["run"]["status"], "stopped", "{point}: {status}");
        world.until(&run, |s| s["run"]["removable"] == true);
        world.loopmux(["delete", "--force", &run]).exits(0);
    }
}

/// An innocent process, which ends with its handle.
struct Bystander(std::process::Child);

impl Bystander {
    fn new(world: &World) -> Self {
        let mut command = world.bare("sleep");
        command.arg("86400");
        Self(command.spawn().unwrap())
    }

    /// A recorded identity, with this process's number.
    fn number_of(&self, recorded: &Value) -> Value {
        let mut changed = recorded.clone();
        changed["pid"] = self.0.id().into();
        changed
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_recorded_number_that_another_process_has_by_now_is_not_signalled() {
    let world = World::new();
    let (run, _) = world.launched(&["sh", "-c", STUBBORN]);
    let cli = world.cli(&run, 1);
    world.until(&run, |s| s["run"]["status"] == "running");
    let engine = pid(&world.read(&run, "state.json")["engine"]);
    let keeper = pid(&world.read(&run, "attempts/1/start.json")["keeper"]);
    signal(engine, Signal::Kill);
    world.until(&run, |s| s["run"]["status"] == "orphaned");
    signal(keeper, Signal::Kill);
    let others =
        [Bystander::new(&world), Bystander::new(&world), Bystander::new(&world), Bystander::new(&world)];
    for (other, (file, field)) in others.iter().zip([
        ("state.json", "engine"),
        ("attempts/1/start.json", "keeper"),
        ("attempts/1/start.json", "server"),
        ("attempts/1/spawned.json", "cli"),
    ]) {
        let mut value = world.read(&run, file);
        assert!(value[field]["pid"].is_u64(), "{file} has no {field}: {value}");
        value[field] = other.number_of(&value[field]);
        std::fs::write(world.run_dir(&run).join(file), serde_json::to_vec(&value).unwrap()).unwrap();
    }
    // It asks by what is recorded, and insists by what it finds.
    let stop = world.loopmux(["stop", "--grace", "100ms", "--json", &run]).exits(0).json();
    assert!(!alive(cli), "{stop}");
    for other in &others {
        assert!(alive(other.0.id()), "a bystander was ended: {stop}");
        assert!(!stop.to_string().contains(&format!("\"pid\":{},", other.0.id())), "{stop}");
    }
    world.loopmux(["delete", "--force", &run]).exits(0);
    assert!(others.iter().all(|other| alive(other.0.id())));
}

/// A kill that the multiplexer claims to have done, and that it has not done, is no end.
#[test]
fn a_stop_whose_multiplexer_only_says_that_it_killed_ends_the_run_all_the_same() {
    let world = World::new();
    let (run, _) = world.launched(&["sh", "-c", STUBBORN]);
    let cli = world.cli(&run, 1);
    world.until(&run, |s| s["run"]["status"] == "running");
    signal(pid(&world.read(&run, "state.json")["engine"]), Signal::Kill);
    let (asked, server) = (world.file("asked"), world.server());
    world.script(
        "tmux",
        &format!(
            "#!/bin/sh\ncase \"$*\" in *kill-*) echo >> {}; printf 'loopmux-done\\t{server}\\n'; exit 0;; esac\n\
             exec /usr/bin/tmux \"$@\"\n",
            asked.display()
        ),
    );
    let mut stop = world.command(["stop", "--json", "--grace", "100ms", &run]);
    stop.env("LOOPMUX_TMUX", world.bin().join("tmux"));
    let said = finish(stop).exits(0).json();
    assert!(!alive(cli), "{said}");
    assert!(said["data"]["gone"].as_array().unwrap().iter().any(|g| g["pid"] == cli), "{said}");
}
