use super::*;
use std::os::fd::AsRawFd;
use std::time::Instant;

/// Far beyond what any of these takes, so that only a hang reaches it.
const HANG: Duration = Duration::from_secs(20);

fn sh(script: &str) -> Invocation {
    Invocation::new("/bin/sh").arg("-c").arg(script).deadline(HANG)
}

#[test]
fn tells_code_signal_and_streams_apart() {
    let reply = sh("echo out; echo err >&2; exit 3").run().unwrap();
    assert_eq!((reply.code, reply.signal), (Some(3), None));
    assert_eq!((reply.out().as_str(), reply.err().as_str()), ("out\n", "err\n"));
    assert!(!reply.timed_out && !reply.truncated);

    let reply = sh("kill -9 $$").run().unwrap();
    assert_eq!((reply.code, reply.signal, reply.timed_out), (None, Some(9), false));
}

#[test]
fn a_client_that_ignores_polite_signals_is_ended_at_the_deadline() {
    let begun = Instant::now();
    let reply = sh("trap '' TERM INT HUP; echo begun; while :; do sleep 60; done")
        .deadline(Duration::from_millis(300))
        .run();
    let reply = reply.unwrap();
    assert!(reply.timed_out);
    assert_eq!(reply.signal, Some(9), "it was asked politely: {reply:?}");
    assert_eq!(reply.out(), "begun\n");
    assert!(begun.elapsed() < HANG / 2);
}

/// Ends what a script left in the background and printed the pid of.
fn end(reply: &Reply) {
    let pid = reply.out().trim().parse().ok().and_then(rustix::process::Pid::from_raw).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it was still there");
}

#[test]
fn a_pipe_that_stays_open_does_not_hold_the_call() {
    let begun = Instant::now();
    // The background sleep keeps both streams; a stopped server does the same with a dead client's.
    let reply = sh("sleep 60 & echo $!; exit 0").run().unwrap();
    assert_eq!((reply.code, reply.timed_out), (Some(0), false));
    end(&reply);
    let reply = sh("sleep 60 & echo $!; exec sleep 60").deadline(Duration::from_millis(300)).run().unwrap();
    assert!(reply.timed_out);
    end(&reply);
    assert!(begun.elapsed() < HANG, "waited for the end of a pipe");
}

#[test]
fn output_beyond_the_bound_is_cut_and_marked() {
    let reply = sh("echo first; cat /dev/zero").limit(100_000).run().unwrap();
    assert!(reply.truncated && !reply.timed_out, "{}", reply.said());
    assert_eq!(reply.stdout.len(), 100_000);
    // A short-lived one: all of it is in the pipe when the client is seen to have ended.
    let reply = sh("head -c 5000 /dev/zero").limit(4999).run().unwrap();
    assert!(reply.truncated);
    let reply = sh("head -c 5000 /dev/zero").limit(5000).run().unwrap();
    assert!(!reply.truncated && reply.stdout.len() == 5000);
}

#[test]
fn input_arrives_whole_whatever_its_size() {
    let bytes: Vec<u8> = (0..2_000_000u32).map(|n| n as u8).collect();
    let reply = Invocation::new("/bin/cat").stdin(bytes.clone()).deadline(HANG).run().unwrap();
    assert_eq!(reply.code, Some(0));
    assert!(reply.stdout == bytes);
    let reply = Invocation::new("/bin/cat").stdin(Vec::new()).deadline(HANG).run().unwrap();
    assert_eq!((reply.code, reply.stdout.len()), (Some(0), 0));
}

#[test]
fn a_client_that_does_not_read_its_input_is_judged_by_its_reply() {
    let reply = sh("exec 0<&-; echo bye; exit 4").stdin(vec![b'x'; 1 << 20]).run().unwrap();
    assert_eq!((reply.code, reply.out().as_str()), (Some(4), "bye\n"));
}

#[test]
fn no_descriptor_of_ours_reaches_the_client() {
    // An inheritable descriptor, like the lease that a nested launch still holds.
    let file = std::fs::File::open("/dev/null").unwrap();
    let inheritable = rustix::io::fcntl_dupfd_cloexec(&file, 50).unwrap();
    rustix::io::fcntl_setfd(&inheritable, rustix::io::FdFlags::empty()).unwrap();
    let plain = format!("test -e /dev/fd/{0} && echo open || echo closed", inheritable.as_raw_fd());
    let without = std::process::Command::new("/bin/sh").arg("-c").arg(&plain).output().unwrap();
    assert_eq!(without.stdout, b"open\n", "the descriptor is not inheritable, so this proves nothing");
    assert_eq!(sh(&plain).run().unwrap().out(), "closed\n");
}

#[cfg(target_os = "linux")]
#[test]
fn the_client_runs_in_a_session_of_its_own() {
    let reply = sh("cut -d ' ' -f 6 /proc/$$/stat; echo $$").run().unwrap();
    let out = reply.out();
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0], lines[1]);
}

#[test]
fn the_names_of_a_run_never_reach_the_client() {
    let mut invocation = sh("env").env("KEPT", "1").env_drop("HOME");
    for name in NEVER_INHERITED {
        invocation = invocation.env(name, "leaked");
    }
    let out = invocation.run().unwrap().out();
    assert!(out.contains("KEPT=1"));
    assert!(!out.contains("leaked"), "{out}");
    assert!(!out.lines().any(|l| l.starts_with("HOME=")));
}

#[test]
fn what_cannot_be_executed_says_why() {
    let failed = |i: Invocation| match i.run() {
        Err(InvokeError::NotStarted(e)) => e,
        other => panic!("{other:?}"),
    };
    assert!(matches!(failed(Invocation::new("/no/such/program")), SpawnError::NoProgram(_)));
    assert!(matches!(failed(Invocation::new("/etc")), SpawnError::NotExecutable { .. }));
    assert!(matches!(failed(Invocation::new("/etc/passwd")), SpawnError::NotExecutable { .. }));
    assert!(matches!(failed(sh("true").cwd("/no/such/directory")), SpawnError::Directory { .. }));
    assert!(matches!(failed(sh("true").cwd("/etc/passwd")), SpawnError::Directory { .. }));
    let long = sh("true").env("LONG", "x".repeat(8 << 20));
    assert!(matches!(failed(long), SpawnError::TooLong(_)));
}

#[test]
fn starts_in_the_directory_it_was_given() {
    assert_eq!(sh("pwd").cwd("/").run().unwrap().out(), "/\n");
}

#[test]
fn what_was_said_is_one_bounded_line_without_control_characters() {
    let reply = sh("printf '\\033[31mred %0999d\\n\\nsecond\\n' 1 >&2; exit 1").run().unwrap();
    let said = reply.said();
    assert!(said.starts_with("exit 1, \"[31mred "), "{said}");
    assert!(said.len() < 300 && !said.contains("second"), "{said}");
    assert_eq!(sh("exit 0").run().unwrap().said(), "exit 0, it said nothing");
}

#[test]
fn the_end_is_seen_by_a_thread_as_well() {
    let mut child = std::process::Command::new("/bin/sh").args(["-c", "exit 7"]).spawn().unwrap();
    unix::wait_by_thread(&child);
    assert_eq!(child.try_wait().unwrap().and_then(|s| s.code()), Some(7));
}
