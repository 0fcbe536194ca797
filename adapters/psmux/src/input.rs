//! Panes: pasting into them, looking at them.

use crate::Psmux;
use crate::argv::{List, choose, is};
use crate::ids::{pane_target, parts};
use crate::kill::{Reach, Verdict, done, not_ours, nothing_was_done, read};
use crate::tags::place;
use loopmux_mux::{Delivery, Owned, PaneId, ReplyClass, TagScope, Trouble};
use std::sync::atomic::{AtomicU64, Ordering};

impl Psmux {
    pub(crate) fn paste_into(&self, owned: &Owned, bytes: &[u8]) -> Delivery {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        const QUERY: &str = "paste-buffer";
        let refuse =
            |class, said: String| Delivery::NotDelivered(Trouble { class, tried: self.tried(QUERY), said });
        if bytes.is_empty() {
            // psmux makes no buffer of nothing; whether the pane could take text is still asked.
            return self.deliver(QUERY, owned, List::new());
        }
        if std::str::from_utf8(bytes).is_err() {
            return refuse(ReplyClass::Failed, "psmux takes text in UTF-8 only".to_owned());
        }
        let here = match place(owned) {
            Ok(here) => here,
            Err(said) => return refuse(ReplyClass::Failed, said),
        };
        let buffer = format!("loopmux-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        // The buffer is made first: its text comes on standard input, which only a command of its own reads.
        let load = List::new().then(["load-buffer", "-b", &buffer, "-"]);
        let client = self.client_at(&format!("{}:", here.session), &load).stdin(bytes).deadline(self.act);
        match self.ask("load-buffer", &client) {
            Ok(heard) if heard.class == ReplyClass::Accepted => {}
            Ok(heard) => return Delivery::NotDelivered(self.trouble("load-buffer", &heard)),
            Err(trouble) => return Delivery::NotDelivered(trouble),
        }
        // Bracketed if the program asked for it, line feeds as they are, and the buffer is gone afterwards.
        let target = pane_target("", here.pane);
        let paste = List::new().then(["paste-buffer", "-p", "-r", "-d", "-b", &buffer, "-t", &target]);
        let delivery = self.deliver(QUERY, owned, paste);
        if matches!(delivery, Delivery::NotDelivered(_)) {
            // What was not pasted stays in the server, for everybody to read.
            let forget = List::new().then(["delete-buffer", "-b", &buffer]);
            let _ = self.client_at(&format!("{}:", here.session), &forget).run();
        }
        delivery
    }

    pub(crate) fn press_enter(&self, owned: &Owned) -> Delivery {
        let pane = parts('%', owned.pane().as_str()).map_or("", |(_, pane)| pane);
        let press = List::new().then(["send-keys", "-t", &pane_target("", pane), "Enter"]);
        self.deliver("send-keys", owned, press)
    }

    fn deliver(&self, query: &str, owned: &Owned, act: List) -> Delivery {
        let refuse = |class, said| Delivery::NotDelivered(Trouble { class, tried: self.tried(query), said });
        let here = match place(owned) {
            Ok(here) => here,
            Err(said) => return refuse(ReplyClass::Failed, said),
        };
        if owned.at() != TagScope::Pane {
            let said = "the token was not seen at the pane itself".to_owned();
            return refuse(ReplyClass::Failed, said);
        }
        let mut conditions = here.conditions(owned);
        conditions.push(is("pane_dead", 0));
        match self.reach(query, &here.target(TagScope::Pane)) {
            Reach::Answers => {}
            Reach::Nobody(trouble) | Reach::Unknown(trouble) => return Delivery::NotDelivered(trouble),
        }
        let list = choose(&conditions, &act.and(done()), &not_ours());
        let client = self.client_at(&here.target(TagScope::Pane), &list).deadline(self.act);
        let heard = match self.ask(query, &client) {
            Ok(heard) => heard,
            Err(trouble) => return Delivery::Unknown(trouble),
        };
        match read(&heard.stdout, owned.server_pid()) {
            Verdict::Done => Delivery::Delivered,
            Verdict::Refused(found) => {
                refuse(ReplyClass::Absent, format!("no live pane of ours there: {found}"))
            }
            Verdict::Neither => {
                let trouble = self.trouble(query, &heard);
                if nothing_was_done(heard.class) {
                    Delivery::NotDelivered(trouble)
                } else {
                    Delivery::Unknown(trouble)
                }
            }
        }
    }

    pub(crate) fn visible_text(&self, pane: &PaneId) -> Result<String, Trouble> {
        const QUERY: &str = "capture-pane";
        let Some((session, own)) = parts('%', pane.as_str()) else {
            let said = format!("{pane} is no pane of psmux");
            return Err(Trouble { class: ReplyClass::Failed, tried: self.tried(QUERY), said });
        };
        let inside = pane_target("", own);
        let capture = List::new().then(["capture-pane", "-p", "-t", &pane_target(session, own)]);
        if self.old {
            let heard = self.ask(QUERY, &self.client(&capture))?;
            return match heard.class {
                ReplyClass::Answered | ReplyClass::Empty => Ok(heard.stdout),
                _ => Err(self.trouble(QUERY, &heard)),
            };
        }
        let list =
            capture.then(["display-message", "-p", "-t", &inside, "loopmux-end\t#{session_id}:#{pane_id}"]);
        let heard = self.ask(QUERY, &self.client(&list))?;
        let text = heard.stdout.trim_end_matches(['\r', '\n']);
        match text.strip_suffix(&format!("loopmux-end\t{pane}")) {
            Some(text) if heard.class == ReplyClass::Answered => Ok(text.to_owned()),
            _ => Err(self.trouble(QUERY, &heard)),
        }
    }
}
