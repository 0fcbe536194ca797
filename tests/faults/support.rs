//! Giving faults to the commands of a world, and reading what they did.

use crate::harness::{World, alive, eventually};
use std::path::PathBuf;
use std::process::Child;

/// Stands in the environment of every command, and must never stay on the disk.
pub(crate) const SECRET: &str = "hush-4b1d";

/// The agent CLI of these tests. `stay` waits to be ended, `deaf` ignores every request to end, `exit N` exits, `leave`
/// exits 7 and leaves a process behind, `nap N` exits after a moment, `inside` stops its own run.
const AGENT: &str = r#"#!/bin/sh
case $1 in
stay) sleep 600 & trap 'kill $!; exit 143' TERM HUP INT; wait ;;
deaf) trap '' TERM HUP INT; sleep 600 ;;
exit) exit "$2" ;;
leave) sleep 600 & exit 7 ;;
nap) sleep 0.7; exit "$2" ;;
inside) "$LOOPMUX" stop --grace 200ms "$LOOPMUX_RUN"; sleep 600 ;;
esac
"#;

/// A world with an agent, and a secret in its environment.
pub(crate) fn world() -> World {
    equip(World::new())
}

/// Gives a world the same.
pub(crate) fn equip(mut world: World) -> World {
    world.script("agent", AGENT);
    world.env.push(("SEEDED_SECRET".into(), SECRET.into()));
    world.env.push(("LOOPMUX".into(), env!("CARGO_BIN_EXE_loopmux").into()));
    world
}

/// One line of a trace: a process came to a point.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reached {
    /// The process, by what it is for.
    pub role: &'static str,
    /// The step.
    pub step: String,
    /// `before` or `after`.
    pub side: String,
    /// The how manieth time.
    pub time: u64,
    /// Its pid.
    pub pid: u32,
}

impl Reached {
    fn parse(line: &str) -> Self {
        let fields: Vec<&str> = line.split('\t').collect();
        let [point, time, pid, args @ ..] = fields.as_slice() else {
            panic!("{line:?} is no line of a trace")
        };
        let (step, side) = point.rsplit_once('.').expect("a point");
        Self {
            role: role(args),
            step: step.to_owned(),
            side: side.to_owned(),
            time: time.parse().expect("a number"),
            pid: pid.parse().expect("a pid"),
        }
    }

    /// The fault that lets a process of the same kind die there.
    pub(crate) fn death(&self) -> String {
        format!("die:{}.{}@{}~{}", self.step, self.side, self.time, word(self.role))
    }

    /// The fault that lets a process of the same kind have no room for it.
    pub(crate) fn full(&self) -> String {
        format!("full:{}@{}~{}", self.step, self.time, word(self.role))
    }

    /// Whether both are the same place, whoever came to it.
    pub(crate) fn same_place(&self, other: &Self) -> bool {
        (self.role, &self.step, &self.side, self.time) == (other.role, &other.step, &other.side, other.time)
    }
}

/// What a process is for, by its arguments.
fn role(args: &[&str]) -> &'static str {
    const COMMANDS: [&str; 13] = [
        "run", "engine", "sink", "explain", "stop", "delete", "cleanup", "resume", "archive", "restore",
        "clean", "wait", "list",
    ];
    match args {
        ["keep", dir] if dir.contains("/engine/") => "keep-engine",
        ["keep", ..] => "keep",
        [first, ..] => COMMANDS.into_iter().find(|c| c == first).unwrap_or("other"),
        [] => "other",
    }
}

/// The argument by which a fault finds processes of a role.
pub(crate) fn word(role: &str) -> &str {
    match role {
        "keep" => "/attempts/",
        "keep-engine" => "/engine/",
        other => other,
    }
}

/// The trace of a world.
pub(crate) struct Trace(PathBuf);

impl Trace {
    pub(crate) fn of(world: &World) -> Self {
        Self(world.file("trace"))
    }

    /// The fault that writes it.
    pub(crate) fn fault(&self) -> String {
        format!("trace:{}", self.0.display())
    }

    /// What it says by now.
    pub(crate) fn read(&self) -> Vec<Reached> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(Reached::parse).collect()
    }

    /// Waits until a process has come to a place.
    #[track_caller]
    pub(crate) fn await_place(&self, place: &Reached, when: &str) {
        eventually(&format!("{when}: the place"), || {
            let all = self.read();
            let there = all.iter().any(|r| r.same_place(place));
            there.then_some(()).ok_or_else(|| format!("not reached; {} other points were", all.len()))
        });
    }

    /// Waits until a process has died at a place, and it is certain that it died there: it went no further.
    #[track_caller]
    pub(crate) fn await_death(&self, place: &Reached, when: &str) {
        eventually(&format!("{when}: the death"), || {
            let all = self.read();
            let Some(at) = all.iter().position(|r| r.same_place(place)) else {
                return Err(format!("not reached; {} other points were", all.len()));
            };
            let pid = all[at].pid;
            assert!(!all[at + 1..].iter().any(|r| r.pid == pid), "{pid} went on after {place:?}");
            if alive(pid) { Err(format!("{pid} lives")) } else { Ok(()) }
        });
    }
}

/// Starts a command with faults. Windows that it makes inherit them.
pub(crate) fn start_with<S: AsRef<std::ffi::OsStr>>(world: &World, args: &[S], faults: &str) -> Child {
    let mut command = world.command(args);
    command.env("LOOPMUX_FAULT", faults);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command.spawn().expect("loopmux starts")
}

/// Takes the faults out of the environment that the server gives to new windows.
pub(crate) fn heal(world: &World) {
    // Without a server there is nothing to heal.
    let _ = world.tmux(["set-environment", "-gu", "LOOPMUX_FAULT"]);
}

/// A place at which somebody waits until the test lets it go on.
pub(crate) struct Gate(PathBuf);

impl Gate {
    /// A gate of a world; `name` tells it from others.
    pub(crate) fn new(world: &World, name: &str) -> Self {
        Self(world.file(&format!("gate-{name}")))
    }

    /// The fault that lets a process wait here.
    pub(crate) fn at(&self, point: &str) -> String {
        format!("hold:{point}:{}", self.0.display())
    }

    /// Waits until somebody waits.
    #[track_caller]
    pub(crate) fn reached(&self) {
        let mut mark = self.0.clone().into_os_string();
        mark.push(".reached");
        let mark = PathBuf::from(mark);
        eventually("somebody at the gate", || {
            mark.exists().then_some(()).ok_or_else(|| format!("no {}", mark.display()))
        });
    }

    /// Lets everybody go on.
    pub(crate) fn open(&self) {
        std::fs::write(&self.0, "").expect("an open gate");
    }
}

/// What runs in a session of a person's own, which keeps the server up.
pub(crate) const RESIDENT: [&str; 2] = ["sleep", "86399"];

/// A server with a session of a person's own.
#[track_caller]
pub(crate) fn server(world: &World) {
    world.tmux(["new-session", "-d", "-s", "mine", RESIDENT[0], RESIDENT[1]]).exits(0);
}

/// The same; new windows get faults.
#[track_caller]
pub(crate) fn server_with(world: &World, faults: &str) {
    server(world);
    world.tmux(["set-environment", "-g", "LOOPMUX_FAULT", faults]).exits(0);
}
