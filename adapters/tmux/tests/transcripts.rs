//! Every recorded reply has its recorded class.

use loopmux_mux::ReplyClass;
use loopmux_tmux::{Said, classify};
use serde::Deserialize;
use std::collections::BTreeSet;

#[derive(Deserialize)]
struct Recorded {
    version: String,
    case: String,
    query: String,
    timed_out: bool,
    rc: Option<i32>,
    stdout: String,
    stderr: String,
    class: ReplyClass,
}

fn recorded() -> Vec<Recorded> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/transcripts/tmux.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_row_gets_its_recorded_class() {
    let rows = recorded();
    assert!(rows.len() > 1000, "only {} rows", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let said = Said { timed_out: row.timed_out, code: row.rc, stdout: &row.stdout, stderr: &row.stderr };
        let class = classify(&row.query, said);
        if class != row.class {
            wrong.push(format!("{} {} {}: {class}, not {}", row.version, row.case, row.query, row.class));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    let seen: BTreeSet<_> = rows.iter().map(|row| row.class.as_str()).collect();
    assert!(seen.len() >= 12, "{seen:?}");
}

fn class(query: &str, rc: i32, stdout: &str, stderr: &str) -> &'static str {
    classify(query, Said { timed_out: false, code: Some(rc), stdout, stderr }).as_str()
}

#[test]
fn other_wordings_of_the_same_kind() {
    let cases = [
        ("has-session", "error connecting to /x (File name too long)", "failed"),
        ("has-session", "error connecting to /x (Too many open files)", "failed"),
        ("has-session", "error connecting to /x (Connection refused)", "no-listener"),
        ("has-session", "error connecting to /x (Not a directory)", "no-socket"),
        ("has-session", "couldn't create directory /x (No such file or directory)", "no-socket"),
        ("has-session", "couldn't create directory /x (Read-only file system)", "failed"),
        ("list-windows", "", "failed"),
        ("list-windows", "[warn] evutil_make_internal_pipe_: pipe: Too many open files", "failed"),
        ("list-windows", "[err] evsig_init_: socketpair: Too many open files", "failed"),
        ("new-session", "duplicate session: work", "failed"),
        ("new-session", "create window failed: fork failed: No space left on device", "failed"),
        ("list-panes", "usage: list-panes [-as] [-F format] [-f filter] [-t target-window]", "failed"),
        ("list-panes", "command list-panes: unknown flag -Z", "failed"),
        ("display-message", "command too long", "failed"),
        ("kill-session", "CAN'T FIND SESSION: work", "absent"),
        ("kill-pane", "can't find pane: %7", "absent"),
        ("set-option", "no such window: =work", "absent"),
        ("list-panes", "No Current Target", "no-target"),
        ("list-panes", "Server Exited Unexpectedly", "server-lost"),
        ("list-panes", "lost server", "server-lost"),
        ("attach-session", "[server exited]", "server-lost"),
        ("has-session", "protocol version mismatch (client 8, server 7)", "incompatible"),
        ("has-session", "access not allowed", "denied"),
        ("paste-buffer", "target pane has exited", "failed"),
        ("paste-buffer", "no buffer x", "failed"),
        // What a person calls things does not decide.
        ("new-session", "duplicate session: no server running on x", "failed"),
        ("new-session", "duplicate session: (permission denied)", "failed"),
        ("has-session", "can't find session: lost server", "absent"),
        (
            "has-session",
            "error connecting to /a (Permission denied)/s (No such file or directory)",
            "no-socket",
        ),
        (
            "has-session",
            "error connecting to /a (No such file or directory)/s (Too many open files)",
            "failed",
        ),
        ("list-panes", "can't find sessions of mine", "failed"),
        // The line that says it may not be the first.
        ("list-panes", "[warn] epoll_create: x\nno server running on /x", "no-listener"),
    ];
    for (query, stderr, expected) in cases {
        assert_eq!(class(query, 1, "", &format!("{stderr}\n")), expected, "{stderr}");
    }
}

#[test]
fn wordings_at_exit_0_count_only_where_measured() {
    for (stderr, expected) in [
        ("access not allowed\n", "denied"),
        ("no current target\n", "no-target"),
        ("server version is too old for client\nserver version is too old for client\n", "incompatible"),
        ("no server running on /x\n", "empty"),
        ("can't find session: work\n", "empty"),
        ("error connecting to /x (Permission denied)\n", "empty"),
    ] {
        assert_eq!(class("list-windows", 0, "", stderr), expected, "{stderr}");
    }
    assert_eq!(class("has-session", 0, "", "access not allowed\n"), "denied");
    assert_eq!(class("has-session", 0, "", ""), "claims-present");
    assert_eq!(class("kill-session", 0, "", ""), "accepted");
    assert_eq!(class("new-session", 0, "", ""), "accepted");
    assert_eq!(class("new-window", 0, "@1\n", ""), "answered");
    assert_eq!(class("list-sessions", 0, " \n\n", ""), "empty");
    assert_eq!(class("list-sessions", 0, "a\n", "[warn] something\n"), "answered");
}

#[test]
fn without_an_exit_code_only_the_own_clock_counts() {
    let said = |timed_out, code| Said { timed_out, code, stdout: "x\n", stderr: "can't find session: x\n" };
    assert_eq!(classify("list-sessions", said(true, Some(0))), ReplyClass::TimedOut);
    assert_eq!(classify("list-sessions", said(true, None)), ReplyClass::TimedOut);
    assert_eq!(classify("list-sessions", said(false, None)), ReplyClass::Failed);
    assert_eq!(classify("list-sessions", said(false, Some(127))), ReplyClass::Absent);
}
