//! One look at a multiplexer server: who answered, and every pane that it lists.

use crate::class::ReplyClass;
use crate::ids::{PaneId, SessionId, Tags, WindowId};
use crate::multiplexer::Trouble;

/// What a snapshot asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every pane of the server.
    Everything,
}

/// At which object a tag was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TagScope {
    /// The session's own option.
    Session,
    /// The window's own option.
    Window,
    /// The pane's own option.
    Pane,
}

/// The answer to one look.
#[derive(Clone, Debug)]
pub enum Snapshot {
    /// Servers answered, and everything in [`Answered::panes`] is whole: of each server that has a row there, every
    /// row. It holds for that instant: a request that nobody acknowledged can still be carried out.
    Answered(Answered),
    /// The question reached nobody who serves it. Not a proof of anything's end.
    NotServed(Trouble),
    /// No answer can be made of what came back.
    Unknown(Trouble),
}

impl Snapshot {
    /// The class of the reply, for reports.
    pub fn class(&self) -> ReplyClass {
        match self {
            Self::Answered(_) => ReplyClass::Answered,
            Self::NotServed(t) | Self::Unknown(t) => t.class,
        }
    }
}

/// What the servers of one socket answered. Most multiplexers have one server for all sessions, some one for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// The process id of the server that answered; where each session has its own, that of the first row. Together
    /// with the kernel's start time of that process it is the server's identity; nothing else of what a server says
    /// survives its restart as a distinction.
    pub server_pid: u32,
    /// That server's version, as it says.
    pub version: String,
    /// Every pane.
    pub panes: Vec<PaneRow>,
    /// What did not answer, or not completely, where each session has a server of its own: nothing is known of what
    /// is there. Empty where one server answers for all.
    pub unlisted: Vec<Trouble>,
}

/// One pane, with the session and window that hold it. A window linked into two sessions gives two rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaneRow {
    /// The process id of the server that has it.
    pub server_pid: u32,
    /// The session's id.
    pub session: SessionId,
    /// The window's id.
    pub window: WindowId,
    /// The pane's id.
    pub pane: PaneId,
    /// The pid of the pane's first process, where the multiplexer gives one.
    pub pane_pid: Option<u32>,
    /// The multiplexer keeps the pane after its program's end.
    pub dead: bool,
    /// Clients attached to the session.
    pub attached: u32,
    /// The session's own tags.
    pub session_tags: Option<Tags>,
    /// The window's own tags.
    pub window_tags: Option<Tags>,
    /// The pane's own tags.
    pub pane_tags: Option<Tags>,
    /// The session's name now.
    pub session_name: String,
    /// The window's name now.
    pub window_name: String,
}

impl PaneRow {
    /// The tags read at one scope.
    pub fn tags(&self, at: TagScope) -> Option<&Tags> {
        match at {
            TagScope::Session => self.session_tags.as_ref(),
            TagScope::Window => self.window_tags.as_ref(),
            TagScope::Pane => self.pane_tags.as_ref(),
        }
    }
}

/// A mux object that was seen to carry a token of ours, on one server. Only [`Answered::owned`] makes it, and
/// a kill takes nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub(crate) server_pid: u32,
    pub(crate) at: TagScope,
    pub(crate) tags: Tags,
    pub(crate) session: SessionId,
    pub(crate) window: WindowId,
    pub(crate) pane: PaneId,
    pub(crate) session_name: String,
}

impl Owned {
    /// The server that was seen to have it.
    pub fn server_pid(&self) -> u32 {
        self.server_pid
    }
    /// Where the token was read.
    pub fn at(&self) -> TagScope {
        self.at
    }
    /// The tags that it carries.
    pub fn tags(&self) -> &Tags {
        &self.tags
    }
    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }
    /// The window.
    pub fn window(&self) -> &WindowId {
        &self.window
    }
    /// The pane.
    pub fn pane(&self) -> &PaneId {
        &self.pane
    }
    /// The session's name when it was seen.
    pub fn session_name(&self) -> &str {
        &self.session_name
    }
}

impl Answered {
    /// Everything of this answer that carries exactly `tags` at `at`. The caller has compared `server_pid`, with
    /// its kernel start time, to the recorded server before it acts on one of them.
    pub fn owned(&self, tags: &Tags, at: TagScope) -> Vec<Owned> {
        if tags.check().is_err() {
            return Vec::new();
        }
        self.panes
            .iter()
            .filter(|row| row.tags(at) == Some(tags))
            .map(|row| Owned {
                server_pid: row.server_pid,
                at,
                tags: tags.clone(),
                session: row.session.clone(),
                window: row.window.clone(),
                pane: row.pane.clone(),
                session_name: row.session_name.clone(),
            })
            .collect()
    }

    /// Whether the server of this pid answered, completely.
    pub fn is_from(&self, server_pid: u32) -> bool {
        self.server_pid == server_pid || self.panes.iter().any(|row| row.server_pid == server_pid)
    }

    /// The row of a pane, by its id.
    pub fn pane(&self, id: &PaneId) -> Option<&PaneRow> {
        self.panes.iter().find(|row| &row.pane == id)
    }

    /// Whether a session of that id is listed.
    pub fn has_session(&self, id: &SessionId) -> bool {
        self.panes.iter().any(|row| &row.session == id)
    }
}
