//! One look at a server.

use crate::argv::{Script, Verb};
use crate::{Heard, Tmux, tags};
use loopmux_mux::{
    Answered, HasSession, PaneId, PaneRow, ReplyClass, SessionId, SessionName, Snapshot, TagScope, Trouble,
    WindowId,
};

const SCOPES: [TagScope; 3] = [TagScope::Session, TagScope::Window, TagScope::Pane];
const FACTS: usize = 6;
const FIELDS: usize = FACTS + 3 * tags::VALUES + 2;

/// The first line of an answer: which server speaks, and its version.
pub(crate) const BEGIN: &str = "loopmux-begin\t#{pid}\t#{version}";
/// The last line: the same server said all of it.
pub(crate) const END: &str = "loopmux-end\t#{pid}";

pub(crate) fn begin() -> Script {
    Script::new().then(Verb::Display, ["-p", BEGIN])
}

pub(crate) fn end() -> Script {
    Script::new().then(Verb::Display, ["-p", END])
}

/// The server that began an answer: pid and version.
pub(crate) fn began(line: &str) -> Option<(u32, &str)> {
    let (pid, version) = line.strip_prefix("loopmux-begin\t")?.split_once('\t')?;
    Some((pid.parse().ok()?, version))
}

/// Whether `line` is the end marker of that server.
pub(crate) fn ended(line: &str, pid: u32) -> bool {
    line.strip_prefix("loopmux-end\t").is_some_and(|p| p.parse() == Ok(pid))
}

/// A row. What a person or a program can choose freely comes last; tmux itself turns a tab or a line break in
/// such a name into `\t` and `\n`, from 3.2a to 3.7 at least, and where it did not the row would not parse.
fn row_format() -> String {
    let facts = "#{session_id}\t#{window_id}\t#{pane_id}\t#{pane_pid}\t#{pane_dead}\t#{session_attached}";
    let [s, w, p] = SCOPES.map(tags::format);
    format!("{facts}\t{s}\t{w}\t{p}\t#{{session_name}}\t#{{window_name}}")
}

fn parse_row(line: &str, server_pid: u32) -> Option<PaneRow> {
    let fields: Vec<&str> = line.split('\t').collect();
    if fields.len() != FIELDS {
        return None;
    }
    let [session, window, pane, pane_pid, dead, attached] = fields[..FACTS] else { return None };
    if !tags::is_id('$', session) || !tags::is_id('@', window) || !tags::is_id('%', pane) {
        return None;
    }
    let dead = match dead {
        "0" | "" => false,
        "1" => true,
        _ => return None,
    };
    // A pane that is kept after its end has no pid in some versions.
    let pane_pid = if pane_pid.is_empty() { None } else { Some(pane_pid.parse().ok()?) };
    let own =
        |n: usize, id| tags::read(&fields[FACTS + n * tags::VALUES..FACTS + (n + 1) * tags::VALUES], id);
    Some(PaneRow {
        server_pid,
        session: SessionId::from_backend(session),
        window: WindowId::from_backend(window),
        pane: PaneId::from_backend(pane),
        pane_pid: pane_pid.filter(|pid| *pid != 0),
        dead,
        attached: attached.parse().ok()?,
        session_tags: own(0, session),
        window_tags: own(1, window),
        pane_tags: own(2, pane),
        session_name: fields[FIELDS - 2].to_owned(),
        window_name: fields[FIELDS - 1].to_owned(),
    })
}

/// What an answer's lines amount to.
enum Read {
    Complete(Answered),
    /// Which line could not be read.
    BadRow(String),
    NoEnd,
}

fn read(stdout: &str) -> Read {
    let mut lines = stdout.lines();
    let Some((server_pid, version)) = lines.next().and_then(began) else { return Read::NoEnd };
    let mut panes = Vec::new();
    let mut bad = None;
    let mut complete = false;
    for line in lines {
        if complete {
            return Read::NoEnd;
        } else if ended(line, server_pid) {
            complete = true;
        } else if let Some(row) = parse_row(line, server_pid) {
            panes.push(row);
        } else {
            bad.get_or_insert_with(|| line.to_owned());
        }
    }
    match (complete, bad) {
        (false, _) => Read::NoEnd,
        (true, Some(line)) => Read::BadRow(line),
        (true, None) => {
            Read::Complete(Answered { server_pid, version: version.to_owned(), panes, unlisted: Vec::new() })
        }
    }
}

impl Tmux {
    pub(crate) fn look_at_everything(&self) -> Snapshot {
        let list = Script::new().then(Verb::ListPanes, ["-a".to_owned(), "-F".to_owned(), row_format()]);
        let heard = match self.ask(Verb::ListPanes, &self.client(&begin().and(list).and(end()))) {
            Ok(heard) => heard,
            Err(trouble) => return Snapshot::Unknown(trouble),
        };
        match heard.class {
            ReplyClass::Answered if !heard.reply.truncated => match read(&heard.stdout) {
                Read::Complete(answered) => Snapshot::Answered(answered),
                Read::BadRow(line) => Snapshot::Unknown(Trouble {
                    class: ReplyClass::Partial,
                    tried: self.tried(Verb::ListPanes),
                    said: format!(
                        "a row that cannot be read: {:?}",
                        line.chars().take(200).collect::<String>()
                    ),
                }),
                Read::NoEnd => Snapshot::Unknown(self.no_end(&heard)),
            },
            ReplyClass::NoListener | ReplyClass::NoSocket => {
                Snapshot::NotServed(self.trouble(Verb::ListPanes, &heard))
            }
            ReplyClass::NoTarget => self.look_for_no_session(&heard),
            _ => Snapshot::Unknown(self.trouble(Verb::ListPanes, &heard)),
        }
    }

    /// Listing panes fails on a server without sessions, and drops the end marker. Listing sessions does not. A
    /// server that still reads its configuration has none either, and may have a request for one in its queue.
    fn look_for_no_session(&self, first: &Heard) -> Snapshot {
        let script = begin().and(Script::new().then(Verb::ListSessions, ["-F", "#{session_id}"])).and(end());
        match self.ask(Verb::ListSessions, &self.client(&script)) {
            Ok(heard) if heard.class == ReplyClass::Answered => match read(&heard.stdout) {
                Read::Complete(answered) => Snapshot::Answered(answered),
                // A session has come meanwhile.
                Read::BadRow(_) => Snapshot::Unknown(self.trouble(Verb::ListPanes, first)),
                Read::NoEnd => Snapshot::Unknown(self.no_end(&heard)),
            },
            Ok(heard) => match heard.class {
                ReplyClass::NoListener | ReplyClass::NoSocket => {
                    Snapshot::NotServed(self.trouble(Verb::ListSessions, &heard))
                }
                _ => Snapshot::Unknown(self.trouble(Verb::ListSessions, &heard)),
            },
            Err(trouble) => Snapshot::Unknown(trouble),
        }
    }

    fn no_end(&self, heard: &Heard) -> Trouble {
        let trouble = self.trouble(Verb::ListPanes, heard);
        Trouble {
            said: format!("an answer without the server's mark at both ends: {}", trouble.said),
            ..trouble
        }
    }

    pub(crate) fn look_for_session(&self, name: &SessionName) -> HasSession {
        let ask = Script::new().then(Verb::HasSession, ["-t".to_owned(), format!("={name}")]);
        let heard = match self.ask(Verb::HasSession, &self.client(&begin().and(ask).and(end()))) {
            Ok(heard) => heard,
            Err(trouble) => return HasSession::Unknown(trouble),
        };
        let mut lines = heard.stdout.lines();
        let server = lines.next().and_then(began).map(|(pid, _)| pid);
        match (heard.class, server, lines.next()) {
            (ReplyClass::ClaimsPresent, Some(server_pid), Some(line))
                if ended(line, server_pid) && lines.next().is_none() =>
            {
                HasSession::Present { server_pid }
            }
            // The begin marker came, so this server said it, and in the same command list.
            (ReplyClass::Absent, Some(server_pid), None) => HasSession::AbsentOn { server_pid },
            (ReplyClass::NoListener | ReplyClass::NoSocket, ..) => {
                HasSession::NotServed(self.trouble(Verb::HasSession, &heard))
            }
            _ => HasSession::Unknown(self.trouble(Verb::HasSession, &heard)),
        }
    }
}
