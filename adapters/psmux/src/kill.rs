//! Ending an object that is still ours at that moment.
//!
//! The server that has the session judges the condition and then acts, on one connection, so no other server can be
//! hit. Between the two it serves other connections: what is tagged anew in that instant is still killed. The window
//! for that is inside one process, and the object, by its id, is the one that was ours.

use crate::Psmux;
use crate::argv::{List, choose};
use crate::ids::pane_target;
use crate::tags;
use loopmux_mux::{KillReply, KillScope, Owned, ReplyClass, TagScope, Trouble};

const DONE: &str = "loopmux-done\t#{pid}";
const NOT_OURS: &str = "loopmux-refused\t#{pid}\t#{session_id}\t#{window_id}\t#{pane_id}\t#{pane_dead}";

/// What says that the condition held.
pub(crate) fn done() -> List {
    List::new().then(["display-message", "-p", DONE])
}

/// What says that it did not, and what was found.
pub(crate) fn not_ours() -> List {
    List::new().then(["display-message", "-p", NOT_OURS])
}

/// What a guarded list printed.
pub(crate) enum Verdict {
    Done,
    /// What the server found instead.
    Refused(String),
    Neither,
}

pub(crate) fn read(stdout: &str, server_pid: u32) -> Verdict {
    for line in stdout.lines() {
        if let Some(pid) = line.strip_prefix("loopmux-done\t") {
            return if pid.parse() == Ok(server_pid) { Verdict::Done } else { Verdict::Neither };
        }
        if let Some(found) = line.strip_prefix("loopmux-refused\t") {
            let found: Vec<&str> = found.split('\t').collect();
            let [pid, session, window, pane, dead] = found[..] else { return Verdict::Neither };
            let dead = if dead == "1" { ", whose program has ended" } else { "" };
            return Verdict::Refused(format!(
                "server {pid} found session {session}, window {window}, pane {pane}{dead}"
            ));
        }
    }
    Verdict::Neither
}

/// Whether it is certain that the request reached no server, or that the server did nothing with it.
pub(crate) fn nothing_was_done(class: ReplyClass) -> bool {
    matches!(class, ReplyClass::Absent | ReplyClass::NoListener | ReplyClass::Denied)
}

/// Whether a target's server answers.
pub(crate) enum Reach {
    Answers,
    /// The request reached no server that has it, or one that refuses.
    Nobody(Trouble),
    Unknown(Trouble),
}

impl Psmux {
    /// Asks a target's server who it is, before it is told to do anything: one that does not answer now would do it
    /// long after nobody wants it any more, and a condition to a server that is gone comes back as silence.
    pub(crate) fn reach(&self, query: &str, target: &str) -> Reach {
        match self.ask(query, &self.client_at(target, &not_ours())) {
            Ok(heard) if matches!(read(&heard.stdout, 0), Verdict::Refused(_)) => Reach::Answers,
            Ok(heard) if nothing_was_done(heard.class) => Reach::Nobody(self.trouble(query, &heard)),
            Ok(heard) => Reach::Unknown(self.trouble(query, &heard)),
            Err(trouble) => Reach::Unknown(trouble),
        }
    }

    pub(crate) fn kill_if_ours(&self, owned: &Owned, scope: KillScope) -> KillReply {
        let place = match tags::place(owned) {
            Ok(place) => place,
            Err(said) => return KillReply::Refused(said),
        };
        let (query, at, kill) = match scope {
            KillScope::Pane => {
                let target = pane_target("", place.pane);
                ("kill-pane", TagScope::Pane, vec!["kill-pane".to_owned(), "-t".to_owned(), target])
            }
            KillScope::Window => {
                let target = format!(":{}", place.window);
                ("kill-window", TagScope::Window, vec!["kill-window".to_owned(), "-t".to_owned(), target])
            }
            // Without a name: the server's own session. With one it would be looked up in the data directory.
            KillScope::Session => ("kill-session", TagScope::Session, vec!["kill-session".to_owned()]),
        };
        if owned.at() != at {
            return KillReply::Refused(format!(
                "the token was seen at the {:?}, not at the {at:?}",
                owned.at()
            ));
        }
        match self.reach(query, &place.target(at)) {
            Reach::Answers => {}
            Reach::Nobody(trouble) => return KillReply::Refused(trouble.said),
            Reach::Unknown(trouble) => return KillReply::Unknown(trouble),
        }
        // The word comes first, since the server may end with what is killed.
        let list = choose(&place.conditions(owned), &self.with_word(List::new().then(kill)), &not_ours());
        let client = match scope {
            KillScope::Session => match self.client_by_port(place.session, &list) {
                Some(client) => client,
                None => {
                    let session = place.session;
                    return KillReply::Refused(format!("no file of the data directory leads to {session}"));
                }
            },
            KillScope::Pane | KillScope::Window => self.client_at(&place.target(at), &list),
        };
        let heard = match self.ask(query, &client.deadline(self.act)) {
            Ok(heard) => heard,
            Err(trouble) => return KillReply::Unknown(trouble),
        };
        match read(&heard.stdout, owned.server_pid()) {
            Verdict::Done => KillReply::Done,
            Verdict::Refused(found) => KillReply::Refused(found),
            Verdict::Neither if nothing_was_done(heard.class) => KillReply::Refused(heard.reply.said()),
            Verdict::Neither => KillReply::Unknown(self.trouble(query, &heard)),
        }
    }
}
