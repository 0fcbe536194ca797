//! The JSON schemas that are kept with the program, and what they describe.

use crate::harness::World;
use loopmux::cli::schema;
use std::path::Path;

#[test]
fn the_kept_schemas_are_those_of_the_code() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
    let mut kept: Vec<String> = std::fs::read_dir(&dir)
        .expect("docs/schema")
        .map(|e| e.expect("an entry").file_name().into_string().expect("unicode"))
        .collect();
    kept.sort();
    let mut made = schema::files().expect("schemas");
    made.sort();
    assert_eq!(kept, made.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), "cargo xtask docs");
    for (name, text) in made {
        let old = std::fs::read_to_string(dir.join(&name)).expect("a schema");
        assert!(old == text, "{name} is not current: cargo xtask docs");
    }
}

#[test]
fn they_are_printed_and_written() {
    let world = World::new();
    let printed = world.loopmux(["schema"]).exits(0).out;
    let printed: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let dir = world.file("schemas");
    std::fs::create_dir(&dir).expect("a directory");
    world.loopmux(["schema".as_ref(), dir.as_os_str()]).exits(0);
    for (name, _) in schema::all() {
        let written = std::fs::read_to_string(dir.join(format!("{name}.json"))).expect("a file");
        let written: serde_json::Value = serde_json::from_str(&written).expect("JSON");
        assert_eq!(written, printed[name], "{name}");
    }
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = world.loopmux(["completions", shell]).exits(0).out;
        for command in ["run", "list", "status", "logs", "attach", "wait", "stop", "mux", "doctor"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    let page = world.loopmux(["man"]).exits(0).out;
    assert!(page.contains(".TH loopmux 1") && page.contains("loopmux\\-doctor(1)"), "{page}");
    assert!(!page.contains("loopmux\\-engine"), "what is hidden stays hidden");
    for command in ["run", "ls", "mux"] {
        let page = world.loopmux(["man", command]).exits(0).out;
        assert!(page.contains(".TH loopmux-") && page.contains(".SH OPTIONS"), "{page}");
    }
}
