//! Real tmux through the suite that every backend goes through.

mod common;

use common::Lab;
use loopmux_mux::conformance::{CHECKS, Check, Harness};
use loopmux_mux::*;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A recorder keeps what it reads in a file named after its pane.
struct Hands(Lab);

impl Hands {
    fn by_hand(&self, args: &[&str]) -> String {
        let out = self.0.by_hand(args);
        assert!(out.status.success(), "{args:?}: {out:?}");
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    fn file(&self, kind: &str, pane: &PaneId) -> PathBuf {
        self.0.path(&format!("{kind}-{}", pane.as_str().trim_start_matches('%')))
    }

    fn odd_directory(&self) -> PathBuf {
        let dir = self.0.path("a'b #(touch x) #[y] %Y\n\"$HOME\" ~ {z};");
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn object(&self, pane: &PaneId, at: TagScope) -> (Vec<&'static str>, String) {
        let id = |format| self.by_hand(&["display-message", "-p", "-t", pane.as_str(), format]);
        match at {
            TagScope::Session => (vec![], id("#{session_id}")),
            TagScope::Window => (vec!["-w"], id("#{window_id}")),
            TagScope::Pane => (vec!["-p"], id("#{pane_id}")),
        }
    }
}

fn keys(at: TagScope, tags: &Tags) -> [(String, String); 4] {
    let scope = match at {
        TagScope::Session => 's',
        TagScope::Window => 'w',
        TagScope::Pane => 'p',
    };
    [("token", &tags.token), ("project", &tags.project), ("run", &tags.run), ("state", &tags.state)]
        .map(|(what, value)| (format!("@loopmux_{scope}_{what}"), value.clone()))
}

impl Harness for Hands {
    fn backend(&self) -> &dyn Multiplexer {
        &self.0.tmux
    }

    fn directory(&self) -> PathBuf {
        self.0.dir.path().to_owned()
    }

    fn idle(&self) -> Vec<OsString> {
        common::words(&["sleep", "600"])
    }

    fn recorder(&self) -> Vec<OsString> {
        // The terminal is raw before the file is there; what is printed comes through a second file.
        let script = "n=${TMUX_PANE#%}; stty raw -echo opost onlcr; : > reads-$n; mkfifo says-$n.tmp; \
                      mv says-$n.tmp says-$n; (while :; do cat says-$n; done) & exec cat >> reads-$n";
        common::words(&["/bin/sh", "-c", script])
    }

    fn recorder_is_ready(&self, pane: &PaneId) {
        common::until("the recorder", || self.file("says", pane).exists().then_some(()));
    }

    fn recorded(&self, pane: &PaneId) -> Vec<u8> {
        common::read(&self.file("reads", pane)).unwrap_or_default()
    }

    fn print(&self, pane: &PaneId, line: &str) {
        std::fs::write(self.file("says", pane), format!("{line}\n")).unwrap();
    }

    fn sink(&self) -> Vec<OsString> {
        let dir = self.odd_directory();
        let script = OsString::from("cat >> \"$1/sunk\"");
        vec!["/bin/sh".into(), "-c".into(), script, "sh".into(), dir.into()]
    }

    fn sunk(&self) -> Vec<u8> {
        common::read(&self.odd_directory().join("sunk")).unwrap_or_default()
    }

    fn session_by_hand(&self, name: &str) -> SessionId {
        let made = ["new-session", "-d", "-P", "-F", "#{session_id}", "-s", name, "sleep 600"];
        SessionId::from_backend(self.by_hand(&made))
    }

    fn rename_by_hand(&self, session: &SessionId, name: &str) {
        self.by_hand(&["rename-session", "-t", session.as_str(), name]);
    }

    fn split_by_hand(&self, pane: &PaneId) -> PaneId {
        let split = ["split-window", "-d", "-P", "-F", "#{pane_id}", "-t", pane.as_str(), "sleep 600"];
        PaneId::from_backend(self.by_hand(&split))
    }

    fn tag_globally(&self, at: TagScope, tags: &Tags) {
        for (key, value) in keys(at, tags) {
            // At the server as a whole, and at each kind of object.
            for flags in ["-g", "-gw"] {
                self.by_hand(&["set-option", flags, &key, &value]);
            }
        }
    }

    fn retag(&self, pane: &PaneId, at: TagScope, tags: Option<&Tags>) {
        let (flags, id) = self.object(pane, at);
        for (key, value) in keys(at, tags.unwrap_or(&common::tags(0))) {
            let mut args = vec!["set-option"];
            args.extend(&flags);
            args.extend(["-t", &id]);
            if tags.is_none() {
                args.push("-u");
            }
            args.push(&key);
            if tags.is_some() {
                args.push(&value);
            }
            self.by_hand(&args);
        }
        let seal = keys(at, &common::tags(0))[0].0.replace("_token", "_seal");
        let value = tags.map(|tags| format!("{id}:{}", tags.token));
        let mut args = vec!["set-option"];
        args.extend(&flags);
        args.extend(["-t", &id]);
        match &value {
            Some(value) => args.extend([seal.as_str(), value]),
            None => args.extend(["-u", &seal]),
        }
        self.by_hand(&args);
    }

    fn end_and_keep(&self, pane: &PaneId) -> bool {
        self.by_hand(&["set-option", "-p", "-t", pane.as_str(), "remain-on-exit", "on"]);
        let pid = self.by_hand(&["display-message", "-p", "-t", pane.as_str(), "#{pane_pid}"]);
        // The program of a pane that this test made, named by the server that still has it.
        let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        true
    }

    fn restart_with(&self, name: &str) {
        self.by_hand(&["kill-server"]);
        // Until nobody listens any more: a server that still ends would take the next request with it.
        common::until("the server's end", || {
            matches!(self.0.tmux.snapshot(Scope::Everything), Snapshot::NotServed(_)).then_some(())
        });
        self.session_by_hand(name);
    }

    fn runs(&self, pid: u32) -> Option<bool> {
        Some(std::path::Path::new(&format!("/proc/{pid}")).exists())
    }
}

fn put_through(check: &Check) {
    let hands = Hands(Lab::new());
    (check.1)(&hands);
    assert!(hands.0.dir.path().as_os_str().as_bytes().len() < 90);
    let stray = hands.0.path("x");
    assert!(!stray.exists(), "a format in a path was executed");
}

macro_rules! checks {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            put_through(CHECKS.iter().find(|(name, _)| *name == stringify!($name)).unwrap());
        })*

        #[test]
        fn every_check_has_a_test_here() {
            let here = [$(stringify!($name)),*];
            let all: Vec<_> = CHECKS.iter().map(|(name, _)| *name).collect();
            assert_eq!(here.as_slice(), all.as_slice());
        }
    };
}

checks! {
    nothing_is_served_before_the_first_create
    a_created_session_reads_back_with_its_tags
    a_window_in_our_session_has_its_own_tags
    foreign_and_untagged_objects_are_seen_as_such
    inherited_tags_are_nobodys
    names_are_exact
    a_renamed_session_keeps_its_tags
    a_split_is_not_tagged
    a_dead_pane_is_listed_as_dead
    many_panes_are_all_listed
    what_a_pane_shows_is_captured
    a_plan_leads_in_moves_or_refuses
    the_backend_is_usable
    unsafe_requests_are_refused_unasked
    a_name_is_given_once
    only_a_session_of_ours_gets_a_window
    a_kill_reaches_its_scope_only
    a_kill_needs_the_token_at_that_moment
    a_kill_of_what_is_gone_hits_nobody
    a_kill_does_not_reach_another_server
    a_kill_goes_no_wider_than_its_proof
    pasted_bytes_arrive_exactly
    nothing_is_pasted_where_nobody_reads
    enter_is_pressed
    a_pane_is_piped_to_a_sink_of_any_name
}
