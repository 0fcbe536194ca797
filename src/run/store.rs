//! Reading the state directory.
//!
//! ```text
//! <state>/state-id
//! <state>/projects/<key>/project.json
//! <state>/projects/<key>/runs/<run-id>/…
//! <state>/projects/<key>/{staging,locks,trash,quarantine,archive}/
//! ```

use super::dir::Dir;
use super::files::{
    ControlFile, CreatedFile, EmptiedFile, ExitFile, HangupFile, LaunchFile, LeftoversFile, ProjectFile,
    RefusedFile, RunFile, SpawnedFile, StartFile, StopFile, name,
};
use super::id::RunId;
use super::locks;
use super::record::Record;
use crate::verdict::{Lease, Observation, Why};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Directory names below a project.
pub mod place {
    /// Runs.
    pub const RUNS: &str = "runs";
    /// Runs that are being made.
    pub const STAGING: &str = "staging";
    /// Run locks, which also reserve ids.
    pub const LOCKS: &str = "locks";
    /// Runs that are being removed.
    pub const TRASH: &str = "trash";
    /// Runs that were put aside without proof.
    pub const QUARANTINE: &str = "quarantine";
    /// Archived runs.
    pub const ARCHIVE: &str = "archive";
    /// All projects.
    pub const PROJECTS: &str = "projects";
}

/// A state directory, for reading only.
#[derive(Clone, Debug)]
pub struct ReadStore {
    root: PathBuf,
}

impl ReadStore {
    /// A store at `root`, which need not exist.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The state directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The state directory's id.
    pub fn state_id(&self) -> Observation<String> {
        match Dir::open(&self.root) {
            Ok(dir) => super::write::read_state_id(&dir),
            Err(e) => absent_or_unknown(&self.root, e),
        }
    }

    /// A project by its key.
    pub fn project(&self, key: &str) -> Observation<ProjectRead> {
        let path = self.root.join(place::PROJECTS).join(key);
        match Dir::open(&path) {
            Ok(dir) => Observation::Known(ProjectRead { key: key.to_owned(), dir, runs: OnceLock::new() }),
            Err(e) => absent_or_unknown(&path, e),
        }
    }

    /// The keys of all projects.
    pub fn project_keys(&self) -> Observation<Vec<String>> {
        let path = self.root.join(place::PROJECTS);
        let names = match Dir::open(&path).and_then(|d| d.names()) {
            Ok(names) => names,
            Err(e) => return absent_or_unknown(&path, e),
        };
        let key = |n: std::ffi::OsString| n.into_string().ok().filter(|k| k.len() == 16);
        let mut keys: Vec<String> = names.into_iter().filter_map(key).collect();
        keys.sort();
        Observation::Known(keys)
    }
}

fn absent_or_unknown<T>(path: &Path, e: io::Error) -> Observation<T> {
    if e.kind() == io::ErrorKind::NotFound {
        Observation::Absent
    } else {
        Observation::unknown(format!("cannot read {}: {e}", path.display()))
    }
}

/// A project's directory, for reading only.
#[derive(Debug)]
pub struct ProjectRead {
    key: String,
    dir: Dir,
    runs: OnceLock<Dir>,
}

impl ProjectRead {
    /// The project's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The project's directory in the state directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The open directory.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Where the project is.
    pub fn file(&self) -> Observation<ProjectFile> {
        self.dir.read_json("project.json")
    }

    /// The control sessions.
    pub fn control(&self) -> Observation<ControlFile> {
        self.dir.read_json("control.json")
    }

    /// The ids of all runs, newest first.
    pub fn run_ids(&self) -> Observation<Vec<RunId>> {
        let names = match self.dir.names_in(place::RUNS) {
            Ok(names) => names,
            Err(e) => return absent_or_unknown(&self.dir.path().join(place::RUNS), e),
        };
        let mut ids: Vec<RunId> =
            names.iter().filter_map(|n| n.to_str()).filter_map(|n| RunId::parse(n).ok()).collect();
        ids.sort();
        ids.reverse();
        Observation::Known(ids)
    }

    /// One run.
    pub fn run(&self, id: &RunId) -> Observation<RunRead> {
        // Opened once: a listing opens every run through it.
        let runs = match self.runs.get() {
            Some(runs) => Ok(runs),
            None => self.dir.sub(place::RUNS).map(|runs| self.runs.get_or_init(|| runs)),
        };
        match runs.and_then(|runs| runs.sub(id.as_str())) {
            Ok(dir) => Observation::Known(RunRead { id: id.clone(), dir }),
            Err(e) => absent_or_unknown(&self.dir.path().join(place::RUNS).join(id.as_str()), e),
        }
    }
}

/// A run's directory, for reading only.
#[derive(Debug)]
pub struct RunRead {
    id: RunId,
    dir: Dir,
}

impl RunRead {
    /// Reads a run that is still in another place: being made, or thrown away.
    pub fn at(id: RunId, dir: Dir) -> Self {
        Self { id, dir }
    }

    /// The same open directory under its new path.
    pub(super) fn moved_to(mut self, path: PathBuf) -> Self {
        self.dir.moved_to(path);
        self
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The open directory.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// What was asked.
    pub fn file(&self) -> Observation<RunFile> {
        self.dir.read_json(name::RUN)
    }

    /// The record.
    pub fn record(&self) -> Observation<Record> {
        self.dir.read_json(name::STATE)
    }

    /// The stop request.
    pub fn stop(&self) -> Observation<StopFile> {
        self.dir.read_json(name::STOP)
    }

    /// The engine's lock: held while an engine lives. Without the run lock "free" can flip.
    pub fn engine_lock(&self) -> Lease {
        locks::probe(&self.dir, name::ENGINE_LOCK)
    }

    /// The numbers of all attempts, ascending.
    pub fn attempt_numbers(&self) -> Observation<Vec<u32>> {
        let names = match self.dir.names_in(name::ATTEMPTS) {
            Ok(names) => names,
            Err(e) => return absent_or_unknown(&self.dir.path().join(name::ATTEMPTS), e),
        };
        let mut numbers: Vec<u32> =
            names.iter().filter_map(|n| n.to_str()).filter_map(|n| n.parse().ok()).collect();
        numbers.sort_unstable();
        Observation::Known(numbers)
    }

    /// One attempt.
    pub fn attempt(&self, n: u32) -> Observation<AttemptRead> {
        match self.dir.sub(name::ATTEMPTS).and_then(|attempts| attempts.sub(&n.to_string())) {
            Ok(dir) => Observation::Known(AttemptRead { n, dir }),
            Err(e) => absent_or_unknown(&self.dir.path().join(name::ATTEMPTS).join(n.to_string()), e),
        }
    }
}

/// An attempt's directory, for reading only.
#[derive(Debug)]
pub struct AttemptRead {
    n: u32,
    dir: Dir,
}

impl AttemptRead {
    /// The attempt's number.
    pub fn n(&self) -> u32 {
        self.n
    }
    /// The open directory.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }
    /// What was launched.
    pub fn launch(&self) -> Observation<LaunchFile> {
        self.dir.read_json(name::LAUNCH)
    }
    /// The start receipt.
    pub fn start(&self) -> Observation<StartFile> {
        self.dir.read_json(name::START)
    }
    /// The create's read-back.
    pub fn created(&self) -> Observation<CreatedFile> {
        self.dir.read_json(name::CREATED)
    }
    /// The agent CLI's identity.
    pub fn spawned(&self) -> Observation<SpawnedFile> {
        self.dir.read_json(name::SPAWNED)
    }
    /// The keeper's refusal.
    pub fn refused(&self) -> Observation<RefusedFile> {
        self.dir.read_json(name::REFUSED)
    }
    /// The exit receipt.
    pub fn exit(&self) -> Observation<ExitFile> {
        self.dir.read_json(name::EXIT)
    }
    /// The keeper's word on its hang-up.
    pub fn hangup(&self) -> Observation<HangupFile> {
        self.dir.read_json(name::HANGUP)
    }
    /// The keeper's receipt that nothing is left.
    pub fn emptied(&self) -> Observation<EmptiedFile> {
        self.dir.read_json(name::EMPTIED)
    }
    /// The keeper's list of what still runs.
    pub fn leftovers(&self) -> Observation<LeftoversFile> {
        self.dir.read_json(name::LEFTOVERS)
    }
    /// The marker of a launch that was given up.
    pub fn cancelled(&self) -> Observation<()> {
        self.dir.has(name::CANCELLED)
    }
    /// The lease.
    pub fn lease(&self) -> Lease {
        locks::probe(&self.dir, name::LEASE)
    }
}

/// A reference to a run, as a person writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// This one.
    One(RunId),
    /// None.
    None,
    /// More than one at the first level that has any.
    Ambiguous(Vec<RunId>),
    /// The runs could not be listed.
    Unknown(Why),
}

/// The newest of `ids`, which stand newest first. An id tells the second; within one, the runs' own files tell.
fn newest<'a>(project: &ProjectRead, ids: &'a [RunId]) -> Option<&'a RunId> {
    let first = ids.first()?;
    let rivals = &ids[..ids.iter().take_while(|id| id.second() == first.second()).count()];
    if rivals.len() == 1 {
        return Some(first);
    }
    let created = |id: &RunId| match project.run(id) {
        Observation::Known(run) => run.file().known().map(|f| f.created_ms),
        Observation::Absent | Observation::Unknown(_) => None,
    };
    // Of two that read the same, the one that stands first.
    rivals.iter().rev().max_by_key(|id| created(id))
}

/// Resolves a reference: exact id, exact name, then prefix or suffix of an id; `@last` is the newest.
pub fn resolve(project: &ProjectRead, reference: &str) -> Resolved {
    let ids = match project.run_ids() {
        Observation::Known(ids) => ids,
        Observation::Absent => return Resolved::None,
        Observation::Unknown(why) => return Resolved::Unknown(why),
    };
    if reference == "@last" {
        return newest(project, &ids).map_or(Resolved::None, |id| Resolved::One(id.clone()));
    }
    if let Some(id) = ids.iter().find(|id| id.as_str() == reference) {
        return Resolved::One(id.clone());
    }
    let named: Vec<RunId> = ids
        .iter()
        .filter(|id| match project.run(id) {
            Observation::Known(run) => {
                run.file().known().is_some_and(|f| f.name.as_deref() == Some(reference))
            }
            Observation::Absent | Observation::Unknown(_) => false,
        })
        .cloned()
        .collect();
    let part: Vec<RunId> = ids
        .iter()
        .filter(|id| id.as_str().starts_with(reference) || id.as_str().ends_with(reference))
        .cloned()
        .collect();
    for mut hits in [named, part] {
        match hits.len() {
            0 => {}
            1 => return Resolved::One(hits.remove(0)),
            _ => return Resolved::Ambiguous(hits),
        }
    }
    Resolved::None
}
