//! Words that have a place of their own.

use crate::source::{Source, View, files, line_of, shipped};

/// Where a multiplexer may be named in code or in a literal outside its own leaf, and why. Comments are not
/// looked at: there a name is an example, and changes nothing when it is wrong.
const MAY_NAME_A_MULTIPLEXER: [(&str, &str); 6] = [
    ("adapters/psmux/", "what psmux sets and says under the other's name, to be taken for it"),
    ("src/backends.rs", "selection"),
    ("src/keeper/backend.rs", "the keeper's selection, which links no configuration"),
    ("src/ops/environment.rs", "variables of the caller's terminal, which no agent CLI gets"),
    ("src/config/", "configuration keys and variables that a person writes"),
    ("src/cli/", "help texts and reports"),
];

const MULTIPLEXERS: [&str; 2] = ["tmux", "psmux"];

/// Macros that write to the terminal of whoever runs the library, and what may use them.
const PRINTS: [&str; 5] = ["print!", "println!", "eprint!", "eprintln!", "dbg!"];
const MAY_PRINT: [(&str, &str); 0] = [];

fn listed(list: &[(&str, &str)], path: &str) -> bool {
    list.iter().any(|(start, _)| path.starts_with(start))
}

fn named_multiplexers(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        let code = source.view_without_tests(View::CodeAndLiterals).to_lowercase();
        for name in MULTIPLEXERS {
            let own = source.path.starts_with(&format!("adapters/{name}/"));
            if own || listed(&MAY_NAME_A_MULTIPLEXER, &source.path) {
                continue;
            }
            for (at, _) in code.match_indices(name) {
                found.push(format!("{}:{}: names {name}", source.path, line_of(&code, at)));
            }
        }
    }
    found
}

fn prints(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|s| !listed(&MAY_PRINT, &s.path)) {
        let code = source.view_without_tests(View::Code);
        for print in PRINTS {
            let starts_a_word = |at: usize| at == 0 || !code.as_bytes()[at - 1].is_ascii_alphanumeric();
            for (at, _) in code.match_indices(print).filter(|(at, _)| starts_a_word(*at)) {
                found.push(format!("{}:{}: {print}", source.path, line_of(&code, at)));
            }
        }
    }
    found
}

/// Places of one machine that have no business in a project. Written in parts, or this file would find itself.
fn machine_paths() -> Vec<String> {
    ["/wo", "/ro", "/tmp/w", "/ho"]
        .iter()
        .zip(["rk/", "ot/", "t/", "me/"])
        .map(|(a, b)| format!("{a}{b}"))
        .collect()
}

fn named_machines(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        for path in machine_paths() {
            for (at, _) in source.text.match_indices(&path) {
                // Such a name also stands inside longer paths of ours.
                let starts = at == 0 || !source.text.as_bytes()[at - 1].is_ascii_alphanumeric();
                if starts {
                    found.push(format!("{}:{}: {path}", source.path, line_of(&source.text, at)));
                }
            }
        }
    }
    found
}

#[test]
fn a_multiplexer_is_named_only_where_it_must_be() {
    assert_eq!(named_multiplexers(&shipped()), Vec::<String>::new());
}

#[test]
fn a_planted_multiplexer_is_found() {
    let planted = |path, text| named_multiplexers(&[Source::new(path, text)]);
    assert_eq!(planted("src/ops/x.rs", "\nf(\"tmux\");"), ["src/ops/x.rs:2: names tmux"]);
    assert_eq!(planted("src/ops/x.rs", "env(\"TMUX_PANE\")"), ["src/ops/x.rs:1: names tmux"]);
    assert_eq!(planted("adapters/tmux/src/x.rs", "psmux()"), ["adapters/tmux/src/x.rs:1: names psmux"]);
    assert_eq!(
        planted("adapters/mux/src/x.rs", "use loopmux_tmux::T;"),
        ["adapters/mux/src/x.rs:1: names tmux"]
    );
    let fine = "// tmux\n#[cfg(test)]\nmod tests { const T: &str = \"tmux\"; }";
    assert_eq!(planted("src/ops/x.rs", fine), Vec::<String>::new());
    assert_eq!(planted("adapters/tmux/src/x.rs", "tmux()"), Vec::<String>::new());
}

#[test]
fn library_code_prints_nothing() {
    assert_eq!(prints(&shipped()), Vec::<String>::new());
}

#[test]
fn a_planted_print_is_found() {
    for print in PRINTS {
        let text = format!("fn f() {{\n    {print}(\"x\");\n}}");
        let found = prints(&[Source::new("src/x.rs", &text)]);
        assert_eq!(found, [format!("src/x.rs:2: {print}")]);
    }
    let fine = "// println!\n#[cfg(test)]\nmod tests { fn f() { println!(\"x\"); } }";
    assert_eq!(prints(&[Source::new("src/x.rs", fine)]), Vec::<String>::new());
}

#[test]
fn no_file_names_a_place_of_one_machine() {
    let mut sources = Vec::new();
    for end in [".rs", ".md", ".toml"] {
        sources.extend(files(&["."], end));
    }
    sources.extend(files(&[".ci", ".cargo", ".config"], ""));
    assert_eq!(named_machines(&sources), Vec::<String>::new());
}

#[test]
fn a_planted_place_is_found() {
    for path in machine_paths() {
        let found = named_machines(&[Source::new("docs/x.md", &format!("see `{path}x`"))]);
        assert_eq!(found, [format!("docs/x.md:1: {path}")]);
    }
}

/// Verbs that end more than one session. The leaves have no business with them.
const TOO_MUCH: [&str; 4] = ["kill-server", "kill-ser", "killall", "pkill"];

fn blasts(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        let code = source.view_without_tests(View::CodeAndLiterals);
        for verb in TOO_MUCH {
            for (at, _) in code.match_indices(verb) {
                found.push(format!("{}:{}: {verb}", source.path, line_of(&code, at)));
            }
        }
    }
    found
}

#[test]
fn nothing_can_end_a_server() {
    assert_eq!(blasts(&shipped()), Vec::<String>::new());
}

#[test]
fn a_planted_blast_is_found() {
    let found = blasts(&[Source::new("adapters/tmux/src/kill.rs", "run(&[\"pkill\", \"-f\"])")]);
    assert_eq!(found, ["adapters/tmux/src/kill.rs:1: pkill"]);
}
