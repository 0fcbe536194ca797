//! Creating a window, tagging it, and reading back where the tags went.
//!
//! A new session is made, tagged and read back by one execution of the client: the commands behind the first go to the
//! new server. A window in a session of ours is made under a condition, by a server that prints its ids, and tagged by
//! those ids in a second execution. The keeper in it starts nothing that an untagged window would endanger.

use crate::argv::{List, choose};
use crate::ids::{pane_target, parts};
use crate::kill::{Reach, Verdict, not_ours, nothing_was_done, read};
use crate::snapshot::{Row, parse_row, row_format};
use crate::{Heard, Psmux, endpoint, tags};
use loopmux_mux::spawn::{Invocation, InvokeError};
use loopmux_mux::{
    CreateError, CreateSpec, Created, Owned, PaneRow, Placement, ReplyClass, TagScope, Tags, Trouble,
};

/// The most that one request may hold, in bytes: a command line of Windows has 32,767 characters.
const LONGEST_REQUEST: usize = 30_000;

/// What psmux gives to a shell in place of the program when a window is made in a session that is there.
const FOR_THE_SHELL: [char; 10] = ['$', '%', ';', '&', '|', '<', '>', '(', ')', '`'];

/// Names that Windows keeps for devices: a file of such a name is none, and psmux keeps a file for each session.
const DEVICES: [&str; 4] = ["con", "nul", "aux", "prn"];

impl Psmux {
    pub(crate) fn create_window(&self, spec: &CreateSpec) -> Result<Created, CreateError> {
        let query = match spec.placement {
            Placement::NewSession { .. } => "new-session",
            Placement::InSession(_) => "new-window",
        };
        let refused = |said| CreateError::Refused(self.unasked(query, said));
        let words = check(spec).map_err(refused)?;
        if let Some(limit) = self.limit(spec) {
            return Err(refused(limit));
        }
        match &spec.placement {
            Placement::NewSession { name, tags, size } => {
                endpoint::prepare(&self.data).map_err(|e| {
                    refused(format!("the data directory {} cannot be made: {e}", self.data.display()))
                })?;
                let (columns, rows) = (size.0.to_string(), size.1.to_string());
                let head = ["new-session", "-d", "-P", "-F", &self.made_format(), "-s", name.as_str()];
                let make = head.into_iter().chain(["-x", &columns, "-y", &rows]).map(str::to_owned);
                let make = List::new().then(make.chain(window_words(spec, &words)));
                let tag = || tag_the_active(tags, &spec.tags).then(["display-message", "-p", &row_format()]);
                self.make_session(spec, &if self.old { make } else { make.and(tag()) })
            }
            Placement::InSession(owned) => self.make_in(spec, owned, &words),
        }
    }

    fn make_session(&self, spec: &CreateSpec, list: &List) -> Result<Created, CreateError> {
        const QUERY: &str = "new-session";
        let heard = self.execute(QUERY, &self.client(list))?;
        let rows = self.made_rows(&heard);
        let Some(made) = rows.first() else {
            let trouble = self.trouble(QUERY, &heard);
            return Err(if is_certainly_not_made(&heard) {
                CreateError::Refused(trouble)
            } else {
                CreateError::MayAppear(trouble)
            });
        };
        let tagged = match rows.get(1) {
            Some(landed) if is_tagged(&made.row, &landed.row, spec) => true,
            _ => self.tag_by_ids(spec, &made.row)?,
        };
        Ok(created(made, tagged))
    }

    fn make_in(&self, spec: &CreateSpec, owned: &Owned, words: &[String]) -> Result<Created, CreateError> {
        const QUERY: &str = "new-window";
        let refused = |said| CreateError::Refused(self.unasked(QUERY, said));
        let odd = |word: &&String| word.is_empty() || word.contains(FOR_THE_SHELL);
        if let Some(word) = words.iter().find(odd) {
            return Err(refused(format!("psmux would give the word {word:?} to a shell")));
        }
        let place = tags::place(owned).map_err(refused)?;
        if owned.at() != TagScope::Session {
            return Err(refused("the token was not seen at the session itself".to_owned()));
        }
        let make = ["new-window", "-d", "-P", "-F", &row_format()].map(str::to_owned);
        let make = List::new().then(make.into_iter().chain(window_words(spec, words)));
        match self.reach(QUERY, &place.target(TagScope::Session)) {
            Reach::Answers => {}
            Reach::Nobody(trouble) | Reach::Unknown(trouble) => return Err(CreateError::Refused(trouble)),
        }
        let list = choose(&place.conditions(owned), &make, &not_ours());
        // The session alone: a pane would be taken for where the new window goes.
        let heard = self.execute(QUERY, &self.client_at(&format!("{}:", place.session), &list))?;
        let Some(made) = heard.stdout.lines().find_map(parse_row) else {
            if let Verdict::Refused(found) = read(&heard.stdout, owned.server_pid()) {
                let said = format!("the session is no longer the one that was seen: {found}");
                return Err(refused(said));
            }
            let trouble = self.trouble(QUERY, &heard);
            return Err(if nothing_was_done(heard.class) {
                CreateError::Refused(trouble)
            } else {
                CreateError::MayAppear(trouble)
            });
        };
        let tagged = self.tag_by_ids(spec, &made.row)?;
        Ok(created(&made, tagged))
    }

    fn execute(&self, query: &str, client: &Invocation) -> Result<Heard, CreateError> {
        let client = client.clone().deadline(self.act);
        let size: usize = client.arguments().iter().map(|word| word.len() + 3).sum();
        if size > LONGEST_REQUEST {
            let said = format!("a request of {size} bytes, at most {LONGEST_REQUEST} can be passed on");
            return Err(CreateError::Refused(self.unasked(query, said)));
        }
        match client.run() {
            Ok(reply) => Ok(Self::heard(query, reply)),
            Err(e @ InvokeError::NotStarted(_)) => {
                Err(CreateError::Refused(self.unasked(query, e.to_string())))
            }
            Err(e) => Err(CreateError::MayAppear(self.unasked(query, e.to_string()))),
        }
    }

    fn unasked(&self, query: &str, said: String) -> Trouble {
        Trouble { class: ReplyClass::Failed, tried: self.tried(query), said }
    }

    /// Tags the window by its ids, and reads it back from the same server. Whether the tags are there.
    ///
    /// # Errors
    /// The window is gone, or nobody can tell.
    fn tag_by_ids(&self, spec: &CreateSpec, made: &PaneRow) -> Result<bool, CreateError> {
        const QUERY: &str = "set-option";
        let session = made.session.as_str();
        let window = parts('@', made.window.as_str()).map_or("", |(_, own)| own);
        let pane = parts('%', made.pane.as_str()).map_or("", |(_, own)| own);
        let inside = pane_target("", pane);
        // `set-option` is led to a session by its own target only, so another command goes first.
        let row = row_format();
        let shown = if self.old { pane_target(session, pane) } else { inside.clone() };
        let show = || List::new().then(["display-message", "-p", "-t", &shown, &row]);
        let of_session = match &spec.placement {
            Placement::NewSession { tags, .. } => Some((TagScope::Session, ":", session, tags)),
            Placement::InSession(_) => None,
        };
        let all = of_session.into_iter().chain([
            (TagScope::Window, &*inside, window, &spec.tags),
            (TagScope::Pane, &inside, pane, &spec.tags),
        ]);
        let (first, rows_before) = if self.old { (List::new(), 0) } else { (show(), 1) };
        let list = all.fold(first, |list, (at, target, own, tags)| {
            list.and(match self.old {
                true => tags::set_at_session(at, &format!("{session}:"), own, tags),
                false => tags::set(at, target, own, tags),
            })
        });
        let heard = self
            .say(QUERY, &pane_target(session, pane), &list.and(show()))
            .map_err(CreateError::MayAppear)?;
        match heard.stdout.lines().filter_map(parse_row).nth(rows_before) {
            Some(landed) => Ok(is_tagged(made, &landed.row, spec)),
            None => Err(CreateError::MayAppear(self.trouble(QUERY, &heard))),
        }
    }
}

/// Everything behind the command's own flags: name, directory and program.
fn window_words(spec: &CreateSpec, words: &[String]) -> impl Iterator<Item = String> {
    let cwd = spec.cwd.to_string_lossy().into_owned();
    ["-n".to_owned(), spec.window.to_string(), "-c".to_owned(), cwd, "--".to_owned()]
        .into_iter()
        .chain(words.to_vec())
}

/// Tags what is active in a session that was made a moment ago, whose ids nobody knows yet.
fn tag_the_active(session: &Tags, window: &Tags) -> List {
    List::new()
        .and(tags::set_active(TagScope::Session, session))
        .and(tags::set_active(TagScope::Window, window))
        .and(tags::set_active(TagScope::Pane, window))
}

fn created(made: &Row, tagged: bool) -> Created {
    Created {
        server_pid: made.row.server_pid,
        version: made.version.clone(),
        session: made.row.session.clone(),
        window: made.row.window.clone(),
        pane: made.row.pane.clone(),
        pane_pid: made.row.pane_pid,
        tagged,
    }
}

/// Whether it is the pane that was made, on the server that made it, with exactly the tags that were asked for.
fn is_tagged(made: &PaneRow, landed: &PaneRow, spec: &CreateSpec) -> bool {
    let session_is_tagged = match &spec.placement {
        Placement::NewSession { tags, .. } => landed.session_tags.as_ref() == Some(tags),
        Placement::InSession(_) => true,
    };
    landed.server_pid == made.server_pid
        && landed.pane == made.pane
        && session_is_tagged
        && landed.window_tags.as_ref() == Some(&spec.tags)
        && landed.pane_tags.as_ref() == Some(&spec.tags)
}

/// Whether the client says that it did not even start a server. One that was started and did not answer in time may
/// still come.
fn is_certainly_not_made(heard: &Heard) -> bool {
    let failed = matches!(heard.reply.code, Some(code) if code != 0);
    let stderr = heard.reply.err();
    let first = stderr.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    failed && !heard.reply.timed_out && first.starts_with("duplicate session: ")
}

/// What no server needs to be asked for. The words of the program, as text.
fn check(spec: &CreateSpec) -> Result<Vec<String>, String> {
    spec.tags.check().map_err(|e| e.to_string())?;
    if spec.command.len() < 2 {
        return Err("a window's command needs two words at least: psmux gives one to a shell".to_owned());
    }
    let mut words = Vec::new();
    for word in &spec.command {
        let text = word.to_str().ok_or_else(|| format!("the word {word:?} is no Unicode text"))?;
        if matches!(text, ";" | "\\;") || text.contains(['\n', '\r', '\0']) {
            return Err(format!("psmux would not pass on the word {text:?} as it is"));
        }
        words.push(text.to_owned());
    }
    match &spec.placement {
        Placement::NewSession { name, tags, size } => {
            tags.check().map_err(|e| e.to_string())?;
            if size.0 == 0 || size.1 == 0 {
                return Err(format!("a window of {} by {} cells", size.0, size.1));
            }
            if name.as_str().contains("__") {
                return Err(format!("psmux takes what is before the `__` in {name} for another namespace"));
            }
            if is_device(name.as_str()) {
                return Err(format!("Windows keeps the name {name} for a device"));
            }
            Ok(words)
        }
        Placement::InSession(owned) => tags::place(owned).map(|_| words),
    }
}

fn is_device(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let numbered = |kind: &str| {
        name.strip_prefix(kind).is_some_and(|n| n.len() == 1 && n.bytes().all(|b| b.is_ascii_digit()))
    };
    DEVICES.contains(&name.as_str()) || numbered("com") || numbered("lpt")
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopmux_mux::SessionName;

    fn spec(name: &str, words: &[&str]) -> CreateSpec {
        let (token, key) = ("0".repeat(32), "0".repeat(16));
        let tags = Tags { token, project: key.clone(), run: "ctl".to_owned(), state: key };
        CreateSpec {
            placement: Placement::NewSession {
                name: SessionName::new(name).unwrap(),
                tags: tags.clone(),
                size: (80, 24),
            },
            window: SessionName::new("w").unwrap(),
            tags,
            command: words.iter().map(Into::into).collect(),
            cwd: std::env::temp_dir(),
        }
    }

    #[test]
    fn what_psmux_would_read_otherwise_is_refused_unasked() {
        assert!(check(&spec("one", &["a.exe", "b c", "d;", ""])).is_ok());
        for name in ["a__b", "__warm__", "con", "NUL", "com1", "lpt9"] {
            assert!(check(&spec(name, &["a", "b"])).is_err(), "{name}");
        }
        for word in [";", "\\;", "a\nb"] {
            assert!(check(&spec("one", &["a", word])).is_err(), "{word:?}");
        }
        assert!(check(&spec("one", &["a"])).is_err());
        assert!(check(&spec("com10", &["a", "b"])).is_ok());
    }
}
