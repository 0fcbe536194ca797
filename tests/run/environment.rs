//! What reaches the program: its environment and its arguments, byte for byte, and nobody else.

use crate::harness::{World, finish, fixture, python};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The server that a person started long ago, with an environment of its own.
fn old_server(world: &World) {
    let mut command = world.bare("/usr/bin/tmux");
    command.args(["-u", "-S"]).arg(world.socket()).args(["new-session", "-d", "-s", "old", "sleep", "600"]);
    finish({
        command.env("FOO", "old").env("ONLY_THERE", "1");
        command
    })
    .exits(0);
}

#[test]
fn the_callers_environment_reaches_a_program_in_an_old_server() {
    let world = World::new();
    old_server(&world);
    let script = "echo FOO=$FOO there=$ONLY_THERE";
    for detach in [false, true] {
        let args = if detach { vec!["run", "-d"] } else { vec!["run"] };
        let mut command = world.command([&args[..], &["--", "sh", "-c", script]].concat());
        command.env("FOO", "new");
        finish(command).exits(0);
        world.loopmux(["wait", "@last"]).exits(0);
        assert_eq!(world.loopmux(["logs", "@last"]).exits(0).out, "FOO=new there=\n", "detached: {detach}");
    }
    let theirs = world.tmux(["show-environment", "-g", "FOO"]).exits(0).out;
    assert_eq!(theirs, "FOO=old\n", "the server's own environment stays");
}

/// What a program found around it.
struct Found(serde_json::Value);

impl Found {
    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
    }

    fn var(&self, name: &str) -> Option<Vec<u8>> {
        let hex: String = name.bytes().map(|b| format!("{b:02x}")).collect();
        self.0["env"][hex].as_str().map(Self::bytes)
    }

    fn argv(&self) -> Vec<Vec<u8>> {
        self.0["argv"].as_array().unwrap().iter().map(|w| Self::bytes(w.as_str().unwrap())).collect()
    }
}

fn awkward() -> Vec<(&'static str, Vec<u8>)> {
    let long = |byte: u8| vec![byte; 100_000];
    vec![
        ("LINES_OF_TEXT", b"one\ntwo\r\n\n three\n".to_vec()),
        ("QUOTES", b"'\"`$(id) ${HOME} \\ \\\\ !! # %Y".to_vec()),
        ("FORMATS", b"#{pid} #(touch x) ##".to_vec()),
        ("SEMICOLON", b"ends with;".to_vec()),
        ("BACKSLASH", b"ends with\\".to_vec()),
        ("EMPTY", Vec::new()),
        ("NO_TEXT", vec![b'a', 0xff, 0xfe, 0x80, b'z']),
        ("CONTROLS", (1..32).collect()),
        ("LONG_A", long(b'a')),
        ("LONG_B", long(b'"')),
        ("LONG_C", long(0xff)),
    ]
}

/// Runs the fixture that writes down what is around it.
fn run_with(world: &World, before: &[&str], words: &[&OsStr]) -> Found {
    let file = world.file(&format!("found{}", before.len()));
    let program = [python(), &fixture("surroundings.py"), file.to_str().unwrap()];
    let mut command = world.command(before.iter().chain(&["--"]).chain(&program));
    command.args(words);
    command.envs(awkward().into_iter().map(|(name, value)| (name, OsString::from_vec(value))));
    finish(command).exits(0);
    world.loopmux(["wait", "@last"]).exits(0);
    Found(serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap())
}

#[test]
fn awkward_values_and_arguments_arrive_byte_for_byte() {
    let world = World::new();
    old_server(&world);
    let words: Vec<Vec<u8>> = awkward().into_iter().map(|(_, value)| value).collect();
    let words: Vec<&OsStr> = words.iter().map(|w| OsStr::from_bytes(w)).collect();
    for before in [&["run"][..], &["run", "-d"], &["run", "-d", "--env", "EXTRA=a\n;"]] {
        let found = run_with(&world, before, &words);
        for (name, value) in awkward() {
            let arrived = found.var(name);
            assert!(
                arrived.as_ref() == Some(&value),
                "{before:?} {name}: {:?} bytes",
                arrived.map(|a| a.len())
            );
        }
        let argv = found.argv();
        assert_eq!(argv.len(), words.len());
        assert!(argv.iter().zip(&words).all(|(a, w)| a == w.as_bytes()), "{before:?}");
        let extra = before.contains(&"--env").then(|| b"a\n;".to_vec());
        assert_eq!(found.var("EXTRA"), extra);
    }
}

#[test]
fn the_program_is_told_where_it_runs_and_nothing_of_the_callers_terminal() {
    let world = World::new();
    let file = world.file("found");
    let program = [python(), &fixture("surroundings.py"), file.to_str().unwrap()];
    let mut command = world.command(["run", "--"].iter().chain(&program));
    command.env("TMUX", "/outer,1,0").env("TMUX_PANE", "%9").env("COLUMNS", "7").env("LINES", "7");
    command.env("LOOPMUX_RUN", "outer").env("LOOPMUX_TOKEN", "outer").env("TERM", "outer");
    finish(command).exits(0);
    let found = Found(serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap());
    let text = |name: &str| found.var(name).map(|v| String::from_utf8(v).unwrap());
    let run = world.status("@last")["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(text("LOOPMUX_RUN"), Some(run.clone()));
    assert_eq!(text("LOOPMUX_ATTEMPT").as_deref(), Some("1"));
    assert_eq!(text("LOOPMUX_PROJECT").as_deref(), world.project().to_str());
    assert_eq!(text("PWD").as_deref(), world.project().to_str());
    let token = world.read(&run, "attempts/1/launch.json")["tags"]["token"].as_str().unwrap().to_owned();
    assert_eq!(text("LOOPMUX_TOKEN"), Some(token));
    for dropped in ["TMUX", "TMUX_PANE", "COLUMNS", "LINES"] {
        assert_eq!(text(dropped), None, "{dropped}");
    }
    assert!(matches!(text("TERM").as_deref(), Some("screen" | "tmux-256color" | "screen-256color" | "tmux")));
}

/// Every process of the machine whose command line has the text, and every file of the world.
fn leaks(world: &World, secret: &str) -> Vec<String> {
    let has = |path: &Path| {
        std::fs::read(path).is_ok_and(|bytes| bytes.windows(secret.len()).any(|w| w == secret.as_bytes()))
    };
    let pids = std::fs::read_dir("/proc").unwrap().flatten().map(|e| e.path().join("cmdline"));
    let mut found: Vec<String> = pids.filter(|p| has(p)).map(|p| p.display().to_string()).collect();
    let mut dirs = vec![world.path().to_owned()];
    while let Some(dir) = dirs.pop() {
        for path in std::fs::read_dir(dir).unwrap().flatten().map(|e| e.path()) {
            match path.symlink_metadata().unwrap().file_type() {
                kind if kind.is_dir() => dirs.push(path),
                kind if kind.is_file() && has(&path) => found.push(path.display().to_string()),
                _ => {}
            }
        }
    }
    found
}

#[test]
fn a_secret_is_in_no_command_line_and_in_no_file_once_the_program_runs() {
    let world = World::new();
    let (inherited, asked) = ("inherited-5f0c2a91", "asked-77b1e2d4");
    let mut command = world.command(["run", "-d", "--env"]);
    command.arg(format!("ASKED={asked}")).args(["--", "sh", "-c", "echo ${#KEY} ${#ASKED}; exec sleep 600"]);
    command.env("KEY", inherited);
    let run = finish(command).exits(0).out.trim().to_owned();
    world.cli(&run, 1);
    crate::harness::eventually("the program's word", || {
        let said = world.loopmux(["logs", &run]).exits(0).out;
        if said == format!("{} {}\n", inherited.len(), asked.len()) { Ok(()) } else { Err(said) }
    });
    for secret in [inherited, asked] {
        assert_eq!(leaks(&world, secret), Vec::<String>::new());
    }
    // The look would find one: the run's own id is in both.
    let seen = leaks(&world, &run);
    assert!(
        seen.iter().any(|p| p.starts_with("/proc")) && seen.iter().any(|p| p.ends_with(".json")),
        "{seen:?}"
    );
    world.loopmux(["stop", &run]).exits(0);
    for secret in [inherited, asked] {
        assert_eq!(leaks(&world, secret), Vec::<String>::new(), "after the end");
    }
}

#[test]
fn a_launch_that_is_refused_leaves_no_secret_behind() {
    let world = World::new();
    let secret = "refused-91c3ab40";
    std::fs::create_dir(world.socket()).unwrap();
    for detach in [&["run"][..], &["run", "-d"]] {
        let mut command = world.command([detach, &["--env", "KEY=refused-91c3ab40", "--", "true"]].concat());
        command.env("SECRET", secret);
        let ran = finish(command);
        assert!(!matches!(ran.code, Some(0) | None), "{ran:?}");
        assert_eq!(leaks(&world, secret), Vec::<String>::new(), "{ran:?}");
    }
}
