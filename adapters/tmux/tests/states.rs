//! A server that cannot be asked, and what stands in its place. Nothing of it may read as an answer, and nothing
//! asked may change anything.

mod common;

use common::*;
use loopmux_mux::*;
use loopmux_tmux::{Endpoint, Tmux};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

/// Short deadlines, for tests that wait for one on purpose.
fn impatient(tmux: &Tmux) -> Tmux {
    tmux.clone().with_deadlines(Duration::from_millis(400), Duration::from_millis(400))
}

/// The class of every observation, which must all say the same kind of thing.
fn classes(tmux: &Tmux) -> ReplyClass {
    let snapshot = match tmux.snapshot(Scope::Everything) {
        Snapshot::Answered(a) => panic!("an answer: {a:?}"),
        Snapshot::NotServed(t) => (true, t.class),
        Snapshot::Unknown(t) => (false, t.class),
    };
    let has = match tmux.has_session(&name("one")) {
        HasSession::NotServed(t) => (true, t.class),
        HasSession::Unknown(t) => (false, t.class),
        other => panic!("an answer: {other:?}"),
    };
    assert_eq!(snapshot, has);
    assert_eq!(tmux.capture(&PaneId::from_backend("%0")).unwrap_err().class, snapshot.1);
    let served = !matches!(snapshot.1, ReplyClass::NoListener | ReplyClass::NoSocket);
    assert_eq!(snapshot.0, !served, "{snapshot:?}");
    snapshot.1
}

struct Stopped(Pid);

impl Stopped {
    fn stop(server: u32) -> Self {
        let pid = Pid::from_raw(server.try_into().unwrap()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

#[test]
fn a_stopped_server_is_timed_out_and_may_still_do_it() {
    let lab = Lab::new();
    let made = lab.tmux.create(&session(&lab, "one", 1, &["sleep", "600"])).unwrap();
    let owned = lab.answered().owned(&tags(1), TagScope::Session).remove(0);
    let pane = lab.answered().owned(&tags(1), TagScope::Pane).remove(0);
    let tmux = impatient(&lab.tmux);
    let begun = Instant::now();
    {
        let _stopped = Stopped::stop(made.server_pid);
        assert_eq!(classes(&tmux), ReplyClass::TimedOut);
        match tmux.create(&session(&lab, "late", 2, &["sleep", "600"])) {
            Err(CreateError::MayAppear(t)) => assert_eq!(t.class, ReplyClass::TimedOut),
            other => panic!("{other:?}"),
        }
        assert!(matches!(tmux.paste(&pane, b"x"), Delivery::Unknown(_)));
        assert!(matches!(tmux.kill(&owned, KillScope::Session), KillReply::Unknown(_)));
    }
    assert!(begun.elapsed() < HANG);
    // Both requests of the killed clients are carried out.
    until("the late session, and the first one's end", || {
        let seen = lab.answered();
        (seen.owned(&tags(2), TagScope::Session).len() == 1 && !seen.has_session(&made.session)).then_some(())
    });
}

#[test]
fn a_removed_socket_hides_a_living_server() {
    let lab = Lab::new();
    let made = lab.tmux.create(&session(&lab, "one", 1, &["sleep", "600"])).unwrap();
    let (socket, aside) = (lab.tmux.socket(), lab.path("aside"));
    std::fs::rename(socket, &aside).unwrap();
    assert_eq!(classes(&lab.tmux), ReplyClass::NoSocket);
    assert!(!socket.exists(), "an observation made a socket");
    std::fs::rename(&aside, socket).unwrap();
    assert_eq!(lab.answered().server_pid, made.server_pid);
}

#[test]
fn something_else_at_the_sockets_path_is_no_answer_and_is_left_there() {
    let lab = Lab::new();
    let made = lab.tmux.create(&session(&lab, "one", 1, &["sleep", "600"])).unwrap();
    let (socket, aside) = (lab.tmux.socket().to_owned(), lab.path("aside"));
    std::fs::rename(&socket, &aside).unwrap();
    let tmux = &lab.tmux;

    std::fs::write(&socket, "a file").unwrap();
    assert_eq!(classes(tmux), ReplyClass::NoListener);
    assert_eq!(std::fs::read(&socket).unwrap(), b"a file");
    std::fs::remove_file(&socket).unwrap();

    let deaf = UnixListener::bind(&socket).unwrap();
    assert_eq!(classes(&impatient(tmux)), ReplyClass::TimedOut);
    drop(deaf);
    assert_eq!(classes(tmux), ReplyClass::NoListener);
    std::fs::remove_file(&socket).unwrap();

    let rude = UnixListener::bind(&socket).unwrap();
    let hangs_up = std::thread::spawn(move || {
        // One connection for each question.
        for _ in 0..3 {
            drop(rude.accept());
        }
    });
    assert_eq!(classes(tmux), ReplyClass::ServerLost);
    hangs_up.join().unwrap();
    std::fs::remove_file(&socket).unwrap();

    std::fs::create_dir(&socket).unwrap();
    assert!(matches!(classes(tmux), ReplyClass::NoListener | ReplyClass::Failed));
    std::fs::remove_dir(&socket).unwrap();

    std::fs::rename(&aside, &socket).unwrap();
    assert_eq!(lab.answered().server_pid, made.server_pid);
}

/// A program that executes tmux as another user, so that permissions count although the test is root's.
fn as_nobody(lab: &Lab) -> Tmux {
    let wrapper = script(
        lab,
        "as-nobody",
        &format!("exec setpriv --reuid=65534 --regid=65534 --clear-groups {} \"$@\"", binary().display()),
    );
    Tmux::new(wrapper, &Endpoint::Path(lab.tmux.socket().to_owned()))
        .unwrap()
        .with_variable("HOME", "/nonexistent")
        .with_deadlines(HANG, HANG)
}

#[test]
fn a_socket_without_permission_is_denied() {
    let lab = Lab::new();
    let made = lab.tmux.create(&session(&lab, "one", 1, &["sleep", "600"])).unwrap();
    let allow =
        |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let tmux = if rustix::process::getuid().is_root() {
        allow(lab.dir.path(), 0o755);
        as_nobody(&lab)
    } else {
        lab.tmux.clone()
    };
    allow(lab.tmux.socket(), 0o000);
    assert_eq!(classes(&tmux), ReplyClass::Denied);
    match tmux.create(&session(&lab, "two", 2, &["sleep", "600"])) {
        Err(CreateError::Refused(t)) => assert_eq!(t.class, ReplyClass::Denied),
        other => panic!("{other:?}"),
    }
    let version = lab.tmux.probe().version.unwrap();
    let has_access_list = loopmux_tmux::version::parse(&version) >= loopmux_tmux::version::parse("3.3");
    if rustix::process::getuid().is_root() && has_access_list {
        // Let in by the system, kept out by the server: up to 3.7 it exits 0, and says so on standard error.
        allow(lab.tmux.socket(), 0o777);
        assert_eq!(classes(&tmux), ReplyClass::Denied);
        match tmux.create(&session(&lab, "two", 2, &["sleep", "600"])) {
            Err(CreateError::MayAppear(t) | CreateError::Refused(t)) => {
                assert_eq!(t.class, ReplyClass::Denied)
            }
            other => panic!("{other:?}"),
        }
    }
    allow(lab.tmux.socket(), 0o700);
    let seen = lab.answered();
    assert_eq!((seen.server_pid, seen.panes.len()), (made.server_pid, 1));
}

#[test]
fn a_server_without_sessions_answers_with_none() {
    let lab = Lab::with_config("set -s exit-empty off");
    let made = lab.tmux.create(&session(&lab, "one", 1, &["sleep", "600"])).unwrap();
    let owned = lab.answered().owned(&tags(1), TagScope::Session).remove(0);
    assert_eq!(lab.tmux.kill(&owned, KillScope::Session), KillReply::Done);
    let seen = lab.answered();
    assert_eq!((seen.server_pid, seen.panes.len()), (made.server_pid, 0));
    // With no session at all, whether one of that name is there is not said in words that name it.
    assert!(
        matches!(lab.tmux.has_session(&name("one")), HasSession::Unknown(t) if t.class == ReplyClass::NoTarget)
    );
    assert!(matches!(
        lab.tmux.kill(&owned, KillScope::Session),
        KillReply::Refused(_) | KillReply::Unknown(_)
    ));
}

#[test]
fn a_server_that_ends_unattended_says_so() {
    let lab = Lab::with_config("set -s exit-unattached on");
    match lab.tmux.create(&session(&lab, "one", 1, &["sleep", "600"])) {
        Err(CreateError::MayAppear(t)) => assert!(t.said.contains("exit-unattached"), "{t}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_socket_in_a_directory_that_is_not_there_is_refused() {
    let lab = Lab::new();
    let path = lab.path("gone/s");
    let tmux = Tmux::new(binary(), &Endpoint::Path(path.clone())).unwrap();
    match tmux.create(&session(&lab, "one", 1, &["sleep", "600"])) {
        Err(CreateError::Refused(t)) => assert!(t.said.contains("gone"), "{t}"),
        other => panic!("{other:?}"),
    }
    assert!(!path.parent().unwrap().exists());
}

#[test]
fn a_request_longer_than_tmux_takes_is_refused_unasked() {
    let lab = Lab::new();
    let long = "x".repeat(20_000);
    let spec = session(&lab, "one", 1, &["sleep", &long]);
    match lab.tmux.create(&spec) {
        Err(CreateError::Refused(t)) => assert!(t.said.contains("bytes"), "{t}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(classes(&lab.tmux), ReplyClass::NoSocket);
}

#[test]
fn a_window_cannot_start_in_a_directory_that_is_not_there() {
    let lab = Lab::new();
    let mut spec = session(&lab, "one", 1, &["sleep", "600"]);
    spec.cwd = lab.path("gone");
    match lab.tmux.create(&spec) {
        Err(CreateError::Refused(t)) => assert!(t.said.contains("gone"), "{t}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(classes(&lab.tmux), ReplyClass::NoSocket);
}

#[test]
fn a_window_starts_in_its_directory_whatever_that_is_called() {
    let lab = Lab::new();
    let odd = lab.path("a #{pid} #(touch x) %Y\n");
    std::fs::create_dir(&odd).unwrap();
    let mut spec =
        session(&lab, "one", 1, &["/bin/sh", "-c", "pwd -P > here.tmp; mv here.tmp here; sleep 600"]);
    spec.cwd = odd.clone();
    lab.tmux.create(&spec).unwrap();
    let got = until("the directory", || read(&odd.join("here")));
    let mut want = std::fs::canonicalize(&odd).unwrap().into_os_string().into_encoded_bytes();
    want.push(b'\n');
    assert_eq!(got, want);
}
