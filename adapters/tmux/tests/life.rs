//! The life of windows on a real server.

mod common;

use common::*;
use loopmux_mux::*;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

#[test]
fn a_created_session_is_tagged_listed_and_killed_by_its_token() {
    let lab = Lab::new();
    let made = lab.tmux.create(&session(&lab, "one", 1, &["sleep", "600"])).unwrap();
    assert!(made.tagged);
    let seen = lab.answered();
    assert_eq!(seen.server_pid, made.server_pid);
    assert_eq!(seen.version, made.version);
    let row = seen.pane(&made.pane).unwrap();
    assert_eq!(row.session_tags.as_ref(), Some(&tags(1)));
    assert_eq!(row.window_tags.as_ref(), Some(&tags(1)));
    assert_eq!(row.pane_tags.as_ref(), Some(&tags(1)));
    assert_eq!((row.session_name.as_str(), row.window_name.as_str()), ("one", "agent"));
    assert_eq!(row.pane_pid, made.pane_pid);

    let other = lab.tmux.create(&session(&lab, "other", 2, &["sleep", "600"])).unwrap();
    let owned = &lab.answered().owned(&tags(1), TagScope::Session)[0];
    assert_eq!(lab.tmux.kill(owned, KillScope::Session), KillReply::Done);
    let seen = lab.answered();
    assert!(!seen.has_session(&made.session) && seen.has_session(&other.session));
    assert!(matches!(lab.tmux.kill(owned, KillScope::Session), KillReply::Refused(_)));
    assert!(lab.answered().has_session(&other.session));
}

#[test]
fn a_window_in_a_session_of_ours_gets_its_words_byte_for_byte() {
    let lab = Lab::new();
    lab.tmux.create(&session(&lab, "ctl", 1, &["sleep", "600"])).unwrap();
    let odd: Vec<OsString> = [
        &b"a'b #(touch x) %Y;"[..],
        b"~",
        b"$HOME \"q\" \\ \\n",
        b"line\n   # more\n}",
        b"{end} ; kill-server",
        b"#{pid}#[x]##",
        b"\xff\x01\x7f\xc3\xa4",
        b"",
        b"-flag",
        b";",
        b"\\;",
    ]
    .map(|b| OsString::from_vec(b.to_vec()))
    .to_vec();
    for in_session in [true, false] {
        let out = lab.path(if in_session { "in" } else { "new" });
        let script = format!(
            "for a in \"$@\"; do printf '%s\\0' \"$a\"; done > {0}.tmp; mv {0}.tmp {0}",
            out.display()
        );
        let mut spec = session(&lab, "own", 2, &["/bin/sh", "-c", &script, "sh"]);
        spec.command.extend(odd.iter().cloned());
        if in_session {
            let ctl = lab.answered().owned(&tags(1), TagScope::Session).remove(0);
            spec.placement = Placement::InSession(ctl);
        }
        let made = lab.tmux.create(&spec).unwrap();
        assert!(made.tagged);
        let got = until("the window's words", || read(&out));
        let want: Vec<u8> = odd.iter().flat_map(|w| [w.clone().into_vec(), vec![0]].concat()).collect();
        assert_eq!(got, want, "in a session: {in_session}");
    }
}

#[test]
fn a_session_that_is_no_longer_ours_gets_no_window() {
    let lab = Lab::new();
    let made = lab.tmux.create(&session(&lab, "ctl", 1, &["sleep", "600"])).unwrap();
    let ctl = lab.answered().owned(&tags(1), TagScope::Session).remove(0);
    let mut spec = session(&lab, "x", 2, &["sleep", "600"]);
    spec.placement = Placement::InSession(ctl);
    lab.by_hand(&["set-option", "-t", made.session.as_str(), "@loopmux_s_token", &tags(3).token]);
    assert!(matches!(lab.tmux.create(&spec), Err(CreateError::Refused(_))));
    assert_eq!(lab.answered().panes.len(), 1);
}

#[test]
fn a_pane_is_piped_to_a_sink_with_an_odd_path_and_unpiped() {
    let lab = Lab::new();
    let dir = lab.path("a'b #(touch x) %Y;");
    std::fs::create_dir(&dir).unwrap();
    let made =
        lab.tmux.create(&session(&lab, "one", 1, &["/bin/sh", "-c", "read x; echo said; read x"])).unwrap();
    let sink =
        [OsString::from("/bin/sh"), "-c".into(), "cat > \"$1/log\"".into(), "sh".into(), dir.clone().into()];
    lab.tmux.pipe(made.server_pid, &made.pane, Some(&sink)).unwrap();
    let owned = lab.answered().owned(&tags(1), TagScope::Pane).remove(0);
    assert_eq!(lab.tmux.submit(&owned), Delivery::Delivered);
    until("the log", || read(&dir.join("log")).filter(|log| log.ends_with(b"said\r\n")));
    assert!(!dir.join("x").exists() && !lab.path("x").exists());
    lab.tmux.pipe(made.server_pid, &made.pane, None).unwrap();
    let shown = lab.by_hand(&["display-message", "-p", "-t", made.pane.as_str(), "#{pane_pipe}"]);
    assert_eq!(shown.stdout, b"0\n");
    assert!(lab.tmux.pipe(made.server_pid + 1, &made.pane, Some(&sink)).is_err());
    assert!(lab.tmux.pipe(made.server_pid, &PaneId::from_backend("%77"), Some(&sink)).is_err());
    let text = lab.tmux.capture(&made.pane).unwrap();
    assert!(text.contains("said"), "{text}");
}

#[test]
fn a_program_that_ends_at_once_is_still_tagged_and_read_back() {
    let lab = Lab::new();
    lab.tmux.create(&session(&lab, "stays", 1, &["sleep", "600"])).unwrap();
    for n in 2..60 {
        let made = lab.tmux.create(&session(&lab, "short", n, &["/bin/true", "x"])).unwrap();
        assert!(made.tagged, "{n}");
        until("its end", || (!lab.answered().has_session(&made.session)).then_some(()));
    }
}

#[test]
fn one_server_comes_of_many_first_creates() {
    let lab = Lab::new();
    let made: Vec<_> = std::thread::scope(|scope| {
        let create = |n: u32| {
            let lab = &lab;
            scope.spawn(move || {
                lab.tmux.create(&session(lab, &format!("s{n}"), n, &["sleep", "600"])).unwrap()
            })
        };
        (1..9).map(create).collect::<Vec<_>>().into_iter().map(|t| t.join().unwrap()).collect()
    });
    let seen = lab.answered();
    assert_eq!(seen.panes.len(), made.len());
    assert!(made.iter().all(|m| m.tagged && m.server_pid == seen.server_pid));
}

#[test]
fn no_answer_lacks_what_is_there_while_others_come_and_go() {
    let lab = Lab::new();
    let stays = lab.tmux.create(&session(&lab, "stays", 1, &["sleep", "600"])).unwrap();
    std::thread::scope(|scope| {
        let coming_and_going = scope.spawn(|| {
            for n in 2..40 {
                lab.tmux.create(&session(&lab, "goes", n, &["sleep", "600"])).unwrap();
                let owned = lab.answered().owned(&tags(n), TagScope::Session).remove(0);
                assert_eq!(lab.tmux.kill(&owned, KillScope::Session), KillReply::Done);
            }
        });
        while !coming_and_going.is_finished() {
            assert!(lab.answered().pane(&stays.pane).is_some());
        }
    });
}

#[test]
fn an_id_that_is_none_of_tmux_is_refused_unasked() {
    let row = |session: &str, window: &str, pane: &str| PaneRow {
        server_pid: 1,
        session: SessionId::from_backend(session),
        window: WindowId::from_backend(window),
        pane: PaneId::from_backend(pane),
        pane_pid: None,
        dead: false,
        attached: 0,
        session_tags: Some(tags(1)),
        window_tags: Some(tags(1)),
        pane_tags: Some(tags(1)),
        session_name: "one".into(),
        window_name: "w".into(),
    };
    // A program that is not there: had it been asked, nobody could tell what came of it.
    let tmux =
        loopmux_tmux::Tmux::new("/no/such/tmux", &loopmux_tmux::Endpoint::Path("/no/s".into())).unwrap();
    for (session, window, pane) in
        [("one", "@1", "%1"), ("$1", "@1}", "%1"), ("$1", "@1", "%1 ; kill-server")]
    {
        let seen = Answered { server_pid: 1, panes: vec![row(session, window, pane)], ..Answered::default() };
        let owned = seen.owned(&tags(1), TagScope::Session).remove(0);
        assert!(matches!(tmux.kill(&owned, KillScope::Session), KillReply::Refused(_)));
        let owned = seen.owned(&tags(1), TagScope::Pane).remove(0);
        assert!(matches!(tmux.submit(&owned), Delivery::NotDelivered(_)));
    }
    let seen = Answered { server_pid: 1, panes: vec![row("$1", "@1", "%1")], ..Answered::default() };
    let owned = seen.owned(&tags(1), TagScope::Session).remove(0);
    assert!(matches!(tmux.kill(&owned, KillScope::Session), KillReply::Unknown(_)));
}
