//! Every recorded reply has its recorded class.

use loopmux_mux::{ReplyClass, Said};
use loopmux_psmux::classify;
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
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/transcripts/psmux.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_row_gets_its_recorded_class() {
    let rows = recorded();
    assert!(rows.len() > 600, "only {} rows", rows.len());
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
    assert!(seen.len() >= 11, "{seen:?}");
}

fn class(query: &str, rc: i32, stdout: &str, stderr: &str) -> &'static str {
    classify(query, Said { timed_out: false, code: Some(rc), stdout, stderr }).as_str()
}

#[test]
fn other_wordings_of_the_same_kind() {
    let cases = [
        ("new-window", "psmux: no server running on session 'x'", "no-listener"),
        ("kill-server", "psmux: no server running on Z:\\d (-L y)", "no-listener"),
        ("list-windows", "psmux: connection timed out", "timed-out"),
        ("kill-session", "psmux: kill-session: session 'a b' still present after 12s", "timed-out"),
        ("send-keys", "ERROR: can't find pane: %7", "absent"),
        ("attach-session", "psmux: no sessions", "no-target"),
        ("set-option", "psmux: Authentication required", "denied"),
        ("show-options", "psmux: invalid option: @x", "failed"),
        ("show-environment", "unknown variable: X", "failed"),
        ("foo", "psmux: unknown command: foo\nRun 'psmux --help' for usage information.", "failed"),
        (
            "list-windows",
            "psmux: No connection could be made because the target machine actively refused it. (os error 10061)",
            "no-listener",
        ),
        (
            "list-windows",
            "psmux: An existing connection was forcibly closed. (os error 10054)",
            "server-lost",
        ),
        ("list-windows", "psmux: Access is denied. (os error 5)", "denied"),
        ("new-session", "psmux: failed to create session 'x'\npsmux: refused (os error 10061)", "failed"),
        ("new-session", "psmux: failed to create session 'x'\npsmux: connection timed out", "failed"),
        // What a person calls things does not decide.
        ("new-session", "duplicate session: no server running on x", "failed"),
        ("new-session", "duplicate session: y (os error 10061)", "failed"),
        ("kill-session", "psmux: can't find session: no response from server", "absent"),
        ("kill-session", "psmux: kill-session: session ' still present after 5s' is not there", "failed"),
        // What Wine says first decides nothing.
        (
            "list-windows",
            "error: XDG_RUNTIME_DIR not set\npsmux: no server running on session 'x'",
            "no-listener",
        ),
    ];
    for (query, stderr, expected) in cases {
        assert_eq!(class(query, 1, "", &format!("{stderr}\n")), expected, "{stderr}");
        assert_eq!(
            class(query, 1, "", &format!("{}\r\n", stderr.replace('\n', "\r\n"))),
            expected,
            "{stderr}"
        );
    }
    assert_eq!(class("has-session", 1, "", ""), "failed");
    assert_eq!(class("list-windows", 1, "ERROR: Invalid session key\n", ""), "denied");
}

#[test]
fn an_exit_0_is_read() {
    let key = "ERROR: Invalid session key\n";
    let cases = [
        ("list-sessions", "", "empty"),
        ("list-sessions", "a\nb\n", "answered"),
        ("list-sessions", "a\n\n", "partial"),
        ("list-sessions", "\n", "partial"),
        ("list-sessions", "\na\n", "partial"),
        ("list-sessions", "   \r\n", "partial"),
        ("list-sessions", key, "partial"),
        ("list-sessions", "ERROR: something new\na\n", "partial"),
        ("list-panes", "a @1\nERROR: Authentication required\n", "partial"),
        ("list-windows", "ERROR: Invalid session key\nERROR: Invalid session key\n", "partial"),
        ("list-windows", key, "denied"),
        ("list-panes", "ERROR: can't find window: @2\n", "absent"),
        ("list-windows", "ERROR: something new\n", "failed"),
        ("list-windows", "@1 ERROR: is what the window is called\n", "answered"),
        ("display-message", key, "denied"),
        ("display-message", "ERROR: something new\n", "failed"),
        ("new-window", "ERROR: can't find session: x\n", "absent"),
        ("capture-pane", "ERROR: can't find window: @2\n", "absent"),
        ("capture-pane", "ERROR: the build failed\n", "answered"),
        ("capture-pane", "ERROR: Invalid session key\nsays the log\n", "answered"),
        ("capture-pane", "\n\nx\n", "answered"),
        ("capture-pane", "", "empty"),
        ("show-options", "\n", "empty"),
        ("kill-session", "", "accepted"),
        ("has-session", "", "claims-present"),
    ];
    for (query, stdout, expected) in cases {
        assert_eq!(class(query, 0, stdout, ""), expected, "{query} {stdout:?}");
    }
    let warning = "warning: no active session; bind-key will take effect when set inside a session\n";
    assert_eq!(class("bind-key", 0, "", warning), "no-target");
    assert_eq!(class("set-option", 0, "", "psmux: Invalid session key\n"), "denied");
    assert_eq!(class("list-sessions", 0, "a\n", "fixme: something of Wine's\n"), "answered");
}

#[test]
fn without_an_exit_code_only_the_own_clock_counts() {
    let said = |timed_out, code| Said { timed_out, code, stdout: "x\n", stderr: "can't find session: x\n" };
    assert_eq!(classify("list-sessions", said(true, Some(0))), ReplyClass::TimedOut);
    assert_eq!(classify("list-sessions", said(true, None)), ReplyClass::TimedOut);
    assert_eq!(classify("list-sessions", said(false, None)), ReplyClass::Failed);
    assert_eq!(classify("list-sessions", said(false, Some(127))), ReplyClass::Absent);
}
