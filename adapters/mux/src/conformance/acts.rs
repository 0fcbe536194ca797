//! Checks of acts.

use super::{Harness, idle, in_new_session, look, owned, tags, until};
use crate::ids::Tags;
use crate::multiplexer::{CreateError, Delivery, KillReply, KillScope, Placement};
use crate::snapshot::{Owned, TagScope};
use std::ffi::OsString;

/// What would be unsafe in a multiplexer's own language never reaches it.
pub fn unsafe_requests_are_refused_unasked(on: &dyn Harness) {
    let good = in_new_session(on, "one", 1, on.idle());
    let refused = |spec| match on.backend().create(&spec) {
        Err(CreateError::Refused(_)) => {}
        other => panic!("{other:?}"),
    };
    for token in ["", "a}b", "0123456789abcdef0123456789abcdeF", "0123456789abcdef0123456789abcde"] {
        refused(crate::CreateSpec { tags: Tags { token: token.to_owned(), ..tags(1) }, ..good.clone() });
    }
    refused(crate::CreateSpec { command: vec![OsString::from("true")], ..good.clone() });
    refused(crate::CreateSpec { command: Vec::new(), ..good });
}

/// A second session of a name is refused, and the first is as it was.
pub fn a_name_is_given_once(on: &dyn Harness) {
    let first = idle(on, "one", 1);
    match on.backend().create(&in_new_session(on, "one", 2, on.idle())) {
        Err(CreateError::Refused(_)) => {}
        other => panic!("{other:?}"),
    }
    let seen = look(on);
    assert_eq!(seen.panes.len(), 1);
    assert_eq!(seen.pane(&first.pane).and_then(|row| row.tags(TagScope::Session)), Some(&tags(1)));
}

/// A window goes into a session only while that carries the token, on that server.
pub fn only_a_session_of_ours_gets_a_window(on: &dyn Harness) {
    let ctl = idle(on, "ctl", 1);
    idle(on, "other", 2);
    let proof = owned(on, 1, TagScope::Session);
    let refused = |why: &str, proof: &Owned| {
        let mut spec = in_new_session(on, "unused", 3, on.idle());
        spec.placement = Placement::InSession(proof.clone());
        match on.backend().create(&spec) {
            Err(CreateError::Refused(_)) => {}
            other => panic!("{why}: {other:?}"),
        }
        assert!(look(on).owned(&tags(3), TagScope::Window).is_empty(), "{why}");
    };
    refused("another server", &Owned { server_pid: proof.server_pid + 1, ..proof.clone() });
    on.retag(&ctl.pane, TagScope::Session, Some(&tags(4)));
    refused("another token", &proof);
    on.retag(&ctl.pane, TagScope::Session, None);
    refused("no token", &proof);
    on.tag_globally(TagScope::Session, &tags(1));
    refused("an inherited token", &proof);
}

/// A pane, a window, a session: each kill takes that and leaves the rest.
pub fn a_kill_reaches_its_scope_only(on: &dyn Harness) {
    let ctl = idle(on, "ctl", 1);
    let other = idle(on, "other", 2);
    let mut spec = in_new_session(on, "unused", 3, on.idle());
    spec.placement = Placement::InSession(owned(on, 1, TagScope::Session));
    let window = on.backend().create(&spec).expect("a window");
    let split = on.split_by_hand(&window.pane);
    let there = |pane| look(on).pane(pane).is_some();

    let kill = |n, at, scope| assert_eq!(on.backend().kill(&owned(on, n, at), scope), KillReply::Done);
    kill(3, TagScope::Pane, KillScope::Pane);
    assert!(!there(&window.pane) && there(&split) && there(&ctl.pane) && there(&other.pane));

    let by_window = look(on).owned(&tags(3), TagScope::Window);
    if on.windows_keep_their_tags() {
        assert_eq!(on.backend().kill(&by_window[0], KillScope::Window), KillReply::Done);
        assert!(!there(&split) && there(&ctl.pane) && there(&other.pane));
    } else {
        assert_eq!(by_window, []);
    }

    let session = || look(on).owned(&tags(1), TagScope::Session).remove(0);
    let mut spec = in_new_session(on, "unused", 4, on.idle());
    spec.placement = Placement::InSession(session());
    let window = on.backend().create(&spec).expect("a window");
    let split = on.split_by_hand(&window.pane);
    let by_window = look(on).owned(&tags(4), TagScope::Window).remove(0);
    assert_eq!(on.backend().kill(&by_window, KillScope::Window), KillReply::Done);
    assert!(!there(&window.pane) && !there(&split) && there(&ctl.pane) && there(&other.pane));

    assert_eq!(on.backend().kill(&session(), KillScope::Session), KillReply::Done);
    assert!(!there(&ctl.pane) && there(&other.pane));
}

/// Another token, another server, no token, an inherited one: nothing is killed.
pub fn a_kill_needs_the_token_at_that_moment(on: &dyn Harness) {
    let made = idle(on, "one", 1);
    idle(on, "two", 2);
    for (at, scope) in SCOPES {
        let proof = owned(on, 1, at);
        let refused = |why: &str, proof: &Owned| {
            match on.backend().kill(proof, scope) {
                KillReply::Refused(_) => {}
                other => panic!("{at:?}, {why}: {other:?}"),
            }
            assert!(look(on).pane(&made.pane).is_some(), "{at:?}, {why}: it was killed");
        };
        refused("another server", &Owned { server_pid: proof.server_pid + 1, ..proof.clone() });
        refused(
            "no token asked for",
            &Owned { tags: Tags { token: String::new(), ..tags(1) }, ..proof.clone() },
        );
        let cut = Tags { token: "a}".to_owned(), ..tags(1) };
        refused("a token that cuts the condition", &Owned { tags: cut, ..proof.clone() });
        on.retag(&made.pane, at, Some(&tags(7)));
        refused("another token", &proof);
        on.retag(&made.pane, at, None);
        refused("no token", &proof);
        on.tag_globally(at, &tags(1));
        refused("an inherited token", &proof);
        on.retag(&made.pane, at, Some(&tags(1)));
        assert_eq!(owned(on, 1, at), proof, "{at:?}: its own again");
    }
}

const SCOPES: [(TagScope, KillScope); 3] = [
    (TagScope::Pane, KillScope::Pane),
    (TagScope::Window, KillScope::Window),
    (TagScope::Session, KillScope::Session),
];

/// A kill of what is gone is refused, and does not fall on what is still there.
pub fn a_kill_of_what_is_gone_hits_nobody(on: &dyn Harness) {
    idle(on, "one", 1);
    idle(on, "one-more", 2);
    on.session_by_hand("person");
    let proofs: Vec<_> = SCOPES.iter().map(|(at, scope)| (owned(on, 1, *at), *scope)).collect();
    assert_eq!(on.backend().kill(&proofs[2].0, KillScope::Session), KillReply::Done);
    let left = look(on).panes.len();
    for (proof, scope) in &proofs {
        match on.backend().kill(proof, *scope) {
            KillReply::Refused(_) => {}
            other => panic!("{scope:?}: {other:?}"),
        }
        assert_eq!(look(on).panes.len(), left, "{scope:?}");
    }
}

/// After a restart the same ids are another server's.
pub fn a_kill_does_not_reach_another_server(on: &dyn Harness) {
    let made = idle(on, "one", 1);
    let proofs: Vec<_> = SCOPES.iter().map(|(at, scope)| (owned(on, 1, *at), *scope)).collect();
    on.restart_with("one");
    let seen = look(on);
    assert_ne!(seen.server_pid, made.server_pid);
    for (proof, scope) in &proofs {
        match on.backend().kill(proof, *scope) {
            KillReply::Refused(_) => {}
            other => panic!("{scope:?}: {other:?}"),
        }
        assert_eq!(look(on).panes.len(), seen.panes.len(), "{scope:?}");
    }
}

/// A token at a pane is no leave to end the session around it.
pub fn a_kill_goes_no_wider_than_its_proof(on: &dyn Harness) {
    idle(on, "one", 1);
    idle(on, "two", 2);
    for (at, _) in SCOPES {
        let proof = owned(on, 1, at);
        for (_, scope) in SCOPES.iter().filter(|(other, _)| *other != at) {
            match on.backend().kill(&proof, *scope) {
                KillReply::Refused(_) => {}
                other => panic!("{at:?} for {scope:?}: {other:?}"),
            }
        }
    }
    assert_eq!(look(on).panes.len(), 2);
}

fn recording(on: &dyn Harness, n: u32) -> Owned {
    let spec = in_new_session(on, &format!("reads-{n}"), n, on.recorder());
    let made = on.backend().create(&spec).expect("a window");
    on.recorder_is_ready(&made.pane);
    owned(on, n, TagScope::Pane)
}

/// What is pasted is what the program reads.
pub fn pasted_bytes_arrive_exactly(on: &dyn Harness) {
    let pane = recording(on, 1);
    let other = recording(on, 2);
    let texts: [&[u8]; 4] =
        [b"one; two;", "l\u{ef}nes\nof\ttext\n\n".as_bytes(), b"#{pid} $HOME ~ \\n 'q' \"d\"", b";"];
    let mut expected = Vec::new();
    for text in texts.into_iter().chain([&*vec![b'x'; 100_000]]) {
        assert_eq!(on.backend().paste(&pane, text), Delivery::Delivered);
        expected.extend_from_slice(text);
        let got =
            until("the paste", || Some(on.recorded(pane.pane())).filter(|got| got.len() >= expected.len()));
        assert!(got == expected, "{} bytes of {}", got.len(), expected.len());
    }
    assert_eq!(on.recorded(other.pane()), b"");
    assert_eq!(on.backend().paste(&pane, b""), Delivery::Delivered);
    assert!(on.recorded(pane.pane()) == expected);
}

/// A dead pane, a pane that is gone, another server's: nothing is delivered, and the server lives.
pub fn nothing_is_pasted_where_nobody_reads(on: &dyn Harness) {
    let other = recording(on, 2);
    let pane = recording(on, 1);
    let refused = |why: &str, proof: &Owned| {
        for reply in [on.backend().paste(proof, b"lost"), on.backend().submit(proof)] {
            assert!(matches!(reply, Delivery::NotDelivered(_)), "{why}: {reply:?}");
        }
        assert_eq!(on.recorded(other.pane()), b"", "{why}");
    };
    refused("another server", &Owned { server_pid: pane.server_pid + 1, ..pane.clone() });
    refused("another token", &Owned { tags: tags(5), ..pane.clone() });
    refused("the wrong proof", &owned(on, 1, TagScope::Session));
    assert_eq!(on.recorded(pane.pane()), b"");
    let server = look(on).server_pid;
    if on.end_and_keep(pane.pane()) {
        until("the dead pane", || look(on).pane(pane.pane()).filter(|row| row.dead).map(|_| ()));
        refused("a dead pane", &pane);
        assert_eq!(look(on).server_pid, server, "the server did not survive it");
    }
    let proof = owned(on, 1, TagScope::Session);
    assert_eq!(on.backend().kill(&proof, KillScope::Session), KillReply::Done);
    refused("a pane that is gone", &pane);
}

/// Enter is what the program reads for it.
pub fn enter_is_pressed(on: &dyn Harness) {
    let pane = recording(on, 1);
    assert_eq!(on.backend().submit(&pane), Delivery::Delivered);
    let got = until("the key", || Some(on.recorded(pane.pane())).filter(|got| !got.is_empty()));
    assert_eq!(got, b"\r");
}

/// Output goes to the sink's exact words until it is sent to nobody; another server's pane is left alone.
pub fn a_pane_is_piped_to_a_sink_of_any_name(on: &dyn Harness) {
    let backend = on.backend();
    let made = backend.create(&in_new_session(on, "one", 1, on.recorder())).expect("a window");
    on.recorder_is_ready(&made.pane);
    let sink = on.sink();
    if !backend.pipes() {
        assert!(backend.pipe(made.server_pid, &made.pane, Some(&sink)).is_err());
        return;
    }
    assert!(backend.pipe(made.server_pid + 1, &made.pane, Some(&sink)).is_err());
    assert!(backend.pipe(made.server_pid, &crate::PaneId::from_backend("%4711"), Some(&sink)).is_err());
    on.print(&made.pane, "before");
    until("the text", || backend.capture(&made.pane).ok().filter(|text| text.contains("before")));

    backend.pipe(made.server_pid, &made.pane, Some(&sink)).expect("piped");
    on.print(&made.pane, "piped");
    let got = until("the output", || Some(on.sunk()).filter(|got| got.ends_with(b"\n")));
    let text = String::from_utf8_lossy(&got).replace('\r', "");
    assert_eq!(text, "piped\n");

    // A second one takes the place of the first.
    backend.pipe(made.server_pid, &made.pane, Some(&sink)).expect("piped again");
    backend.pipe(made.server_pid, &made.pane, None).expect("piped to nobody");
    on.print(&made.pane, "after");
    until("the text", || backend.capture(&made.pane).ok().filter(|text| text.contains("after")));
    assert!(!String::from_utf8_lossy(&on.sunk()).contains("after"));
}
