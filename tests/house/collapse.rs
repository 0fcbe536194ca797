//! Unknown is a value: no error and no missing answer is turned into a `bool`.

use crate::source::{Source, View, line_of, shipped};

/// Calls that make "cannot tell" into "no", and what to use instead.
const COLLAPSING: [(&str, &str); 6] = [
    (".unwrap_or(false)", "match on all three answers"),
    (".unwrap_or(true)", "match on all three answers"),
    (".known().is_some()", "match on the observation"),
    (".known().is_none()", "match on the observation"),
    // False where the look itself was refused.
    (".exists()", "symlink_metadata() or try_exists(), and look at the error"),
    ("Path::exists", "symlink_metadata() or try_exists(), and look at the error"),
];

/// Places where it is right, with the line's text and the reason.
const ALLOWED: [(&str, &str, &str); 2] = [
    (
        "adapters/tmux/src/version.rs",
        "self.binary.exists()",
        "shown beside the error of a program that could not be executed; nothing is decided by it",
    ),
    (
        "src/keeper/mod.rs",
        "p.is_absolute() && p.exists()",
        "chooses between two paths of the same program; the other one is as good",
    ),
];

fn collapses(sources: &[Source], allowed: &[(&str, &str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    let mut used = vec![false; allowed.len()];
    for source in sources {
        let code = source.view_without_tests(View::Code);
        // A chain may be broken over lines: it is looked at without its white space.
        let (mut packed, mut places) = (String::new(), Vec::new());
        for (at, c) in code.char_indices().filter(|(_, c)| !c.is_whitespace()) {
            packed.push(c);
            places.resize(packed.len(), at);
        }
        for (call, instead) in COLLAPSING {
            for (at, _) in packed.match_indices(call) {
                let line = line_of(&code, places[at]);
                let text = source.text.lines().nth(line - 1).unwrap_or_default();
                let pardon = allowed.iter().position(|(p, part, _)| *p == source.path && text.contains(part));
                match pardon {
                    Some(i) => used[i] = true,
                    None => found.push(format!("{}:{line}: {call}: {instead}", source.path)),
                }
            }
        }
    }
    for ((path, part, _), _) in allowed.iter().zip(used).filter(|(_, used)| !used) {
        found.push(format!("{path}: {part:?} is on the list and no longer in the file"));
    }
    found
}

#[test]
fn no_observation_becomes_a_bool() {
    assert_eq!(collapses(&shipped(), &ALLOWED), Vec::<String>::new());
}

#[test]
fn a_planted_collapse_is_found() {
    for (call, instead) in COLLAPSING {
        let source = Source::new("src/x.rs", &format!("fn f() {{\n    look(){call};\n}}"));
        assert_eq!(collapses(&[source], &[]), [format!("src/x.rs:2: {call}: {instead}")]);
    }
    let broken = Source::new("src/x.rs", "look()\n    .unwrap_or(\n        false,\n    );");
    assert_eq!(
        collapses(&[broken], &[]),
        Vec::<String>::new(),
        "a trailing comma is not written by rustfmt here"
    );
    let chain = Source::new("src/x.rs", "look()\n    .known()\n    .is_some();");
    assert_eq!(collapses(&[chain], &[]).len(), 1);
    let in_test = Source::new("src/x.rs", "#[cfg(test)]\nmod tests { fn f() { p.exists(); } }");
    assert_eq!(collapses(&[in_test], &[]), Vec::<String>::new());
}

#[test]
fn a_pardon_is_for_one_place_and_must_be_needed() {
    let source = || Source::new("src/x.rs", "a.exists();\nb.exists();");
    let pardon = [("src/x.rs", "a.exists()", "because")];
    assert_eq!(collapses(&[source()], &pardon).len(), 1);
    let stale = [("src/x.rs", "a.exists()", "because"), ("src/x.rs", "c.exists()", "because")];
    assert!(collapses(&[source()], &stale)[1].contains("no longer in the file"));
}
