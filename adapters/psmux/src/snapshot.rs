//! One look at every server of a data directory.
//!
//! psmux's own listing of everything is one client that asks each server in turn, and leaves out what did not answer in
//! half a second. So every row says how many windows its session and how many panes its window has, and the registry
//! says which sessions there should be. What does not add up is unknown, and not absent.

use crate::argv::List;
use crate::ids::{is_id, pane, session, window};
use crate::{Psmux, registry, tags};
use loopmux_mux::{Answered, HasSession, PaneRow, ReplyClass, SessionName, Snapshot, TagScope, Trouble};
use std::collections::{BTreeMap, BTreeSet, HashMap};

const SCOPES: [TagScope; 3] = [TagScope::Session, TagScope::Window, TagScope::Pane];
const MARK: &str = "loopmux-row";
const FACTS: usize = 10;
const FIELDS: usize = 1 + FACTS + 3 * tags::VALUES + 2;

/// A row. What a person or a program can choose freely comes last.
pub(crate) fn row_format() -> String {
    let facts = [
        "pid",
        "version",
        "session_id",
        "window_id",
        "pane_id",
        "pane_pid",
        "pane_dead",
        "session_attached",
        "session_windows",
        "window_panes",
    ]
    .map(|name| format!("#{{{name}}}"))
    .join("\t");
    let [s, w, p] = SCOPES.map(tags::format);
    format!("{MARK}\t{facts}\t{s}\t{w}\t{p}\t#{{session_name}}\t#{{window_name}}")
}

/// A row, and what it says of the rows beside it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) row: PaneRow,
    pub(crate) version: String,
    windows: usize,
    panes: usize,
}

pub(crate) fn parse_row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.splitn(FIELDS, '\t').collect();
    if fields.len() != FIELDS || fields[0] != MARK {
        return None;
    }
    let [pid, version, sid, wid, pid_of_pane, pane_pid, dead, attached, windows, panes] = fields[1..=FACTS]
    else {
        return None;
    };
    if !is_id('$', sid) || !is_id('@', wid) || !is_id('%', pid_of_pane) || version.is_empty() {
        return None;
    }
    let dead = match dead {
        "0" | "" => false,
        "1" => true,
        _ => return None,
    };
    let pane_pid: Option<u32> = if pane_pid.is_empty() { None } else { Some(pane_pid.parse().ok()?) };
    let at = 1 + FACTS;
    let own = |n: usize, id| tags::read(&fields[at + n * tags::VALUES..at + (n + 1) * tags::VALUES], id);
    Some(Row {
        row: PaneRow {
            server_pid: pid.parse().ok().filter(|pid| *pid != 0)?,
            session: session(sid),
            window: window(sid, wid),
            pane: pane(sid, pid_of_pane),
            pane_pid: pane_pid.filter(|pid| *pid != 0),
            dead,
            attached: attached.parse().ok()?,
            session_tags: own(0, sid),
            window_tags: own(1, wid),
            pane_tags: own(2, pid_of_pane),
            session_name: fields[FIELDS - 2].to_owned(),
            window_name: fields[FIELDS - 1].to_owned(),
        },
        version: version.to_owned(),
        windows: windows.parse().ok()?,
        panes: panes.parse().ok()?,
    })
}

/// What a listing amounts to.
#[derive(Debug, Default)]
struct Read {
    whole: Vec<Row>,
    /// Sessions of which rows are missing, by name.
    partly: BTreeSet<String>,
    /// The first line that is no row.
    bad: Option<String>,
}

fn read(stdout: &str) -> Read {
    let mut read = Read::default();
    let mut sessions: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for line in stdout.lines() {
        match parse_row(line) {
            Some(row) => sessions.entry(row.row.session.to_string()).or_default().push(row),
            None => _ = read.bad.get_or_insert_with(|| line.chars().take(200).collect()),
        }
    }
    for rows in sessions.into_values() {
        if adds_up(&rows) {
            read.whole.extend(rows);
        } else {
            read.partly.insert(rows[0].row.session_name.clone());
        }
    }
    read
}

/// Whether a session's rows are all that it has, and from one server.
fn adds_up(rows: &[Row]) -> bool {
    let mut windows: HashMap<&str, usize> = HashMap::new();
    for row in rows {
        *windows.entry(row.row.window.as_str()).or_default() += 1;
    }
    rows.iter().all(|row| {
        row.row.server_pid == rows[0].row.server_pid
            && row.windows == windows.len()
            && windows.get(row.row.window.as_str()) == Some(&row.panes)
    })
}

impl Psmux {
    pub(crate) fn look_at_everything(&self) -> Snapshot {
        const QUERY: &str = "list-panes";
        let before = registry::names(&self.data);
        let list = List::new().then(["list-panes", "-a", "-F", &row_format()]);
        let heard = match self.ask(QUERY, &self.client(&list)) {
            Ok(heard) => heard,
            Err(trouble) => return Snapshot::Unknown(trouble),
        };
        let trouble = |class, said| Trouble { class, tried: self.tried(QUERY), said };
        match heard.class {
            ReplyClass::Answered | ReplyClass::Empty | ReplyClass::Partial | ReplyClass::Denied => {}
            ReplyClass::NoListener => return Snapshot::NotServed(self.trouble(QUERY, &heard)),
            _ => return Snapshot::Unknown(self.trouble(QUERY, &heard)),
        }
        let named = match (before, registry::names(&self.data)) {
            // What came or went meanwhile may be listed or not.
            (Ok(before), Ok(after)) => before.intersection(&after).cloned().collect::<BTreeSet<_>>(),
            (Err(e), _) | (_, Err(e)) => {
                let said = format!("the data directory cannot be read: {e}");
                return Snapshot::Unknown(trouble(ReplyClass::Failed, said));
            }
        };
        let read = read(&heard.stdout);
        let silent = named.iter().filter(|name| !read.whole.iter().any(|row| row.row.session_name == **name));
        let mut missing: BTreeSet<String> = silent.cloned().collect();
        missing.extend(read.partly);
        let mut unlisted: Vec<Trouble> = missing
            .into_iter()
            .map(|name| {
                let said =
                    format!("session {name:?} is registered, and its server did not answer completely");
                trouble(ReplyClass::Partial, said)
            })
            .collect();
        if let (Some(line), true) = (read.bad, unlisted.is_empty()) {
            unlisted.push(trouble(ReplyClass::Partial, format!("a row that cannot be read: {line:?}")));
        }
        let panes: Vec<PaneRow> = read.whole.iter().map(|row| row.row.clone()).collect();
        match (read.whole.first(), unlisted.is_empty()) {
            (Some(first), _) => Snapshot::Answered(Answered {
                server_pid: first.row.server_pid,
                version: first.version.clone(),
                panes,
                unlisted,
            }),
            (None, false) => Snapshot::Unknown(unlisted.remove(0)),
            (None, true) => Snapshot::NotServed(trouble(
                ReplyClass::NoListener,
                "no session is registered in the data directory".to_owned(),
            )),
        }
    }

    /// Out of the listing: psmux's own question removes the files of live servers that are slow to answer.
    pub(crate) fn look_for_session(&self, name: &SessionName) -> HasSession {
        let named = |other: &str| registry::same(other, name.as_str());
        match self.look_at_everything() {
            Snapshot::Answered(mut answered) => {
                if let Some(row) = answered.panes.iter().find(|row| named(&row.session_name)) {
                    HasSession::Present { server_pid: row.server_pid }
                } else if !answered.unlisted.is_empty() {
                    HasSession::Unknown(answered.unlisted.remove(0))
                } else {
                    HasSession::NotServed(Trouble {
                        class: ReplyClass::NoListener,
                        tried: self.tried("list-panes"),
                        said: format!("no session {name} is registered in the data directory"),
                    })
                }
            }
            Snapshot::NotServed(trouble) => HasSession::NotServed(trouble),
            Snapshot::Unknown(trouble) => HasSession::Unknown(trouble),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(session: &str, window: &str, pane: &str, windows: u32, panes: u32) -> String {
        let empty = "\t".repeat(3 * tags::VALUES - 1);
        format!(
            "{MARK}\t42\t3.4.0\t{session}\t{window}\t{pane}\t7\t0\t0\t{windows}\t{panes}\t{empty}\tname-{}\tw",
            &session[1..]
        )
    }

    #[test]
    fn a_session_counts_when_its_rows_add_up() {
        let rows = [line("$1", "@1", "%1", 2, 1), line("$1", "@2", "%2", 2, 2), line("$1", "@2", "%3", 2, 2)];
        let whole = read(&rows.join("\n"));
        assert_eq!((whole.whole.len(), whole.partly.len(), whole.bad), (3, 0, None));
        assert_eq!(whole.whole[1].row.pane.as_str(), "$1:%2");
        for missing in 0..3 {
            let mut some = rows.to_vec();
            some.remove(missing);
            let cut = read(&some.join("\n"));
            assert_eq!(cut.whole.len(), 0, "without row {missing}");
            assert_eq!(cut.partly, BTreeSet::from(["name-1".to_owned()]));
        }
    }

    #[test]
    fn one_sessions_gap_does_not_spoil_anothers_rows() {
        let text = [line("$1", "@1", "%1", 2, 1), line("$2", "@1", "%1", 1, 1)].join("\n");
        let read = read(&format!("ERROR: Invalid session key\n{text}\n\n"));
        assert_eq!(read.whole.len(), 1);
        assert_eq!(read.whole[0].row.session.as_str(), "$2");
        assert_eq!(read.bad.as_deref(), Some("ERROR: Invalid session key"));
    }

    #[test]
    fn what_is_no_row_is_none() {
        assert!(parse_row(&line("$1", "@1", "%1", 1, 1)).is_some());
        for bad in ["", "loopmux-row", "x"] {
            assert!(parse_row(bad).is_none());
        }
        assert!(parse_row(&line("$x", "@1", "%1", 1, 1)).is_none());
        assert!(parse_row(&line("$1", "1", "%1", 1, 1)).is_none());
    }
}
