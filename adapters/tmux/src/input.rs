//! Panes: pasting into them, piping out of them, looking at them.

use crate::Tmux;
use crate::argv::{Script, Verb, is};
use crate::create::check_owned;
use crate::kill::{Verdict, choose, guarded, read};
use crate::tags::is_id;
use loopmux_mux::{Delivery, Owned, PaneId, ReplyClass, TagScope, Trouble};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::atomic::{AtomicU64, Ordering};

/// Pasting into a pane whose program is gone ends the whole server, up to 3.3a.
fn alive() -> Vec<String> {
    vec![is("pane_dead", 0)]
}

impl Tmux {
    pub(crate) fn paste_into(&self, owned: &Owned, bytes: &[u8]) -> Delivery {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let buffer = format!("loopmux-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let pane = owned.pane().as_str();
        if bytes.is_empty() {
            // tmux makes no buffer of nothing; whether the pane could take text is still asked.
            return self.deliver(Verb::PasteBuffer, owned, Script::new(), Script::new(), None);
        }
        // Bracketed if the program asked for it, line feeds as they are, and the buffer is gone afterwards.
        let paste = Script::new().then(Verb::PasteBuffer, ["-p", "-r", "-d", "-b", &buffer, "-t", pane]);
        let load = Script::new().then(Verb::LoadBuffer, ["-b", &buffer, "-"]);
        let delivery = self.deliver(Verb::PasteBuffer, owned, load, paste, Some(bytes));
        if matches!(delivery, Delivery::NotDelivered(_)) {
            // What was not pasted stays in the server, for everybody to read. What may still be pasted goes with it.
            let forget = Script::new().then(Verb::DeleteBuffer, ["-b", &buffer]);
            let _ = self.client(&forget).run();
        }
        delivery
    }

    pub(crate) fn press_enter(&self, owned: &Owned) -> Delivery {
        let pane = owned.pane().as_str();
        // A pane that a person scrolls back in takes the key for itself.
        let leave = Script::new().then(Verb::CopyMode, ["-q", "-t", pane]);
        let press = leave.then(Verb::SendKeys, ["-t", pane, "Enter"]);
        self.deliver(Verb::SendKeys, owned, Script::new(), press, None)
    }

    fn deliver(
        &self,
        verb: Verb,
        owned: &Owned,
        first: Script,
        act: Script,
        stdin: Option<&[u8]>,
    ) -> Delivery {
        let refuse = |class, said| Delivery::NotDelivered(Trouble { class, tried: self.tried(verb), said });
        if let Err(said) = check_owned(owned) {
            return refuse(ReplyClass::Failed, said);
        }
        if owned.at() != TagScope::Pane {
            let said = "the token was not seen at the pane itself".to_owned();
            return refuse(ReplyClass::Failed, said);
        }
        let client = self.client(&first.and(guarded(owned, &alive(), act))).deadline(self.act);
        let client = match stdin {
            Some(bytes) => client.stdin(bytes),
            None => client,
        };
        let heard = match self.ask(verb, &client) {
            Ok(heard) => heard,
            Err(trouble) => return Delivery::Unknown(trouble),
        };
        match read(&heard.stdout, owned.server_pid()) {
            Verdict::Done => Delivery::Delivered,
            Verdict::Refused(found) => {
                refuse(ReplyClass::Absent, format!("no live pane of ours there: {found}"))
            }
            Verdict::Neither => {
                let trouble = self.trouble(verb, &heard);
                match heard.class {
                    ReplyClass::NoListener | ReplyClass::NoSocket | ReplyClass::Absent => {
                        Delivery::NotDelivered(trouble)
                    }
                    _ => Delivery::Unknown(trouble),
                }
            }
        }
    }

    pub(crate) fn pipe_pane(
        &self,
        server_pid: u32,
        pane: &PaneId,
        words: Option<&[OsString]>,
    ) -> Result<(), Trouble> {
        let trouble = |class, said: String| Trouble { class, tried: self.tried(Verb::Pipe), said };
        let pane = pane.as_str();
        if !is_id('%', pane) {
            return Err(trouble(ReplyClass::Failed, format!("{pane:?} is no pane of tmux")));
        }
        let mut args = vec![OsString::from("-t"), pane.into()];
        args.extend(words.map(shell_line));
        let act = Script::new()
            .then(Verb::Pipe, args)
            .then(Verb::Display, ["-p", "-t", pane, "loopmux-pipe\t#{pid}\t#{pane_pipe}"]);
        let condition = [is("pid", server_pid)];
        let client = self.client(&choose(pane, &condition, act)).deadline(self.act);
        let heard = self.ask(Verb::Pipe, &client)?;
        let piped = format!("loopmux-pipe\t{server_pid}\t{}", u8::from(words.is_some()));
        if heard.stdout.lines().any(|line| line == piped) {
            return Ok(());
        }
        match read(&heard.stdout, server_pid) {
            Verdict::Refused(found) => Err(trouble(ReplyClass::Absent, format!("not that pane: {found}"))),
            _ => Err(self.trouble(Verb::Pipe, &heard)),
        }
    }

    pub(crate) fn visible_text(&self, pane: &PaneId) -> Result<String, Trouble> {
        let id = pane.as_str();
        if !is_id('%', id) {
            let said = format!("{id:?} is no pane of tmux");
            return Err(Trouble { class: ReplyClass::Failed, tried: self.tried(Verb::Capture), said });
        }
        let script = Script::new()
            .then(Verb::Capture, ["-p", "-t", id])
            .then(Verb::Display, ["-p", "-t", id, "loopmux-end\t#{pane_id}"]);
        let heard = self.ask(Verb::Capture, &self.client(&script))?;
        let end = format!("loopmux-end\t{id}\n");
        match heard.stdout.strip_suffix(&end) {
            Some(text) if heard.class == ReplyClass::Answered => Ok(text.to_owned()),
            _ => Err(self.trouble(Verb::Capture, &heard)),
        }
    }
}

/// The line that tmux gives to a shell, so that the shell executes exactly `words`: quoted for the shell, and then
/// for tmux, which expands the line as a format of its own and of the calendar.
fn shell_line(words: &[OsString]) -> OsString {
    let mut line = Vec::from(&b"exec"[..]);
    for word in words {
        line.push(b' ');
        shell_quote(word, &mut line);
    }
    OsString::from_vec(line)
}

fn shell_quote(word: &OsStr, line: &mut Vec<u8>) {
    line.push(b'\'');
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => line.extend_from_slice(br"'\''"),
            // tmux reads several `#` before a `[` as they are; the empty quotes keep one from standing there.
            b'#' => line.extend_from_slice(b"##''"),
            b'%' => line.extend_from_slice(b"%%"),
            _ => line.push(byte),
        }
    }
    line.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_is_quoted_for_the_shell_and_for_formats() {
        let words = [OsString::from("/a'b #(touch x) %Y/sink"), OsString::from("#[x")];
        assert_eq!(shell_line(&words), r"exec '/a'\''b ##''(touch x) %%Y/sink' '##''[x'");
    }
}
