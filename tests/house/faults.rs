//! The steps at which a test can make the program die or wait are exactly those that are listed.

use crate::source::{Source, View, shipped};
use loopmux::fault::POINTS;
use std::collections::BTreeSet;

/// Verbs of steps that are named by the file that they are about.
const VERBS: [&str; 5] = ["write", "replace", "create", "unlink", "make"];

/// Names of steps as the sources write them.
fn named(sources: &[Source]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in sources.iter().filter(|s| s.path.starts_with("src/") && s.path != "src/fault.rs") {
        let code: String = source.view_without_tests(View::CodeAndLiterals).split_whitespace().collect();
        for call in ["fault::around(\"", "step(\"", ".remove(\"archive."] {
            for (at, _) in code.match_indices(call) {
                let start = at + call.find('"').unwrap_or_default() + 1;
                found.insert(code[start..].chars().take_while(|c| *c != '"').collect());
            }
        }
    }
    found
}

#[test]
fn every_step_that_is_named_is_listed_and_every_one_that_is_listed_is_named() {
    let named = named(&shipped());
    assert!(named.len() > 15, "{named:?}");
    let by_file = |point: &str| VERBS.iter().any(|v| point.starts_with(&format!("{v}.")));
    let listed: BTreeSet<String> = POINTS.iter().filter(|p| !by_file(p)).map(|p| (*p).to_owned()).collect();
    assert_eq!(named, listed);
    let twice = POINTS.len() - POINTS.iter().collect::<BTreeSet<_>>().len();
    assert_eq!(twice, 0, "a step is listed twice");
}

/// Files that are written durably have a step each.
#[test]
fn every_file_of_a_run_has_a_step() {
    let files: Vec<&str> = POINTS
        .iter()
        .filter(|p| VERBS.iter().any(|v| p.starts_with(&format!("{v}."))))
        .filter_map(|p| p.split_once('.').map(|(_, file)| file))
        .collect();
    let source = std::fs::read_to_string(crate::source::root().join("src/run/files.rs")).unwrap();
    let names = source.split("pub mod name {").nth(1).unwrap().split("\n}").next().unwrap();
    let mut seen = 0;
    for value in names.lines().filter_map(|l| l.split_once("= \"")?.1.strip_suffix("\";")) {
        seen += 1;
        // Appended to, or never made durable: a power failure may take them.
        if !["journal.jsonl", "output.tail."].contains(&value) {
            assert!(files.contains(&value), "{value} has no step in src/fault.rs");
        }
    }
    assert!(seen > 15, "{seen}");
}

#[test]
fn named_steps_are_found() {
    let source = Source::new("src/x.rs", "fault::around(\n    \"a.b\",\n    || x());\nstep(\"c.d\", y);");
    assert_eq!(named(&[source]).into_iter().collect::<Vec<_>>(), ["a.b", "c.d"]);
}
