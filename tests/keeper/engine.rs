//! The window of an engine: the same program without a lease, always parked.

use crate::support::*;
use loopmux::process::{self, Signal};
use loopmux::run::files::{Role, name};
use loopmux::verdict::End;

fn engine(spec: Spec, mux: &Mux) -> Attempt {
    Spec { role: Role::Engine, ..spec }.write(mux)
}

#[test]
fn an_engine_ends_and_its_window_waits() {
    let mux = Mux::new();
    let attempt = engine(Spec::sh("echo working; exit 6"), &mux);
    mux.launch(&attempt);
    let exit = attempt.ended();
    assert_eq!((&exit.end, exit.hangup, &exit.token), (&End::Code(6), false, &attempt.token));
    let screen = mux.shows(&attempt, "exited 6");
    assert!(screen.contains("working"), "{screen}");
    assert!(attempt.start().is_some(), "it is not executed a second time");
    for absent in [name::LEASE, name::OUTPUT, name::EMPTIED, name::LEFTOVERS, name::ENV] {
        assert!(!attempt.has(absent), "{absent}: {}", attempt.dump());
    }
    mux.keys(&attempt, &["Enter"]);
    until("the window is gone", || (!mux.has(&attempt)).then_some(()));
}

#[test]
fn an_engine_goes_on_without_its_window_and_its_end_is_recorded() {
    let mux = Mux::new();
    let (signals, spec) = Signals::recorder(&mux, &["HUP", "CONT"]);
    let attempt = engine(spec, &mux);
    mux.launch(&attempt);
    signals.line("start");
    let keeper = attempt.keeper();
    let program = attempt.program();
    mux.tmux(&["kill-session", "-t", &format!("={}", attempt.session())]);
    signals.line(&format!("HUP sent {}", keeper.pid));
    assert!(!is_gone(&program) && !is_gone(&keeper));
    signal(&keeper, Signal::Term);
    let exit = attempt.ended();
    assert_eq!((exit.end, exit.hangup), (End::Code(115), true));
    until("the keeper is gone", || is_gone(&keeper).then_some(()));
    assert!(!attempt.has(name::HANGUP));
}

#[test]
fn an_engine_outlives_its_killed_keeper() {
    let mux = Mux::new();
    let (signals, spec) = Signals::recorder(&mux, &["HUP", "CONT"]);
    let attempt = engine(spec, &mux);
    mux.launch(&attempt);
    signals.line("start");
    let program = attempt.program();
    signal(&attempt.keeper(), Signal::Kill);
    signals.line("HUP kernel");
    assert!(!is_gone(&program));
    assert_eq!(signals.count("TERM"), 0);
    signal(&program, Signal::Term);
    until("it ended", || is_gone(&program).then_some(()));
}

#[test]
fn what_an_engine_starts_is_not_its_keepers() {
    let mux = Mux::new();
    // A server that the engine starts must not stay a child of its window.
    let script =
        "sh -c 'sleep 100000 & echo $! > left.part; mv left.part left'; until [ -e go ]; do sleep 0.01; done";
    let attempt = engine(Spec::sh(script), &mux);
    mux.launch(&attempt);
    let left = until("it left something", || std::fs::read_to_string(mux.home().join("left")).ok());
    let left = identify(left.trim().parse().unwrap());
    let keeper = attempt.keeper();
    let children = process::children(keeper.pid);
    assert!(children.refused.is_empty());
    let ids: Vec<_> = children.found.iter().map(|n| n.id.clone()).collect();
    assert_eq!(ids, [attempt.program()], "only the engine itself");
    std::fs::write(mux.home().join("go"), "").unwrap();
    // And it is not waited for.
    mux.shows(&attempt, "exited 0");
    assert!(!is_gone(&left));
    signal(&left, Signal::Kill);
}

#[test]
fn an_engine_whose_directory_moves_writes_its_end_where_it_moved() {
    let mux = Mux::new();
    let attempt = engine(Spec::sh("until [ -e go ]; do sleep 0.01; done; exit 2"), &mux);
    mux.launch(&attempt);
    attempt.program();
    let moved = mux.home().join("renamed-in");
    std::fs::rename(&attempt.run_dir, &moved).unwrap();
    std::fs::write(mux.home().join("go"), "").unwrap();
    mux.shows(&attempt, "exited 2");
    assert!(moved.join(name::ENGINE).join("1").join(name::EXIT).exists());
    assert!(!attempt.run_dir.exists());
}

#[test]
fn an_engines_command_is_not_executed_a_second_time() {
    let mux = Mux::new();
    let attempt = engine(Spec::sh("echo x >> ran"), &mux);
    mux.launch(&attempt);
    mux.shows(&attempt, "exited 0");
    assert!(mux.try_launch(&attempt, "again"));
    until("the second window is gone", || (!mux.has_session("again")).then_some(()));
    assert_eq!(std::fs::read_to_string(mux.home().join("ran")).unwrap(), "x\n");
}
