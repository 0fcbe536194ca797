//! What is started, what is refused, and what is left alone.

use crate::support::*;
use loopmux::process::Signal;
use loopmux::run::files::name;
use loopmux::verdict::{End, Lease, Verdict};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

#[test]
fn a_program_exits_and_its_code_is_recorded() {
    let mux = Mux::new();
    let attempt = Spec::sh("echo hello; exit 3").write(&mux);
    mux.launch(&attempt);
    attempt.exits(3);
    assert_eq!(String::from_utf8_lossy(&attempt.log()), "hello\r\n");
    let start = attempt.start().unwrap();
    assert_eq!(start.server.as_ref(), Some(mux.server()));
    assert!(start.session.is_some() && start.pane.is_some(), "{start:?}");
    assert!(!attempt.has(name::ENV) && !attempt.has(name::LEFTOVERS) && !attempt.has(name::HANGUP));
    assert!(matches!(attempt.verdict(), Verdict::Exited { end: End::Code(3), .. }));
    until("the window is gone", || (!mux.has(&attempt)).then_some(()));
}

#[test]
fn a_signal_that_ends_the_program_is_recorded() {
    let mux = Mux::new();
    let attempt = Spec::sh("kill -9 $$").write(&mux);
    mux.launch(&attempt);
    let exit = attempt.ended();
    assert_eq!((exit.end, exit.hangup), (End::Signal(9), false));
}

#[test]
fn what_cannot_be_executed_is_an_exit_receipt_that_names_it() {
    let mux = Mux::new();
    let script = mux.home().join("not-executable");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    let huge = "x".repeat(200_000);
    let cases: [(Spec, &[&str]); 5] = [
        (Spec::new(&["/no/such/program"]), &["/no/such/program", "No such file"]),
        (Spec::new(&["no-such-program-on-the-path"]), &["no-such-program-on-the-path", "No such file"]),
        (Spec::new(&[script.to_str().unwrap()]), &["not-executable", "Permission denied"]),
        (Spec::new(&["true", &huge]), &["true", "Argument list too long"]),
        (
            Spec { cwd: Some("/no/such/dir".into()), ..Spec::new(&["true"]) },
            &["/no/such/dir", "No such file"],
        ),
    ];
    for (spec, said) in cases {
        let attempt = spec.write(&mux);
        mux.launch(&attempt);
        let exit = attempt.ended();
        let End::SpawnError(why) = &exit.end else { panic!("{exit:?}") };
        assert!(said.iter().all(|word| why.contains(word)), "{why}");
        assert!(!exit.hangup && !why.contains("os error"), "{exit:?}");
        attempt.is_empty();
        assert!(attempt.spawned().is_none());
        let log = String::from_utf8_lossy(&attempt.log()).into_owned();
        assert!(log.contains("cannot"), "the window and the log say it too: {log:?}");
    }
}

#[test]
fn environment_arguments_and_directory_arrive_byte_for_byte() {
    let mux = Mux::new();
    let out = mux.home().join("found");
    let odd = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let values: Vec<(OsString, OsString)> = vec![
        (odd(b"LINES_OF"), odd(b"a\nb\n\n\tc\n")),
        (odd(b"QUOTES"), odd(b"'\"`$(id) \\ #{pid} %Y {x};")),
        (odd(b"NO_UNICODE\xff"), odd(b"\xff\xfe\x80\x01")),
        (odd(b"EMPTY"), odd(b"")),
        (odd(b"SEMICOLON"), odd(b"value;")),
        (odd(b"BIG_1"), odd(&[b'x'; 100_000])),
        (odd(b"BIG_2"), odd(&[b'\n'; 100_000])),
        (odd(b"BIG_3"), odd(&[b'"'; 100_000])),
    ];
    let arguments: Vec<OsString> = vec![odd(b"a b;"), odd(b""), odd(b"\xff\n'"), odd(b"#(touch x)")];
    let cwd = mux.home().join("a'b #(touch x) %Y");
    std::fs::create_dir(&cwd).unwrap();
    let mut spec = Spec::new(&[python(), &fixture("surroundings.py"), out.to_str().unwrap()]);
    spec.cwd = Some(cwd.clone());
    spec.argv.extend(arguments.clone());
    spec.vars.extend(values.clone());
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    attempt.exits(0);

    let found: serde_json::Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let hex = |s: &OsStr| loopmux::run::text::to_hex(s.as_bytes());
    let argv: Vec<String> = arguments.iter().map(|a| hex(a)).collect();
    assert_eq!(found["argv"], serde_json::json!(argv));
    assert_eq!(found["cwd"], hex(cwd.as_os_str()));
    let env = found["env"].as_object().unwrap();
    for (name, value) in &values {
        assert!(env[&hex(name)] == hex(value), "{name:?} differs");
    }
    let mut names: Vec<OsString> = values.into_iter().map(|(name, _)| name).collect();
    names.extend(words(&["PATH", "LC_ALL", "LOOPMUX_TOKEN", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"]));
    let mut expected: Vec<String> = names.iter().map(|name| hex(name)).collect();
    let mut there: Vec<&String> = env.keys().collect();
    expected.sort();
    there.sort();
    assert_eq!(there, expected.iter().collect::<Vec<_>>(), "nothing else of the server's or the keeper's");
    let terminal = mux.tmux(&["show-options", "-gv", "default-terminal"]);
    assert_eq!(env[&hex(OsStr::new("TERM"))], hex(OsStr::new(&terminal)));

    let files = found["files"].as_array().unwrap();
    let ours = files.iter().filter(|f| f.as_str().unwrap().starts_with(mux.home().to_str().unwrap()));
    assert_eq!(
        ours.collect::<Vec<_>>(),
        [attempt.dir.join(name::LEASE).to_str().unwrap()],
        "the lease is inherited, and no other file of ours"
    );
}

#[test]
fn no_signal_stays_ignored_or_blocked_for_the_program() {
    let mux = Mux::new();
    let attempt = Spec::new(&["grep", "-E", "SigIgn|SigBlk", "/proc/self/status"]).write(&mux);
    mux.launch(&attempt);
    attempt.exits(0);
    let log = String::from_utf8(attempt.log()).unwrap();
    let masks: Vec<u64> = log
        .lines()
        .map(|line| u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap())
        .collect();
    assert_eq!(masks.len(), 2, "{log}");
    // The first 31 are the signals with a name; the others are whatever the test was started with.
    assert!(masks.iter().all(|mask| mask & 0x7fff_ffff == 0), "{log}");
}

#[test]
fn a_secret_is_in_no_file_and_no_argument_after_the_start() {
    let mux = Mux::new();
    let attempt = Spec::sh("read line").var("SECRET", "hush-4711").write(&mux);
    mux.launch(&attempt);
    attempt.program();
    for entry in std::fs::read_dir(&attempt.dir).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap();
        assert!(!contains(&bytes, b"hush-4711"), "{:?}", entry.path());
    }
    let keeper = attempt.keeper().pid;
    for file in ["cmdline", "environ"] {
        let bytes = std::fs::read(format!("/proc/{keeper}/{file}")).unwrap();
        assert!(!contains(&bytes, b"hush-4711"), "{file}");
    }
    let environ = std::fs::read(format!("/proc/{}/environ", attempt.program().pid)).unwrap();
    assert!(contains(&environ, b"hush-4711"), "the program itself has it");
    mux.keys(&attempt, &["Enter"]);
    attempt.exits(0);
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|w| w == wanted)
}

/// Launches what must not start, and gives the reason that it left.
#[track_caller]
fn refuses(mux: &Mux, attempt: &Attempt) -> String {
    mux.launch(attempt);
    let refused = until("it is refused", || attempt.refused());
    until("the lease is free", || (attempt.lease() != Lease::Held).then_some(()));
    until("the window is gone", || (!mux.has(attempt)).then_some(()));
    assert!(attempt.start().is_none() && attempt.exit().is_none(), "{}", attempt.dump());
    assert!(!attempt.has(name::ENV), "nobody needs the environment any more");
    assert!(matches!(attempt.verdict(), Verdict::NeverStarted { .. }), "{:?}", attempt.verdict());
    refused.why
}

fn trap(mux: &Mux) -> Spec {
    Spec::new(&["touch", mux.home().join("started").to_str().unwrap()])
}

#[test]
fn what_must_not_start_is_refused_with_the_reason() {
    let mux = Mux::new();
    let cancelled = trap(&mux).write(&mux);
    cancelled.open().create_empty(name::CANCELLED).unwrap();
    assert!(refuses(&mux, &cancelled).contains("given up"));

    let edited = |edit: fn(&mut loopmux::run::files::LaunchFile)| {
        let spec = Spec { edit: Box::new(edit), ..trap(&mux) };
        refuses(&mux, &spec.write(&mux))
    };
    assert!(edited(|l| l.protocol += 1).contains("protocol"));
    assert!(edited(|l| l.schema += 1).contains("newer"));
    assert!(edited(|l| l.tags.token = "a}b".to_owned()).contains("token"));
    assert!(edited(|l| l.argv.clear()).contains("no program"));
    assert!(edited(|l| l.host.boot = "an earlier one".to_owned()).contains("restarted"));
    assert!(edited(|l| l.run_dir.1 += 1).contains("copy"));

    let without = trap(&mux).write(&mux);
    std::fs::remove_file(without.dir.join(name::ENV)).unwrap();
    assert!(refuses(&mux, &without).contains(name::ENV));

    let overtaken = trap(&mux).write(&mux);
    std::fs::create_dir(overtaken.dir.parent().unwrap().join("2")).unwrap();
    assert!(refuses(&mux, &overtaken).contains("later"));

    assert!(!mux.home().join("started").exists());
}

/// Every file below, with its content and the time of its last change.
fn state(dir: &Path) -> Vec<(OsString, Vec<u8>, std::time::SystemTime)> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .flatten()
        .map(|e| {
            let changed = e.metadata().unwrap().modified().unwrap();
            (e.file_name(), std::fs::read(e.path()).unwrap_or_default(), changed)
        })
        .collect();
    files.sort();
    files
}

/// Executes the window's command again, and waits for its end.
fn execute_again(mux: &Mux, attempt: &Attempt) -> String {
    let session = format!("again-{}", loopmux::run::dir::random_hex(4));
    let text = mux.home().join(&session);
    let script = format!(
        "script -qec \"$0 keep '$1'\" /dev/null > {} 2>&1 < /dev/null; touch {}.done",
        text.display(),
        text.display()
    );
    mux.tmux(&[
        OsStr::new("new-session"),
        OsStr::new("-d"),
        OsStr::new("-s"),
        OsStr::new(&session),
        OsStr::new("--"),
        OsStr::new("sh"),
        OsStr::new("-c"),
        OsStr::new(&script),
        OsStr::new(KEEP),
        attempt.dir.as_os_str(),
    ]);
    until("it ended", || Path::new(&format!("{}.done", text.display())).exists().then_some(()));
    std::fs::read_to_string(&text).unwrap()
}

#[test]
fn a_command_that_is_executed_again_touches_nothing() {
    let mux = Mux::new();
    let attempt = Spec::sh("exit 3").write(&mux);
    mux.launch(&attempt);
    attempt.exits(3);
    attempt.log();
    // As a restored layout would find it, with the environment of a later launch beside it.
    std::fs::write(attempt.dir.join(name::ENV), "{}").unwrap();
    let before = state(&attempt.dir);
    let said = execute_again(&mux, &attempt);
    assert!(said.contains("was run before"), "{said}");
    assert_eq!(state(&attempt.dir), before);

    let refused = Spec::sh("exit 3").write(&mux);
    refused.open().create_empty(name::CANCELLED).unwrap();
    refuses(&mux, &refused);
    let before = state(&refused.dir);
    execute_again(&mux, &refused);
    assert_eq!(state(&refused.dir), before);
}

#[test]
fn a_respawned_pane_does_not_start_the_program_again() {
    let mux = Mux::new();
    let attempt = Spec::sh("echo x >> ran; read line").write(&mux);
    mux.launch(&attempt);
    let keeper = attempt.keeper();
    attempt.program();
    mux.tmux(&["respawn-window", "-k", "-t", &format!("={}:", attempt.session())]);
    let exit = attempt.ended();
    assert!(exit.hangup, "the first keeper lost its terminal: {exit:?}");
    until("the first keeper is gone", || is_gone(&keeper).then_some(()));
    until("the window is gone", || (!mux.has(&attempt)).then_some(()));
    assert_eq!(attempt.start().unwrap().keeper, keeper);
    assert_eq!(std::fs::read_to_string(mux.home().join("ran")).unwrap(), "x\n");
}

#[test]
fn two_keepers_of_one_attempt_start_it_once() {
    let mux = Mux::new();
    for _ in 0..10 {
        let attempt = Spec::sh("echo x >> ran; exit 4").write(&mux);
        let first = mux.try_launch(&attempt, "one");
        let second = mux.try_launch(&attempt, "two");
        assert!(first && second);
        attempt.exits(4);
        for session in ["one", "two"] {
            until("both are gone", || (!mux.has_session(session)).then_some(()));
        }
        assert!(attempt.refused().is_none(), "{}", attempt.dump());
    }
    assert_eq!(std::fs::read_to_string(mux.home().join("ran")).unwrap(), "x\n".repeat(10));
}

#[test]
fn a_directory_that_was_moved_away_is_left_alone() {
    let mux = Mux::new();
    let attempt = trap(&mux).write(&mux);
    // Another run's directory stands at its place.
    let aside = mux.home().join("aside");
    std::fs::rename(&attempt.run_dir, &aside).unwrap();
    std::fs::create_dir_all(&attempt.dir).unwrap();
    let said = execute_again(&mux, &attempt);
    assert!(said.contains("holds no launch.json"), "{said}");
    assert!(state(&attempt.dir).is_empty());
    // Nothing at all stands there.
    std::fs::remove_dir_all(&attempt.run_dir).unwrap();
    let said = execute_again(&mux, &attempt);
    assert!(said.contains("cannot open"), "{said}");
    assert!(!attempt.run_dir.exists() && !mux.home().join("started").exists());
}

#[test]
fn a_directory_that_moves_while_its_keeper_takes_the_lease_is_left_alone() {
    let mux = Mux::new();
    let attempt = trap(&mux).write(&mux);
    // The keeper waits for the lease; meanwhile a removal renames the run.
    let lease = attempt.open().open_lock(name::LEASE).unwrap();
    lease.lock_shared().unwrap();
    mux.launch(&attempt);
    let waits = || {
        let children = loopmux::process::children(mux.server().pid).found;
        let keeper = children.into_iter().find(|n| n.command.contains(attempt.dir.to_str().unwrap()))?;
        let descriptors = std::fs::read_dir(format!("/proc/{}/fd", keeper.id.pid)).ok()?;
        let path = attempt.dir.join(name::LEASE);
        let open = descriptors.flatten().any(|d| std::fs::read_link(d.path()).is_ok_and(|to| to == path));
        open.then_some(keeper)
    };
    let keeper = until("the keeper has the lease open", waits);
    let aside = mux.home().join("aside");
    std::fs::rename(&attempt.run_dir, &aside).unwrap();
    let before = state(&aside.join("attempts/1"));
    drop(lease);
    until("the keeper is gone", || is_gone(&keeper.id).then_some(()));
    assert_eq!(state(&aside.join("attempts/1")), before);
    assert!(!attempt.run_dir.exists() && !mux.home().join("started").exists());
}

#[test]
fn a_lease_that_is_held_is_not_waited_for_for_ever() {
    let mux = Mux::new();
    let attempt = trap(&mux).write(&mux);
    let lease = attempt.open().open_lock(name::LEASE).unwrap();
    lease.lock().unwrap();
    let before = state(&attempt.dir);
    mux.launch(&attempt);
    until("the window is gone", || (!mux.has(&attempt)).then_some(()));
    assert_eq!(state(&attempt.dir), before);
    assert!(!mux.home().join("started").exists());
}

#[test]
fn a_directory_that_is_none_of_ours_is_not_written_to() {
    let mux = Mux::new();
    let dir = mux.home().join("innocent");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("start.txt"), "x").unwrap();
    let out = std::process::Command::new(KEEP).arg("keep").arg(&dir).output().unwrap();
    assert!(!out.status.success());
    assert_eq!(state(&dir).len(), 1);
}

#[test]
fn the_program_gets_the_keyboard_and_a_group_of_its_own() {
    let mux = Mux::new();
    let (signals, spec) = Signals::recorder(&mux, &[]);
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    let line = signals.line("start");
    let cli = attempt.program().pid;
    let keeper = attempt.keeper().pid;
    assert_eq!(line, format!("start pid {cli} group {cli} session {keeper} foreground {cli}"));
    let spawned = attempt.spawned().unwrap();
    assert_eq!((spawned.group, spawned.session), (cli, keeper));
    assert_eq!(spawned.autogroup, loopmux::process::autogroup(keeper).unwrap());
    signal(&attempt.program(), Signal::Term);
    attempt.exits(115);
}

#[test]
fn a_poke_follows_every_receipt_and_a_deaf_socket_stops_nothing() {
    let mux = Mux::new();
    let path = mux.home().join("poke");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(GUARD)).unwrap();
    let spec = Spec { poke: Some(path.clone()), ..Spec::sh("read line; exit 5") };
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    let mut buffer = [0; 16];
    // A poke comes after its file: looking after each one finds every step.
    while attempt.spawned().is_none() {
        socket.recv(&mut buffer).expect("a poke");
    }
    mux.keys(&attempt, &["Enter"]);
    while attempt.exit().is_none() || !attempt.has(name::EMPTIED) {
        socket.recv(&mut buffer).expect("a poke");
    }
    drop(socket);
    // The socket's file is there, and nobody listens.
    let spec = Spec { poke: Some(path), ..Spec::sh("exit 6") };
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    attempt.exits(6);
}

#[test]
fn the_protocol_is_printed() {
    let out = std::process::Command::new(KEEP).arg("--protocol").output().unwrap();
    assert_eq!(String::from_utf8(out.stdout).unwrap(), format!("{}\n", loopmux::run::files::KEEPER_PROTOCOL));
    let wrong = std::process::Command::new(KEEP).arg("keep").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}
