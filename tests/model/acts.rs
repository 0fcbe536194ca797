//! Every rename, unlink, removal, kill and signal in the program, each with the rule that permits it.

use crate::drift::functions;
use crate::source::{View, root, shipped};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Calls after which something is not as it was. A name counts wherever it is called.
const CALLS: [&str; 22] = [
    "rename",
    "renameat",
    "renameat_with",
    "unlink",
    "unlinkat",
    "remove_file",
    "remove_dir",
    "remove_dir_all",
    "remove_unfinished",
    "kill",
    "kill_process",
    "kill_process_group",
    "kill_current_process_group",
    "pidfd_send_signal",
    "signal",
    "tgkill",
    "raise",
    // Of our own, or of Windows.
    "rename_new",
    "rmdir",
    "dispose",
    "terminate",
    "TerminateProcess",
];

/// A call in a function.
type Key = (String, String, String);

fn table() -> PathBuf {
    root().join("tests/model/acts.txt")
}

/// The table: `file function call rule …words`.
fn allowed() -> BTreeMap<Key, String> {
    let text = std::fs::read_to_string(table()).expect("the table is there");
    let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|line| {
        let mut words = line.splitn(4, ' ');
        let mut next = || words.next().unwrap_or_default().to_owned();
        let key = (next(), next(), next());
        (key, next())
    })
    .collect()
}

/// Every such call in what is shipped.
fn found() -> Vec<Key> {
    let mut found = Vec::new();
    for source in shipped() {
        let code = source.view_without_tests(View::Code);
        let functions = functions(&code);
        let literals = source.view_without_tests(View::CodeAndLiterals);
        for (at, call) in calls(&code).into_iter().chain(commands(&literals)) {
            let inside = functions.iter().rev().find(|(_, span)| span.contains(&at));
            let function = inside.map_or("-", |(name, _)| name);
            found.push((source.path.clone(), function.to_owned(), call.to_owned()));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Where such a call begins, and which it is. A definition is none.
fn calls(code: &str) -> Vec<(usize, &'static str)> {
    let bytes = code.as_bytes();
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let mut all = Vec::new();
    for call in CALLS {
        for (at, _) in code.match_indices(call) {
            let after = at + call.len();
            let whole = !(at > 0 && is_word(bytes[at - 1])) && bytes.get(after) == Some(&b'(');
            if whole && !code[..at].trim_end().ends_with("fn") {
                all.push((at, call));
            }
        }
    }
    all.sort_unstable();
    all
}

/// A multiplexer's own commands that end something, in literals.
const COMMANDS: [&str; 6] =
    ["kill-pane", "kill-window", "kill-session", "kill-server", "respawn-pane", "respawn-window"];

fn commands(text: &str) -> Vec<(usize, &'static str)> {
    let begins = |at: usize| at > 0 && matches!(text.as_bytes()[at - 1], b'"' | b' ');
    let of = |command: &'static str| text.match_indices(command).map(move |(at, _)| (at, command));
    COMMANDS.into_iter().flat_map(of).filter(|(at, _)| begins(*at)).collect()
}

#[test]
fn every_act_that_takes_something_away_has_a_rule_that_permits_it() {
    let (allowed, found) = (allowed(), found());
    assert!(found.len() > 20, "only {} calls were found: the search sees nothing", found.len());
    if std::env::var_os("UPDATE_ACTS").is_some() {
        let old = std::fs::read_to_string(table()).expect("the table is there");
        let mut text: String =
            old.lines().take_while(|l| l.starts_with('#')).map(|l| format!("{l}\n")).collect();
        for key in &found {
            let rule = allowed.get(key).map_or("?", String::as_str);
            writeln!(text, "{} {} {} {rule}", key.0, key.1, key.2).expect("a string takes everything");
        }
        std::fs::write(table(), text).expect("the table can be written");
        return;
    }
    let show = |(file, function, call): &Key| format!("{file}: {function} calls {call}");
    let mut wrong: Vec<String> = found
        .iter()
        .filter(|key| !allowed.contains_key(*key))
        .map(|key| show(key) + ": no rule permits it")
        .collect();
    for (key, rule) in &allowed {
        let named = rule.split_whitespace().next().is_some_and(|word| word == "-" || word.starts_with('L'));
        if !found.contains(key) {
            wrong.push(show(key) + " no more");
        } else if !named || rule.split_whitespace().count() < 3 {
            wrong.push(show(key) + ": name the rule, and say why in some words");
        }
    }
    assert!(
        wrong.is_empty(),
        "what takes something away is listed in tests/model/acts.txt with the rule that permits it:\n{}\n\
         UPDATE_ACTS=1 cargo test -p loopmux-model acts writes the list; the rules are for a person to name",
        wrong.join("\n")
    );
}

#[test]
fn a_planted_call_is_found_and_a_definition_is_not() {
    let code = "fn kill(x: u32) { handle.signal(Kill); rename(a, b); my_rename(a); Signal::Kill; }";
    let names: Vec<_> = calls(code).into_iter().map(|(_, call)| call).collect();
    assert_eq!(names, ["signal", "rename"]);
    assert_eq!(commands("[\"kill-pane\", \"-t\"]").len(), 1);
}
