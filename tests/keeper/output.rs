//! Every byte that a window prints is in its log, in whatever way the window ends.

use crate::support::*;
use loopmux::process::Signal;
use loopmux::run::files::name;
use loopmux::run::output::LogReader;
use loopmux::verdict::Lease;

/// What `seq 1 last` prints through a terminal.
fn sequence(last: usize) -> String {
    (1..=last).map(|n| format!("{n}\r\n")).collect()
}

/// Short programs, most of one line, some of more than a pty holds.
fn short_programs(rounds: usize) {
    let mux = Mux::new();
    let mut incomplete = Vec::new();
    for round in 0..rounds {
        let last = if round % 3 == 0 { 12_000 } else { 30 };
        let last_word = last.to_string();
        let mut spec = Spec::new(&["seq", "1", &last_word]);
        spec.park = round % 4 == 0;
        let attempt = spec.write(&mux);
        mux.launch(&attempt);
        attempt.exits(0);
        let log = String::from_utf8(attempt.log()).unwrap();
        if log != sequence(last) {
            incomplete.push((round, log.len(), sequence(last).len()));
        }
        mux.try_tmux(["kill-session", "-t", &format!("={}", attempt.session())]);
    }
    assert!(incomplete.is_empty(), "round, bytes found, bytes printed: {incomplete:?}");
}

#[test]
fn short_programs_lose_no_byte() {
    short_programs(60);
}

#[test]
#[ignore = "a soak: some minutes alone on the machine"]
fn five_hundred_short_programs_lose_no_byte() {
    short_programs(500);
}

#[test]
fn short_programs_at_once_lose_no_byte() {
    let mux = Mux::new();
    let attempts: Vec<Attempt> = (0..40)
        .map(|_| {
            let attempt = Spec::new(&["seq", "1", "3000"]).write(&mux);
            mux.launch(&attempt);
            attempt
        })
        .collect();
    for attempt in &attempts {
        attempt.exits(0);
        assert_eq!(String::from_utf8(attempt.log()).unwrap(), sequence(3000));
    }
}

#[test]
fn the_keeper_does_not_end_before_the_last_byte_is_recorded() {
    let mux = Mux::new();
    // A recorder that is slow to begin: the multiplexer executes what the keeper was called by.
    let slow = mux.home().join("slow-keep");
    let script = format!("#!/bin/sh\nsleep 0.3\nexec {KEEP} \"$@\"\n");
    std::fs::write(&slow, script).unwrap();
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(&slow, mode).unwrap();
    let attempt = Spec::new(&["seq", "1", "12000"]).write(&mux);
    let session = attempt.session();
    let call = "exec -a \"$0\" \"$1\" keep \"$2\"";
    let words = ["new-session", "-d", "-s", &session, "--", "bash", "-c", call];
    let files = [slow.to_str().unwrap(), KEEP, attempt.dir.to_str().unwrap()];
    mux.tmux(&[&words[..], &files].concat());
    let keeper = attempt.keeper();
    until("the keeper is gone", || is_gone(&keeper).then_some(()));
    assert_eq!(LogReader::new(attempt.open(), 0).recorder(), Lease::Free, "and nobody records any more");
    assert_eq!(String::from_utf8(attempt.log()).unwrap(), sequence(12_000));
}

#[test]
fn bytes_that_are_no_text_and_the_marks_own_are_recorded_as_they_are() {
    let mux = Mux::new();
    // The beginning of a mark, and a whole mark of another keeper.
    let code = "import os\nos.system('stty raw -echo')\n\
                os.write(1, bytes(range(256)) + b'\\x18\\x1bPloop' + b'\\x18\\x1bPloopmux-end;0123456789abcdef\\x1b\\\\' + b'\\x18')";
    let attempt = Spec::new(&[python(), "-c", code]).write(&mux);
    mux.launch(&attempt);
    attempt.exits(0);
    let mut expected: Vec<u8> = (0..=255).collect();
    expected.extend(b"\x18\x1bPloop\x18\x1bPloopmux-end;0123456789abcdef\x1b\\\x18");
    assert_eq!(attempt.log(), expected);
}

#[test]
fn a_log_can_be_followed_while_it_grows() {
    let mux = Mux::new();
    let attempt = Spec::sh("echo first; read line; echo second").write(&mux);
    mux.launch(&attempt);
    attempt.program();
    let mut reader = LogReader::new(attempt.open(), 0);
    let mut seen = Vec::new();
    let mut follow = |reader: &mut LogReader, wanted: &str| {
        until(wanted, || {
            while let Some(piece) = reader.read().unwrap() {
                let loopmux::run::output::Piece::Bytes(bytes) = piece else { panic!("{piece:?}") };
                seen.extend(bytes);
            }
            String::from_utf8_lossy(&seen).contains(wanted).then_some(())
        });
    };
    follow(&mut reader, "first\r\n");
    assert_eq!(reader.recorder(), Lease::Held);
    let position = reader.position();
    mux.keys(&attempt, &["x", "Enter"]);
    // Another reader goes on where this one stood.
    let mut second = LogReader::new(attempt.open(), position);
    follow(&mut reader, "second\r\n");
    until("the log is complete", || (reader.recorder() == Lease::Free).then_some(()));
    let Some(loopmux::run::output::Piece::Bytes(rest)) = second.read().unwrap() else { panic!("no rest") };
    assert!(!String::from_utf8_lossy(&rest).contains("first"), "{rest:?}");
    assert_eq!(second.end().unwrap(), reader.position());
}

#[test]
fn what_a_leftover_prints_is_recorded_too() {
    let mux = Mux::new();
    let script = "(until [ -e go ]; do sleep 0.01; done; echo from a leftover) & echo early; exit 0";
    let attempt = Spec::sh(script).write(&mux);
    mux.launch(&attempt);
    attempt.ended();
    std::fs::write(mux.home().join("go"), "").unwrap();
    attempt.exits(0);
    let log = String::from_utf8(attempt.log()).unwrap();
    assert!(log.starts_with("early\r\n") && log.contains("from a leftover"), "{log:?}");
}

#[test]
fn output_is_recorded_up_to_a_kill_of_the_server() {
    let mux = Mux::new();
    let attempt = Spec::sh("seq 1 200; read line").write(&mux);
    mux.launch(&attempt);
    mux.shows(&attempt, "200");
    mux.kill_server_hard();
    attempt.ended();
    assert_eq!(String::from_utf8(attempt.log()).unwrap(), sequence(200));
}

#[test]
fn a_pane_that_cannot_be_piped_runs_its_program_all_the_same() {
    let mux = Mux::new();
    let mut spec = Spec::sh("echo hello; read line; exit 3");
    spec.edit = Box::new(|launch| launch.mux.binary = std::ffi::OsString::from("/no/such/tmux").into());
    let attempt = spec.write(&mux);
    mux.launch(&attempt);
    let screen = mux.shows(&attempt, "hello");
    assert!(screen.contains("the output is not recorded") && screen.contains("/no/such/tmux"), "{screen}");
    mux.keys(&attempt, &["Enter"]);
    attempt.exits(3);
    assert!(!attempt.has(name::OUTPUT));
}

#[test]
fn a_directory_with_every_odd_character_has_its_log() {
    let mux = Mux::new();
    let odd = mux.home().join("a'b #(touch x) %Y \"q\" $HOME;");
    std::fs::create_dir(&odd).unwrap();
    let attempt = Spec::sh("echo hello").write_in(&mux, &odd);
    mux.launch(&attempt);
    attempt.exits(0);
    assert_eq!(String::from_utf8(attempt.log()).unwrap(), "hello\r\n");
    assert!(!mux.home().join("x").exists() && !odd.join("x").exists());
}

#[test]
fn a_recorder_survives_what_ends_others() {
    let mux = Mux::new();
    let attempt = Spec::sh("echo one; read line; echo two").write(&mux);
    mux.launch(&attempt);
    mux.shows(&attempt, "one");
    until("it is recorded", || attempt.has(name::OUTPUT).then_some(()));
    let dir = attempt.dir.to_str().unwrap();
    let children = loopmux::process::children(mux.server().pid).found;
    let sink =
        children.iter().find(|n| n.command.contains("sink") && n.command.contains(dir)).expect("a sink");
    for number in [Signal::Hup, Signal::Int, Signal::Term] {
        signal(&sink.id, number);
    }
    mux.keys(&attempt, &["Enter"]);
    attempt.exits(0);
    let log = String::from_utf8(attempt.log()).unwrap();
    assert!(log.starts_with("one\r\n") && log.ends_with("two\r\n"), "{log:?}");
}
