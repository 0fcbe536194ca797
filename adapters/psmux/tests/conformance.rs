//! Real psmux, under Wine, through the suite that every backend goes through.

mod common;

use common::Lab;
use loopmux_mux::conformance::{CHECKS, Check, Harness};
use loopmux_mux::*;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

struct Hands(Lab);

impl Hands {
    fn by_hand(&self, args: &[&str]) -> String {
        self.0.said(args)
    }

    /// The file of the recorder in a pane: named by what its environment has.
    fn file(&self, kind: &str, pane: &PaneId) -> PathBuf {
        let row = self.0.answered().pane(pane).cloned().unwrap_or_else(|| panic!("{pane} is listed"));
        self.0.path(&format!("{kind}-{}-{}", row.session_name, own(pane.as_str()).trim_start_matches('%')))
    }

    fn target(pane: &PaneId) -> String {
        let (session, own) = pane.as_str().split_once(':').unwrap();
        format!("{session}:.{own}")
    }

    fn row(&self, pane: &PaneId) -> PaneRow {
        self.0.answered().pane(pane).cloned().unwrap_or_else(|| panic!("{pane} is listed"))
    }
}

/// A window's or pane's id without its session's.
fn own(id: &str) -> &str {
    id.split_once(':').unwrap().1
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
        &self.0.psmux
    }

    fn directory(&self) -> PathBuf {
        self.0.windows("").into()
    }

    fn idle(&self) -> Vec<OsString> {
        self.0.pane(&["idle"])
    }

    fn recorder(&self) -> Vec<OsString> {
        self.0.pane(&["record", &self.0.windows("")])
    }

    fn recorder_is_ready(&self, pane: &PaneId) {
        let file = self.file("says", pane);
        common::until("the recorder", || file.exists().then_some(()));
    }

    fn recorded(&self, pane: &PaneId) -> Vec<u8> {
        std::fs::read(self.file("reads", pane)).unwrap_or_default()
    }

    fn print(&self, pane: &PaneId, line: &str) {
        let mut file = std::fs::OpenOptions::new().append(true).open(self.file("says", pane)).unwrap();
        write!(file, "{line}\r\n").unwrap();
    }

    fn sink(&self) -> Vec<OsString> {
        self.0.pane(&["idle"])
    }

    fn sunk(&self) -> Vec<u8> {
        unreachable!("psmux pipes to nobody")
    }

    fn session_by_hand(&self, name: &str) -> SessionId {
        let pane = self.0.windows("pane.exe");
        let made = ["new-session", "-d", "-P", "-F", "#{session_id}", "-s", name, "--", &pane, "idle"];
        SessionId::from_backend(self.by_hand(&made))
    }

    fn rename_by_hand(&self, session: &SessionId, name: &str) {
        self.by_hand(&["rename-session", "-t", session.as_str(), name]);
    }

    fn split_by_hand(&self, pane: &PaneId) -> PaneId {
        let (target, program) = (Self::target(pane), self.0.windows("pane.exe"));
        let split = ["split-window", "-d", "-P", "-F", "#{pane_id}", "-t", &target, "--", &program, "idle"];
        let own = self.by_hand(&split);
        let session = self.row(pane).session;
        PaneId::from_backend(format!("{session}:{own}"))
    }

    fn tag_globally(&self, at: TagScope, tags: &Tags) {
        // As widely as it goes: psmux has a server for each session.
        let sessions: std::collections::BTreeSet<_> =
            self.0.answered().panes.into_iter().map(|row| row.session).collect();
        for session in sessions {
            for (key, value) in keys(at, tags) {
                self.by_hand(&["-t", &format!("{session}:"), "set-option", "-g", &key, &value]);
                self.by_hand(&["-t", &format!("{session}:"), "set-option", &key, &value]);
            }
        }
    }

    fn retag(&self, pane: &PaneId, at: TagScope, tags: Option<&Tags>) {
        let row = self.row(pane);
        let own_id = match at {
            TagScope::Session => row.session.as_str(),
            TagScope::Window => own(row.window.as_str()),
            TagScope::Pane => own(row.pane.as_str()),
        };
        let mut all = keys(at, tags.unwrap_or(&common::tags(0))).to_vec();
        let seal = tags.map(|tags| format!("{own_id}:{}", tags.token)).unwrap_or_default();
        all.push((all[0].0.replace("_token", "_seal"), seal));
        for (key, value) in &all {
            let target =
                if at == TagScope::Session { format!("{}:", row.session) } else { Self::target(pane) };
            let mut args = vec!["set-option", "-t", &target];
            if at != TagScope::Session {
                args.push("-p");
            }
            match tags {
                None => args.extend(["-u", key]),
                Some(_) => args.extend([key.as_str(), value]),
            }
            self.by_hand(&args);
        }
    }

    fn end_and_keep(&self, pane: &PaneId) -> bool {
        self.by_hand(&["set-option", "-p", "-t", &Self::target(pane), "remain-on-exit", "on"]);
        // A process of this lab's own machine, which nothing else is in.
        let pid = self.row(pane).pane_pid.expect("a pid").to_string();
        let ended = std::process::Command::new("wine")
            .args(["taskkill", "/F", "/PID", &pid])
            .env("WINEPREFIX", self.0.path("prefix"))
            .env("WINEDEBUG", "-all")
            .output()
            .unwrap();
        assert!(ended.status.success(), "{ended:?}");
        true
    }

    fn restart_with(&self, name: &str) {
        self.by_hand(&["kill-server"]);
        common::until("the servers' end", || {
            matches!(self.0.psmux.snapshot(Scope::Everything), Snapshot::NotServed(_)).then_some(())
        });
        self.session_by_hand(name);
    }

    fn runs(&self, _pid: u32) -> Option<bool> {
        // The pids are of another system.
        None
    }

    fn many(&self) -> u32 {
        // Each is a server, and its client gives one up that has no window after 15 seconds.
        10
    }

    fn windows_keep_their_tags(&self) -> bool {
        false
    }

    fn a_server_for_each_session(&self) -> bool {
        true
    }
}

#[allow(clippy::print_stderr, reason = "says what was not tried")]
fn put_through(check: &Check) {
    let Some(tools) = common::tools() else {
        eprintln!("not tried: {} names no directory with psmux", common::VARIABLE);
        return;
    };
    (check.1)(&Hands(Lab::new(&tools)));
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
