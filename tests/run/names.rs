//! Names and paths that a shell, tmux or a terminal would act upon: safe there, and shown as they were given.

use crate::harness::{World, eventually};
use loopmux_mux::SessionName;

const AWKWARD: [&str; 16] = [
    "two words",
    "a.b",
    "a:b",
    "=eq",
    "@at",
    "$x",
    "a;b;",
    "#{pid}",
    "#(touch x)",
    "%Y %%",
    "'\"`$(touch x)",
    "-lead",
    "caf\u{e9} \u{1f980} \u{65e5}\u{672c}",
    "tab\there",
    "new\nline \u{1b}[31mred",
    "\u{202e}turned",
];

fn long() -> String {
    "x".repeat(300)
}

/// Nothing that a name asked for was executed anywhere.
#[track_caller]
fn nothing_was_touched(world: &World) {
    let mut dirs = vec![world.path().to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).unwrap().flatten() {
            assert_ne!(entry.file_name(), "x", "in {}", dir.display());
            if entry.file_type().unwrap().is_dir() {
                dirs.push(entry.path());
            }
        }
    }
}

/// Every name of a session and a window on the server.
#[track_caller]
fn mux_names_are_plain(world: &World) {
    let names = world.tmux(["list-windows", "-a", "-F", "#{session_name}\n#{window_name}"]).exits(0).out;
    assert!(!names.is_empty());
    for name in names.lines() {
        assert!(SessionName::new(name).is_ok(), "{name:?}");
    }
}

#[test]
fn a_name_is_shown_as_given_and_means_nothing_to_anybody() {
    let world = World::new();
    for name in AWKWARD.iter().map(|n| (*n).to_owned()).chain([long()]) {
        let option = format!("--name={name}");
        let run = world.loopmux(["run", "-d", &option, "--", "sleep", "600"]).exits(0).out.trim().to_owned();
        world.until(&run, |s| s["attempts"][0]["verdict"]["kind"] == "running");
        assert_eq!(world.status(&run)["run"]["name"], name.as_str());
        let list = world.loopmux(["list", "--json"]).exits(0).json();
        assert_eq!(list["data"]["runs"][0]["name"], name.as_str());
        mux_names_are_plain(&world);
        for page in [world.loopmux(["list"]), world.loopmux(["status", &run]), world.loopmux(["mux", "ls"])] {
            let page = page.exits(0).out;
            let acts = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!page.contains(acts), "{name:?}: {page:?}");
        }
        let page = world.loopmux(["status", &run]).exits(0).out;
        if !name.contains(char::is_control) && !name.contains('\u{202e}') {
            assert!(page.contains(&name), "{page}");
        }
        // A name is a reference too, unless it could be a path.
        let resolved = world.loopmux(["stop", "--json", "--", &name]).exits(0).json();
        assert_eq!(resolved["data"]["runs"][0]["id"], run.as_str(), "{name:?}");
    }
    nothing_was_touched(&world);
}

#[test]
fn an_awkward_project_directory_is_a_project_like_any_other() {
    let world = World::new();
    let long = "d".repeat(250);
    for name in AWKWARD.iter().chain(&[long.as_str()]) {
        let dir = world.file("projects").join(name);
        std::fs::create_dir_all(&dir).unwrap();
        for detach in [&["run"][..], &["run", "-d"]] {
            let mut command = world.command(
                [detach, &["--", "sh", "-c", "printf '%s\\n' \"$PWD\" \"$LOOPMUX_PROJECT\""]].concat(),
            );
            command.current_dir(&dir);
            crate::harness::finish(command).exits(0);
            let mut wait = world.command(["wait", "@last"]);
            wait.current_dir(&dir);
            crate::harness::finish(wait).exits(0);
        }
        mux_names_are_plain(&world);
        // From elsewhere, by its path.
        let project = format!("--project={}", dir.display());
        let list = world.loopmux(["list", "--json", &project]).exits(0).json();
        let runs = list["data"]["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 2, "{name:?}: {list}");
        for run in runs {
            assert_eq!(run["project"].as_str(), dir.to_str(), "{name:?}");
            assert_eq!(run["status"], "succeeded", "{name:?}");
            let raw = world.loopmux(["logs", "--raw", &project, run["id"].as_str().unwrap()]).exits(0).out;
            let said = raw.replace("\r\n", "\n");
            assert_eq!(said, format!("{0}\n{0}\n", dir.display()), "{name:?}");
        }
        for page in [world.loopmux(["list", "--all-projects"]), world.loopmux(["status", &project])] {
            let page = page.exits(0).out;
            assert!(!page.contains(|c: char| c.is_control() && c != '\n'), "{name:?}: {page:?}");
        }
    }
    nothing_was_touched(&world);
}

#[test]
fn an_awkward_state_directory_keeps_output_and_receipts() {
    for name in ["a'b #(touch x) %Y", "new\nline;", "#{pid}$(touch x)`touch x`\\", "-lead \u{1f980}"] {
        let mut world = World::new();
        world.state = world.file(name);
        world.loopmux(["run", "--", "sh", "-c", "echo said; exit 3"]).exits(1);
        assert_eq!(world.loopmux(["logs", "@last"]).exits(0).out, "said\n", "{name:?}");
        let (run, _) = world.launched(&["sh", "-c", "echo said too; exec sleep 600"]);
        eventually("the output", || {
            let said = world.loopmux(["logs", &run]).exits(0).out;
            if said == "said too\n" { Ok(()) } else { Err(said) }
        });
        world.loopmux(["stop", &run]).exits(0);
        mux_names_are_plain(&world);
        nothing_was_touched(&world);
    }
}

#[test]
fn a_program_of_an_awkward_name_is_executed_and_shown() {
    let world = World::new();
    for name in ["two words", "#(touch x)", "$(touch x);", "-lead"] {
        let program = world.script(name, "#!/bin/sh\necho \"$#\" \"$1\"\n");
        world.loopmux(["run", "--", program.to_str().unwrap(), "a;"]).exits(0);
        assert_eq!(world.loopmux(["logs", "@last"]).exits(0).out, "1 a;\n", "{name:?}");
        assert_eq!(world.status("@last")["run"]["agent"], name);
        std::fs::remove_file(program).unwrap();
    }
    nothing_was_touched(&world);
}

#[test]
fn a_reference_that_can_be_no_run_is_refused() {
    let world = World::new();
    for reference in ["", ".", "..", "a/b", "../runs"] {
        world.loopmux(["status", reference]).exits(2);
        let named = world.loopmux(["run", "--name", reference, "--", "true"]).exits(2);
        assert!(named.err.contains("--name"), "a name that finds nothing again is none: {}", named.err);
    }
    world.loopmux(["run", "--name", "@last", "--", "true"]).exits(2);
    let missing = world.loopmux(["status", "no-such-run"]).exits(3);
    assert!(missing.err.contains("no-such-run"), "{}", missing.err);
}
