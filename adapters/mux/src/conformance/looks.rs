//! Checks of observations and plans.

use super::{Harness, idle, in_new_session, look, name, owned, tags, until};
use crate::class::ReplyClass;
use crate::multiplexer::{AttachPlan, HasSession, Here, Placement};
use crate::snapshot::{Scope, Snapshot, TagScope};

/// The backend is there, says its version, and refuses nothing.
pub fn the_backend_is_usable(on: &dyn Harness) {
    let probe = on.backend().probe();
    assert!(probe.refused.is_none() && probe.version.is_some() && probe.binary.is_some(), "{probe:?}");
}

/// A question before any server was started is served by nobody, and starts none.
pub fn nothing_is_served_before_the_first_create(on: &dyn Harness) {
    for _ in 0..2 {
        match on.backend().snapshot(Scope::Everything) {
            Snapshot::NotServed(t) => {
                assert!(matches!(t.class, ReplyClass::NoSocket | ReplyClass::NoListener), "{t}");
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(on.backend().has_session(&name("a")), HasSession::NotServed(_)));
    }
}

/// A new session, its window and its pane carry their tags, and the server is named by its pid.
pub fn a_created_session_reads_back_with_its_tags(on: &dyn Harness) {
    let made = idle(on, "one", 1);
    assert!(made.tagged);
    let seen = look(on);
    assert_eq!((seen.server_pid, &seen.version), (made.server_pid, &made.version));
    assert_eq!(seen.panes.len(), 1, "{seen:?}");
    let row = seen.pane(&made.pane).expect("the new pane");
    assert_eq!((&row.session, &row.window, row.pane_pid), (&made.session, &made.window, made.pane_pid));
    for at in [TagScope::Session, TagScope::Window, TagScope::Pane] {
        assert_eq!(row.tags(at), Some(&tags(1)), "{at:?}");
    }
    assert_eq!((row.session_name.as_str(), row.window_name.as_str()), ("one", "agent"));
    assert!(!row.dead);
    assert!(seen.has_session(&made.session));
    if let Some(pid) = made.pane_pid
        && let Some(runs) = on.runs(pid)
    {
        assert!(runs, "the pane's program {pid} does not run");
    }
}

/// A window in a session of ours has its own tags at window and pane, and the session keeps its own.
pub fn a_window_in_our_session_has_its_own_tags(on: &dyn Harness) {
    let ctl = idle(on, "ctl", 1);
    let mut spec = in_new_session(on, "unused", 2, on.idle());
    spec.placement = Placement::InSession(owned(on, 1, TagScope::Session));
    let made = on.backend().create(&spec).expect("a window");
    assert!(made.tagged);
    assert_eq!(made.session, ctl.session);
    let seen = look(on);
    let row = seen.pane(&made.pane).expect("the new pane");
    assert_eq!(row.tags(TagScope::Session), Some(&tags(1)));
    assert_eq!(row.tags(TagScope::Window), Some(&tags(2)));
    assert_eq!(row.tags(TagScope::Pane), Some(&tags(2)));
    let first = seen.pane(&ctl.pane).expect("the first pane");
    assert_eq!(first.tags(TagScope::Window), Some(&tags(1)));
    assert_eq!(first.tags(TagScope::Pane), Some(&tags(1)));
}

/// A person's session has no tags, and tags of another run are not taken for ours.
pub fn foreign_and_untagged_objects_are_seen_as_such(on: &dyn Harness) {
    idle(on, "ours", 1);
    let other = idle(on, "other", 2);
    let person = on.session_by_hand("person");
    let seen = look(on);
    assert!(seen.has_session(&person));
    for row in seen.panes.iter().filter(|row| row.session == person) {
        assert_eq!((&row.session_tags, &row.window_tags, &row.pane_tags), (&None, &None, &None));
    }
    for at in [TagScope::Session, TagScope::Window, TagScope::Pane] {
        let found = seen.owned(&tags(2), at);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].session(), &other.session);
        assert!(seen.owned(&tags(3), at).is_empty());
    }
}

/// Tags that a person set for the whole server are no object's own.
pub fn inherited_tags_are_nobodys(on: &dyn Harness) {
    idle(on, "ours", 1);
    let person = on.session_by_hand("person");
    for at in [TagScope::Session, TagScope::Window, TagScope::Pane] {
        on.tag_globally(at, &tags(9));
    }
    let seen = look(on);
    assert!(seen.has_session(&person));
    for at in [TagScope::Session, TagScope::Window, TagScope::Pane] {
        assert_eq!(seen.owned(&tags(9), at), [], "{at:?}");
    }
}

/// A name is found only as a whole.
pub fn names_are_exact(on: &dyn Harness) {
    let made = idle(on, "worker-10", 1);
    let backend = on.backend();
    let server_pid = made.server_pid;
    assert_eq!(backend.has_session(&name("worker-10")), HasSession::Present { server_pid });
    for part in ["worker-1", "worker", "w", "orker-10", "worker-100", "0"] {
        is_not_there(on, part, server_pid);
    }
}

/// Tags stay with a session that a person renamed, to anything.
pub fn a_renamed_session_keeps_its_tags(on: &dyn Harness) {
    let made = idle(on, "before", 1);
    on.rename_by_hand(&made.session, "a b #{pid} \u{e4}}");
    let seen = look(on);
    let row = seen.pane(&made.pane).expect("the pane");
    assert_eq!(row.tags(TagScope::Session), Some(&tags(1)));
    assert_ne!(row.session_name, "before");
    let server_pid = made.server_pid;
    is_not_there(on, "before", server_pid);
}

/// The server says that it has no such session; where each session has a server of its own, nobody serves the question.
fn is_not_there(on: &dyn Harness, part: &str, server_pid: u32) {
    match on.backend().has_session(&name(part)) {
        HasSession::AbsentOn { server_pid: by } => assert_eq!(by, server_pid, "{part}"),
        HasSession::NotServed(_) => assert!(on.a_server_for_each_session(), "{part}"),
        other => panic!("{part}: {other:?}"),
    }
}

/// A pane that a person added to our window is not ours.
pub fn a_split_is_not_tagged(on: &dyn Harness) {
    let made = idle(on, "one", 1);
    let split = on.split_by_hand(&made.pane);
    let seen = look(on);
    assert_eq!(seen.panes.len(), 2);
    assert_eq!(seen.pane(&split).expect("the split").tags(TagScope::Pane), None);
    let ours = seen.owned(&tags(1), TagScope::Pane);
    assert_eq!(ours.len(), 1);
    assert_eq!(ours[0].pane(), &made.pane);
}

/// A pane that is kept after its program's end is listed, and says so.
pub fn a_dead_pane_is_listed_as_dead(on: &dyn Harness) {
    let made = idle(on, "one", 1);
    idle(on, "two", 2);
    if on.end_and_keep(&made.pane) {
        let row = until("the dead pane", || look(on).pane(&made.pane).filter(|row| row.dead).cloned());
        assert_eq!(row.tags(TagScope::Pane), Some(&tags(1)));
    }
}

/// A listing is whole, however long.
pub fn many_panes_are_all_listed(on: &dyn Harness) {
    let many = on.many();
    let made: Vec<_> = (0..many).map(|n| idle(on, &format!("many-{n}"), n)).collect();
    let seen = look(on);
    assert_eq!(seen.panes.len(), made.len());
    for (n, made) in (0..many).zip(&made) {
        assert_eq!(seen.pane(&made.pane).and_then(|row| row.tags(TagScope::Session)), Some(&tags(n)));
    }
}

/// What a program printed can be read from its pane, and a pane that is not there is trouble.
pub fn what_a_pane_shows_is_captured(on: &dyn Harness) {
    let backend = on.backend();
    let made = backend.create(&in_new_session(on, "one", 1, on.recorder())).expect("a window");
    on.recorder_is_ready(&made.pane);
    on.print(&made.pane, "shown: 100% #{pid} \u{e4}");
    let text = until("the text", || backend.capture(&made.pane).ok().filter(|text| text.contains("shown")));
    assert!(text.contains("shown: 100% #{pid} \u{e4}"), "{text:?}");
    let other = idle(on, "two", 2);
    let tagged = owned(on, 2, TagScope::Session);
    assert_eq!(backend.kill(&tagged, crate::KillScope::Session), crate::KillReply::Done);
    assert!(backend.capture(&other.pane).is_err());
}

/// From outside a terminal is attached, from inside the same server it is moved, from inside another it stays, and
/// the command for another terminal is given.
pub fn a_plan_leads_in_moves_or_refuses(on: &dyn Harness) {
    let made = idle(on, "one", 1);
    let backend = on.backend();
    let plan = |here: Option<&Here>| backend.attach_plan(&made.pane, &made.session, here);
    let AttachPlan::Attach(attach) = plan(None) else { panic!("{:?}", plan(None)) };
    assert_eq!(attach[0], backend.binary().as_os_str());
    let socket = backend.socket().to_owned();
    let inside = Here { socket, server_pid: Some(made.server_pid), session: None, pane: None };
    let AttachPlan::Switch(switch) = plan(Some(&inside)) else { panic!("{:?}", plan(Some(&inside))) };
    assert_ne!(switch, attach);
    let elsewhere = Here { socket: on.directory().join("elsewhere"), ..inside };
    match plan(Some(&elsewhere)) {
        AttachPlan::Refused { why, instead } => {
            assert!(why.contains("elsewhere"), "{why}");
            assert_eq!(instead, attach);
        }
        other => panic!("{other:?}"),
    }
}
