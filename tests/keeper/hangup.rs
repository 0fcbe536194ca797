//! The terminal goes away: what is recorded, and what is said to be the cause.

use crate::support::*;
use loopmux::process::Signal;
use loopmux::run::files::name;
use loopmux::verdict::{Cause, End, Lease, Verdict};

/// A way to take the terminal away.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Window,
    Pane,
    Session,
    Respawn,
    Server,
    ServerTerm,
    ServerKill,
}

const ALL: [Cut; 7] =
    [Cut::Window, Cut::Pane, Cut::Session, Cut::Respawn, Cut::Server, Cut::ServerTerm, Cut::ServerKill];

impl Cut {
    fn does(self, mux: &Mux, attempt: &Attempt) {
        let session = format!("={}", attempt.session());
        let pane = attempt.start().unwrap().pane.unwrap();
        match self {
            Self::Window => mux.tmux(&["kill-window", "-t", pane.as_str()]),
            Self::Pane => mux.tmux(&["kill-pane", "-t", pane.as_str()]),
            Self::Session => mux.tmux(&["kill-session", "-t", &session]),
            Self::Respawn => {
                mux.tmux(&["respawn-window", "-k", "-t", pane.as_str(), "--", "sleep", "1000000"])
            }
            Self::Server => {
                // Its reply is any of three, and says nothing.
                mux.try_tmux(["kill-server"]);
                String::new()
            }
            Self::ServerTerm => {
                signal(mux.server(), Signal::Term);
                String::new()
            }
            Self::ServerKill => {
                mux.kill_server_hard();
                String::new()
            }
        };
    }

    fn cause(self) -> Cause {
        match self {
            Self::Window | Self::Pane | Self::Respawn => Cause::WindowKilled,
            Self::Session => Cause::SessionKilled,
            Self::Server | Self::ServerTerm | Self::ServerKill => Cause::ServerGone,
        }
    }
}

/// A session with a second window beside the attempt's, and a second pane in the attempt's own.
fn with_company(mux: &Mux, attempt: &Attempt) {
    let session = format!("={}:", attempt.session());
    mux.tmux(&["new-window", "-d", "-t", &session, "--", "sleep", "1000000"]);
}

#[test]
fn every_way_to_lose_the_terminal_is_a_loss_with_its_cause() {
    for cut in ALL {
        let mux = Mux::new();
        let (signals, spec) = Signals::recorder(&mux, &[]);
        let attempt = spec.write(&mux);
        mux.launch(&attempt);
        with_company(&mux, &attempt);
        signals.line("start");
        let keeper = attempt.keeper();
        cut.does(&mux, &attempt);
        let exit = attempt.ended();
        assert_eq!((&exit.end, exit.hangup), (&End::Code(101), true), "{cut:?} {}", attempt.dump());
        let hangup = until("the cause is written", || attempt.hangup());
        assert_eq!(hangup.cause, Some(cut.cause()), "{cut:?}: {hangup:?}");
        attempt.is_empty();
        until("the keeper is gone", || is_gone(&keeper).then_some(()));
        let Verdict::Lost { cause, end: Some(End::Code(101)), .. } = attempt.verdict() else {
            panic!("{cut:?}: {:?}", attempt.verdict())
        };
        assert_eq!(cause, cut.cause(), "{cut:?}");
        assert_eq!(signals.count("HUP"), 1, "{cut:?}: once, from the keeper: {:?}", signals.lines());
        assert_eq!(signals.count(&format!("HUP sent {}", keeper.pid)), 1, "{cut:?}");
    }
}

#[test]
fn a_killed_window_that_was_alone_is_a_killed_session() {
    let mux = Mux::new();
    let attempt = Spec::sh("read line").write(&mux);
    mux.launch(&attempt);
    attempt.program();
    Cut::Window.does(&mux, &attempt);
    attempt.ended();
    let hangup = until("the cause is written", || attempt.hangup());
    assert_eq!(hangup.cause, Some(Cause::SessionKilled), "{hangup:?}");
}

#[test]
fn a_server_that_goes_with_its_last_session_is_gone() {
    for cut in [Cut::Window, Cut::Session] {
        let mux = Mux::new();
        let attempt = Spec::sh("read line").write(&mux);
        mux.launch(&attempt);
        attempt.program();
        mux.tmux(&["kill-session", "-t", "=base"]);
        cut.does(&mux, &attempt);
        attempt.ended();
        let hangup = until("the cause is written", || attempt.hangup());
        assert_eq!(hangup.cause, Some(Cause::ServerGone), "{cut:?} {hangup:?}");
    }
}

#[test]
fn a_last_session_that_is_killed_on_a_server_that_stays_is_a_killed_session() {
    let mux = Mux::new();
    mux.tmux(&["set-option", "-s", "exit-empty", "off"]);
    let attempt = Spec::sh("read line").write(&mux);
    mux.launch(&attempt);
    attempt.program();
    mux.tmux(&["kill-session", "-t", "=base"]);
    Cut::Session.does(&mux, &attempt);
    attempt.ended();
    let hangup = until("the cause is written", || attempt.hangup());
    assert_eq!(hangup.cause, Some(Cause::SessionKilled), "{hangup:?}");
}

#[test]
fn a_program_that_ignores_the_hang_up_runs_on_and_its_end_is_a_loss() {
    for cut in ALL {
        let mux = Mux::new();
        let (signals, spec) = Signals::recorder(&mux, &["HUP", "CONT"]);
        let attempt = spec.write(&mux);
        mux.launch(&attempt);
        with_company(&mux, &attempt);
        signals.line("start");
        cut.does(&mux, &attempt);
        signals.line("HUP sent");
        until("the cause is written", || attempt.hangup());
        assert_eq!(attempt.lease(), Lease::Held, "{cut:?}");
        assert_eq!(attempt.verdict(), Verdict::Running { window_gone: Some(cut.cause()) }, "{cut:?}");
        signal(&attempt.program(), Signal::Term);
        let exit = attempt.ended();
        assert_eq!((exit.end, exit.hangup), (End::Code(115), true), "{cut:?}");
        attempt.is_empty();
    }
}

#[test]
fn a_stopped_program_sees_the_hang_up() {
    let mux = Mux::new();
    let (signals, spec) = Signals::recorder(&mux, &[]);
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    signals.line("start");
    let program = attempt.program();
    signal(&program, Signal::Stop);
    until("it is stopped", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", program.pid)).unwrap();
        stat.contains(") T ").then_some(())
    });
    Cut::Session.does(&mux, &attempt);
    let exit = attempt.ended();
    assert!(exit.hangup, "{exit:?}");
    attempt.is_empty();
}

#[test]
fn an_exit_before_the_server_is_killed_stays_an_exit() {
    let mux = Mux::new();
    let attempt = Spec::sh("exit 0").park().write(&mux);
    mux.launch(&attempt);
    attempt.exits(0);
    mux.kill_server_hard();
    until("the keeper is gone", || is_gone(&attempt.keeper()).then_some(()));
    let exit = attempt.exit().unwrap();
    assert_eq!((exit.end, exit.hangup), (End::Code(0), false));
    assert!(matches!(attempt.verdict(), Verdict::Exited { end: End::Code(0), .. }));
}

#[test]
fn an_end_at_the_moment_of_the_hang_up_is_a_loss() {
    let mux = Mux::new();
    // It sees its terminal go and exits 0 at once, like a program that reads to the end of its input.
    let attempt = Spec::sh("trap '' HUP; while read line; do :; done; exit 0").write(&mux);
    mux.launch(&attempt);
    attempt.program();
    Cut::Session.does(&mux, &attempt);
    let exit = attempt.ended();
    assert_eq!((exit.end, exit.hangup), (End::Code(0), true));
}

#[test]
fn a_hang_up_before_the_spawn_spawns_nothing() {
    let mux = Mux::new();
    let attempt = Spec::sh("echo x > started").write(&mux);
    let go = mux.home().join("go");
    mux.launch_with(&attempt, &format!("hold:unlink.env.json.after:{}", go.display()));
    until("it waits between the start receipt and the spawn", || {
        mux.home().join("go.reached").exists().then_some(())
    });
    let keeper = attempt.keeper();
    Cut::Session.does(&mux, &attempt);
    std::fs::write(&go, "").unwrap();
    let exit = attempt.ended();
    assert!(matches!(exit.end, End::SpawnError(_)) && exit.hangup, "{exit:?}");
    until("the keeper is gone", || is_gone(&keeper).then_some(()));
    let hangup = attempt.hangup().expect("the cause is written before the keeper ends");
    assert_eq!(hangup.cause, Some(Cause::SessionKilled), "{hangup:?}");
    assert!(attempt.spawned().is_none() && !mux.home().join("started").exists());
    assert!(matches!(attempt.verdict(), Verdict::Lost { cause: Cause::SessionKilled, .. }));
}

#[test]
fn a_hang_up_that_came_no_later_than_the_reap_is_seen() {
    let mux = Mux::new();
    let attempt = Spec::sh("exit 0").write(&mux);
    let go = mux.home().join("go");
    // Held after it has looked for signals and right before it reaps.
    mux.launch_with(&attempt, &format!("hold:keeper.reap.before:{}", go.display()));
    until("it is about to reap", || mux.home().join("go.reached").exists().then_some(()));
    Cut::Session.does(&mux, &attempt);
    std::fs::write(&go, "").unwrap();
    let exit = attempt.ended();
    assert_eq!((exit.end, exit.hangup), (End::Code(0), true));
}

#[test]
fn a_hang_up_that_a_stopped_server_cannot_explain_is_recorded_without_a_cause() {
    let mux = Mux::new();
    let (signals, spec) = Signals::recorder(&mux, &["HUP", "CONT"]);
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    signals.line("start");
    // The question is on its way to a server that is alive and silent.
    let wrapper = mux.home().join("slow-tmux");
    let script = format!("#!/bin/sh\nkill -STOP {}\nexec tmux \"$@\"\n", mux.server().pid);
    write_executable(&wrapper, &script);
    let launch = loopmux::run::files::LaunchFile {
        mux: loopmux::run::files::MuxRef { binary: wrapper.into(), ..attempt.launch.mux.clone() },
        ..attempt.launch.clone()
    };
    attempt.open().replace(name::LAUNCH, &launch).unwrap();
    Cut::Session.does(&mux, &attempt);
    let hangup = until("something is written", || attempt.hangup());
    assert_eq!((hangup.cause, hangup.class.as_str()), (None, "timed-out"), "{hangup:?}");
    signal(&attempt.program(), Signal::Term);
    let exit = attempt.ended();
    assert!(exit.hangup);
}

fn write_executable(path: &std::path::Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_question_that_cannot_be_asked_holds_up_nothing() {
    let mux = Mux::new();
    let attempt = Spec::sh("read line").write(&mux);
    mux.launch(&attempt);
    attempt.program();
    let mut launch = attempt.launch.clone();
    launch.mux.binary = std::ffi::OsString::from("/no/such/tmux").into();
    attempt.open().replace(name::LAUNCH, &launch).unwrap();
    Cut::Session.does(&mux, &attempt);
    let exit = attempt.ended();
    assert!(exit.hangup);
    let hangup = until("it is said", || attempt.hangup());
    assert_eq!((hangup.cause, hangup.class.as_str()), (None, "failed"), "{hangup:?}");
    assert!(hangup.said.contains("/no/such/tmux"), "{hangup:?}");
    attempt.is_empty();
}

#[test]
fn a_session_that_is_killed_right_behind_its_launch_never_has_a_start_without_an_end() {
    let mux = Mux::new();
    let rounds = 50;
    let mut started = 0;
    for round in 0..rounds {
        let attempt = Spec::sh("sleep 100000").write(&mux);
        mux.launch(&attempt);
        // From at once to well after the start.
        std::thread::sleep(std::time::Duration::from_micros(round * 400));
        mux.try_tmux(["kill-session", "-t", &format!("={}", attempt.session())]);
        let dir = attempt.dir.to_str().unwrap();
        until("no keeper is left", || {
            let keepers = loopmux::process::children(mux.server().pid).found;
            (!keepers.iter().any(|n| n.command.contains(dir))).then_some(())
        });
        until("nothing holds the lease", || (attempt.lease() != Lease::Held).then_some(()));
        if attempt.start().is_none() {
            assert!(attempt.exit().is_none() && attempt.spawned().is_none());
            continue;
        }
        started += 1;
        let exit = attempt.exit().unwrap_or_else(|| panic!("round {round}: {}", attempt.dump()));
        assert!(exit.hangup, "round {round}: {exit:?}");
        if matches!(exit.end, End::SpawnError(_)) {
            assert!(attempt.spawned().is_none(), "round {round}");
        }
        assert!(matches!(attempt.verdict(), Verdict::Lost { .. }), "round {round}");
    }
    assert!(started > 0, "some got as far as a start");
}
