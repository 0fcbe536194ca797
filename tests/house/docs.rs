//! The documents agree with the tree and with the code.

use crate::source::{Source, View, files, root, shipped};
use std::collections::BTreeSet;

fn documents() -> Vec<Source> {
    files(&["."], ".md")
}

fn document(path: &str) -> Source {
    let text = std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    Source::new(path, &text)
}

/// Targets of Markdown links that lead to files.
fn links(source: &Source) -> Vec<String> {
    let targets = source.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://") && !target.starts_with('#'))
        .map(|target| target.split('#').next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn every_link_leads_to_a_file() {
    let mut seen = 0;
    for source in documents() {
        let path = root().join(&source.path);
        for target in links(&source) {
            seen += 1;
            let there = path.parent().unwrap().join(&target);
            assert!(there.try_exists().unwrap(), "{}: {target} is not there", source.path);
        }
    }
    assert!(seen > 10, "only {seen} links were found");
}

#[test]
fn links_are_found() {
    let text = "see [a](docs/a.md#part) and [b](https://example.org/x), [c](#here), [d](../d.md)";
    assert_eq!(links(&Source::new("x.md", text)), ["docs/a.md", "../d.md"]);
}

/// Names that look like variables of ours, in code and literals.
fn variables(sources: &[Source]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in sources {
        let code = source.view_without_tests(View::CodeAndLiterals);
        for (at, _) in code.match_indices("\"LOOPMUX_") {
            let name: String =
                code[at + 1..].chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
            found.insert(name);
        }
    }
    found
}

#[test]
fn every_variable_of_the_environment_is_documented() {
    let contract = document("docs/cli.md").text;
    let variables = variables(&shipped());
    assert!(variables.contains("LOOPMUX_STATE_DIR"), "{variables:?}");
    let missing: Vec<_> = variables.iter().filter(|name| !contract.contains(*name)).collect();
    assert_eq!(missing, Vec::<&String>::new(), "not in docs/cli.md");
}

#[test]
fn variables_are_found() {
    let source =
        Source::new("src/x.rs", "const A: &str = \"LOOPMUX_A_B\"; // \"LOOPMUX_C\"\nf(\"LOOPMUX_D=1\")");
    let found: Vec<_> = variables(&[source]).into_iter().collect();
    assert_eq!(found, ["LOOPMUX_A_B", "LOOPMUX_D"]);
}

#[test]
fn every_configuration_key_is_documented() {
    let contract = document("docs/cli.md").text;
    for (table, keys) in loopmux::config::KEYS {
        for key in keys {
            assert!(contract.contains(&format!("`{table}.{key}`")), "{table}.{key} is not in docs/cli.md");
        }
    }
}

#[test]
fn every_module_is_in_the_architecture() {
    let architecture = document("docs/architecture.md").text;
    for source in files(&["src"], ".rs") {
        let module = source.path.strip_prefix("src/").unwrap().split(['/', '.']).next().unwrap();
        if !matches!(module, "lib" | "main") {
            let wanted = format!("`{module}`");
            assert!(architecture.contains(&wanted), "{wanted} is not in docs/architecture.md");
        }
    }
}

#[test]
fn every_word_of_the_contract_is_documented() {
    use loopmux::verdict::{Cause, Status};
    let contract = document("docs/cli.md").text;
    let causes = [
        Cause::WindowKilled,
        Cause::SessionKilled,
        Cause::ServerGone,
        Cause::HostRestarted,
        Cause::KeeperKilled,
        Cause::Unexplained,
    ];
    let statuses = Status::ALL.map(Status::as_str);
    let classes = loopmux_mux::ReplyClass::ALL.map(loopmux_mux::ReplyClass::as_str);
    let codes = loopmux::cli::ErrorCode::ALL.map(loopmux::cli::ErrorCode::as_str);
    for word in causes.map(Cause::as_str).into_iter().chain(statuses).chain(classes).chain(codes) {
        assert!(contract.contains(&format!("`{word}`")), "`{word}` is not in docs/cli.md");
    }
}

/// Names of tests, as the last column of a table of rules has them.
fn named_tests(rules: &str) -> Vec<String> {
    let rows = rules.lines().filter(|line| line.starts_with("| **L"));
    let cells = rows.filter_map(|row| row.trim_end().trim_end_matches('|').rsplit(" | ").next());
    let words = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    words.map(str::to_owned).collect()
}

#[test]
fn every_test_that_is_said_to_hold_a_rule_is_there() {
    let rules = document("docs/rules.md").text;
    for n in 1..=23 {
        assert!(rules.contains(&format!("| **L{n} ")), "rule L{n} is not in docs/rules.md");
    }
    let sources = files(&["src", "adapters", "tests"], ".rs");
    let named = named_tests(&rules);
    assert!(named.len() > 5, "{named:?}");
    let code: Vec<String> = sources.iter().map(|s| s.view(View::Code)).collect();
    let there = |name: &str| {
        let test = format!("fn {name}()");
        code.iter().any(|code| code.contains(&test))
    };
    let missing: Vec<_> = named.iter().filter(|name| !there(name)).collect();
    assert_eq!(missing, Vec::<&String>::new(), "docs/rules.md names tests that do not exist");
}

/// Where tests drive the real program.
const REAL: [&str; 5] = ["tests/acts", "tests/cli", "tests/faults", "tests/keeper", "tests/run"];

#[test]
fn every_rule_is_held_by_a_test_of_the_real_program() {
    let rules = document("docs/rules.md").text;
    let code: Vec<String> = files(&REAL, ".rs").iter().map(|s| s.view(View::Code)).collect();
    let is_real = |name: &String| {
        let test = format!("fn {name}()");
        code.iter().any(|code| code.contains(&test))
    };
    let rows = rules.lines().filter(|line| line.starts_with("| **L"));
    let without: Vec<&str> = rows
        .filter(|row| !named_tests(row).iter().any(is_real))
        .filter_map(|row| row.split("**").nth(1))
        .collect();
    assert_eq!(
        without,
        Vec::<&str>::new(),
        "no test of the real program is named for these in docs/rules.md"
    );
}

#[test]
fn named_tests_are_found() {
    let rules =
        "| rule | held by |\n| **L1 X** | `guard` | `one_test`, `other` |\n| **L2 Y** | g | *later* |\n";
    assert_eq!(named_tests(rules), ["one_test", "other"]);
}

/// Every command that a person sees, as it is typed, with its options.
fn commands(command: &clap::Command, typed: &str, found: &mut Vec<(String, Vec<String>)>) {
    for sub in command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        let typed = format!("{typed} {}", sub.get_name()).trim().to_owned();
        let options = sub.get_arguments().filter(|a| !a.is_hide_set()).filter_map(|a| a.get_long());
        found.push((typed.clone(), options.map(|long| format!("--{long}")).collect()));
        commands(sub, &typed, found);
    }
}

#[test]
fn every_command_and_every_option_is_in_the_contract() {
    use clap::CommandFactory;
    let contract = document("docs/cli.md").text;
    let root = loopmux::cli::Cli::command();
    let mut all = vec![(
        String::new(),
        root.get_arguments().filter_map(|a| a.get_long()).map(|l| format!("--{l}")).collect(),
    )];
    commands(&root, "", &mut all);
    assert!(all.iter().any(|(typed, _)| typed == "mux ls"), "{all:?}");
    let mut missing = Vec::new();
    for (typed, options) in &all {
        if !typed.is_empty() && !contract.contains(&format!("`{typed}")) {
            missing.push(typed.clone());
        }
        // `--help` explains itself.
        for option in options.iter().filter(|o| !matches!(o.as_str(), "--help" | "--version")) {
            if !contract.contains(&format!("`{option}")) {
                missing.push(format!("{typed} {option}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "not in docs/cli.md");
}

#[test]
fn the_schemas_are_the_ones_of_the_reports() {
    let made = loopmux::cli::schema::all();
    let mut expected: Vec<String> = made.iter().map(|(name, _)| format!("docs/schema/{name}.json")).collect();
    expected.sort();
    let kept = files(&["docs/schema"], "");
    let names: Vec<_> = kept.iter().map(|s| s.path.clone()).collect();
    assert_eq!(names, expected, "write them anew with `cargo xtask docs`");
    for (name, schema) in made {
        let kept = kept.iter().find(|s| s.path == format!("docs/schema/{name}.json")).unwrap();
        let kept: serde_json::Value = serde_json::from_str(&kept.text).unwrap();
        assert!(
            kept == schema.to_value(),
            "docs/schema/{name}.json is old: `cargo xtask docs` writes it anew"
        );
    }
}
