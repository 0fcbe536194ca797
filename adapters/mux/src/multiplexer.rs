//! The trait that a backend implements.

use crate::class::ReplyClass;
use crate::ids::{PaneId, SessionId, SessionName, Tags, WindowId};
use crate::snapshot::{Owned, Scope, Snapshot};
use std::ffi::OsString;
use std::path::PathBuf;

/// Why a multiplexer could not be asked, or did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{tried}: {class}: {said}")]
pub struct Trouble {
    /// The class of the reply.
    pub class: ReplyClass,
    /// What was tried, in words: the binary, the verb, the socket.
    pub tried: String,
    /// What came back, in words: exit code and output, or the operating system's error; bounded.
    pub said: String,
}

/// The answer to "can this backend be used here".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The binary, where one was located. Being located answers nothing else.
    pub binary: Option<PathBuf>,
    /// The client's version as it printed it.
    pub version: Option<String>,
    /// Why it cannot be used; `None` if it can.
    pub refused: Option<Trouble>,
}

/// The answer to "is there a session of this name".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HasSession {
    /// The server of this pid has it.
    Present {
        /// Pid of the server that answered.
        server_pid: u32,
    },
    /// The server of this pid answered that it has none.
    AbsentOn {
        /// Pid of the server that answered.
        server_pid: u32,
    },
    /// Nobody serves the question.
    NotServed(Trouble),
    /// No answer.
    Unknown(Trouble),
}

/// Where the new window goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A session of its own.
    NewSession {
        /// The session's name.
        name: SessionName,
        /// The session's own tags.
        tags: Tags,
        /// Columns and rows.
        size: (u16, u16),
    },
    /// One more window in a session that was seen to be ours.
    InSession(Owned),
}

/// What to create: one window with one pane that runs `command`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateSpec {
    /// Where.
    pub placement: Placement,
    /// The window's name.
    pub window: SessionName,
    /// The tags of the window and of its pane.
    pub tags: Tags,
    /// Program and arguments, at least two words, executed without a shell.
    pub command: Vec<OsString>,
    /// The directory that splits of this window start in.
    pub cwd: PathBuf,
}

/// What the read-back of a create said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Pid of the server that created it.
    pub server_pid: u32,
    /// The server's version.
    pub version: String,
    /// The session's id.
    pub session: SessionId,
    /// The window's id.
    pub window: WindowId,
    /// The pane's id.
    pub pane: PaneId,
    /// The pid of the pane's first process. Its number wakes a waiter; it never directs a signal.
    pub pane_pid: Option<u32>,
    /// All tags were read back as they were set.
    pub tagged: bool,
}

/// A create that did not give a [`Created`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    /// Refused before anything was asked of the server; nothing can appear.
    #[error("nothing was created: {0}")]
    Refused(Trouble),
    /// The request may have been, or may still be, carried out.
    #[error("cannot tell whether a window was created: {0}")]
    MayAppear(Trouble),
}

/// What a conditional kill removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillScope {
    /// The pane alone. Its window and session end with it if it was their last.
    Pane,
    /// The window with all its panes.
    Window,
    /// The session with all its windows.
    Session,
}

/// What a conditional kill said. None of them is a proof that a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KillReply {
    /// The server found the token and did it.
    Done,
    /// The server found another server pid, another token or another session there, and did nothing.
    Refused(String),
    /// It may or may not have been done.
    Unknown(Trouble),
}

/// Whether bytes reached a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The server took them for a live pane.
    Delivered,
    /// They went nowhere.
    NotDelivered(Trouble),
    /// It may or may not have.
    Unknown(Trouble),
}

/// Where this process runs, if it runs in a window of this backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Here {
    /// The socket of the server around us.
    pub socket: PathBuf,
    /// The pid of that server, as the environment has it.
    pub server_pid: Option<u32>,
    /// The session that the pane was created in, as the environment has it. The pane may have moved since.
    pub session: Option<SessionId>,
    /// The pane around us.
    pub pane: Option<PaneId>,
}

/// How a person gets to a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachPlan {
    /// Replace this process by that command: the terminal becomes a client.
    Attach(Vec<OsString>),
    /// Run that command: the client around us moves.
    Switch(Vec<OsString>),
    /// Cannot be done from here; the text says why, the command is for another terminal.
    Refused {
        /// Why.
        why: String,
        /// What to type elsewhere.
        instead: Vec<OsString>,
    },
}

/// What a person types, elsewhere, about a session that nobody but a person may end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByHand {
    /// Shows the session.
    pub look: Vec<OsString>,
    /// Ends it.
    pub end: Vec<OsString>,
}

/// One multiplexer, on one socket.
///
/// There is no method that ends a server, and none that takes a bare name or number to kill.
pub trait Multiplexer: Send + Sync {
    /// The backend's name as configuration and records write it.
    fn name(&self) -> &'static str;

    /// The binary that this backend executes.
    fn binary(&self) -> &std::path::Path;

    /// The socket that this backend asks.
    fn socket(&self) -> &std::path::Path;

    /// *Observation.* Whether the backend can be used: binary, version, floor. Executes the binary once.
    fn probe(&self) -> Probe;

    /// *Observation.* One invocation: the server's identity, all panes with their tags, an end marker.
    fn snapshot(&self, scope: Scope) -> Snapshot;

    /// *Observation.* Whether a session of exactly this name is there. For explanation only.
    fn has_session(&self, name: &SessionName) -> HasSession;

    /// *Act.* Creates, tags and configures a window in one client command and reads it back.
    ///
    /// # Errors
    /// [`CreateError`] says whether something may still appear.
    fn create(&self, spec: &CreateSpec) -> Result<Created, CreateError>;

    /// *Act.* Kills if, at that moment, server pid, token and session are still what `owned` says.
    fn kill(&self, owned: &Owned, scope: KillScope) -> KillReply;

    /// Whether [`Multiplexer::pipe`] can be had: whether a pane's output reaches a program without a shell between.
    fn pipes(&self) -> bool {
        true
    }

    /// *Act.* Sends the pane's output to a command from now on, or to nobody. `words` are executed as they are,
    /// whatever characters they have. Asked by the program inside the pane, which knows the server's pid and the
    /// pane from its environment; another server's pane of the same id is left alone.
    ///
    /// # Errors
    /// The pane was not piped, or nobody can tell.
    fn pipe(&self, server_pid: u32, pane: &PaneId, words: Option<&[OsString]>) -> Result<(), Trouble>;

    /// *Act.* Pastes bytes into a live pane, bracketed if the program asked for it. Only into the pane that
    /// `owned` names, and only if it still carries the token at that moment.
    fn paste(&self, owned: &Owned, bytes: &[u8]) -> Delivery;

    /// *Act.* Presses Enter in a live pane, under the same condition as [`Multiplexer::paste`].
    fn submit(&self, owned: &Owned) -> Delivery;

    /// *Observation.* The pane's visible text.
    ///
    /// # Errors
    /// Why there is none.
    fn capture(&self, pane: &PaneId) -> Result<String, Trouble>;

    /// *Plan.* How a person who is at `here` gets to a pane.
    fn attach_plan(&self, pane: &PaneId, session: &SessionId, here: Option<&Here>) -> AttachPlan;

    /// *Plan.* What the words of a plan need in their environment beside a person's own.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        Vec::new()
    }

    /// *Plan.* What a person types to look at the session of exactly this name, and to end it; `None` where the
    /// backend has no such commands. Nothing of it is executed here.
    fn by_hand(&self, _name: &SessionName) -> Option<ByHand> {
        None
    }

    /// *Observation.* Where this process runs, read from its environment.
    fn here(&self) -> Option<Here>;
}
