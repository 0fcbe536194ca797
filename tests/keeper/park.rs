//! Windows that stay after the end.

use crate::support::*;
use loopmux::process::Signal;
use loopmux::run::files::name;
use loopmux::verdict::{End, Lease};

const PROMPT: &str = "press Enter to close";

#[track_caller]
fn closes(mux: &Mux, attempt: &Attempt) {
    until("the window is gone", || (!mux.has(attempt)).then_some(()));
    until("the keeper is gone", || is_gone(&attempt.keeper()).then_some(()));
}

#[test]
fn a_parked_window_says_how_it_ended_and_waits_for_enter() {
    let mux = Mux::new();
    let attempt = Spec::sh("echo output; exit 3").park().write(&mux);
    mux.launch(&attempt);
    let screen = mux.shows(&attempt, PROMPT);
    assert!(screen.starts_with("output\n"), "{screen}");
    assert!(screen.contains(&format!("[exited 3 · run {} · {PROMPT}]", attempt.launch.run)), "{screen}");
    attempt.exits(3);
    // The lease is free and the log complete while the window waits, and the log has not the prompt.
    assert_eq!(attempt.lease(), Lease::Free);
    assert_eq!(String::from_utf8_lossy(&attempt.log()), "output\r\n");
    // A key that would stop a program does nothing, and what is typed shows.
    mux.keys(&attempt, &["C-z"]);
    mux.shows(&attempt, "^Z");
    mux.keys(&attempt, &["xy"]);
    mux.shows(&attempt, "xy");
    assert!(!is_gone(&attempt.keeper()));
    mux.keys(&attempt, &["Enter"]);
    closes(&mux, &attempt);
    assert_eq!(String::from_utf8_lossy(&attempt.log()), "output\r\n");
}

#[test]
fn every_other_way_to_close_a_parked_window_works_too() {
    let mux = Mux::new();
    for key in ["C-c", "C-d", "C-\\"] {
        let attempt = Spec::sh("exit 0").park().write(&mux);
        mux.launch(&attempt);
        mux.shows(&attempt, PROMPT);
        mux.keys(&attempt, &[key]);
        closes(&mux, &attempt);
    }
    let attempt = Spec::sh("exit 0").park().write(&mux);
    mux.launch(&attempt);
    mux.shows(&attempt, PROMPT);
    mux.tmux(&["kill-session", "-t", &format!("={}", attempt.session())]);
    closes(&mux, &attempt);
    let attempt = Spec::sh("exit 0").park().write(&mux);
    mux.launch(&attempt);
    mux.shows(&attempt, PROMPT);
    signal(&attempt.keeper(), Signal::Term);
    closes(&mux, &attempt);
    assert!(!attempt.has(name::HANGUP));
}

#[test]
fn what_was_typed_before_the_end_does_not_close_the_window() {
    let mux = Mux::new();
    let attempt = Spec::sh("until [ -e go ]; do sleep 0.01; done; exit 3").park().write(&mux);
    mux.launch(&attempt);
    attempt.program();
    mux.keys(&attempt, &["typed ahead", "Enter", "Enter"]);
    mux.shows(&attempt, "typed ahead");
    std::fs::write(mux.home().join("go"), "").unwrap();
    mux.shows(&attempt, PROMPT);
    // Whatever was typed before would have been read by the time at which this shows.
    mux.keys(&attempt, &["later"]);
    mux.shows(&attempt, "later");
    assert!(!is_gone(&attempt.keeper()));
    mux.keys(&attempt, &["Enter"]);
    closes(&mux, &attempt);
}

#[test]
fn a_killed_full_screen_program_leaves_a_usable_terminal() {
    let modes = "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{insert_flag} #{wrap_flag} #{origin_flag} \
                 #{keypad_flag} #{keypad_cursor_flag} #{scroll_region_upper} #{scroll_region_lower}";
    for unfinished in [false, true] {
        let mux = Mux::new();
        let mut spec = Spec::new(&[python(), &fixture("tui.py")]).park();
        if unfinished {
            spec.argv.push("unfinished".into());
        }
        let attempt = spec.write(&mux);
        mux.launch(&attempt);
        until("every mode is on", || (mux.format(&attempt, modes) == "1 0 1 1 0 1 1 1 4 9").then_some(()));
        signal(&attempt.program(), Signal::Kill);
        let screen = mux.shows(&attempt, PROMPT);
        assert!(screen.contains("before") && screen.contains("ended by signal 9, KILL"), "{screen}");
        assert_eq!(attempt.ended().end, End::Signal(9));
        assert_eq!(mux.format(&attempt, modes), "0 1 0 0 1 0 0 0 0 29");
        // Echo works, and a paste comes without brackets around it.
        mux.tmux(&["set-buffer", "-b", "x", "PASTE"]);
        mux.tmux(&["paste-buffer", "-p", "-b", "x", "-t", &format!("={}:", attempt.session())]);
        let screen = mux.shows(&attempt, "PASTE");
        assert!(!screen.contains("200~") && !screen.contains("^["), "{screen}");
        mux.keys(&attempt, &["Enter"]);
        closes(&mux, &attempt);
    }
}

#[test]
fn nothing_that_was_printed_is_overwritten_by_the_prompt() {
    let mux = Mux::new();
    // The cursor that an earlier use of the alternate screen saved is on the first line.
    let script = "printf 'one\\033[?1049hx\\033[?1049l\\ntwo\\nthree\\n'; exit 0";
    let attempt = Spec::sh(script).park().write(&mux);
    mux.launch(&attempt);
    let screen = mux.shows(&attempt, PROMPT);
    assert!(screen.starts_with("one\ntwo\nthree\n\n[exited 0"), "{screen}");
    mux.keys(&attempt, &["Enter"]);
    // A full screen: the prompt moves it up.
    let attempt = Spec::sh("seq 1 100; exit 0").park().write(&mux);
    mux.launch(&attempt);
    let screen = mux.shows(&attempt, PROMPT);
    assert!(screen.contains("\n99\n100\n\n[exited 0"), "{screen}");
    mux.keys(&attempt, &["Enter"]);
    // Killed in the alternate screen, in the middle of the first line.
    let attempt = Spec::sh("printf 'one\\ntwo\\033[?1049h\\033[20;20Hx'; kill -9 $$").park().write(&mux);
    mux.launch(&attempt);
    let screen = mux.shows(&attempt, PROMPT);
    assert!(screen.starts_with("one\ntwo\n[ended by signal 9"), "{screen}");
    mux.keys(&attempt, &["Enter"]);
}

#[test]
fn a_shell_that_was_killed_with_the_keyboard_in_its_hands_gives_it_back() {
    let mux = Mux::new();
    let attempt =
        Spec::new(&["bash", "--norc", "--noprofile", "-i"]).var("PS1", "ready> ").park().write(&mux);
    mux.launch(&attempt);
    mux.shows(&attempt, "ready>");
    mux.keys(&attempt, &["kill -9 $$", "Enter"]);
    mux.shows(&attempt, "ended by signal 9, KILL");
    mux.keys(&attempt, &["typed"]);
    mux.shows(&attempt, "typed");
    mux.keys(&attempt, &["C-c"]);
    closes(&mux, &attempt);
}

#[test]
fn what_could_not_be_started_says_why_in_its_window() {
    let mux = Mux::new();
    let attempt = Spec::new(&["/no/such/program"]).park().write(&mux);
    mux.launch(&attempt);
    let screen = mux.shows(&attempt, PROMPT);
    assert!(screen.contains("not started: cannot execute /no/such/program: No such file"), "{screen}");
    mux.keys(&attempt, &["Enter"]);
    closes(&mux, &attempt);

    let refused = Spec::sh("exit 0").park().write(&mux);
    refused.open().create_empty(name::CANCELLED).unwrap();
    mux.launch(&refused);
    let screen = mux.shows(&refused, PROMPT);
    assert!(screen.contains("not started: the launch was given up"), "{screen}");
    assert_eq!(refused.lease(), Lease::Free);
    mux.keys(&refused, &["Enter"]);
    until("the window is gone", || (!mux.has(&refused)).then_some(()));
}

#[test]
fn a_parked_window_after_leftovers_waits_as_well() {
    let mux = Mux::new();
    let attempt = Spec::sh("sleep 100000 & exit 3").park().write(&mux);
    mux.launch(&attempt);
    mux.shows(&attempt, "still running");
    let list = until("it is listed", || attempt.leftovers());
    for process in &list.processes {
        signal(&process.id, Signal::Kill);
    }
    mux.shows(&attempt, PROMPT);
    attempt.exits(3);
    mux.keys(&attempt, &["Enter"]);
    closes(&mux, &attempt);
}
