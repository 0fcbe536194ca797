//! The formats of the files in a run directory. Each carries `schema`; a reader takes this schema and older
//! ones, and a newer one is unknown to it.
//!
//! Times are milliseconds since the Unix epoch, for people only: nothing is decided by them.

use super::text::OsText;
use crate::process::{HostId, Identity};
use crate::verdict::{Cause, End};
use loopmux_mux::{PaneId, SessionId, SessionName, Tags, WindowId};
use serde::{Deserialize, Serialize};

/// The schema that this program writes.
pub const SCHEMA: u32 = 1;

/// The protocol between whoever fills an attempt directory and the keeper that runs it. A keeper refuses another.
pub const KEEPER_PROTOCOL: u32 = 1;

/// File names inside a run directory and its attempts.
pub mod name {
    /// Write-once: what was asked.
    pub const RUN: &str = "run.json";
    /// The one mutable record.
    pub const STATE: &str = "state.json";
    /// One event a line.
    pub const JOURNAL: &str = "journal.jsonl";
    /// Only ever locked.
    pub const ENGINE_LOCK: &str = "engine.lock";
    /// A stop request.
    pub const STOP: &str = "stop.json";
    /// Directory of attempts.
    pub const ATTEMPTS: &str = "attempts";
    /// Directory of engine windows.
    pub const ENGINE: &str = "engine";
    /// What a keeper runs.
    pub const LAUNCH: &str = "launch.json";
    /// The environment; read once and unlinked.
    pub const ENV: &str = "env.json";
    /// Only ever locked.
    pub const LEASE: &str = "lease";
    /// The start receipt.
    pub const START: &str = "start.json";
    /// What the create's read-back said.
    pub const CREATED: &str = "created.json";
    /// The agent CLI's identity.
    pub const SPAWNED: &str = "spawned.json";
    /// The keeper would not start.
    pub const REFUSED: &str = "refused.json";
    /// The exit receipt.
    pub const EXIT: &str = "exit.json";
    /// No descendant is left.
    pub const EMPTIED: &str = "emptied.json";
    /// The pty went away.
    pub const HANGUP: &str = "hangup.json";
    /// What still runs after the end.
    pub const LEFTOVERS: &str = "leftovers.json";
    /// A stop from inside.
    pub const HANDOVER: &str = "handover.json";
    /// Given up before the start.
    pub const CANCELLED: &str = "cancelled";
    /// The pane's bytes: the first part. Locked while somebody records.
    pub const OUTPUT: &str = "output.log";
    /// The pane's bytes: later parts, each named by this and the position of its first byte.
    pub const OUTPUT_TAIL: &str = "output.tail.";
}

/// Which multiplexer, found where, asked on which socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MuxRef {
    /// The backend's name.
    pub backend: String,
    /// Absolute path of the client binary.
    pub binary: OsText,
    /// The socket's path.
    pub socket: OsText,
    /// The client's version when it was selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// `launch.json`: everything that a keeper needs but the environment. Write-once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// [`KEEPER_PROTOCOL`].
    pub protocol: u32,
    /// What kind of window this is.
    pub role: Role,
    /// The run's id.
    pub run: String,
    /// The attempt's number, from 1; in an engine window the engine's.
    pub attempt: u32,
    /// The tags of window and pane; `tags.token` is the token.
    pub tags: Tags,
    /// The run's label, or what it runs, for a person.
    pub title: String,
    /// Program and arguments.
    pub argv: Vec<OsText>,
    /// The program's directory.
    pub cwd: OsText,
    /// The multiplexer.
    pub mux: MuxRef,
    /// The mux session's name as created.
    pub session: SessionName,
    /// The window's name as created.
    pub window: SessionName,
    /// Where this was launched.
    pub host: HostId,
    /// The window stays after the end, and waits for Enter.
    pub park: bool,
    /// The datagram socket of whoever waits, poked after each receipt. Losing a poke costs a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poke: Option<OsText>,
    /// Device and inode of the run directory: a keeper whose path leads elsewhere does not start.
    pub run_dir: (u64, u64),
    /// When it was written.
    pub at_ms: u64,
}

/// What a keeper's window is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// An agent CLI: with lease, receipts, output log.
    Attempt,
    /// An engine: no lease, nothing handed down, always parked at the end.
    Engine,
}

/// `env.json`: the program's whole environment. Lives from the launch to the keeper's first steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Names and values. What the pane itself sets (`TERM` and its kin) is not among them.
    pub vars: Vec<(OsText, OsText)>,
}

/// `start.json`: the start receipt. The keeper runs, and spawns unless it is cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The token of the launch that it answers.
    pub token: String,
    /// The keeper.
    pub keeper: Identity,
    /// Machine, boot and namespaces that it runs in.
    pub host: HostId,
    /// The server around the keeper, from the pane's environment and the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Identity>,
    /// The session around the keeper, from the pane's environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The pane around the keeper, from its environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane: Option<PaneId>,
    /// When.
    pub at_ms: u64,
}

/// `created.json`: what the multiplexer's read-back said, by the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreatedFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The server that created the window; `None` where its process could not be identified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Identity>,
    /// The server's version.
    pub version: String,
    /// The session.
    pub session: SessionId,
    /// The window.
    pub window: WindowId,
    /// The pane.
    pub pane: PaneId,
    /// The pid of the pane's first process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane_pid: Option<u32>,
    /// When.
    pub at_ms: u64,
}

/// `spawned.json`: the agent CLI's process, right after the spawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnedFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The agent CLI.
    pub cli: Identity,
    /// Its process group.
    pub group: u32,
    /// Its session id in the kernel: the keeper's.
    pub session: u32,
    /// Its autogroup, where the kernel has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autogroup: Option<u64>,
    /// When.
    pub at_ms: u64,
}

/// `refused.json`: the keeper would not start, and never will for this attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Why, for a person.
    pub why: String,
    /// When.
    pub at_ms: u64,
}

/// `exit.json`: the exit receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The token of the launch that it ends.
    pub token: String,
    /// How the program ended.
    pub end: End,
    /// A hang-up came no later than the end.
    pub hangup: bool,
    /// When.
    pub at_ms: u64,
}

/// `hangup.json`: what the multiplexer said right after the terminal went away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HangupFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What went away, if it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The class of the reply.
    pub class: String,
    /// The reply in words.
    pub said: String,
    /// When.
    pub at_ms: u64,
}

/// `emptied.json`: the keeper's `wait` said that no descendant is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmptiedFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// When.
    pub at_ms: u64,
}

/// `leftovers.json`: what still ran when the agent CLI had ended. Replaced as it changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftoversFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The processes; empty when the last one has ended.
    pub processes: Vec<ProcessNote>,
    /// When.
    pub at_ms: u64,
}

/// A process, for a person's eyes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessNote {
    /// Its identity.
    pub id: Identity,
    /// Its command line, bounded.
    pub command: String,
    /// When it started.
    pub started_ms: u64,
}

impl From<crate::process::Note> for ProcessNote {
    fn from(note: crate::process::Note) -> Self {
        Self { id: note.id, command: note.command, started_ms: note.started_ms }
    }
}

/// `handover.json`: a stop from inside the run, for which the keeper must not wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoverFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The stopper.
    pub stopper: Identity,
}

/// A file that carries a schema.
pub trait Schema {
    /// The schema it was written with.
    fn schema(&self) -> u32;
}

macro_rules! schema {
    ($($t:ty),* $(,)?) => { $(impl Schema for $t { fn schema(&self) -> u32 { self.schema } })* };
}
schema!(
    LaunchFile,
    EnvFile,
    StartFile,
    CreatedFile,
    SpawnedFile,
    RefusedFile,
    ExitFile,
    HangupFile,
    EmptiedFile,
    LeftoversFile,
    HandoverFile,
);

/// The wall clock.
pub fn now() -> std::time::SystemTime {
    crate::fault::now()
}

/// The time for people, in milliseconds since the Unix epoch; 0 where the clock stands before it.
pub fn now_ms() -> u64 {
    now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// `project.json`: for people, and for listings of all projects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The project's canonical path.
    pub path: OsText,
}

/// `run.json`: what was asked. Write-once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The run's id.
    pub id: super::id::RunId,
    /// A person's label for it, as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The project's canonical path.
    pub project: OsText,
    /// The state directory's id.
    pub state: String,
    /// When it was made.
    pub created_ms: u64,
    /// Where it was made.
    pub host: HostId,
    /// The work.
    pub work: Work,
    /// The multiplexer that was selected.
    pub mux: MuxRef,
    /// Columns and rows of its windows.
    pub size: (u16, u16),
    /// Its windows stay after the end.
    pub park: bool,
    /// The longest it may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long a program that is asked to end may take, in milliseconds.
    pub grace_ms: u64,
}

/// What a run does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Work {
    /// One attempt of one command.
    Command {
        /// Program and arguments.
        argv: Vec<OsText>,
        /// Its directory.
        cwd: OsText,
    },
}

impl Work {
    /// After an attempt's end something would still be left to decide.
    pub fn more_to_decide(&self) -> bool {
        match self {
            Self::Command { .. } => false,
        }
    }

    /// The agent's name in listings: for a command, its program's file name.
    pub fn agent(&self) -> String {
        match self {
            Self::Command { argv, .. } => argv
                .first()
                .map(|program| {
                    std::path::Path::new(program.as_os_str())
                        .file_name()
                        .map_or_else(|| program.display(), |n| n.to_string_lossy().into_owned())
                })
                .unwrap_or_default(),
        }
    }
}

/// `stop.json`: a stop request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The process that asks.
    pub by: Identity,
    /// Why: `stop`, `interrupt` or `timeout`.
    pub why: StopWhy,
    /// When.
    pub at_ms: u64,
}

/// Why a run was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopWhy {
    /// A person's command.
    Stop,
    /// Ctrl-C or TERM at a foreground engine.
    Interrupt,
    /// It took longer than it was allowed to.
    Timeout,
}

/// `control.json`: the control sessions of a project, one per server socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// By socket.
    pub sessions: Vec<ControlEntry>,
    /// Windows that outlived the directories of their runs. A cleanup closes them, and takes them off the list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<LeftWindow>,
}

/// The window of an engine whose run was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftWindow {
    /// Its multiplexer.
    pub mux: MuxRef,
    /// Its tags.
    pub tags: Tags,
    /// The server that had it, where a receipt named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Identity>,
    /// Its first process, where a receipt named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper: Option<Identity>,
}

/// One control session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlEntry {
    /// The backend's name.
    pub backend: String,
    /// The socket.
    pub socket: OsText,
    /// Its tags.
    pub tags: Tags,
    /// The name it was created with.
    pub name: SessionName,
}

schema!(ProjectFile, RunFile, StopFile, ControlFile);
