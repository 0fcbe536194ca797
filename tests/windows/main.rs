//! The keeper on Windows, with real processes, jobs and kills: on Windows itself, or under Wine by `cargo xtask windows`.
#![cfg(windows)]

mod psmux;
mod support;

use loopmux::observe;
use loopmux::process::{self, Signal};
use loopmux::run::files::name;
use loopmux::verdict::{End, Lease, Observation, Verdict};
use std::ffi::OsString;
use support::{Attempt, Spec, end, until};

/// Not a test: what the keepers of the others start. It plays the part that a variable names.
#[test]
#[ignore = "a part of the other tests"]
fn program() {
    support::perform();
}

#[test]
fn an_exit_is_recorded_and_nothing_is_left() {
    for code in [0, 3, 255] {
        let attempt = Spec::play(&format!("exit:{code}")).write();
        let keeper = attempt.keep();
        attempt.exits(code);
        until("the keeper has ended", || keeper.has_ended().then_some(()));
        assert!(matches!(attempt.verdict(), Verdict::Exited { end: End::Code(c), .. } if c == code));
        assert!(!attempt.has(name::ENV), "the environment is gone");
    }
}

#[test]
fn words_and_variables_arrive_as_they_are() {
    let odd = [
        "",
        "plain",
        "two words",
        "say \"x\"",
        "end\\",
        "\\\"",
        "a;b&c|d%PATH%^e",
        "line\nbreak",
        "ünï🦀",
        "--flag",
        "*",
    ];
    let long = "x".repeat(20_000);
    let vars = [("ODD", "a \"b\" ;&|\n%PATH% ünï🦀"), ("LONG", long.as_str()), ("EMPTY_ONE", "")];
    let mut spec = Spec::play("show");
    spec.argv.push("--".into());
    spec.argv.extend(odd.iter().map(OsString::from));
    spec.argv.push(long.clone().into());
    for (name, value) in vars {
        spec.vars.push((name.into(), value.into()));
    }
    let attempt = spec.write();
    let _keeper = attempt.keep();
    attempt.exits(0);
    let shown = support::shown(&attempt);
    let after = shown.args.iter().position(|a| a == "--").expect("the words") + 1;
    assert_eq!(shown.args[after..shown.args.len() - 1], odd);
    assert_eq!(shown.args.last(), Some(&long));
    for (name, value) in vars {
        assert_eq!(shown.vars.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert_eq!(shown.vars.get("LOOPMUX_TOKEN"), Some(&attempt.token));
    assert_eq!(shown.cwd, attempt.cwd);
}

#[test]
fn a_program_that_is_not_there_is_an_end_with_the_reason() {
    let mut spec = Spec::play("exit:0");
    spec.argv = vec!["no-such-program-anywhere".into()];
    let attempt = spec.write();
    let _keeper = attempt.keep();
    let exit = attempt.ended();
    assert!(
        matches!(&exit.end, End::SpawnError(why) if why.contains("no-such-program-anywhere")),
        "{exit:?}"
    );
}

#[test]
fn the_lease_is_held_while_the_program_runs_and_a_second_keeper_starts_nothing() {
    let attempt = Spec::play("wait").write();
    assert_eq!(attempt.lease(), Lease::NoFile);
    let _keeper = attempt.keep();
    let program = attempt.program();
    assert_eq!(attempt.lease(), Lease::Held);
    assert!(matches!(attempt.verdict(), Verdict::Running { .. }), "{:?}", attempt.verdict());
    let second = attempt.keep();
    until("the second keeper has ended", || second.has_ended().then_some(()));
    assert_eq!(process::life(&program), process::Life::Alive);
    assert!(!attempt.has(name::REFUSED) && !attempt.has(name::EXIT));
    end(&program);
    assert_eq!(attempt.ended().end, End::Code(137));
    until("the lease is free", || (attempt.lease() == Lease::Free).then_some(()));
}

#[test]
fn with_its_keeper_killed_the_program_ends_and_the_attempt_is_lost() {
    let attempt = Spec::play("family").write();
    let keeper = attempt.keep();
    let program = attempt.program();
    let family = until("the family is in the job", || {
        let found = process::with_token(&attempt.token);
        (found.found.len() >= 2).then_some(found.found)
    });
    support::signal(&attempt.start().keeper, Signal::Kill);
    until("the keeper has ended", || keeper.has_ended().then_some(()));
    for member in &family {
        until("the member has ended", || support::is_gone(&member.id).then_some(()));
    }
    assert!(support::is_gone(&program));
    until("the lease is free", || (attempt.lease() == Lease::Free).then_some(()));
    assert!(!attempt.has(name::EXIT));
    assert!(matches!(attempt.verdict(), Verdict::Lost { .. }), "{:?}", attempt.verdict());
    let view = observe::attempt_on_disk(&attempt.read());
    assert!(matches!(observe::sweep(&attempt.read(), &view).answer(), Observation::Absent));
}

#[test]
fn what_the_program_leaves_behind_keeps_the_lease_and_is_named() {
    let attempt = Spec::play("orphan").write();
    let _keeper = attempt.keep();
    let exit = attempt.ended();
    assert_eq!(exit.end, End::Code(5));
    let left = until("what is left is named", || attempt.leftovers().filter(|l| !l.processes.is_empty()));
    assert_eq!(attempt.lease(), Lease::Held);
    assert!(!attempt.has(name::EMPTIED));
    for process in &left.processes {
        support::signal(&process.id, Signal::Kill);
    }
    until("nothing is left", || attempt.has(name::EMPTIED).then_some(()));
    until("the lease is free", || (attempt.lease() == Lease::Free).then_some(()));
    assert_eq!(attempt.ended().end, End::Code(5), "what was recorded stays");
}

/// A multiplexer ends the tree of a window from its leaves to its root, with a code of its own.
fn end_tree(attempt: &Attempt, pause: std::time::Duration) {
    let keeper = attempt.start().keeper;
    let tree = support::tree(keeper.pid);
    assert!(tree.len() >= 2, "the program and the sentinel: {tree:?}");
    for pid in tree.iter().rev() {
        support::terminate(*pid, 1);
    }
    std::thread::sleep(pause);
    support::terminate(keeper.pid, 1);
}

#[test]
fn whoever_ends_the_whole_tree_leaves_no_exit() {
    for (round, pause) in [0, 0, 0, 20, 500, 1500].into_iter().enumerate() {
        let attempt = Spec::play("wait").write();
        let keeper = attempt.keep();
        attempt.program();
        end_tree(&attempt, std::time::Duration::from_millis(pause));
        until("the keeper has ended", || keeper.has_ended().then_some(()));
        until("the lease is free", || (attempt.lease() == Lease::Free).then_some(()));
        assert!(!attempt.has(name::EXIT), "round {round}: an exit that never happened");
        assert!(matches!(attempt.verdict(), Verdict::Lost { .. }), "{:?}", attempt.verdict());
    }
}

#[test]
fn a_launch_that_was_given_up_starts_nothing() {
    let attempt = Spec::play("exit:0").write();
    attempt.open().create_empty(name::CANCELLED).unwrap();
    let keeper = attempt.keep();
    until("the keeper has ended", || keeper.has_ended().then_some(()));
    assert!(attempt.has(name::REFUSED) && !attempt.has(name::START) && !attempt.has(name::ENV));
    assert_eq!(attempt.lease(), Lease::Free);
}

#[test]
fn a_copy_of_a_directory_starts_nothing() {
    let attempt = Spec::play("exit:0").write();
    let copy = attempt.copy();
    let keeper = support::keep(&copy);
    until("the keeper has ended", || keeper.has_ended().then_some(()));
    assert!(!copy.join(name::START).exists());
}
