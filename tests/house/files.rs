//! The size of files, and what the manifests ask for.

use crate::source::{Source, View, files, root};

/// The most lines that a file may have.
const MOST: usize = 600;

/// Files that may be longer, with the reason.
const LONGER: [(&str, &str); 1] =
    [("src/run/write.rs", "the writing half of the store: one type after the other, each with its locks")];

fn too_long(sources: &[Source], longer: &[(&str, &str)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources {
        let lines = source.text.lines().count();
        let listed = longer.iter().any(|(path, _)| *path == source.path);
        match (lines > MOST, listed) {
            (true, false) => wrong.push(format!("{}: {lines} lines, at most {MOST}", source.path)),
            (false, true) => wrong.push(format!("{}: is on the list and no longer needs it", source.path)),
            _ => {}
        }
    }
    wrong
}

#[test]
fn no_file_is_too_long() {
    assert_eq!(too_long(&files(&["."], ".rs"), &LONGER), Vec::<String>::new());
}

#[test]
fn a_planted_long_file_is_found() {
    let long = || Source::new("src/x.rs", &"\n".repeat(MOST + 1));
    let short = || Source::new("src/y.rs", &"\n".repeat(MOST));
    assert_eq!(too_long(&[long(), short()], &[]), [format!("src/x.rs: {} lines, at most {MOST}", MOST + 1)]);
    assert_eq!(too_long(&[long()], &[("src/x.rs", "a table")]), Vec::<String>::new());
    assert_eq!(too_long(&[short()], &[("src/y.rs", "a table")]).len(), 1);
}

/// Dependencies that a manifest names and no source does. A list of what each one is for does not replace its use.
fn unused(manifest: &toml::Table, sources: &[Source]) -> Vec<String> {
    let mut tables: Vec<&toml::Table> = Vec::new();
    tables.extend(manifest.get("dependencies").and_then(toml::Value::as_table));
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        tables.extend(targets.values().filter_map(|t| t.get("dependencies")?.as_table()));
    }
    let code: Vec<String> = sources.iter().map(|s| s.view(View::Code)).collect();
    let names = tables.into_iter().flat_map(toml::Table::keys);
    names
        .filter(|name| {
            let path = format!("{}::", name.replace('-', "_"));
            !code.iter().any(|code| code.contains(&path))
        })
        .cloned()
        .collect()
}

#[test]
fn every_dependency_is_used() {
    for (manifest, code) in [
        ("Cargo.toml", "src"),
        ("adapters/mux/Cargo.toml", "adapters/mux/src"),
        ("adapters/tmux/Cargo.toml", "adapters/tmux/src"),
    ] {
        let table = std::fs::read_to_string(root().join(manifest)).unwrap().parse().unwrap();
        assert_eq!(unused(&table, &files(&[code], ".rs")), Vec::<String>::new(), "{manifest}");
    }
}

#[test]
fn a_planted_dependency_is_found() {
    let manifest = "[dependencies]\na-b = '1'\nc = '1'\n[target.'cfg(unix)'.dependencies]\nd = '1'\n";
    let source = Source::new("src/x.rs", "use a_b::X; // c::Y");
    assert_eq!(unused(&manifest.parse().unwrap(), &[source]), ["c", "d"]);
}
