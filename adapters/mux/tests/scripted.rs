//! The scripted backend does what the seam demands, and fails as it is told to.

use loopmux_mux::conformance::{self, CHECKS, Harness, tags};
use loopmux_mux::scripted::{Call, Fault, Scripted};
use loopmux_mux::*;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Default)]
struct Lab {
    mux: Scripted,
    sunk: std::cell::RefCell<Vec<u8>>,
}

const SINK: &str = "/a'b #(touch x) %Y;/sink";

impl Harness for Lab {
    fn backend(&self) -> &dyn Multiplexer {
        &self.mux
    }
    fn directory(&self) -> PathBuf {
        PathBuf::from("/")
    }
    fn idle(&self) -> Vec<OsString> {
        vec!["idle".into(), "600".into()]
    }
    fn recorder(&self) -> Vec<OsString> {
        vec!["recorder".into(), "now".into()]
    }
    fn recorder_is_ready(&self, _: &PaneId) {}
    fn recorded(&self, pane: &PaneId) -> Vec<u8> {
        self.mux.received(pane).unwrap_or_default()
    }
    fn print(&self, pane: &PaneId, line: &str) {
        self.mux.print(pane, &format!("{line}\n"));
        if self.mux.piped(pane).is_some_and(|words| words == self.sink()) {
            self.sunk.borrow_mut().extend_from_slice(format!("{line}\r\n").as_bytes());
        }
    }
    fn sink(&self) -> Vec<OsString> {
        vec![SINK.into()]
    }
    fn sunk(&self) -> Vec<u8> {
        self.sunk.borrow().clone()
    }
    fn session_by_hand(&self, name: &str) -> SessionId {
        self.mux.session_by_hand(name)
    }
    fn rename_by_hand(&self, session: &SessionId, name: &str) {
        self.mux.rename_by_hand(session, name);
    }
    fn split_by_hand(&self, pane: &PaneId) -> PaneId {
        self.mux.split_by_hand(pane).unwrap()
    }
    fn tag_globally(&self, _: TagScope, _: &Tags) {}
    fn retag(&self, pane: &PaneId, at: TagScope, tags: Option<&Tags>) {
        self.mux.retag(pane, at, tags);
    }
    fn end_and_keep(&self, pane: &PaneId) -> bool {
        self.mux.end_program(pane, true);
        true
    }
    fn restart_with(&self, name: &str) {
        self.mux.restart();
        self.mux.session_by_hand(name);
    }
    fn runs(&self, _: u32) -> Option<bool> {
        None
    }
}

#[test]
fn conforms() {
    conformance::all(|| Box::new(Lab::default()));
    assert!(CHECKS.len() > 20);
}

fn spec(name: &str, n: u32) -> CreateSpec {
    CreateSpec {
        placement: Placement::NewSession {
            name: SessionName::new(name).unwrap(),
            tags: tags(n),
            size: (80, 24),
        },
        window: SessionName::new("w").unwrap(),
        tags: tags(n),
        command: vec!["a".into(), "b".into()],
        cwd: "/".into(),
    }
}

fn panes(mux: &Scripted) -> Option<usize> {
    match mux.snapshot(Scope::Everything) {
        Snapshot::Answered(answered) => Some(answered.panes.len()),
        _ => None,
    }
}

fn proof(mux: &Scripted, n: u32) -> Owned {
    match mux.snapshot(Scope::Everything) {
        Snapshot::Answered(answered) => answered.owned(&tags(n), TagScope::Session).remove(0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hanging_server_does_later_what_it_was_asked() {
    let mux = Scripted::new();
    mux.create(&spec("one", 1)).unwrap();
    let one = proof(&mux, 1);
    mux.set_fault(Some(Fault::Hang(Duration::from_millis(1))));
    assert!(
        matches!(mux.create(&spec("two", 2)), Err(CreateError::MayAppear(t)) if t.class == ReplyClass::TimedOut)
    );
    assert!(matches!(mux.kill(&one, KillScope::Session), KillReply::Unknown(_)));
    assert_eq!(mux.snapshot(Scope::Everything).class(), ReplyClass::TimedOut);
    mux.set_fault(None);
    assert_eq!(panes(&mux), Some(1));
    assert_eq!(proof(&mux, 2).session_name(), "two");
}

#[test]
fn a_lost_reply_is_not_a_lost_act() {
    let mux = Scripted::new();
    mux.set_fault(Some(Fault::LostReplies));
    assert!(matches!(mux.create(&spec("one", 1)), Err(CreateError::MayAppear(_))));
    mux.set_fault(None);
    let one = proof(&mux, 1);
    mux.set_fault(Some(Fault::LostReplies));
    assert!(matches!(mux.kill(&one, KillScope::Session), KillReply::Unknown(_)));
    mux.set_fault(None);
    assert_eq!(panes(&mux), Some(0));
}

#[test]
fn it_lies_omits_and_ignores_as_told() {
    let mux = Scripted::new();
    let one = mux.create(&spec("one", 1)).unwrap();
    mux.create(&spec("two", 2)).unwrap();
    let owned = proof(&mux, 1);
    mux.set_fault(Some(Fault::IgnoredKills));
    assert_eq!(mux.kill(&owned, KillScope::Session), KillReply::Done);
    mux.set_fault(Some(Fault::EmptyListing));
    assert_eq!(panes(&mux), Some(0));
    mux.set_fault(Some(Fault::CutListing));
    assert!(matches!(mux.snapshot(Scope::Everything), Snapshot::Unknown(_)));
    mux.set_fault(Some(Fault::Mute(ReplyClass::Denied)));
    assert_eq!(mux.snapshot(Scope::Everything).class(), ReplyClass::Denied);
    mux.set_fault(Some(Fault::NotServed(ReplyClass::NoSocket)));
    assert!(matches!(mux.snapshot(Scope::Everything), Snapshot::NotServed(_)));
    mux.set_fault(None);
    assert_eq!(panes(&mux), Some(2));
    mux.omit(&one.pane);
    assert_eq!(panes(&mux), Some(1));
}

#[test]
fn a_restart_gives_the_same_ids_another_pid() {
    let mux = Scripted::new();
    let before = mux.create(&spec("one", 1)).unwrap();
    mux.restart();
    let after = mux.create(&spec("one", 1)).unwrap();
    assert_eq!((&before.session, &before.window, &before.pane), (&after.session, &after.window, &after.pane));
    assert_ne!(before.server_pid, after.server_pid);
    mux.die();
    assert!(matches!(mux.snapshot(Scope::Everything), Snapshot::NotServed(_)));
}

#[test]
fn every_call_is_noted_in_order() {
    let mux = Scripted::new();
    mux.probe();
    let made = mux.create(&spec("one", 1)).unwrap();
    let owned = proof(&mux, 1);
    mux.kill(&owned, KillScope::Session);
    let calls = mux.calls();
    let words = vec![OsString::from("a"), OsString::from("b")];
    let expected =
        [Call::Probe, Call::Create(words), Call::Snapshot, Call::Kill(made.pane, KillScope::Session)];
    assert_eq!(calls, expected);
    assert_eq!(calls.iter().filter(|c| c.is_observation()).count(), 2);
}
