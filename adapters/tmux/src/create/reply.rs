//! What came back when a window was to be made.

use crate::Heard;
use crate::tags::{self, is_id};
use loopmux_mux::{CreateSpec, Created, PaneId, Placement, ReplyClass, SessionId, Tags, WindowId};

/// What the new window is, printed by the command that makes it.
pub(super) const MADE: &str =
    "loopmux-made\t#{pid}\t#{version}\t#{session_id}\t#{window_id}\t#{pane_id}\t#{pane_pid}";

/// What is printed when the session is not the one that was seen.
pub(super) const OTHER: &str = "loopmux-other\t#{pid}\t#{session_id}";

/// How the line begins that reads the tags back.
pub(super) const TAGS: &str = "loopmux-tags";

/// What a server prints that ends when nobody is attached; a line for each client follows.
pub(super) const UNATTENDED: &str = "loopmux-exits";

/// What the command that made the window printed.
pub(super) struct Made {
    pub(super) server_pid: u32,
    version: String,
    pub(super) session: SessionId,
    pub(super) window: WindowId,
    pub(super) pane: PaneId,
    pane_pid: Option<u32>,
}

impl Made {
    pub(super) fn created(self, tagged: bool) -> Created {
        Created {
            server_pid: self.server_pid,
            version: self.version,
            session: self.session,
            window: self.window,
            pane: self.pane,
            pane_pid: self.pane_pid,
            tagged,
        }
    }
}

pub(super) enum NotMade {
    /// The server found another session in place of ours.
    Other(String),
    Nothing,
}

pub(super) fn made(stdout: &str) -> Result<Made, NotMade> {
    for line in stdout.lines() {
        if let Some(found) = line.strip_prefix("loopmux-other\t") {
            let found = found.replace('\t', " and session ");
            let said = format!("the session is no longer the one that was seen: found server {found}");
            return Err(NotMade::Other(said));
        }
        if let Some(made) = line.strip_prefix("loopmux-made\t") {
            return read_made(made).ok_or(NotMade::Nothing);
        }
    }
    Err(NotMade::Nothing)
}

fn read_made(line: &str) -> Option<Made> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [pid, version, session, window, pane, pane_pid] = fields[..] else { return None };
    if !is_id('$', session) || !is_id('@', window) || !is_id('%', pane) {
        return None;
    }
    Some(Made {
        server_pid: pid.parse().ok()?,
        version: version.to_owned(),
        session: SessionId::from_backend(session),
        window: WindowId::from_backend(window),
        pane: PaneId::from_backend(pane),
        pane_pid: pane_pid.parse().ok().filter(|pid| *pid != 0),
    })
}

/// Which objects the tags went to, and what they read as there.
pub(super) struct Landed {
    session: String,
    pub(super) window: String,
    pub(super) pane: String,
    tags: [Option<Tags>; 3],
}

impl Landed {
    /// Whether it is the window that was made, with exactly the tags that were asked for.
    pub(super) fn is(&self, made: &Made, spec: &CreateSpec) -> bool {
        let [session, window, pane] = &self.tags;
        let session_is_tagged = match &spec.placement {
            Placement::NewSession { tags, .. } => session.as_ref() == Some(tags),
            Placement::InSession(_) => true,
        };
        self.session == made.session.as_str()
            && self.window == made.window.as_str()
            && self.pane == made.pane.as_str()
            && session_is_tagged
            && window.as_ref() == Some(&spec.tags)
            && pane.as_ref() == Some(&spec.tags)
    }
}

/// Reads the line that reads the tags back.
pub(super) fn landed(line: &str) -> Option<Landed> {
    let fields: Vec<&str> = line.strip_prefix("loopmux-tags\t")?.split('\t').collect();
    let [session, window, pane, values @ ..] = &fields[..] else { return None };
    if values.len() != 3 * tags::VALUES || !is_id('$', session) || !is_id('@', window) || !is_id('%', pane) {
        return None;
    }
    let own = |n: usize, id: &str| tags::read(&values[n * tags::VALUES..(n + 1) * tags::VALUES], id);
    Some(Landed {
        tags: [own(0, session), own(1, window), own(2, pane)],
        session: (*session).to_owned(),
        window: (*window).to_owned(),
        pane: (*pane).to_owned(),
    })
}

/// Whether the server said that it ends without clients, and has none.
pub(super) fn server_ends_unattended(stdout: &str) -> bool {
    stdout.lines().any(|line| line == UNATTENDED) && !stdout.lines().any(|line| line == "loopmux-client")
}

/// Whether it is certain that nothing was made and nothing will be: the client never reached a server that could
/// keep the request, or the server answered that it did not make it. An exit 0 is never certain: a server that
/// could not make its socket was seen to leave its client with one.
pub(super) fn nothing_can_appear(heard: &Heard) -> bool {
    let failed = matches!(heard.reply.code, Some(code) if code != 0);
    if !failed || heard.reply.timed_out || heard.reply.truncated || !heard.stdout.trim().is_empty() {
        return false;
    }
    let first = heard.stderr.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let first = first.to_ascii_lowercase();
    const ANSWERED: [&str; 10] = [
        "bad session name",
        "command too long",
        "create session failed: ",
        "create window failed: ",
        "duplicate session: ",
        "error connecting to ",
        "failed to send command",
        "invalid session",
        "unknown command",
        "usage: ",
    ];
    let unreachable = matches!(
        heard.class,
        ReplyClass::NoListener | ReplyClass::NoSocket | ReplyClass::Denied | ReplyClass::Absent
    );
    unreachable || ANSWERED.iter().any(|wording| first.starts_with(wording))
}
