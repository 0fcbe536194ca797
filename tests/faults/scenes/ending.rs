//! Ends: by itself, by a hang-up, by a stop.

use crate::scene::{Act, PLAIN, Scene};
use crate::states;
use crate::support::start_with;

pub(crate) const SCENES: &[Scene] = &[
    EXIT,
    LEFTOVERS,
    HANG_UP,
    STOP,
    STOP_OF_A_DEAF_ONE,
    STOP_OF_AN_ORPHAN,
    STOP_OF_A_DEAF_ORPHAN,
    STOP_OF_A_LAUNCH,
    STOP_FROM_INSIDE,
];

/// The agent exits.
pub(crate) const EXIT: Scene = Scene {
    name: "an exit",
    act: Act::Command(&["run", "--", "agent", "exit", "7"]),
    drives: &[
        ("run", &["replace.state.json"]),
        ("keep", &["keeper.reap", "write.exit.json", "write.emptied.json"]),
    ],
    ..PLAIN
};

/// The agent exits and leaves something behind.
pub(crate) const LEFTOVERS: Scene = Scene {
    name: "an exit with leftovers",
    act: Act::Command(&["run", "--", "agent", "leave"]),
    drives: &[("keep", &["write.exit.json", "replace.leftovers.json"])],
    ..PLAIN
};

/// The session is killed under the agent.
pub(crate) const HANG_UP: Scene = Scene {
    name: "a hang-up",
    act: Act::Play(|world, _, faults| {
        let mut child = start_with(world, &["run", "-d", "--", "agent", "stay"], faults);
        assert!(child.wait().expect("the launch").success());
        let run = states::only(world, "runs").expect("a run");
        states::await_start(world, &run);
        let session =
            world.read(&run, "attempts/1/launch.json")["session"].as_str().expect("a name").to_owned();
        world.tmux(["kill-session", "-t", &format!("={session}")]).exits(0);
    }),
    ends: true,
    drives: &[("keep", &["write.exit.json", "write.emptied.json"]), ("explain", &["write.hangup.json"])],
    ..PLAIN
};

/// An agent that ends when it is asked.
pub(crate) const STOP: Scene = Scene {
    name: "a stop",
    prepare: states::running,
    act: Act::Command(&["stop", "RUN"]),
    ends: true,
    drives: &[("stop", &["lock.run", "write.stop.json", "stop.ask"])],
    ..PLAIN
};

/// One that does not.
pub(crate) const STOP_OF_A_DEAF_ONE: Scene = Scene {
    name: "a stop of one that does not listen",
    prepare: states::deaf,
    act: Act::Command(&["stop", "--grace", "100ms", "RUN"]),
    ends: true,
    drives: &[("stop", &["write.stop.json", "stop.ask", "stop.kill-window", "stop.kill"])],
    ..PLAIN
};

/// Nobody drives it: the stop itself writes the end down.
pub(crate) const STOP_OF_AN_ORPHAN: Scene = Scene {
    name: "a stop of an orphan",
    prepare: states::orphan,
    act: Act::Command(&["stop", "RUN"]),
    ends: true,
    drives: &[(
        "stop",
        &["lock.run", "write.stop.json", "stop.ask", "replace.state.json", "unlink.env.json"],
    )],
    ..PLAIN
};

/// The same with an agent that does not listen.
pub(crate) const STOP_OF_A_DEAF_ORPHAN: Scene = Scene {
    name: "a stop of an orphan that does not listen",
    prepare: states::deaf_orphan,
    act: Act::Command(&["stop", "--force", "RUN"]),
    ends: true,
    drives: &[("stop", &["stop.kill-window", "stop.kill", "replace.state.json"])],
    ..PLAIN
};

/// The launch was under way, and its engine is gone.
pub(crate) const STOP_OF_A_LAUNCH: Scene = Scene {
    name: "a stop of a launch without an engine",
    prepare: states::unlaunched,
    act: Act::Command(&["stop", "RUN"]),
    ends: true,
    drives: &[(
        "stop",
        &["lock.run", "write.stop.json", "create.cancelled", "unlink.env.json", "replace.state.json"],
    )],
    ..PLAIN
};

/// The agent stops its own run.
pub(crate) const STOP_FROM_INSIDE: Scene = Scene {
    name: "a stop from inside",
    act: Act::Command(&["run", "-d", "--", "agent", "inside"]),
    ends: true,
    drives: &[("stop", &["replace.handover.json", "write.stop.json", "stop.ask"])],
    ..PLAIN
};
