//! A program that calls itself tmux and is not, is broken, or is old.

mod common;

use common::*;
use loopmux_mux::*;
use loopmux_tmux::{Endpoint, Tmux};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A deadline that is waited for on purpose.
const SHORT: Duration = Duration::from_millis(200);

fn tmux_at(lab: &Lab, binary: PathBuf) -> Tmux {
    let tmux = Tmux::new(binary, &Endpoint::Path(lab.tmux.socket().to_owned())).unwrap();
    tmux.with_deadlines(HANG, HANG)
}

fn faulty(lab: &Lab, body: &str) -> Tmux {
    tmux_at(lab, script(lab, "tmux", body))
}

/// Nothing that this program does reads as an answer, about a session that is there.
fn says_nothing(lab: &Lab, tmux: &Tmux, expected: ReplyClass) {
    let begun = Instant::now();
    match tmux.snapshot(Scope::Everything) {
        Snapshot::Unknown(t) => assert_eq!(t.class, expected, "{t}"),
        Snapshot::NotServed(t) => assert_eq!(t.class, expected, "{t}"),
        other => panic!("{other:?}"),
    }
    match tmux.has_session(&name("one")) {
        HasSession::Unknown(_) | HasSession::NotServed(_) => {}
        other => panic!("{other:?}"),
    }
    let seen = lab.answered();
    let owned = seen.owned(&tags(1), TagScope::Session).remove(0);
    let pane = seen.owned(&tags(1), TagScope::Pane).remove(0);
    match tmux.kill(&owned, KillScope::Session) {
        KillReply::Unknown(_) => {}
        KillReply::Refused(_) if expected == ReplyClass::Absent => {}
        other => panic!("{other:?}"),
    }
    assert!(!matches!(tmux.paste(&pane, b"x"), Delivery::Delivered));
    assert!(!matches!(tmux.submit(&pane), Delivery::Delivered));
    assert!(tmux.pipe(owned.server_pid(), pane.pane(), None).is_err());
    assert!(tmux.capture(pane.pane()).is_err());
    assert!(tmux.create(&session(lab, "two", 2, &["sleep", "600"])).is_err());
    assert!(begun.elapsed() < HANG, "it waited for more than its deadlines");
    assert_eq!(lab.answered(), seen, "something changed");
}

fn lab_with_a_session() -> Lab {
    let lab = Lab::new();
    lab.tmux.create(&session(&lab, "one", 1, &["sleep", "600"])).unwrap();
    lab
}

macro_rules! faults {
    ($($name:ident: $class:ident, $body:expr;)*) => {
        $(#[test]
        fn $name() {
            let lab = lab_with_a_session();
            let mut tmux = faulty(&lab, $body);
            if ReplyClass::$class == ReplyClass::TimedOut {
                tmux = tmux.with_deadlines(SHORT, SHORT);
            }
            says_nothing(&lab, &tmux, ReplyClass::$class);
        })*
    };
}

faults! {
    exits_1_silently: Failed, "exit 1";
    exits_0_with_an_empty_list: Empty, "exit 0";
    exits_0_with_a_blank_list: Empty, "echo; echo; exit 0";
    prints_another_versions_error: ServerLost, "echo 'server exited unexpectedly' >&2; exit 1";
    is_too_new_for_the_server: Incompatible, "echo 'server version is too old for client' >&2; exit 0";
    says_that_nothing_is_there: Absent, "echo \"can't find session: one\" >&2; exit 1";
    prints_garbage: Failed, "head -c 3000 /dev/urandom; exit 0";
    prints_a_listing_of_its_own: Failed, "printf '$0\\t@0\\t%%0\\t1\\t0\\t0\\n'; exit 0";
    prints_a_begin_without_an_end: Failed, "printf 'loopmux-begin\\t1\\t3.3a\\n'; exit 0";
    ends_as_another_server: Failed, "printf 'loopmux-begin\\t1\\t3.3a\\nloopmux-end\\t2\\n'; exit 0";
    goes_on_behind_the_end: Failed, "printf 'loopmux-begin\\t1\\t3.3a\\nloopmux-end\\t1\\nloopmux-end\\t1\\n'; exit 0";
    prints_an_unreadable_row: Partial, "printf 'loopmux-begin\\t1\\t3.3a\\nrow\\nloopmux-end\\t1\\n'; exit 0";
    prints_100_megabytes: Failed, "head -c 100000000 /dev/zero; exit 0";
    dies_by_a_signal: Failed, "kill -9 $$";
    hangs: TimedOut, "exec sleep 600";
    ignores_its_input: Failed, "exec <&-; exit 1";
}

#[test]
fn hangs_with_its_output_open() {
    let lab = lab_with_a_session();
    let pids = lab.path("pids");
    let body = format!("sleep 600 & echo $! >> {}; exec sleep 600", pids.display());
    says_nothing(&lab, &faulty(&lab, &body).with_deadlines(SHORT, SHORT), ReplyClass::TimedOut);
    let pids = std::fs::read_to_string(pids).unwrap();
    assert!(pids.lines().count() > 3);
    for pid in pids.lines().filter_map(|pid| rustix::process::Pid::from_raw(pid.parse().ok()?)) {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}

#[test]
fn what_is_not_there_or_no_program_is_refused() {
    let lab = lab_with_a_session();
    for binary in [PathBuf::from("/no/such/tmux"), lab.dir.path().to_owned(), lab.path(".tmux.conf")] {
        let tmux = tmux_at(&lab, binary.clone());
        says_nothing(&lab, &tmux, ReplyClass::Failed);
        let probe = tmux.probe();
        assert!(probe.refused.is_some() && probe.version.is_none(), "{probe:?}");
        assert_eq!(probe.binary.is_some(), binary.exists());
        match tmux.create(&session(&lab, "two", 2, &["sleep", "600"])) {
            Err(CreateError::Refused(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_probe_reads_the_version_and_refuses_below_the_floor() {
    let lab = Lab::new();
    let probe = |says: &str| faulty(&lab, &format!("echo '{says}'")).probe();
    for good in ["tmux 3.2a", "tmux 3.3a", "tmux 3.7c", "tmux next-3.8", "tmux master", "tmux openbsd-7.5"] {
        let found = probe(good);
        assert_eq!(found.refused, None, "{good}");
        assert_eq!(found.version.as_deref(), good.strip_prefix("tmux "));
    }
    for old in ["tmux 1.8", "tmux 2.6", "tmux 3.0a", "tmux 3.1c", "tmux 3.2", "tmux 3.2-rc4"] {
        let refused = probe(old).refused.unwrap();
        assert_eq!(refused.class, ReplyClass::Incompatible);
        assert!(refused.said.contains("3.2a") && refused.said.contains(old), "{refused}");
    }
    for strange in ["screen 4.9", "", "tmux", "tmux of another kind"] {
        let found = probe(strange);
        assert!(found.refused.is_some(), "{strange:?}: {found:?}");
    }
    assert_eq!(
        faulty(&lab, "exec sleep 600").with_deadlines(SHORT, SHORT).probe().refused.unwrap().class,
        ReplyClass::TimedOut
    );
    let real = lab.tmux.probe();
    assert_eq!(real.refused, None);
    assert!(real.version.is_some_and(|v| loopmux_tmux::version::parse(&v).is_some()));
}
