//! What still runs after the program's end, and after the keeper's.

use crate::support::*;
use loopmux::process::{self, Identity, Signal};
use loopmux::run::files::{HandoverFile, SCHEMA, name};
use loopmux::verdict::{Cause, Lease, Leftovers, Verdict};
use std::os::unix::fs::MetadataExt;

/// A program that leaves something behind, and the file that gets its pid.
fn leaving(mux: &Mux, kind: &str) -> (std::path::PathBuf, Spec) {
    let file = mux.home().join(format!("left-{kind}"));
    let spec = Spec::new(&[python(), &fixture("leave.py"), file.to_str().unwrap(), kind]);
    (file, spec)
}

#[track_caller]
fn left(file: &std::path::Path) -> Identity {
    let pid = until("it left something", || std::fs::read_to_string(file).ok());
    identify(pid.trim().parse().unwrap())
}

/// Ends a leftover with the test, whatever happens.
struct Kill(Identity);

impl Drop for Kill {
    fn drop(&mut self) {
        signal(&self.0, Signal::Kill);
    }
}

#[test]
fn each_kind_of_leftover_is_listed_and_waited_for() {
    let mux = Mux::new();
    for kind in ["background", "nohup", "setsid", "daemon", "bare", "session", "two"] {
        let (file, spec) = leaving(&mux, kind);
        let attempt = spec.write(&mux);
        mux.launch(&attempt);
        let left = Kill(left(&file));
        let exit = attempt.ended();
        assert!(!exit.hangup, "{kind}");
        let list = until("it is listed", || attempt.leftovers());
        assert!(list.processes.iter().any(|p| p.id == left.0), "{kind}: {list:?} without {:?}", left.0);
        assert!(list.processes.iter().any(|p| p.command.contains("100000")), "{kind}: {list:?}");
        assert_eq!(list.processes.len(), if kind == "two" { 2 } else { 1 }, "{kind}: {list:?}");
        assert_eq!(attempt.lease(), Lease::Held, "{kind}");
        let Verdict::Exited { leftovers: Leftovers::Some, .. } = attempt.verdict() else {
            panic!("{kind}: {:?}", attempt.verdict())
        };
        mux.shows(&attempt, "still running");
        assert!(!attempt.has(name::EMPTIED), "{kind}");
        for process in &list.processes {
            signal(&process.id, Signal::Kill);
        }
        attempt.is_empty();
        let list = attempt.leftovers().unwrap();
        assert!(list.processes.is_empty(), "{kind}: {list:?}");
        until("the window is gone", || (!mux.has(&attempt)).then_some(()));
    }
}

#[test]
fn a_killed_session_does_not_end_a_leftover_and_the_exit_stays_an_exit() {
    let mux = Mux::new();
    let (file, spec) = leaving(&mux, "setsid");
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    let left = Kill(left(&file));
    attempt.ended();
    until("it is listed", || attempt.leftovers());
    mux.tmux(&["kill-session", "-t", &format!("={}", attempt.session())]);
    // The keeper took the hang-up when it answers a signal again.
    let keeper = attempt.keeper();
    until("the terminal is gone", || (!mux.has(&attempt)).then_some(()));
    signal(&keeper, Signal::Term);
    assert!(!is_gone(&left.0) && !is_gone(&keeper));
    assert_eq!(attempt.lease(), Lease::Held);
    signal(&left.0, Signal::Kill);
    attempt.exits(5);
    until("the keeper is gone", || is_gone(&keeper).then_some(()));
    assert!(!attempt.has(name::HANGUP), "a hang-up after the end explains nothing");
}

#[test]
fn the_keyboard_is_taken_back_while_a_leftover_runs() {
    let mux = Mux::new();
    let (file, spec) = leaving(&mux, "background");
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    let _left = Kill(left(&file));
    mux.shows(&attempt, "still running");
    let keeper = attempt.keeper();
    until("the keeper has the keyboard", || {
        (mux.format(&attempt, "#{pane_current_command}") == "loopmux-keep").then_some(())
    });
    // The keeper lives through every key, and what is typed shows: the terminal is in its own state.
    mux.keys(&attempt, &["C-c", "C-z", "C-\\", "typed"]);
    mux.shows(&attempt, "typed");
    assert!(!is_gone(&keeper));
}

#[test]
fn a_leftover_that_forks_on_and_on_is_listed_and_its_end_is_seen() {
    let mux = Mux::new();
    let (file, spec) = leaving(&mux, "forker");
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    let left = Kill(left(&file));
    attempt.ended();
    until("it is listed", || attempt.leftovers().filter(|l| l.processes.iter().any(|p| p.id == left.0)));
    signal(&left.0, Signal::Kill);
    attempt.exits(5);
}

#[test]
fn a_keeper_that_is_killed_takes_its_program_with_it() {
    let mux = Mux::new();
    let (signals, spec) = Signals::recorder(&mux, &[]);
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    signals.line("start");
    let program = attempt.program();
    signal(&attempt.keeper(), Signal::Kill);
    until("the program is gone", || is_gone(&program).then_some(()));
    until("the lease is free", || (attempt.lease() == Lease::Free).then_some(()));
    until("it reads lost", || {
        let lost = matches!(attempt.verdict(), Verdict::Lost { cause: Cause::KeeperKilled, end: None, .. });
        lost.then_some(())
    });
    assert!(attempt.exit().is_none() && !attempt.has(name::EMPTIED));
}

#[test]
fn a_program_that_outlives_its_killed_keeper_holds_the_lease_and_is_found() {
    let mux = Mux::new();
    let (signals, spec) = Signals::recorder(&mux, &["HUP", "TERM", "CONT"]);
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    signals.line("start");
    let program = attempt.program();
    let keeper = attempt.keeper();
    signal(&keeper, Signal::Kill);
    // The kernel tells it twice, by the terminal and by its parent's death.
    signals.line("TERM");
    until("the keeper is gone", || is_gone(&keeper).then_some(()));
    assert_eq!(attempt.lease(), Lease::Held);
    assert_eq!(attempt.verdict(), Verdict::Running { window_gone: None });
    let lease = std::fs::metadata(attempt.dir.join(name::LEASE)).unwrap();
    let scan = process::holders(lease.dev(), lease.ino());
    assert!(scan.found.iter().any(|n| n.id == program), "{scan:?}");
    let session = attempt.spawned().unwrap();
    let scan = process::members(session.session, session.autogroup);
    assert!(scan.found.iter().any(|n| n.id == program), "{scan:?}");
    signal(&program, Signal::Kill);
    until("the lease is free", || (attempt.lease() == Lease::Free).then_some(()));
}

#[test]
fn the_keeper_does_not_wait_for_a_registered_stopper() {
    let mux = Mux::new();
    let (file, spec) = leaving(&mux, "session");
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    let stopper = Kill(left(&file));
    attempt.ended();
    until("it is a leftover", || attempt.leftovers());
    let handover = HandoverFile { schema: SCHEMA, stopper: stopper.0.clone() };
    attempt.open().write_once(name::HANDOVER, &handover).unwrap();
    let keeper = attempt.keeper();
    signal(&keeper, Signal::Term);
    attempt.exits(5);
    until("the keeper is gone", || is_gone(&keeper).then_some(()));
    assert!(!is_gone(&stopper.0));
    assert!(attempt.leftovers().unwrap().processes.is_empty(), "a stopper is no leftover");
}

#[test]
fn a_stopper_that_registered_before_the_end_is_never_listed() {
    let mux = Mux::new();
    let script = "setsid sleep 100000 & echo $! > stopper.part; mv stopper.part stopper; read line; exit 5";
    let attempt = Spec::sh(script).write(&mux);
    mux.launch(&attempt);
    let stopper = Kill(left(&mux.home().join("stopper")));
    let handover = HandoverFile { schema: SCHEMA, stopper: stopper.0.clone() };
    attempt.open().write_once(name::HANDOVER, &handover).unwrap();
    // A stopper closes the lease that it inherited; this one cannot, so the lock stays with it.
    mux.keys(&attempt, &["Enter"]);
    attempt.ended();
    until("nothing else is left", || attempt.has(name::EMPTIED).then_some(()));
    until("the keeper is gone", || is_gone(&attempt.keeper()).then_some(()));
    assert!(!is_gone(&stopper.0) && attempt.leftovers().is_none());
}

#[test]
fn an_unlock_by_the_program_does_not_free_the_lease_for_good() {
    // The one thing that the lease cannot survive: documented here, so that a change is noticed.
    let mux = Mux::new();
    let code = "import fcntl, os, time\n\
                for fd in range(3, 20):\n    \
                    try: fcntl.flock(fd, fcntl.LOCK_UN)\n    \
                    except OSError: pass\n\
                open('unlocked', 'w').close()\ntime.sleep(600)";
    let attempt = Spec::new(&[python(), "-c", code]).write(&mux);
    mux.launch(&attempt);
    until("it unlocked", || mux.home().join("unlocked").exists().then_some(()));
    assert_eq!(attempt.lease(), Lease::Free);
    assert!(!is_gone(&attempt.keeper()) && !is_gone(&attempt.program()));
}
