//! Whose a mux session is: its token and a record here say it, a name never does.

use crate::harness::{World, alive};
use crate::support::{ended, is_there, kept, session, sessions, yard};
use loopmux::run::id::project_key;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Another project in the same state directory, whose one run has the id of `run` and is dead.
fn rival(world: &World, run: &str) -> PathBuf {
    let dir = world.file("rival");
    std::fs::create_dir(&dir).unwrap();
    let dir = dir.canonicalize().unwrap();
    let ran = world.loopmux(["--project", dir.to_str().unwrap(), "run", "--json", "--", "true"]).exits(0);
    let own = ran.json()["data"]["run"]["id"].as_str().unwrap().to_owned();
    let place = world.state().join("projects").join(project_key(&dir));
    std::fs::rename(place.join("locks").join(format!("{own}.lock")), place.join(format!("locks/{run}.lock")))
        .unwrap();
    let at = place.join("runs").join(run);
    std::fs::rename(place.join("runs").join(&own), &at).unwrap();
    for file in ["run.json", "attempts/1/launch.json"] {
        let text = std::fs::read_to_string(at.join(file)).unwrap();
        std::fs::write(at.join(file), text.replace(&own, run)).unwrap();
    }
    dir
}

/// Takes every tag of ours off a session, its window and its pane, as a restored session has none.
fn untag(world: &World, session: &str) {
    for (scope, flag) in [("s", None), ("w", Some("-w")), ("p", Some("-p"))] {
        for what in ["token", "project", "run", "state", "self"] {
            let mut words = vec!["set-option".to_owned(), "-u".to_owned()];
            words.extend(flag.map(str::to_owned));
            words.extend(["-t".to_owned(), format!("={session}:"), format!("@loopmux_{scope}_{what}")]);
            world.tmux(words).exits(0);
        }
    }
}

fn reasons(said: &Value) -> Vec<(String, String)> {
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    said["data"]["kept"]
        .as_array()
        .unwrap()
        .iter()
        .map(|k| (text(&k["session"]), text(&k["reason"])))
        .collect()
}

#[track_caller]
fn reason(said: &Value, session: &str) -> String {
    let all = reasons(said);
    all.iter().find(|(s, _)| s == session).unwrap_or_else(|| panic!("{session}: {said}")).1.clone()
}

fn commands(run: &str) -> [Vec<&str>; 4] {
    [
        vec!["cleanup", "--json"],
        vec!["archive", "--json", run],
        vec!["clean", "--hard", "--retain", "0", "--json"],
        vec!["delete", "--json", run],
    ]
}

#[test]
fn another_projects_run_of_the_same_id_neither_blocks_nor_dies() {
    for untagged in [false, true] {
        let world = World::new();
        let (run, _) = world.launched(&["sleep", "600"]);
        let (cli, name) = (world.cli(&run, 1), session(&world, &run));
        if untagged {
            untag(&world, &name);
        }
        let dir = rival(&world, &run);
        let dir = dir.to_str().unwrap();
        let live = world.state().join("projects").join(project_key(&world.project().canonicalize().unwrap()));
        for command in commands(&run) {
            let ran = world.loopmux(["--project", dir].iter().chain(&command));
            assert!(alive(cli) && sessions(&world).contains(&name), "{command:?}: {ran:?}");
            assert!(live.join("runs").join(&run).is_dir());
            match command[0] {
                "cleanup" => {
                    let said = ran.exits(0).json();
                    assert_eq!(said["data"]["ended"], serde_json::json!([]), "{said}");
                    let expected = if untagged { "no tag" } else { "another project" };
                    assert!(reason(&said, &name).contains(expected), "{said}");
                }
                // The first one that may has it removed; whoever comes later finds nothing.
                "archive" => {
                    ran.exits(0);
                    world.loopmux(["--project", dir, "restore", &run]).exits(0);
                }
                "clean" => {
                    ran.exits(0);
                    rival_again(&world, dir, &run);
                }
                _ => {
                    ran.exits(0);
                }
            }
        }
        // And the other way: the project of the live one keeps it in all of them.
        for command in commands(&run) {
            world.loopmux(&command);
            assert!(alive(cli) && sessions(&world).contains(&name), "{command:?}");
            assert!(live.join("runs").join(&run).is_dir(), "{command:?}");
        }
    }
}

/// The rival's run was removed for good: the live one's directory serves as a model for another dead one.
fn rival_again(world: &World, dir: &str, run: &str) {
    let place = world.state().join("projects").join(project_key(Path::new(dir)));
    let ran = world.loopmux(["--project", dir, "run", "--json", "--", "true"]).exits(0);
    let own = ran.json()["data"]["run"]["id"].as_str().unwrap().to_owned();
    let at = place.join("runs").join(run);
    std::fs::rename(place.join("runs").join(&own), &at).unwrap();
    for file in ["run.json", "attempts/1/launch.json"] {
        let text = std::fs::read_to_string(at.join(file)).unwrap();
        std::fs::write(at.join(file), text.replace(&own, run)).unwrap();
    }
}

#[test]
fn an_untagged_session_of_a_runs_name_forbids_its_removal_and_is_never_ended() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    let name = session(&world, &run);
    world.tmux(["new-session", "-d", "-s", &name, "sleep", "600"]).exits(0);
    for act in ["delete", "archive"] {
        let said = kept(&world.loopmux([act, "--json", &run]), &run, "refused-unknown");
        assert!(said["data"]["kept"][0]["reason"].as_str().unwrap().contains(&name), "{said}");
    }
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    assert_eq!(said["data"]["ended"], serde_json::json!([]), "{said}");
    assert!(reason(&said, &name).contains("no tag") && reason(&said, &name).contains(&run), "{said}");
    assert_eq!(said["data"]["kept"][0]["run"], run.as_str(), "{said}");
    assert!(sessions(&world).contains(&name));
    // The refusal prints what to type; typed, it does it.
    let text = world.loopmux(["delete", &run]).exits(4).err;
    let line = text.lines().find(|l| l.contains("kill-session")).unwrap_or_else(|| panic!("{text}"));
    assert!(text.contains("attach-session"), "{text}");
    let typed = line.trim().strip_prefix("to end it:  ").unwrap_or_else(|| panic!("{line}"));
    let mut shell = world.bare("/bin/sh");
    shell.args(["-c", typed]);
    crate::harness::finish(shell).exits(0);
    assert!(!sessions(&world).contains(&name));
    world.loopmux(["delete", &run]).exits(0);
}

#[test]
fn a_session_that_was_restored_without_options_is_nobodys() {
    let world = World::new();
    let (run, _) = world.launched(&["sleep", "600"]);
    let (cli, name) = (world.cli(&run, 1), session(&world, &run));
    untag(&world, &name);
    for force in [false, true] {
        let _ = force;
        let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
        assert!(reason(&said, &name).contains("no tag"), "{said}");
        assert!(alive(cli));
    }
    kept(&world.loopmux(["delete", "--json", &run]), &run, "refused-alive");
    // The lease does not need the multiplexer: the program ends all the same.
    world.loopmux(["stop", "--grace", "1s", &run]).exits(0);
    assert!(!alive(cli));
}

#[test]
fn the_tag_of_a_removed_run_is_foreign() {
    let world = World::new();
    let (run, _) = world.launched(&["sleep", "600"]);
    let (cli, name) = (world.cli(&run, 1), session(&world, &run));
    // As if somebody had taken the record away.
    std::fs::rename(world.run_dir(&run), world.file("away")).unwrap();
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    assert_eq!(said["data"]["ended"], serde_json::json!([]), "{said}");
    assert!(reason(&said, &name).contains("no such record"), "{said}");
    assert!(alive(cli) && sessions(&world).contains(&name));
}

#[test]
fn a_copied_state_directory_ends_nothing_of_the_original() {
    let world = World::new();
    let (run, _) = world.launched(&["sleep", "600"]);
    let parked = world.loopmux(["run", "-d", "--park", "--", "true"]).exits(0).out.trim().to_owned();
    world.loopmux(["wait", &parked]).exits(0);
    let cli = world.cli(&run, 1);
    let before = sessions(&world);
    let copy = world.file("copy");
    let done = std::process::Command::new("cp").arg("-a").arg(world.state()).arg(&copy).status().unwrap();
    assert!(done.success());
    for command in [
        vec!["cleanup", "--json"],
        vec!["stop", "--force", &run],
        vec!["delete", &run],
        vec!["delete", "--force", &run],
        vec!["delete", "--force", &parked],
        vec!["delete", "--unproven", &run],
        vec!["clean", "--hard", "--retain", "0", "--force"],
    ] {
        let mut there = world.command(&command);
        there.env("LOOPMUX_STATE_DIR", &copy);
        let ran = crate::harness::finish(there);
        assert!(alive(cli), "{command:?}: {ran:?}");
        assert_eq!(sessions(&world), before, "{command:?}: {ran:?}");
    }
    assert!(is_there(&world, &run) && is_there(&world, &parked));
    world.loopmux(["cleanup"]).exits(0);
    assert!(!sessions(&world).contains(&session(&world, &parked)), "the original does");
    assert!(yard(&world).is_dir());
}

#[test]
fn a_pane_that_a_person_put_beside_ours_stays() {
    let world = World::new();
    let run = world.loopmux(["run", "-d", "--park", "--", "true"]).exits(0).out.trim().to_owned();
    world.loopmux(["wait", &run]).exits(0);
    let name = session(&world, &run);
    world.tmux(["split-window", "-d", "-t", &format!("={name}:"), "sleep", "600"]).exits(0);
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    assert!(said["data"]["ended"].as_array().unwrap().iter().any(|w| w["run"] == run.as_str()), "{said}");
    assert!(reason(&said, &name).contains("something else is in it"), "{said}");
    assert!(sessions(&world).contains(&name));
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    assert!(!reason(&said, &name).is_empty(), "{said}");
    assert!(sessions(&world).contains(&name));
}

#[test]
fn a_window_that_a_person_moved_is_ended_where_it_is() {
    let world = World::new();
    let run = world.loopmux(["run", "-d", "--park", "--", "true"]).exits(0).out.trim().to_owned();
    world.loopmux(["wait", &run]).exits(0);
    let name = session(&world, &run);
    world.tmux(["new-session", "-d", "-s", "mine", "sleep", "600"]).exits(0);
    world.tmux(["move-window", "-s", &format!("={name}:"), "-t", "=mine:"]).exits(0);
    world.loopmux(["delete", &run]).exits(4);
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    assert!(said["data"]["ended"].as_array().unwrap().iter().any(|w| w["session"] == "mine"), "{said}");
    assert_eq!(sessions(&world), ["mine"]);
    world.loopmux(["delete", &run]).exits(0);
}
