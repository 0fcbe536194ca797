//! Launches: in the foreground, in a window, once more.

use crate::scene::{Act, PLAIN, Scene};
use crate::states;
use crate::support::start_with;

pub(crate) const SCENES: &[Scene] =
    &[FOREGROUND, DETACHED, WITHOUT_AN_ENGINE, REFUSED, RESUMED, RESUMED_IN_A_WINDOW];

/// A first launch of all, by an engine in the foreground. Everything is made anew.
pub(crate) const FOREGROUND: Scene = Scene {
    name: "a launch in the foreground",
    act: Act::Command(&["run", "--", "agent", "stay"]),
    drives: &[
        (
            "run",
            &[
                "make.projects",
                "make.project",
                "make.runs",
                "make.staging",
                "make.locks",
                "write.project.json",
                "create.run.lock",
                "make.run",
                "write.run.json",
                "write.state.json",
                "create.engine.lock",
                "make.attempts",
                "make.engine",
                "lock.engine",
                "launch.publish",
                "lock.run",
                "replace.state.json",
                "make.attempt",
                "create.lease",
                "write.env.json",
                "write.launch.json",
                "launch.create",
                "write.created.json",
            ],
        ),
        (
            "keep",
            &["lock.lease", "write.start.json", "unlink.env.json", "keeper.spawn", "write.spawned.json"],
        ),
        ("sink", &["create.output.log"]),
    ],
    ..PLAIN
};

/// An engine in a window of the control session.
pub(crate) const DETACHED: Scene = Scene {
    name: "a detached launch",
    act: Act::Command(&["run", "-d", "--", "agent", "stay"]),
    drives: &[
        (
            "run",
            &[
                "create.control.lock",
                "lock.control",
                "replace.control.json",
                "make.attempt",
                "write.env.json",
                "write.launch.json",
                "launch.create",
            ],
        ),
        ("keep-engine", &["write.start.json", "unlink.env.json", "keeper.spawn", "write.spawned.json"]),
        (
            "engine",
            &[
                "lock.engine",
                "write.state.json",
                "launch.publish",
                "lock.run",
                "replace.state.json",
                "make.attempt",
                "write.env.json",
                "launch.create",
                "write.created.json",
            ],
        ),
    ],
    ..PLAIN
};

/// The engine's window comes to nothing, and the run is given up.
pub(crate) const WITHOUT_AN_ENGINE: Scene = Scene {
    name: "a detached launch without an engine",
    act: Act::Command(&["run", "-d", "--", "agent", "stay"]),
    with: "die:write.start.json.before~/engine/",
    drives: &[("run", &["launch.give-up"])],
    ..PLAIN
};

/// A stop comes before the keeper has its lease.
pub(crate) const REFUSED: Scene = Scene {
    name: "a launch that is given up before its keeper comes",
    act: Act::Play(|world, _, faults| {
        let held = world.file("held");
        let hold = format!("{faults},hold:lock.lease.before~/attempts/:{}", held.display());
        let mut child = start_with(world, &["run", "-d", "--", "agent", "stay"], &hold);
        states::await_file(&world.file("held.reached"));
        child.wait().expect("the launch");
        let run = states::only(world, "runs").expect("a run");
        // Whatever it says: the engine that it waits for may have died.
        let mut stop = world.start(["stop", "--grace", "200ms", &run]);
        stop.wait().expect("the stop");
        std::fs::write(held, "").expect("the end of the hold");
    }),
    ends: true,
    drives: &[
        ("engine", &["create.cancelled", "unlink.env.json"]),
        ("keep", &["write.refused.json", "unlink.env.json"]),
    ],
    ..PLAIN
};

/// Another attempt, in the foreground.
pub(crate) const RESUMED: Scene = Scene {
    name: "a resume in the foreground",
    prepare: |world| {
        let run = states::running(world).expect("a run");
        world.loopmux(["stop", "--grace", "200ms", &run]).exits(0);
        Some(run)
    },
    act: Act::Command(&["resume", "RUN"]),
    drives: &[(
        "resume",
        &[
            "lock.run",
            "lock.engine",
            "resume.put-stop-aside",
            "replace.state.json",
            "make.attempt",
            "create.lease",
            "launch.create",
        ],
    )],
    ..PLAIN
};

/// The same, by an engine in a window.
pub(crate) const RESUMED_IN_A_WINDOW: Scene = Scene {
    name: "a detached resume",
    prepare: states::ended,
    act: Act::Command(&["resume", "-d", "RUN"]),
    drives: &[
        ("resume", &["lock.run", "make.attempt", "write.env.json", "write.launch.json", "launch.create"]),
        ("keep-engine", &["write.start.json", "unlink.env.json", "keeper.spawn"]),
        ("engine", &["lock.engine", "replace.state.json", "make.attempt"]),
    ],
    ..PLAIN
};
