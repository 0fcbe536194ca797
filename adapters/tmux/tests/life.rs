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
