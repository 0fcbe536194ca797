//! Every way in which a command does not do its work, with its exit code and its error object.

use crate::harness::World;
use crate::samples::{Samples, Zoo};
use serde_json::{Value, json};

/// The error object of a command that must fail so, checked against the text of the same command.
#[track_caller]
fn fails(world: &World, args: &[&str], code: &str, exit: i32) -> Value {
    let text = world.loopmux(args).exits(exit);
    assert_eq!(text.out, "", "an error is no answer");
    assert!(!text.err.is_empty());
    let args = [&["--json"], args].concat();
    let ran = world.loopmux(&args).exits(exit);
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
    let object = ran.json();
    assert_eq!((&object["schema"], &object["ok"]), (&json!(1), &json!(false)), "{object}");
    let error = &object["error"];
    assert_eq!(error["code"], json!(code), "{object}");
    let message = error["message"].as_str().expect("a message");
    let one_line = text.err.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains(&message), "{one_line:?} {message:?}");
    assert!(error["retryable"].is_boolean() && error["details"].is_object(), "{object}");
    object
}

#[test]
fn usage_errors_exit_two() {
    let world = World::new();
    for (args, command) in [
        (&["nonsense"][..], "loopmux"),
        (&["list", "--nonsense"], "list"),
        (&["ls", "--status", "nonsense"], "list"),
        (&["run"], "run"),
        (&["run", "true"], "run"),
        (&["run", "--timeout", "90", "--", "true"], "run"),
        (&["run", "--env", "NOVALUE", "--", "true"], "run"),
        (&["run", "--detach", "--attach", "--", "true"], "run"),
        (&["run", "--", ""], "run"),
        (&["--mux", "screen", "list"], "list"),
        (&["logs"], "logs"),
        (&["wait"], "wait"),
        (&["completions", "tcsh-plus"], "completions"),
        (&["man", "nonsense"], "man"),
        (&["mux", "set", "screen"], "mux"),
        (&["status", ""], "status"),
        (&["status", "."], "status"),
        (&["logs", ".."], "logs"),
        (&["status", "a/b"], "status"),
    ] {
        let object = fails(&world, args, "usage", 2);
        assert_eq!(object["command"], json!(command), "{args:?}");
    }
}

#[test]
fn the_message_of_a_usage_error_is_a_whole_sentence() {
    let world = World::new();
    for (args, message) in [
        (&["--json", "wait"][..], "the following required arguments were not provided: <RUN>..."),
        (&["--json", "list", "--nonsense"], "unexpected argument '--nonsense' found"),
    ] {
        let object = world.loopmux(args).exits(2).json();
        assert_eq!(object["error"]["message"], json!(message), "{object}");
    }
}

#[test]
fn json_may_stand_behind_the_command_and_not_behind_the_dashes() {
    let world = World::new();
    let ran = world.loopmux(["list", "--nonsense", "--json"]).exits(2);
    assert_eq!(ran.json()["error"]["code"], json!("usage"));
    let ran = world.loopmux(["run", "--nonsense", "--", "echo", "--json"]).exits(2);
    assert_eq!(ran.out, "", "behind the dashes it is the command's own word");
}

#[test]
fn without_a_command_there_is_help_and_exit_two() {
    let world = World::new();
    let ran = world.loopmux::<_, &str>([]).exits(2);
    assert!(ran.err.contains("Usage: loopmux") && ran.out.is_empty(), "{ran:?}");
    for args in [&["--help"][..], &["help-me-not", "--help"], &["--version"]] {
        let ran = world.loopmux(args);
        if args[0] == "help-me-not" {
            ran.exits(2);
        } else {
            assert!(!ran.exits(0).out.is_empty());
        }
    }
}

#[test]
fn configuration_errors_exit_two_and_name_the_place() {
    let mut world = World::new();
    let file = world.project().join("loopmux.toml");
    std::fs::write(&file, "[mux]\nbakend = \"tmux\"\n").expect("a file");
    for args in [&["list"][..], &["mux"], &["mux", "ls"], &["run", "--", "true"]] {
        let object = fails(&world, args, "config", 2);
        let message = object["error"]["message"].as_str().expect("a message");
        assert!(
            message.contains("loopmux.toml:2: unknown key \"mux.bakend\"; did you mean \"mux.backend\"?"),
            "{message}"
        );
    }
    std::fs::remove_file(&file).expect("a file");
    world.env.push(("LOOPMUX_STATE_DIR".into(), "relative".into()));
    fails(&world, &["list"], "config", 2);
    world.env.pop();
    world.env.push(("LOOPMUX_SOCKET".into(), "a/b".into()));
    fails(&world, &["mux"], "config", 2);
}

#[test]
fn no_such_run_exits_three_and_offers_the_nearest() {
    let world = World::new();
    let object = fails(&world, &["status"], "not-found", 3);
    assert!(object["error"]["message"].as_str().expect("a message").contains("has no runs"));
    fails(&world, &["logs", "@last"], "not-found", 3);
    let samples = Samples::new(&world);
    let _zoo = Zoo::new(&samples);
    let object = fails(&world, &["status", "fix-logim"], "not-found", 3);
    assert_eq!(object["error"]["details"]["nearest"], json!("fix-login"));
    assert_eq!(object["error"]["details"]["reference"], json!("fix-logim"));
    for args in
        [&["logs", "nonsense"][..], &["attach", "nonsense"], &["wait", "nonsense"], &["stop", "nonsense"]]
    {
        fails(&world, args, "not-found", 3);
    }
    let object = fails(&world, &["logs", "0001", "--attempt", "7"], "not-found", 3);
    assert_eq!(object["error"]["hint"], json!("its attempts: 1"));
}

#[test]
fn an_ambiguous_reference_exits_three_with_the_candidates() {
    let world = World::new();
    let samples = Samples::new(&world);
    let zoo = Zoo::new(&samples);
    let object = fails(&world, &["status", "2026"], "ambiguous", 3);
    let candidates = object["error"]["details"]["candidates"].as_array().expect("candidates").clone();
    assert_eq!(candidates.len(), zoo.expected.len());
    assert!(candidates.contains(&json!({ "id": "20261129-160042-0004", "name": "fix-login" })));
    let text = world.loopmux(["status", "2026"]).exits(3).err;
    assert!(text.contains("\n  20261129-160042-0004  fix-login\n"), "{text}");
}

#[test]
fn a_multiplexer_that_is_not_there_exits_five_where_it_is_needed() {
    let mut world = World::new();
    let samples = Samples::new(&world);
    let zoo = Zoo::new(&samples);
    world.env.push(("LOOPMUX_TMUX".into(), "/no/such/tmux".into()));
    fails(&world, &["mux", "ls"], "mux-missing", 5);
    fails(&world, &["run", "--", "true"], "mux-missing", 5);
    let object = world.loopmux(["mux", "--json"]).exits(0).json();
    assert_eq!(object["data"]["backends"][0]["usable"], json!(false));
    // Reading needs none.
    let object = world.loopmux(["list", "--json"]).exits(0).json();
    assert_eq!(object["data"]["runs"].as_array().map(Vec::len), Some(zoo.expected.len()));
    assert_eq!(object["data"]["parked"], Value::Null);
    world.env.push(("LOOPMUX_MUX".into(), "psmux".into()));
    fails(&world, &["run", "--", "true"], "mux-incompatible", 5);
}

#[test]
fn a_state_directory_that_cannot_be_read_is_an_error_and_not_an_empty_list() {
    let mut world = World::new();
    let file = world.file("file");
    std::fs::write(&file, "").expect("a file");
    world.env.push(("LOOPMUX_STATE_DIR".into(), file.into()));
    for args in [&["list"][..], &["list", "--all-projects"], &["status"]] {
        fails(&world, args, "io", 1);
    }
}
