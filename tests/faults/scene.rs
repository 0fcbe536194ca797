//! A command whose every durable step is made the last one of whoever takes it, or finds the disk full.

use crate::harness::{Ran, World, alive, eventually, finish_child, say};
use crate::oracle::{entries, judge, listed, lives, living, remove_all, spares};
use crate::support::{Reached, Trace, heal, start_with, world};
use std::process::Child;

/// One command, with the state in which it begins.
#[derive(Clone, Copy)]
pub(crate) struct Scene {
    /// What happens, for messages.
    pub name: &'static str,
    /// Brings the world into the state, and gives the run that the command is about.
    pub prepare: fn(&World) -> Option<String>,
    /// What then happens.
    pub act: Act,
    /// Faults that are part of the scene.
    pub with: &'static str,
    /// It asks for an end, so that agents may go.
    pub ends: bool,
    /// Nobody can tell what became of its run.
    pub unknown: bool,
    /// What must hold whenever somebody died in it, or a step of it failed.
    pub check: fn(&World, Option<&str>, &str),
    /// The steps at which somebody dies: who, and which.
    pub drives: &'static [(&'static str, &'static [&'static str])],
}

/// What happens in a scene.
#[derive(Clone, Copy)]
pub(crate) enum Act {
    /// A command; `RUN` stands for the run.
    Command(&'static [&'static str]),
    /// Several things; the faults are the third argument. It ends only once the last of them is under way.
    Play(fn(&World, Option<&str>, &str)),
}

/// A scene in which nothing is special.
pub(crate) const PLAIN: Scene = Scene {
    name: "",
    prepare: |_| None,
    act: Act::Command(&[]),
    with: "",
    ends: false,
    unknown: false,
    check: |_, _, _| {},
    drives: &[],
};

/// The codes with which the agents of the scenes exit.
const CODES: [i64; 3] = [0, 7, 143];

/// What comes after a death. The wait is cut short: what lives is waited for without end.
const NEXT: [&[&str]; 11] = [
    &["stop", "--grace", "200ms", "RUN"],
    &["delete", "RUN"],
    &["wait", "--timeout", "100ms", "RUN"],
    &["delete", "--force", "--grace", "200ms", "RUN"],
    &["cleanup"],
    &["archive", "RUN"],
    &["resume", "-d", "RUN"],
    &["clean", "--hard", "--retain", "0"],
    &["delete", "--unproven", "RUN"],
    &["stop", "--force", "RUN"],
    &["restore", "RUN"],
];

impl Scene {
    fn start(&self, world: &World, run: Option<&str>, faults: &str) -> Option<Child> {
        let faults = if self.with.is_empty() { faults.to_owned() } else { format!("{faults},{}", self.with) };
        match self.act {
            Act::Command(words) => {
                let args: Vec<&str> =
                    words.iter().map(|w| if *w == "RUN" { run.expect("a run") } else { w }).collect();
                Some(start_with(world, &args, &faults))
            }
            Act::Play(play) => {
                play(world, run, &faults);
                None
            }
        }
    }

    fn is_in_the_foreground(&self) -> bool {
        matches!(self.act, Act::Command(words) if ["run", "resume"].contains(&words[0]) && !words.contains(&"-d"))
    }

    /// Every place at which the scene's steps are come to, in the order of a run without deaths.
    #[track_caller]
    fn places(&self) -> Vec<Reached> {
        let world = world();
        let run = (self.prepare)(&world);
        let trace = Trace::of(&world);
        let child = self.start(&world, run.as_deref(), &trace.fault());
        let wanted =
            || self.drives.iter().flat_map(|(role, steps)| steps.iter().map(move |step| (*role, *step)));
        eventually(&format!("{}: every step of it", self.name), || {
            let reached = trace.read();
            let missing: Vec<_> = wanted()
                .filter(|(role, step)| {
                    !reached.iter().any(|r| r.role == *role && r.step == *step && r.side == "after")
                })
                .collect();
            if missing.is_empty() { Ok(()) } else { Err(format!("{missing:?} were not reached")) }
        });
        let mut places: Vec<Reached> = Vec::new();
        for one in trace.read() {
            let driven = wanted().any(|(role, step)| one.role == role && one.step == step);
            // How often a keeper asks for ended children is up to the signals that it gets: only the first time is sure.
            let sure = one.step != "keeper.reap" || one.time == 1;
            if driven && sure && !places.iter().any(|p| p.same_place(&one)) {
                places.push(one);
            }
        }
        drop(world);
        if let Some(child) = child {
            finish_child(child);
        }
        thin(places)
    }

    /// Lets somebody die at every place, one world each, and looks at what the next commands make of it.
    #[track_caller]
    pub(crate) fn play(&self) {
        let places = self.places();
        say(&format!("{}: {} places to die at", self.name, places.len()));
        for (i, place) in places.iter().enumerate() {
            self.die(place, NEXT[i % NEXT.len()]);
        }
    }

    #[track_caller]
    fn die(&self, place: &Reached, next: &[&str]) {
        let Reached { role, step, side, time, .. } = place;
        let when = format!("{}: {role} died {side} {step} (time {time}), then {next:?}", self.name);
        let world = world();
        let run = (self.prepare)(&world);
        let trace = Trace::of(&world);
        let child = self.start(&world, run.as_deref(), &format!("{},{}", trace.fault(), place.death()));
        trace.await_death(place, &when);
        // What is in the foreground goes on as long as its agent.
        let mut child = child;
        if !self.is_in_the_foreground() {
            child.take().map(finish_child);
        }
        self.go_on(&world, run.as_deref(), next, &when);
        if let Some(child) = child {
            finish_child(child);
        }
    }

    /// Lets every step that needs the disk find it full once, one world each, and looks at what the next commands make
    /// of it.
    #[track_caller]
    pub(crate) fn play_on_full_disks(&self) {
        let places = self.places();
        let places: Vec<_> =
            places.iter().filter(|p| p.side == "before" && needs_the_disk(&p.step)).collect();
        assert!(!places.is_empty(), "{}: no step needs the disk", self.name);
        say(&format!("{}: {} steps that need the disk", self.name, places.len()));
        for (i, place) in places.into_iter().enumerate() {
            self.fail(place, NEXT[i % NEXT.len()]);
        }
    }

    #[track_caller]
    fn fail(&self, place: &Reached, next: &[&str]) {
        let Reached { role, step, time, .. } = place;
        let when = format!("{}: {role} had no room for {step} (time {time}), then {next:?}", self.name);
        let world = world();
        let run = (self.prepare)(&world);
        let trace = Trace::of(&world);
        let child = self.start(&world, run.as_deref(), &format!("{},{}", trace.fault(), place.full()));
        trace.await_place(place, &when);
        let mut child = child;
        if self.is_in_the_foreground() {
            child = await_end_or_agent(&world, child.expect("a command"), &when);
        } else if let Some(ran) = child.take().map(finish_child) {
            self.told_the_truth(&world, run.as_deref(), role, &ran, &when);
        }
        self.go_on(&world, run.as_deref(), next, &when);
        if let Some(child) = child {
            finish_child(child);
        }
    }

    /// Success means the effect, and a failure is said with its reason.
    #[track_caller]
    fn told_the_truth(&self, world: &World, run: Option<&str>, role: &str, ran: &Ran, when: &str) {
        let Act::Command(words) = self.act else { return };
        let said = format!("{when}: {:?}\n{}{}", ran.code, ran.out, ran.err);
        assert!(ran.code.is_some_and(|code| code != 101), "{said}");
        if ran.code != Some(0) {
            assert!(role != words[0] || ran.err.contains("No space left"), "{said}");
            return;
        }
        let there = |place: &str| {
            let of_run = |p: &std::path::PathBuf| {
                p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(run.expect("a run")))
            };
            entries(world, place).iter().any(of_run)
        };
        let done = match words[0] {
            "run" => listed(world).iter().any(|r| ran.out.contains(r["id"].as_str().expect("an id"))),
            "resume" => there("runs"),
            "stop" => !living(world).iter().any(|l| Some(l.run.as_str()) == run && lives(l)),
            "delete" | "clean" => !there("runs") && (words.contains(&"--unproven") || !there("quarantine")),
            "archive" => !there("runs") && there("archive"),
            "restore" => there("runs") && !there("archive") && !there("quarantine"),
            _ => true,
        };
        assert!(done, "{said}");
    }

    /// The world goes right again: what is told is so, the next command ends nothing that it was not asked to, and
    /// everything dead can be removed.
    #[track_caller]
    fn go_on(&self, world: &World, run: Option<&str>, next: &[&str], when: &str) {
        heal(world);
        await_orphans(world);
        (self.check)(world, run, when);
        judge(world, &CODES, when);
        let listed = listed(world);
        let about = run.or_else(|| listed.first().and_then(|r| r["id"].as_str()));
        if let Some(run) = about {
            let act: Vec<&str> = next.iter().map(|w| if *w == "RUN" { run } else { w }).collect();
            if self.ends || next[0] == "stop" || next.contains(&"--force") {
                world.loopmux(&act);
            } else {
                spares(world, &act);
            }
            judge(world, &CODES, when);
        }
        remove_all(world, self.unknown, when);
    }
}

/// What does something to the disk, and not to a process, a lock or the multiplexer.
pub(crate) fn needs_the_disk(step: &str) -> bool {
    !["lock.", "keeper.", "stop.", "cleanup.", "launch.create"].iter().any(|other| step.starts_with(other))
}

/// What is in the foreground goes on as long as its agent: waits for its end, or for an agent. Gives the command back
/// where it goes on.
#[track_caller]
fn await_end_or_agent(world: &World, child: Child, when: &str) -> Option<Child> {
    // It stays a zombie until its output is read.
    let ended = eventually(&format!("{when}: an end or an agent"), || {
        let agent = || living(world).iter().any(|l| l.is_agent && lives(l));
        match (alive(child.id()), agent()) {
            (false, _) => Ok(true),
            (true, true) => Ok(false),
            (true, false) => Err("neither".to_owned()),
        }
    });
    if !ended {
        return Some(child);
    }
    let ran = finish_child(child);
    assert_ne!(ran.code, Some(101), "{when}: {ran:?}");
    None
}

/// The kernel asks an agent to end when its keeper dies; one that does not refuse is given the time to.
fn await_orphans(world: &World) {
    eventually("the end of agents without a keeper", || {
        let orphans: Vec<_> = living(world)
            .into_iter()
            .filter(|l| l.is_agent && lives(l) && is_dying(l.handle.identity().pid))
            .collect();
        if orphans.is_empty() { Ok(()) } else { Err(format!("{orphans:?}")) }
    });
}

/// Its parent is no keeper any more, and it does not ignore the request.
fn is_dying(pid: u32) -> bool {
    let read =
        |pid: &str, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let status = read(&pid.to_string(), "status");
    let field = |name: &str| {
        status.lines().find_map(|l| l.strip_prefix(name)).map(str::trim).unwrap_or_default().to_owned()
    };
    let parent = read(&field("PPid:"), "cmdline");
    let ignored = u64::from_str_radix(&field("SigIgn:"), 16).unwrap_or(0);
    !parent.contains("loopmux") && ignored & (1 << (15 - 1)) == 0
}

/// Of steps that are taken many times in a row, the first, one in the middle and the last.
fn thin(places: Vec<Reached>) -> Vec<Reached> {
    let most = |one: &Reached| {
        places
            .iter()
            .filter(|p| (p.role, &p.step) == (one.role, &one.step))
            .map(|p| p.time)
            .max()
            .unwrap_or(1)
    };
    let kept = |one: &Reached| {
        let most = most(one);
        most <= 4 || one.time == 1 || one.time == most / 2 || one.time == most
    };
    places.iter().filter(|one| kept(one)).cloned().collect()
}
