//! Ending an object that is still ours at that moment.

use crate::Tmux;
use crate::argv::{Script, Verb, all_of};
use crate::create::check_owned;
use crate::tags;
use loopmux_mux::{KillReply, KillScope, Owned, ReplyClass, TagScope};
use std::ffi::OsString;

const DONE: &str = "loopmux-done\t#{pid}";
const NOT_OURS: &str = "loopmux-refused\t#{pid}\t#{session_id}\t#{window_id}\t#{pane_id}\t#{pane_dead}";

/// `then` if the owned object is there as it was seen, under `more` conditions; a refusal otherwise. An object that
/// is gone makes tmux judge another one, whose id the condition does not have.
pub(crate) fn guarded(owned: &Owned, more: &[String], then: Script) -> Script {
    let mut condition = tags::condition(owned);
    condition.extend_from_slice(more);
    let then = then.then(Verb::Display, ["-p", DONE]);
    choose(&tags::target(owned), &condition, then)
}

/// `then` if all of `condition` holds for `target`, a refusal otherwise.
pub(crate) fn choose(target: &str, condition: &[String], then: Script) -> Script {
    let refuse = Script::new().then(Verb::Display, ["-p", NOT_OURS]);
    let words: [OsString; 6] =
        ["-F".into(), "-t".into(), target.into(), all_of(condition).into(), then.text(), refuse.text()];
    Script::new().then(Verb::If, words)
}

/// What a guarded script printed.
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

impl Tmux {
    pub(crate) fn kill_if_ours(&self, owned: &Owned, scope: KillScope) -> KillReply {
        if let Err(said) = check_owned(owned) {
            return KillReply::Refused(said);
        }
        let (verb, at) = match scope {
            KillScope::Pane => (Verb::KillPane, TagScope::Pane),
            KillScope::Window => (Verb::KillWindow, TagScope::Window),
            KillScope::Session => (Verb::KillSession, TagScope::Session),
        };
        if owned.at() != at {
            return KillReply::Refused(format!(
                "the token was seen at the {:?}, not at the {at:?}",
                owned.at()
            ));
        }
        let script = guarded(owned, &[], Script::new().then(verb, ["-t", tags::object(owned)]));
        let heard = match self.ask(verb, &self.client(&script).deadline(self.act)) {
            Ok(heard) => heard,
            Err(trouble) => return KillReply::Unknown(trouble),
        };
        match read(&heard.stdout, owned.server_pid()) {
            Verdict::Done => KillReply::Done,
            Verdict::Refused(found) => KillReply::Refused(found),
            // The condition may have held, and the object may have gone before the command came to it.
            Verdict::Neither if heard.class == ReplyClass::Absent => KillReply::Refused(heard.reply.said()),
            Verdict::Neither => KillReply::Unknown(self.trouble(verb, &heard)),
        }
    }
}
