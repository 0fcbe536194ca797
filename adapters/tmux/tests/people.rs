//! What people do around our windows: attach, scroll, split, link, and what of ours they must not get.

mod common;

use common::*;
use loopmux_mux::*;
use loopmux_tmux::{Endpoint, Tmux};
use std::os::fd::AsRawFd;

fn text(lab: &Lab, args: &[&str]) -> String {
    let out = lab.by_hand(args);
    assert!(out.status.success(), "{args:?}: {out:?}");
    String::from_utf8(out.stdout).unwrap().trim_end().to_owned()
}

/// Two sessions; the second has two windows, and its second window two panes. The pane to get to is in none of the
/// places where a client would land by itself.
fn labyrinth(lab: &Lab) -> Created {
    lab.tmux.create(&session(lab, "first", 1, &["sleep", "600"])).unwrap();
    let target = lab.tmux.create(&session(lab, "second", 2, &["sleep", "600"])).unwrap();
    lab.by_hand(&["split-window", "-t", target.pane.as_str(), "sleep 600"]);
    lab.by_hand(&["new-window", "-t", "second", "sleep 600"]);
    let session = format!("{}:", target.session);
    let lands = text(lab, &["display-message", "-p", "-t", &session, "#{window_id} #{pane_id}"]);
    assert!(!lands.contains(target.pane.as_str()) && !lands.contains(target.window.as_str()), "{lands}");
    target
}

fn where_clients_are(lab: &Lab) -> String {
    text(lab, &["list-clients", "-F", "#{client_session} #{window_id} #{pane_id}"])
}

#[test]
fn a_person_outside_lands_at_the_pane() {
    let (lab, terminal) = (Lab::new(), Lab::new());
    let target = labyrinth(&lab);
    let AttachPlan::Attach(plan) = lab.tmux.attach_plan(&target.pane, &target.session, None) else {
        panic!()
    };
    // A terminal of another server, whose programs think that they are outside of any.
    let mut spec = session(&terminal, "terminal", 9, &["/usr/bin/env", "-u", "TMUX", "-u", "TMUX_PANE"]);
    spec.command.extend(plan);
    terminal.tmux.create(&spec).unwrap();
    let want = format!("second {} {}", target.window, target.pane);
    until("the client", || Some(where_clients_are(&lab)).filter(|found| *found == want));
}

#[test]
fn a_person_inside_is_moved_to_the_pane() {
    let (lab, terminal) = (Lab::new(), Lab::new());
    let target = labyrinth(&lab);
    let here = Here { socket: lab.tmux.socket().to_owned(), server_pid: None, session: None, pane: None };
    let plan = match lab.tmux.attach_plan(&target.pane, &target.session, Some(&here)) {
        AttachPlan::Switch(plan) => plan,
        other => panic!("{other:?}"),
    };
    // A person's window waits for a key and then does what the plan says, from within.
    let mut spec = session(&lab, "person", 3, &["/bin/sh", "-c", "read x; \"$@\"; sleep 600", "sh"]);
    spec.command.extend(plan);
    let person = lab.tmux.create(&spec).unwrap();
    let AttachPlan::Attach(attach) = lab.tmux.attach_plan(&person.pane, &person.session, None) else {
        panic!()
    };
    let mut spec = session(&terminal, "terminal", 9, &["/usr/bin/env", "-u", "TMUX", "-u", "TMUX_PANE"]);
    spec.command.extend(attach);
    terminal.tmux.create(&spec).unwrap();
    until("the client", || where_clients_are(&lab).starts_with("person ").then_some(()));
    assert_eq!(lab.answered().pane(&person.pane).unwrap().attached, 1);
    let owned = lab.answered().owned(&tags(3), TagScope::Pane).remove(0);
    assert_eq!(lab.tmux.submit(&owned), Delivery::Delivered);
    let want = format!("second {} {}", target.window, target.pane);
    until("the client's move", || Some(where_clients_are(&lab)).filter(|found| *found == want));
    assert_eq!(lab.answered().pane(&target.pane).unwrap().attached, 1);
}

#[test]
fn a_scrolled_back_pane_still_gets_text_and_enter() {
    let lab = Lab::new();
    let made = lab
        .tmux
        .create(&session(&lab, "one", 1, &["/bin/sh", "-c", "read x; echo got-$x; sleep 600"]))
        .unwrap();
    text(&lab, &["copy-mode", "-t", made.pane.as_str()]);
    let owned = lab.answered().owned(&tags(1), TagScope::Pane).remove(0);
    assert_eq!(lab.tmux.paste(&owned, b"it"), Delivery::Delivered);
    assert_eq!(lab.tmux.submit(&owned), Delivery::Delivered);
    until("the program's answer", || {
        lab.tmux.capture(&made.pane).ok().filter(|text| text.contains("got-it"))
    });
}

#[test]
fn enter_is_for_one_pane_though_all_are_synchronized() {
    let lab = Lab::with_config("set -g synchronize-panes on");
    let made =
        lab.tmux.create(&session(&lab, "one", 1, &["/bin/sh", "-c", "read x; echo got; sleep 600"])).unwrap();
    let split = text(
        &lab,
        &[
            "split-window",
            "-P",
            "-F",
            "#{pane_id}",
            "-t",
            made.pane.as_str(),
            "--",
            "/bin/sh",
            "-c",
            "read x; echo heard; sleep 600",
        ],
    );
    let split = PaneId::from_backend(split);
    let owned = lab.answered().owned(&tags(1), TagScope::Pane).remove(0);
    assert_eq!(lab.tmux.submit(&owned), Delivery::Delivered);
    until("the program's answer", || lab.tmux.capture(&made.pane).ok().filter(|text| text.contains("got")));
    // The neighbour has read nothing until it is given a line of its own.
    lab.by_hand(&["set-option", "-w", "-t", made.window.as_str(), "synchronize-panes", "off"]);
    text(&lab, &["send-keys", "-t", split.as_str(), "own", "Enter"]);
    let heard =
        until("the neighbour", || lab.tmux.capture(&split).ok().filter(|text| text.contains("heard")));
    assert!(heard.trim_start().starts_with("own"), "{heard:?}");
}

#[test]
fn a_window_linked_into_two_sessions_is_two_rows_of_one_pane() {
    let lab = Lab::new();
    let made = lab.tmux.create(&session(&lab, "one", 1, &["sleep", "600"])).unwrap();
    let other = lab.tmux.create(&session(&lab, "two", 2, &["sleep", "600"])).unwrap();
    text(&lab, &["link-window", "-d", "-s", made.window.as_str(), "-t", "two:"]);
    let seen = lab.answered();
    let rows: Vec<_> = seen.panes.iter().filter(|row| row.pane == made.pane).collect();
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let n = if row.session == made.session { 1 } else { 2 };
        assert_eq!(row.session_tags, Some(tags(n)));
        assert_eq!((&row.window_tags, &row.pane_tags), (&Some(tags(1)), &Some(tags(1))));
    }
    let owned = seen.owned(&tags(1), TagScope::Window).remove(0);
    assert_eq!(lab.tmux.kill(&owned, KillScope::Window), KillReply::Done);
    let seen = lab.answered();
    assert!(seen.pane(&made.pane).is_none() && seen.pane(&other.pane).is_some());
}

#[test]
fn a_moved_and_joined_pane_is_found_by_its_token() {
    let lab = Lab::new();
    let made = lab.tmux.create(&session(&lab, "one", 1, &["sleep", "600"])).unwrap();
    lab.tmux.create(&session(&lab, "two", 2, &["sleep", "600"])).unwrap();
    text(&lab, &["join-pane", "-d", "-s", made.pane.as_str(), "-t", "two:"]);
    let owned = lab.answered().owned(&tags(1), TagScope::Pane).remove(0);
    assert_ne!(owned.session(), &made.session);
    assert_eq!(lab.tmux.kill(&owned, KillScope::Pane), KillReply::Done);
    assert_eq!(lab.answered().panes.len(), 1);
}

#[test]
fn names_of_any_kind_do_not_break_a_row() {
    let lab = Lab::new();
    let made = lab.tmux.create(&session(&lab, "one", 1, &["sleep", "600"])).unwrap();
    for odd in
        ["tab\there", "line\nbreak", "a b", "ü#{pid}", "#(touch x)", "}", "loopmux-end\t1", &"x".repeat(300)]
    {
        lab.by_hand(&["rename-session", "-t", made.session.as_str(), odd]);
        lab.by_hand(&["rename-window", "-t", made.window.as_str(), odd]);
        lab.by_hand(&["select-pane", "-t", made.pane.as_str(), "-T", odd]);
        let seen = lab.answered();
        assert_eq!(seen.owned(&tags(1), TagScope::Session).len(), 1, "{odd:?}");
        assert!(!seen.panes[0].window_name.contains(['\t', '\n']));
    }
    assert!(!lab.path("x").exists());
}

#[test]
fn a_caller_without_a_utf8_locale_reads_the_same() {
    let lab = Lab::new();
    let made =
        lab.tmux.create(&session(&lab, "one", 1, &["/bin/sh", "-c", "echo zw\u{f6}lf; sleep 600"])).unwrap();
    lab.by_hand(&["rename-window", "-t", made.window.as_str(), "gr\u{fc}n"]);
    let poor = lab.tmux.clone().with_variable("LC_ALL", "C").with_variable("LANG", "C");
    let seen = match poor.snapshot(Scope::Everything) {
        Snapshot::Answered(seen) => seen,
        other => panic!("{other:?}"),
    };
    assert_eq!(seen, lab.answered());
    assert_eq!(seen.panes[0].window_name, "gr\u{fc}n");
    until("the text", || poor.capture(&made.pane).ok().filter(|text| text.contains("zw\u{f6}lf")));
    assert!(poor.create(&session(&lab, "two", 2, &["sleep", "600"])).unwrap().tagged);
}

#[test]
fn a_foreign_option_that_breaks_a_row_is_unknown_and_not_absent() {
    let lab = Lab::new();
    lab.tmux.create(&session(&lab, "one", 1, &["sleep", "600"])).unwrap();
    let person = lab.tmux.create(&session(&lab, "person", 2, &["sleep", "600"])).unwrap();
    text(&lab, &["set-option", "-p", "-t", person.pane.as_str(), "@loopmux_p_run", "a\tb\nc"]);
    match lab.tmux.snapshot(Scope::Everything) {
        Snapshot::Unknown(t) => assert_eq!(t.class, ReplyClass::Partial, "{t}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_we_start_gets_neither_our_descriptors_nor_a_runs_names() {
    let lab = Lab::new();
    // An inheritable lock, as a nested launch holds one.
    let lease = std::fs::File::create(lab.path("lease")).unwrap();
    let inheritable = rustix::io::fcntl_dupfd_cloexec(&lease, 60).unwrap();
    rustix::io::fcntl_setfd(&inheritable, rustix::io::FdFlags::empty()).unwrap();
    let mut tmux = lab.tmux.clone().with_variable("KEPT", "yes");
    for name in ["LOOPMUX_TOKEN", "LOOPMUX_RUN", "LOOPMUX_ATTEMPT", "LOOPMUX_RESULT"] {
        tmux = tmux.with_variable(name, "leaked");
    }
    let made = tmux.create(&session(&lab, "one", 1, &["sleep", "600"])).unwrap();
    let server = std::path::PathBuf::from(format!("/proc/{}", made.server_pid));
    let environment = std::fs::read(server.join("environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    assert!(environment.contains("KEPT=yes") && !environment.contains("leaked"), "{environment}");
    let open: Vec<_> = std::fs::read_dir(server.join("fd"))
        .unwrap()
        .filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok())
        .collect();
    assert!(!open.is_empty());
    assert!(!open.contains(&lab.path("lease")), "{open:?} has descriptor {}", inheritable.as_raw_fd());
}

#[test]
fn the_default_directory_is_made_for_a_create_and_not_for_a_look() {
    let mut lab = Lab::new();
    let below = |endpoint: &Endpoint| {
        let tmux = Tmux::below(binary(), endpoint, Some(lab.dir.path().as_os_str())).unwrap();
        tmux.with_variable("HOME", lab.dir.path()).with_deadlines(HANG, HANG)
    };
    let uid = rustix::process::getuid().as_raw();
    let dir = lab.path(&format!("tmux-{uid}"));
    let tmux = below(&Endpoint::Name("named".into()));
    assert_eq!(tmux.socket(), dir.join("named"));
    assert!(
        matches!(tmux.snapshot(Scope::Everything), Snapshot::NotServed(t) if t.class == ReplyClass::NoSocket)
    );
    assert!(!dir.exists(), "a look made a directory");

    let default = below(&Endpoint::Default);
    lab.tmux = default.clone();
    let made = default.create(&session(&lab, "one", 1, &["sleep", "600"])).unwrap();
    // What a person's plain tmux asks is the same server.
    let out = std::process::Command::new(binary())
        .args(["display-message", "-p", "#{pid}"])
        .env("TMUX_TMPDIR", lab.dir.path())
        .env_remove("TMUX")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), made.server_pid.to_string());

    std::fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    match default.create(&session(&lab, "two", 2, &["sleep", "600"])) {
        Err(CreateError::Refused(t)) => assert!(t.said.contains("open to other users"), "{t}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(lab.answered().panes.len(), 1);
}
