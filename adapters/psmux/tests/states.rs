//! What a person, a crash or a busy machine makes of psmux's servers and of their files, and what the leaf makes of that.

mod common;

use common::*;
use loopmux_mux::*;
use std::path::PathBuf;
use std::process::Command;

/// The lab, where there is a psmux to put into it.
#[allow(clippy::print_stderr, reason = "says what was not tried")]
fn lab() -> Option<Lab> {
    let tools = tools();
    if tools.is_none() {
        eprintln!("not tried: {VARIABLE} names no directory with psmux");
    }
    tools.map(|tools| Lab::new(&tools))
}

/// The same with the version below the floor.
fn old_lab() -> Option<Lab> {
    let mut lab = Lab::with_version(&tools()?, "3.3.8");
    lab.psmux = lab.psmux.clone().of_old();
    Some(lab)
}

fn idle(lab: &Lab, name: &str, n: u32) -> Created {
    let made = lab.psmux.create(&session(lab, name, n, lab.pane(&["idle"]))).unwrap();
    assert!(made.tagged);
    made
}

fn owned(lab: &Lab, n: u32, at: TagScope) -> Owned {
    lab.answered().owned(&tags(n), at).remove(0)
}

/// The system's process of a session's server. Its number there is another one than psmux's.
struct Process(String);

impl Process {
    fn of(lab: &Lab, session: &str) -> Self {
        let prefix = format!("WINEPREFIX={}", lab.path("prefix").display());
        let found: Vec<String> = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| {
                let path = entry.unwrap().path();
                let words = std::fs::read(path.join("cmdline")).ok()?;
                let words: Vec<&[u8]> = words.split(|b| *b == 0).collect();
                let is_server = words.iter().any(|w| w.ends_with(b"psmux.exe"))
                    && words.windows(3).any(|w| w == [&b"server"[..], b"-s", session.as_bytes()]);
                let environment = std::fs::read(path.join("environ")).ok()?;
                let ours = environment.split(|b| *b == 0).any(|v| v == prefix.as_bytes());
                (is_server && ours).then(|| path.file_name().unwrap().to_str().unwrap().to_owned())
            })
            .collect();
        assert_eq!(found.len(), 1, "the server of {session}: {found:?}");
        Self(found[0].clone())
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.0]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended; stopped, it would hold the lab's end up.
        let _ = Command::new("kill").args(["-CONT", &self.0]).output();
    }
}

fn file(lab: &Lab, name: &str) -> PathBuf {
    lab.psmux.socket().join(name)
}

#[test]
fn a_stopped_server_is_unlisted_and_does_nothing_later() {
    let Some(lab) = lab() else { return };
    let quick = std::time::Duration::from_secs(20);
    idle(&lab, "stopped", 1);
    idle(&lab, "other", 2);
    let proofs = [
        (owned(&lab, 1, TagScope::Pane), KillScope::Pane),
        (owned(&lab, 1, TagScope::Window), KillScope::Window),
        (owned(&lab, 1, TagScope::Session), KillScope::Session),
    ];
    let server = Process::of(&lab, "stopped");
    server.signal("-STOP");
    let by_hand = lab.by_hand(&["list-windows", "-t", "stopped"]);
    assert!(!by_hand.status.success(), "the server answers: {by_hand:?}");

    let seen = lab.answered();
    assert_eq!(seen.panes.len(), 1, "{seen:?}");
    assert_eq!(seen.panes[0].session_name, "other");
    assert_eq!(seen.unlisted.len(), 1, "{seen:?}");
    assert!(seen.unlisted[0].said.contains("stopped"), "{seen:?}");
    assert_eq!(seen.unlisted[0].class, ReplyClass::Partial);
    let name = SessionName::new("stopped").unwrap();
    assert!(matches!(lab.psmux.has_session(&name), HasSession::Unknown(_)));
    let psmux = lab.psmux.clone().with_deadlines(quick, quick);
    for (proof, scope) in &proofs {
        assert!(matches!(psmux.kill(proof, *scope), KillReply::Unknown(_)), "{scope:?}");
    }
    assert!(matches!(psmux.submit(&proofs[0].0), Delivery::NotDelivered(_)));
    assert!(lab.registered().contains(&"stopped.port".to_owned()), "{:?}", lab.registered());

    server.signal("-CONT");
    until("the server", || (lab.answered().unlisted.is_empty()).then_some(()));
    assert_eq!(lab.answered().panes.len(), 2, "it was killed after all");
    assert_eq!(lab.psmux.kill(&proofs[2].0, KillScope::Session), KillReply::Done);
    until("its end", || (lab.answered().panes.len() == 1).then_some(()));
}

#[test]
fn a_session_whose_key_was_changed_is_unlisted_and_lives() {
    let Some(lab) = lab() else { return };
    let made = idle(&lab, "keyed", 1);
    idle(&lab, "other", 2);
    // The server writes its key again every few seconds.
    let refused = until("a refusal", || {
        std::fs::write(file(&lab, "keyed.key"), "0000").unwrap();
        let seen = lab.answered();
        (!seen.unlisted.is_empty()).then_some(seen)
    });
    assert!(refused.panes.iter().all(|row| row.session_name == "other"), "{refused:?}");
    assert!(refused.unlisted[0].said.contains("keyed"), "{refused:?}");
    until("the key", || lab.answered().unlisted.is_empty().then_some(()));
    assert!(lab.answered().pane(&made.pane).is_some());
}

#[test]
fn a_session_without_files_is_not_served_and_comes_back() {
    let Some(lab) = lab() else { return };
    let made = idle(&lab, "hidden", 1);
    let proof = owned(&lab, 1, TagScope::Session);
    for ending in ["port", "key", "pid", "sid"] {
        std::fs::remove_file(file(&lab, &format!("hidden.{ending}"))).unwrap();
    }
    match lab.psmux.snapshot(Scope::Everything) {
        Snapshot::NotServed(trouble) => assert_eq!(trouble.class, ReplyClass::NoListener),
        // It may have written them again meanwhile.
        Snapshot::Answered(seen) => assert!(seen.pane(&made.pane).is_some()),
        other => panic!("{other:?}"),
    }
    let seen = until("its files", || match lab.psmux.snapshot(Scope::Everything) {
        Snapshot::Answered(seen) => Some(seen),
        _ => None,
    });
    assert_eq!(seen.panes.len(), 1);
    assert_eq!(seen.panes[0].server_pid, made.server_pid, "another server");
    assert_eq!(lab.psmux.kill(&proof, KillScope::Session), KillReply::Done);
}

#[test]
fn a_namesake_in_another_data_directory_is_left_alone() {
    let Some(lab) = lab() else { return };
    idle(&lab, "one", 1);
    let pane = lab.windows("pane.exe");
    let elsewhere = lab.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let made = lab.by_hand_in(&elsewhere, &["new-session", "-d", "-s", "one", "--", &pane, "idle"]);
    assert!(made.status.success(), "{made:?}");
    assert_eq!(lab.psmux.kill(&owned(&lab, 1, TagScope::Session), KillScope::Session), KillReply::Done);
    until("its end", || {
        matches!(lab.psmux.snapshot(Scope::Everything), Snapshot::NotServed(_)).then_some(())
    });
    let other = lab.by_hand_in(&elsewhere, &["list-windows", "-t", "one"]);
    assert!(other.status.success(), "{other:?}");
}

#[test]
fn names_that_differ_in_case_are_one() {
    let Some(lab) = lab() else { return };
    let made = idle(&lab, "one", 1);
    let name = SessionName::new("ONE").unwrap();
    assert_eq!(lab.psmux.has_session(&name), HasSession::Present { server_pid: made.server_pid });
    let spec = session(&lab, "ONE", 2, lab.pane(&["idle"]));
    assert!(matches!(lab.psmux.create(&spec), Err(CreateError::Refused(_))));
    assert_eq!(lab.answered().panes.len(), 1);
}

#[test]
fn a_crashed_servers_files_are_swept_and_its_name_is_free() {
    let Some(lab) = lab() else { return };
    idle(&lab, "crashed", 1);
    idle(&lab, "other", 2);
    Process::of(&lab, "crashed").signal("-KILL");
    let seen = until("its end", || {
        let seen = lab.answered();
        (seen.unlisted.is_empty() && seen.panes.len() == 1).then_some(seen)
    });
    assert_eq!(seen.panes[0].session_name, "other");
    let left: Vec<_> = lab.registered().into_iter().filter(|name| name.starts_with("crashed.")).collect();
    assert_eq!(left, Vec::<String>::new());
    idle(&lab, "crashed", 3);
    assert_eq!(lab.answered().panes.len(), 2);
}

#[test]
fn a_window_gets_its_words_as_they_are_or_is_refused() {
    let Some(lab) = lab() else { return };
    idle(&lab, "ctl", 1);
    let plain =
        ["a'b", "\u{e4} \u{2603}", "C:\\Program Files\\x\\", "say \"hi\"", "-flag", "#{pid}", "d;", "!x^y"];
    for (in_session, n) in [(false, 2), (true, 3)] {
        // What a shell would get is refused for a window in a session, below.
        let plain: Vec<&str> = plain.into_iter().filter(|word| !in_session || !word.contains(';')).collect();
        let out = lab.path(&format!("words-{n}"));
        let mut words = vec!["words".to_owned(), lab.windows(&format!("words-{n}"))];
        words.extend(plain.iter().map(|word| (*word).to_owned()));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut spec = session(&lab, "own", n, lab.pane(&words));
        if in_session {
            spec.placement = Placement::InSession(owned(&lab, 1, TagScope::Session));
        }
        // It may have ended before it was tagged.
        match lab.psmux.create(&spec) {
            Ok(_) | Err(CreateError::MayAppear(_)) => {}
            other => panic!("{other:?}"),
        }
        until("the words", || out.exists().then_some(()));
        let want: Vec<u8> = plain.iter().flat_map(|w| [w.as_bytes(), &[0]].concat()).collect();
        assert_eq!(String::from_utf8(std::fs::read(&out).unwrap()), String::from_utf8(want), "{in_session}");
    }
    for odd in ["", "a&b", "%PATH%", "$x", "(x)", "a|b", "`x`"] {
        let mut spec = session(&lab, "own", 4, lab.pane(&["idle", odd]));
        spec.placement = Placement::InSession(owned(&lab, 1, TagScope::Session));
        assert!(matches!(lab.psmux.create(&spec), Err(CreateError::Refused(_))), "{odd:?}");
    }
    assert_eq!(lab.answered().owned(&tags(4), TagScope::Window), []);
}

#[test]
fn an_old_version_keeps_one_window_of_ours_in_a_session() {
    let Some(lab) = old_lab() else { return };
    let probe = lab.psmux.probe();
    assert_eq!((probe.version.as_deref(), probe.refused), (Some("3.3.8"), None));
    let made = idle(&lab, "one", 1);
    let other = idle(&lab, "two", 2);
    let program = lab.windows("pane.exe");
    lab.said(&["split-window", "-d", "-t", "one:@1", "--", &program, "idle"]);
    let seen = lab.answered();
    assert_eq!(seen.panes.len(), 3);
    let ours = seen.owned(&tags(1), TagScope::Pane);
    assert_eq!(ours.len(), 1, "the split has the tags of another pane: {ours:?}");
    assert_eq!(ours[0].pane(), &made.pane);

    let mut spec = session(&lab, "unused", 3, lab.pane(&["idle"]));
    spec.placement = Placement::InSession(owned(&lab, 1, TagScope::Session));
    match lab.psmux.create(&spec) {
        Err(CreateError::Refused(trouble)) => assert!(trouble.said.contains("3.3.8"), "{trouble}"),
        made => panic!("{made:?}"),
    }

    let pane = &ours[0];
    lab.said(&["set-option", "-t", "one", "@loopmux_p_token", &tags(5).token]);
    assert!(matches!(lab.psmux.kill(pane, KillScope::Pane), KillReply::Refused(_)));
    assert_eq!(lab.answered().panes.len(), 3);
    lab.said(&["set-option", "-t", "one", "@loopmux_p_token", &tags(1).token]);
    assert_eq!(lab.psmux.submit(pane), Delivery::Delivered);
    assert_eq!(lab.psmux.kill(pane, KillScope::Pane), KillReply::Done);
    until("the pane's end", || (lab.answered().panes.len() == 2).then_some(()));

    // Its word may go with the server.
    let session = owned(&lab, 2, TagScope::Session);
    assert!(!matches!(lab.psmux.kill(&session, KillScope::Session), KillReply::Refused(_)));
    until("the session's end", || lab.answered().pane(&other.pane).is_none().then_some(()));
    assert_eq!(lab.answered().panes.len(), 1);
}
