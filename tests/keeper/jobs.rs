//! Signals and job control: one signal each time, a receipt each time, and nothing that hangs.

use crate::support::*;
use loopmux::process::Signal;
use loopmux::run::files::name;
use loopmux::verdict::{End, Lease, Verdict};

/// The state letter of a process.
fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat[stat.rfind(')').unwrap() + 2..].chars().next().unwrap()
}

#[test]
fn keys_reach_the_program_once_and_the_keeper_never() {
    let mux = Mux::new();
    let (signals, spec) = Signals::recorder(&mux, &["INT", "QUIT"]);
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    signals.line("start");
    mux.keys(&attempt, &["C-c"]);
    signals.line("INT kernel");
    mux.keys(&attempt, &["C-\\"]);
    signals.line("QUIT kernel");
    // The end is told by a signal that comes after both.
    signal(&attempt.program(), Signal::Term);
    attempt.exits(115);
    assert_eq!((signals.count("INT"), signals.count("QUIT")), (1, 1), "{:?}", signals.lines());
}

#[test]
fn a_signal_to_the_keeper_is_forwarded_once() {
    let mux = Mux::new();
    let (signals, spec) = Signals::recorder(&mux, &["INT", "QUIT", "USR1", "USR2", "HUP", "CONT", "WINCH"]);
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    signals.line("start");
    let keeper = attempt.keeper();
    for (number, said) in [
        ("INT", "INT"),
        ("QUIT", "QUIT"),
        ("USR1", "USR1"),
        ("USR2", "USR2"),
        ("HUP", "HUP"),
        ("WINCH", "WINCH"),
    ] {
        let sent = std::process::Command::new("kill").args(["-s", number, &keeper.pid.to_string()]).status();
        assert!(sent.unwrap().success());
        signals.line(&format!("{said} sent {}", keeper.pid));
    }
    signal(&keeper, Signal::Term);
    attempt.exits(115);
    for name in ["INT", "QUIT", "USR1", "USR2", "HUP", "WINCH", "TERM"] {
        assert_eq!(signals.count(&format!("{name} sent")), 1, "{:?}", signals.lines());
    }
    assert!(!attempt.has(name::HANGUP), "a HUP that a process sent is no hang-up");
}

#[test]
fn ctrl_z_does_not_leave_a_program_stopped_for_ever() {
    let mux = Mux::new();
    let (signals, spec) = Signals::recorder(&mux, &["CONT"]);
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    signals.line("start");
    let keeper = attempt.keeper();
    // That it goes on by itself is told by the CONT, which only follows a stop.
    mux.keys(&attempt, &["C-z"]);
    signals.line(&format!("CONT sent {}", keeper.pid));
    assert_eq!(mux.format(&attempt, "#{pane_current_command}"), python().rsplit('/').next().unwrap());
    signal(&attempt.program(), Signal::Term);
    attempt.exits(115);
    assert_eq!(signals.count("CONT"), 1);
}

#[test]
fn a_program_that_somebody_stopped_stays_stopped() {
    let mux = Mux::new();
    let (signals, spec) = Signals::recorder(&mux, &["CONT", "INT"]);
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    signals.line("start");
    let program = attempt.program();
    signal(&program, Signal::Stop);
    until("it is stopped", || (state(program.pid) == 'T').then_some(()));
    // A signal that the keeper must look at comes and goes, and changes nothing.
    signal(&attempt.keeper(), Signal::Int);
    until("the keeper sleeps again", || (state(attempt.keeper().pid) == 'S').then_some(()));
    assert_eq!(state(program.pid), 'T');
    assert_eq!(attempt.verdict(), Verdict::Running { window_gone: None });
    signal(&program, Signal::Cont);
    signals.line(&format!("CONT sent {}", std::process::id()));
    signals.line("INT sent");
    signal(&program, Signal::Term);
    attempt.exits(115);
    assert_eq!(signals.count("CONT"), 1, "{:?}", signals.lines());
}

#[test]
fn a_keeper_that_was_started_with_signals_blocked_works_all_the_same() {
    let mux = Mux::new();
    let attempt = Spec::sh("read line; exit 3").write(&mux);
    let code = "import os, signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n\
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nos.execv(sys.argv[1], sys.argv[1:])";
    let session = attempt.session();
    let dir = attempt.dir.to_str().unwrap();
    mux.tmux(&["new-session", "-d", "-s", &session, "--", python(), "-c", code, KEEP, "keep", dir]);
    attempt.program();
    mux.keys(&attempt, &["Enter"]);
    attempt.exits(3);
}

#[test]
fn a_program_that_kills_its_group_leaves_the_keeper_alive() {
    let mux = Mux::new();
    let attempt = Spec::sh("kill -9 0").write(&mux);
    mux.launch(&attempt);
    let exit = attempt.ended();
    assert_eq!((exit.end, exit.hangup), (End::Signal(9), false));
    attempt.is_empty();
}

#[test]
fn a_signal_to_its_own_group_is_seen_once_by_a_program() {
    let mux = Mux::new();
    let script = "trap 'echo TERM >> seen' TERM; trap 'echo HUP >> seen' HUP
                  kill -TERM 0; kill -HUP 0; sleep 0.3; exit 7";
    let attempt = Spec::sh(script).write(&mux);
    mux.launch(&attempt);
    attempt.exits(7);
    assert_eq!(std::fs::read_to_string(mux.home().join("seen")).unwrap(), "TERM\nHUP\n");
    assert!(!attempt.has(name::HANGUP), "its own HUP is no hang-up");
}

#[test]
fn a_program_cannot_leave_the_session_by_itself() {
    let mux = Mux::new();
    let code = "import os, sys\ntry: os.setsid()\nexcept PermissionError: sys.exit(9)";
    let attempt = Spec::new(&[python(), "-c", code]).write(&mux);
    mux.launch(&attempt);
    attempt.exits(9);
}

#[test]
fn a_program_that_moved_to_another_group_still_gets_what_is_for_it() {
    let mux = Mux::new();
    let code = "import os, signal, sys, time\n\
                signal.signal(signal.SIGTERM, lambda *a: sys.exit(8))\n\
                child = os.fork()\n\
                if child == 0:\n    os.setpgid(0, 0); time.sleep(600)\n\
                while True:\n    \
                    try: os.setpgid(0, child); break\n    \
                    except OSError: time.sleep(0.01)\n\
                os.kill(child, signal.SIGSTOP)\n\
                open('moved', 'w').close()\n\
                time.sleep(600)";
    let attempt = Spec::new(&[python(), "-c", code]).write(&mux);
    mux.launch(&attempt);
    until("it moved", || mux.home().join("moved").exists().then_some(()));
    signal(&attempt.keeper(), Signal::Term);
    let exit = attempt.ended();
    assert_eq!(exit.end, End::Code(8));
}

#[test]
fn an_interactive_shell_has_its_job_control() {
    let mux = Mux::new();
    let attempt = Spec::new(&["bash", "--norc", "--noprofile", "-i"]).var("PS1", "ready> ").write(&mux);
    mux.launch(&attempt);
    mux.shows(&attempt, "ready>");
    mux.keys(&attempt, &["sleep 1000", "Enter"]);
    until("sleep has the keyboard", || {
        (mux.format(&attempt, "#{pane_current_command}") == "sleep").then_some(())
    });
    mux.keys(&attempt, &["C-z"]);
    mux.shows(&attempt, "Stopped");
    mux.keys(&attempt, &["jobs", "Enter", "fg", "Enter"]);
    until("sleep has it again", || {
        (mux.format(&attempt, "#{pane_current_command}") == "sleep").then_some(())
    });
    mux.keys(&attempt, &["C-c"]);
    until("the shell has it", || (mux.format(&attempt, "#{pane_current_command}") == "bash").then_some(()));
    mux.keys(&attempt, &["exit 4", "Enter"]);
    attempt.exits(4);
}

#[test]
fn a_program_that_lost_the_terminal_to_a_killed_child_can_read_again() {
    let mux = Mux::new();
    let attempt = Spec::new(&[python(), &fixture("lend.py")]).write(&mux);
    mux.launch(&attempt);
    mux.shows(&attempt, "lent");
    // The killed shell left the terminal so that Enter is no line feed.
    mux.keys(&attempt, &["hello", "C-j"]);
    attempt.exits(3);
    let log = String::from_utf8_lossy(&attempt.log()).into_owned();
    assert!(log.contains("read 'hello\\n'"), "{log}");
}

#[test]
fn a_program_that_closes_its_terminal_is_waited_for() {
    let mux = Mux::new();
    let code = "import os, sys, time\nfor fd in range(3): os.close(fd)\n\
                open('closed', 'w').close()\n\
                while not os.path.exists('go'): time.sleep(0.01)\nos._exit(7)";
    let attempt = Spec::new(&[python(), "-c", code]).write(&mux);
    mux.launch(&attempt);
    until("it closed its terminal", || mux.home().join("closed").exists().then_some(()));
    assert_eq!(attempt.verdict(), Verdict::Running { window_gone: None });
    std::fs::write(mux.home().join("go"), "").unwrap();
    attempt.exits(7);
}

#[test]
fn a_new_size_is_told_by_the_kernel_once() {
    let mux = Mux::new();
    let (signals, spec) = Signals::recorder(&mux, &["WINCH"]);
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    signals.line("start");
    mux.tmux(&["resize-window", "-x", "90", "-y", "20", "-t", &format!("={}:", attempt.session())]);
    signals.line("WINCH kernel");
    signal(&attempt.program(), Signal::Term);
    attempt.exits(115);
    assert_eq!(signals.count("WINCH"), 1, "{:?}", signals.lines());
}

#[test]
fn a_burst_of_short_lived_orphans_is_reaped() {
    let mux = Mux::new();
    let (parents, each) = if cfg!(debug_assertions) { (40, 50) } else { (200, 50) };
    // Each orphan loses its parent at once, and ends as a child of the keeper.
    let code = format!(
        "import os\nfor _ in range({parents}):\n    if os.fork() == 0:\n        \
         for _ in range({each}):\n            if os.fork() == 0: os._exit(0)\n        os._exit(0)\n    \
         os.wait()\nos._exit(6)"
    );
    let attempt = Spec::new(&[python(), "-c", &code]).write(&mux);
    mux.launch(&attempt);
    attempt.exits(6);
    until("the keeper is gone", || is_gone(&attempt.keeper()).then_some(()));
    assert!(attempt.leftovers().is_none_or(|l| l.processes.is_empty()));
    assert_eq!(attempt.lease(), Lease::Free);
}
