//! The JSON shapes of the contract, made from what was observed. An unknown value is `null`.

use super::page::rfc3339;
use super::words;
use crate::observe::{AttemptView, RunView};
use crate::run::files::ProcessNote;
use crate::verdict::{
    Cause, End, EngineSeen, Lease, Leftovers, MuxObject, Observation, ServerSeen, Status, Verdict, permit,
};
use schemars::JsonSchema;
use serde::Serialize;

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunReport {
    /// Its id.
    pub id: String,
    /// A person's label for it.
    pub name: Option<String>,
    /// The project's path.
    pub project: Option<String>,
    /// The status.
    pub status: Status,
    /// Something still runs after an attempt's end.
    pub leftovers: Option<bool>,
    /// When it was made.
    pub created: Option<String>,
    /// When it ended.
    pub ended: Option<String>,
    /// What runs: the agent's name, or the program's.
    pub agent: Option<String>,
    /// The latest attempt; 0 before the first.
    pub attempt: Option<u32>,
    /// Its engine.
    pub engine: EngineReport,
    /// It may be resumed.
    pub resumable: Option<bool>,
    /// It may be removed.
    pub removable: Option<bool>,
    /// Why it may not be removed, or why that is not known.
    pub why_not_removable: Vec<String>,
    /// Why it is paused, or failed otherwise than by its program.
    pub reason: Option<String>,
    /// What could not be seen, each with its reason.
    pub unknown: Vec<String>,
}

/// The engine of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EngineReport {
    /// Whether it runs.
    pub state: EngineState,
    /// Its process, while it runs.
    pub pid: Option<u32>,
}

/// Whether an engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EngineState {
    /// Its lock is held.
    Running,
    /// Its lock is free.
    Gone,
    /// Cannot be told.
    Unknown,
}

/// An attempt.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AttemptReport {
    /// Its number, from 1.
    pub n: u32,
    /// The task that it works on.
    pub task: Option<String>,
    /// What runs.
    pub agent: Option<String>,
    /// When its keeper started.
    pub started: Option<String>,
    /// When its program ended.
    pub ended: Option<String>,
    /// Its directory.
    pub dir: String,
    /// What became of it.
    pub verdict: VerdictReport,
    /// What the verdict rests on.
    pub evidence: EvidenceReport,
    /// Who holds the lease; `null` where nobody does, or nobody looked.
    pub holders: Option<Vec<ProcessReport>>,
    /// Where its window is.
    pub mux: MuxReport,
    /// How many turns its agent took.
    pub turns: Option<u64>,
    /// What its agent used.
    pub usage: Option<UsageReport>,
}

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerdictReport {
    /// The verdict.
    pub kind: VerdictKind,
    /// The exit code of its program.
    pub code: Option<i32>,
    /// The signal that ended its program.
    pub signal: Option<i32>,
    /// Why its program could not be executed.
    pub spawn_error: Option<String>,
    /// What went away.
    pub cause: Option<Cause>,
    /// What still runs after its end; `null` where that is not known.
    pub leftovers: Option<Vec<ProcessReport>>,
    /// The verdict in words.
    pub why: String,
}

/// The verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the words of the verdict, documented there")]
pub enum VerdictKind {
    Launching,
    Running,
    Exited,
    Lost,
    NeverStarted,
    Unknown,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProcessReport {
    /// Its id.
    pub pid: u32,
    /// Its command line, bounded.
    pub command: String,
    /// When it started.
    pub started: Option<String>,
}

/// The evidence about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvidenceReport {
    /// The start receipt.
    pub start: FileWord,
    /// The lease.
    pub lease: LeaseWord,
    /// The exit receipt.
    pub exit: FileWord,
    /// The keeper's word on its hang-up.
    pub hangup: FileWord,
    /// Its mux session.
    pub session: ObjectWord,
    /// Its mux window.
    pub window: ObjectWord,
    /// The server that answered, compared to the recorded one.
    pub server: ServerWord,
}

/// Whether a file is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum FileWord {
    Present,
    None,
    Unknown,
}

/// Whether the lease is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum LeaseWord {
    Held,
    Free,
    None,
    Unknown,
}

/// Whether the recorded server lists something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum ObjectWord {
    Present,
    Absent,
    NotServed,
    Unknown,
    NotAsked,
}

/// Which server answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum ServerWord {
    Same,
    Other,
    Gone,
    Unknown,
    NotAsked,
}

/// Where an attempt's window is: as the recorded server lists it now, else as it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MuxReport {
    /// The backend's name.
    pub backend: Option<String>,
    /// The server's version, else the client's.
    pub version: Option<String>,
    /// The socket.
    pub socket: Option<String>,
    /// The server's process.
    pub server_pid: Option<u32>,
    /// The mux session's name.
    pub session: Option<String>,
    /// The mux session's id on that server.
    pub session_id: Option<String>,
    /// The window's id on that server.
    pub window_id: Option<String>,
    /// The pane's id on that server.
    pub pane_id: Option<String>,
    /// The pane's first process.
    pub pane_pid: Option<u32>,
}

/// What an agent used, in tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UsageReport {
    /// Read by the model.
    pub input: Option<u64>,
    /// Written by the model.
    pub output: Option<u64>,
    /// Read from a cache.
    pub cache_read: Option<u64>,
    /// Written to a cache.
    pub cache_write: Option<u64>,
}

/// One run with all its attempts: `status`, and the last line of `run` and `wait`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunAndAttempts {
    /// The run.
    pub run: RunReport,
    /// Its attempts, ascending.
    pub attempts: Vec<AttemptReport>,
}

impl RunAndAttempts {
    /// The report of a view.
    pub fn of(view: &RunView) -> Self {
        let agent = view.file.known().map(|f| f.work.agent());
        let attempts = view.attempts.known().map_or(&[][..], Vec::as_slice);
        Self {
            run: RunReport::of(view),
            attempts: attempts.iter().map(|a| AttemptReport::of(a, agent.as_deref())).collect(),
        }
    }
}

impl RunReport {
    /// The report of a view.
    pub fn of(view: &RunView) -> Self {
        let (file, record) = (view.file.known(), view.record.known());
        let attempts = view
            .attempts
            .as_ref()
            .map(|list| list.iter().map(|a| (a.n, &a.evidence, &a.verdict)).collect::<Vec<_>>());
        let permit = permit(view.status, &view.engine.seen, &attempts);
        let engine_pid = match view.engine.seen {
            EngineSeen::Running => view.engine.process.as_ref().map(|p| p.pid),
            EngineSeen::Gone | EngineSeen::Unknown(_) => None,
        };
        Self {
            id: view.id.to_string(),
            name: file.and_then(|f| f.name.clone()),
            project: file.map(|f| f.project.display()),
            status: view.status,
            leftovers: leftovers_of_run(view),
            created: file.and_then(|f| rfc3339(f.created_ms)),
            ended: record.and_then(|r| r.ended_ms).and_then(rfc3339),
            agent: file.map(|f| f.work.agent()),
            attempt: record.map(|r| r.attempt).or_else(|| view.latest().map(|a| a.n)),
            engine: EngineReport {
                state: match view.engine.seen {
                    EngineSeen::Running => EngineState::Running,
                    EngineSeen::Gone => EngineState::Gone,
                    EngineSeen::Unknown(_) => EngineState::Unknown,
                },
                pid: engine_pid,
            },
            resumable: permit.resumable,
            removable: permit.removable,
            why_not_removable: permit.obstacles.iter().map(ToString::to_string).collect(),
            reason: record.and_then(|r| r.reason.clone()),
            unknown: words::unknowns(view),
        }
    }
}

/// Certain leftovers of one attempt count before what is not known of another.
fn leftovers_of_run(view: &RunView) -> Option<bool> {
    if view.has_leftovers() {
        return Some(true);
    }
    let attempts = match &view.attempts {
        Observation::Known(attempts) => attempts,
        Observation::Absent => return Some(false),
        Observation::Unknown(_) => return None,
    };
    let unknown = |a: &AttemptView| {
        let goes_on = matches!(a.verdict, Verdict::Launching | Verdict::Running { .. });
        !goes_on && matches!(a.verdict.leftovers(), Leftovers::Unknown(_))
    };
    if attempts.iter().any(unknown) { None } else { Some(false) }
}

impl AttemptReport {
    /// The report of a view; `agent` is the run's.
    pub fn of(view: &AttemptView, agent: Option<&str>) -> Self {
        Self {
            n: view.n,
            task: None,
            agent: agent.map(str::to_owned),
            started: view.start.known().and_then(|s| rfc3339(s.at_ms)),
            ended: view.exit.known().and_then(|e| rfc3339(e.at_ms)),
            dir: view.dir.display().to_string(),
            verdict: VerdictReport::of(view),
            evidence: EvidenceReport::of(view),
            holders: None,
            mux: MuxReport::of(view),
            turns: None,
            usage: None,
        }
    }
}

impl VerdictReport {
    /// The report of a view's verdict.
    pub fn of(view: &AttemptView) -> Self {
        let (kind, cause, end) = match &view.verdict {
            Verdict::Launching => (VerdictKind::Launching, None, None),
            Verdict::Running { .. } => (VerdictKind::Running, None, None),
            Verdict::Exited { end, .. } => (VerdictKind::Exited, None, Some(end)),
            Verdict::Lost { cause, end, .. } => (VerdictKind::Lost, Some(*cause), end.as_ref()),
            Verdict::NeverStarted { .. } => (VerdictKind::NeverStarted, None, None),
            Verdict::Unknown { .. } => (VerdictKind::Unknown, None, None),
        };
        let (code, signal, spawn_error) = match end {
            Some(End::Code(code)) => (Some(*code), None, None),
            Some(End::Signal(signal)) => (None, Some(*signal), None),
            Some(End::SpawnError(why)) => (None, None, Some(why.clone())),
            None => (None, None, None),
        };
        Self {
            kind,
            code,
            signal,
            spawn_error,
            cause,
            leftovers: leftovers_of_attempt(view),
            why: words::verdict(view),
        }
    }
}

fn leftovers_of_attempt(view: &AttemptView) -> Option<Vec<ProcessReport>> {
    match view.verdict {
        Verdict::Launching | Verdict::Running { .. } => Some(Vec::new()),
        _ => match view.verdict.leftovers() {
            Leftovers::None => Some(Vec::new()),
            // The keeper's list is the only complete one, and it has not written it yet, or it cannot be read.
            Leftovers::Some | Leftovers::Settling => {
                view.leftovers.known().map(|l| l.processes.iter().map(ProcessReport::of).collect())
            }
            Leftovers::Unknown(_) => None,
        },
    }
}

impl ProcessReport {
    /// The report of a note.
    pub fn of(note: &ProcessNote) -> Self {
        Self { pid: note.id.pid, command: note.command.clone(), started: rfc3339(note.started_ms) }
    }
}

impl From<&crate::process::Note> for ProcessReport {
    fn from(note: &crate::process::Note) -> Self {
        Self { pid: note.id.pid, command: note.command.clone(), started: rfc3339(note.started_ms) }
    }
}

impl EvidenceReport {
    /// The report of a view's evidence.
    pub fn of(view: &AttemptView) -> Self {
        let e = &view.evidence;
        Self {
            start: file_word(&e.start),
            lease: match e.lease {
                Lease::Held => LeaseWord::Held,
                Lease::Free => LeaseWord::Free,
                Lease::NoFile => LeaseWord::None,
                Lease::Unknown(_) => LeaseWord::Unknown,
            },
            exit: file_word(&e.exit),
            hangup: file_word(&e.hangup),
            session: object_word(&e.session),
            window: object_word(&e.window),
            server: match e.server {
                ServerSeen::Same => ServerWord::Same,
                ServerSeen::Other => ServerWord::Other,
                ServerSeen::Gone => ServerWord::Gone,
                ServerSeen::Unknown(_) => ServerWord::Unknown,
                ServerSeen::NotAsked => ServerWord::NotAsked,
            },
        }
    }
}

fn file_word<T>(file: &Observation<T>) -> FileWord {
    match file {
        Observation::Known(_) => FileWord::Present,
        Observation::Absent => FileWord::None,
        Observation::Unknown(_) => FileWord::Unknown,
    }
}

fn object_word(object: &MuxObject) -> ObjectWord {
    match object {
        MuxObject::Present => ObjectWord::Present,
        MuxObject::Absent => ObjectWord::Absent,
        MuxObject::NotServed(_) => ObjectWord::NotServed,
        MuxObject::Unknown(_) => ObjectWord::Unknown,
        MuxObject::NotAsked => ObjectWord::NotAsked,
    }
}

impl MuxReport {
    /// The report of a view.
    pub fn of(view: &AttemptView) -> Self {
        let (launch, created, start) = (view.launch.known(), view.created.known(), view.start.known());
        let pane = view.pane.as_ref();
        Self {
            backend: launch.map(|l| l.mux.backend.clone()),
            version: created
                .map(|c| c.version.clone())
                .or_else(|| launch.and_then(|l| l.mux.version.clone())),
            socket: launch.map(|l| l.mux.socket.display()),
            server_pid: view.server().map(|s| s.pid),
            session: pane
                .map(|p| p.session_name.clone())
                .or_else(|| launch.map(|l| l.session.as_str().to_owned())),
            session_id: pane
                .map(|p| &p.session)
                .or_else(|| created.map(|c| &c.session))
                .or_else(|| start.and_then(|s| s.session.as_ref()))
                .map(ToString::to_string),
            window_id: pane
                .map(|p| &p.window)
                .or_else(|| created.map(|c| &c.window))
                .map(ToString::to_string),
            pane_id: created
                .map(|c| &c.pane)
                .or_else(|| start.and_then(|s| s.pane.as_ref()))
                .map(ToString::to_string),
            pane_pid: pane.and_then(|p| p.pane_pid).or_else(|| created.and_then(|c| c.pane_pid)),
        }
    }
}
