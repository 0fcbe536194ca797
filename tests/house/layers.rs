//! Who may import whom.

use crate::source::{Source, View, closing, files, line_of};

/// The files that may name a leaf: the selection of a backend, and the keeper's, which links no configuration.
const SELECTION: [&str; 2] = ["src/backends.rs", "src/keeper/backend.rs"];

/// The layers from the bottom up, each with what it may import. `mux` is the seam's crate. A leaf is named by
/// [`SELECTION`] only, not even by what may import everything.
const LAYERS: [(&str, &[&str]); 14] = [
    // Pure: evidence in, verdict out.
    ("verdict", &[]),
    // What the operating system does with files.
    ("at", &[]),
    // Nothing in a release build.
    ("fault", &["at"]),
    ("process", &[]),
    ("config", &[]),
    // Records hold ids and tags of the seam.
    ("run", &["at", "verdict", "process", "mux", "fault"]),
    ("wake", &["run", "process"]),
    ("observe", &["run", "process", "verdict", "mux"]),
    ("ops", &["at", "observe", "run", "process", "verdict", "wake", "config", "mux", "fault"]),
    ("agents", &["ops", "observe", "run", "process", "verdict", "config"]),
    ("engine", &["ops", "agents", "observe", "run", "process", "verdict", "wake", "config", "mux"]),
    ("keeper", &["at", "run", "process", "verdict", "wake", "mux", "fault"]),
    ("backends", &["config", "run", "mux"]),
    ("cli", &["*"]),
];

/// One import that crosses a layer.
#[derive(Debug, PartialEq, Eq)]
struct Import {
    from: String,
    to: String,
    place: String,
}

/// Everything that a source imports from other modules of ours.
fn imports(source: &Source) -> Vec<Import> {
    let Some(inside) = source.path.strip_prefix("src/").and_then(|p| p.strip_suffix(".rs")) else {
        return adapter_imports(source);
    };
    let mut parts: Vec<&str> = inside.split('/').collect();
    let from = parts[0].to_owned();
    if parts.last() == Some(&"mod") {
        parts.pop();
    }
    // A program's own root: there `crate` is the program, and the library is `loopmux`.
    let program = inside == "main" || inside == "keeper/main";
    let code = source.view(View::Code);
    let mut found = Vec::new();
    let mut push = |to: &str, at: usize| {
        if to != from && !to.is_empty() {
            let place = format!("{}:{}", source.path, line_of(&code, at));
            found.push(Import { from: from.clone(), to: to.to_owned(), place });
        }
    };
    for (at, _) in words(&code, "crate").filter(|_| !program) {
        for to in heads(&code[at + "crate".len()..]) {
            push(&to, at);
        }
    }
    for (at, _) in words(&code, "loopmux") {
        for to in heads(&code[at + "loopmux".len()..]) {
            push(&to, at);
        }
    }
    for (at, depth, tail) in super_chains(&code) {
        let here = parts.len() + enclosing_modules(&code, at);
        if depth == here && !program {
            for to in heads(&code[tail..]) {
                push(&to, at);
            }
        }
    }
    for (at, name) in crates_of_ours(&code) {
        push(if name == "loopmux_mux" { "mux" } else { "leaf" }, at);
    }
    found
}

/// The seam and its leaves know nothing of the program.
fn adapter_imports(source: &Source) -> Vec<Import> {
    let mut parts = source.path.split('/');
    let from = match (parts.next(), parts.next()) {
        (Some("adapters"), Some(name)) => format!("adapters/{name}"),
        _ => return Vec::new(),
    };
    let code = source.view(View::Code);
    let place = |at| format!("{}:{}", source.path, line_of(&code, at));
    let program = words(&code, "loopmux").map(|(at, _)| (at, "loopmux".to_owned()));
    program
        .chain(crates_of_ours(&code))
        .map(|(at, to)| Import { from: from.clone(), to, place: place(at) })
        .collect()
}

fn crates_of_ours(code: &str) -> Vec<(usize, String)> {
    let starts = code.match_indices("loopmux_");
    starts
        .filter(|(at, _)| *at == 0 || !word_byte(code.as_bytes()[at - 1]))
        .map(|(at, _)| (at, code[at..].chars().take_while(|c| word_byte(*c as u8)).collect()))
        .collect()
}

fn word_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// Whole words followed by `::`.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    code.match_indices(word).filter(move |(at, _)| {
        let before = *at == 0 || !word_byte(code.as_bytes()[at - 1]);
        before && code[at + word.len()..].trim_start().starts_with("::")
    })
}

/// The first names behind `::`: one, or those of a group.
fn heads(rest: &str) -> Vec<String> {
    let Some(rest) = rest.trim_start().strip_prefix("::") else { return Vec::new() };
    let rest = rest.trim_start();
    let name = |text: &str| text.chars().take_while(|c| word_byte(*c as u8)).collect::<String>();
    if !rest.starts_with('{') {
        return vec![name(rest)];
    }
    let end = closing(rest.as_bytes(), 0);
    let (mut depth, mut start, mut names) = (0, 1, Vec::new());
    for (i, b) in rest.bytes().enumerate().take(end + 1) {
        match b {
            b'{' => depth += 1,
            b'}' if depth > 1 => depth -= 1,
            b',' | b'}' if depth == 1 => {
                names.push(name(rest[start..i].trim_start()));
                start = i + 1;
            }
            _ => {}
        }
    }
    names
}

/// Runs of `super::super`: where each starts, how many it has, and where the rest of the path is.
fn super_chains(code: &str) -> Vec<(usize, usize, usize)> {
    let mut chains: Vec<(usize, usize, usize)> = Vec::new();
    for (at, word) in words(code, "super") {
        let end = at + word.len();
        match chains.last_mut() {
            Some(last) if code[last.2..at].trim() == "::" => *last = (last.0, last.1 + 1, end),
            _ => chains.push((at, 1, end)),
        }
    }
    chains
}

/// How many modules with a body are around a byte.
fn enclosing_modules(code: &str, at: usize) -> usize {
    let mut count = 0;
    for (start, _) in code.match_indices("mod ") {
        let named = start == 0 || !word_byte(code.as_bytes()[start - 1]);
        let Some(brace) = code[start..].find(['{', ';']).map(|i| start + i) else { continue };
        if named && code.as_bytes()[brace] == b'{' && (brace..closing(code.as_bytes(), brace)).contains(&at) {
            count += 1;
        }
    }
    count
}

/// Everything that is not allowed, as a list of complaints.
fn violations(sources: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for import in sources.iter().flat_map(imports) {
        let Import { from, to, place } = &import;
        let allowed = match from.as_str() {
            _ if to == "leaf" => SELECTION.iter().any(|file| place.starts_with(&format!("{file}:"))),
            "main" | "lib" => true,
            "adapters/mux" => false,
            leaf if leaf.starts_with("adapters/") => to == "loopmux_mux",
            from => match LAYERS.iter().find(|(name, _)| *name == from) {
                Some((_, allowed)) => allowed.contains(&"*") || allowed.contains(&to.as_str()),
                None => {
                    wrong.push(format!("{place}: no layer is known for {from}"));
                    continue;
                }
            },
        };
        if !allowed {
            wrong.push(format!("{place}: {from} may not import {to}"));
        }
    }
    wrong
}

#[test]
fn every_layer_imports_only_what_is_below_it() {
    let mut sources = files(&["src", "adapters"], ".rs");
    sources.retain(|s| !s.path.contains("/examples/") && !s.path.contains("/tests/"));
    let seen: usize = sources.iter().map(|s| imports(s).len()).sum();
    assert!(seen > 10, "only {seen} imports were found: the parser sees nothing");
    assert_eq!(violations(&sources), Vec::<String>::new());
}

#[test]
fn every_module_of_the_library_is_a_known_layer() {
    let known = |name: &str| LAYERS.iter().any(|(layer, _)| *layer == name);
    let unknown: Vec<_> = files(&["src"], ".rs")
        .into_iter()
        .filter_map(|s| Some(s.path.strip_prefix("src/")?.split(['/', '.']).next()?.to_owned()))
        .filter(|name| !known(name) && !matches!(name.as_str(), "lib" | "main"))
        .collect();
    assert_eq!(unknown, Vec::<String>::new(), "give them a row in LAYERS and in docs/architecture.md");
}

#[test]
fn a_planted_import_is_found() {
    for (path, text, complaint) in [
        ("src/verdict/x.rs", "use crate::run::Id;", "src/verdict/x.rs:1: verdict may not import run"),
        (
            "src/verdict/mod.rs",
            "\nuse loopmux_mux::Tags;",
            "src/verdict/mod.rs:2: verdict may not import mux",
        ),
        ("src/process/mod.rs", "use super::run::Id;", "src/process/mod.rs:1: process may not import run"),
        (
            "src/run/dir.rs",
            "fn f() { super::super::observe::x() }",
            "src/run/dir.rs:1: run may not import observe",
        ),
        (
            "src/run/dir.rs",
            "mod tests {\n    use super::super::super::ops::x;\n}",
            "src/run/dir.rs:2: run may not import ops",
        ),
        (
            "src/observe/a.rs",
            "use crate::{run::x, ops::{y, z}};",
            "src/observe/a.rs:1: observe may not import ops",
        ),
        ("src/ops/stop.rs", "use loopmux_tmux::Tmux;", "src/ops/stop.rs:1: ops may not import leaf"),
        ("src/engine/mod.rs", "use crate::cli::x;", "src/engine/mod.rs:1: engine may not import cli"),
        ("src/keeper/main.rs", "use loopmux::ops::x;", "src/keeper/main.rs:1: keeper may not import ops"),
        ("src/newcomer.rs", "use crate::run::x;", "src/newcomer.rs:1: no layer is known for newcomer"),
        ("src/cli/run.rs", "use loopmux_tmux::Tmux;", "src/cli/run.rs:1: cli may not import leaf"),
        ("src/keeper/tend.rs", "use crate::ops::x;", "src/keeper/tend.rs:1: keeper may not import ops"),
        (
            "adapters/tmux/src/lib.rs",
            "use loopmux::run::x;",
            "adapters/tmux/src/lib.rs:1: adapters/tmux may not import loopmux",
        ),
        (
            "adapters/mux/src/lib.rs",
            "use loopmux_tmux::x;",
            "adapters/mux/src/lib.rs:1: adapters/mux may not import loopmux_tmux",
        ),
    ] {
        assert_eq!(violations(&[Source::new(path, text)]), [complaint], "{text}");
    }
}

#[test]
fn an_allowed_import_is_not_complained_about() {
    for (path, text) in [
        ("src/run/dir.rs", "use super::files::X; use crate::verdict::Y; // crate::ops::Z"),
        ("src/run/dir.rs", "mod tests { use super::super::files::X; }"),
        ("src/verdict/attempt.rs", "use super::evidence::End; const X: &str = \"crate::run::x\";"),
        ("src/keeper/terminal.rs", "use super::signals::x; use crate::run::y;"),
        ("src/keeper/main.rs", "use loopmux::keeper::x;"),
        ("src/backends.rs", "use loopmux_tmux::Tmux;"),
        ("src/cli/list.rs", "use crate::ops::x; use crate::observe::y;"),
        ("adapters/tmux/src/lib.rs", "use loopmux_mux::Multiplexer; use crate::argv::x;"),
    ] {
        assert_eq!(violations(&[Source::new(path, text)]), Vec::<String>::new(), "{text}");
    }
}
