//! Writing the state directory. Only launch makes directories; nothing here makes parents, so that no write
//! brings a removed run back.

use super::dir::{Dir, WriteError, random_hex, rename};
use super::files::{ControlFile, ProjectFile, RunFile, SCHEMA, StopFile, name};
use super::id::{RunId, project_key};
use super::journal::{self, Event};
use super::locks::{self, TakeError};
use super::newer::{Newer, newer};
use super::record::{Change, Forbidden, Outcome, Record};
use super::store::{ReadStore, RunRead, place};
use super::text::OsText;
use crate::at::{self, Taken};
use crate::fault;
use crate::process::Identity;
use crate::verdict::{Lease, Observation, Why};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A state directory that cannot be used, or a write in it that did not happen.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {what} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// What came back.
        source: io::Error,
    },
    /// The state directory is another user's.
    #[error("the state directory {} belongs to user {owner}, not to user {me}; set LOOPMUX_STATE_DIR to a directory of your own", .path.display())]
    ForeignOwner {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The effective user.
        me: u32,
    },
    /// Locks do not work there.
    #[error("locks do not work in the state directory {}: {why}; set LOOPMUX_STATE_DIR to a local file system", .path.display())]
    NoLocks {
        /// The directory.
        path: PathBuf,
        /// What was seen.
        why: String,
    },
    /// A write failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A lock is held.
    #[error("the lock {} {why}", .path.display())]
    Busy {
        /// The lock's file.
        path: PathBuf,
        /// What was seen.
        why: TakeError,
    },
    /// A file that must be read first could not be.
    #[error("{0}")]
    Unreadable(Why),
    /// A newer loopmux wrote a file of the run.
    #[error(transparent)]
    Newer(#[from] Newer),
    /// The record permits no such change.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
}

pub(super) fn io_error(what: &'static str, path: &Path, source: impl Into<io::Error>) -> StoreError {
    StoreError::Io { what, path: path.to_owned(), source: source.into() }
}

pub(super) fn read_state_id(root: &Dir) -> Observation<String> {
    match root.read("state-id", 64) {
        Observation::Known(bytes) => {
            let id = String::from_utf8_lossy(&bytes).trim().to_owned();
            if id.len() == 16 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
                Observation::Known(id)
            } else {
                Observation::unknown(format!(
                    "{} holds no 16 hex digits",
                    root.path().join("state-id").display()
                ))
            }
        }
        Observation::Absent => Observation::Absent,
        Observation::Unknown(why) => Observation::Unknown(why),
    }
}

/// A state directory that this user may write, and whose locks work.
#[derive(Debug)]
pub struct WriteStore {
    root: Dir,
    state_id: String,
}

impl WriteStore {
    /// Opens the state directory and makes it if need be.
    ///
    /// # Errors
    /// It cannot be made, belongs to somebody else, or its locks do not work.
    pub fn open(path: &Path, allow_network: bool) -> Result<Self, StoreError> {
        make_private(path)?;
        let root = Dir::open(path).map_err(|e| io_error("open", path, e))?;
        let stat = root.at().stat().map_err(|e| io_error("look at", path, e))?;
        let me = at::me();
        if stat.uid != me {
            return Err(StoreError::ForeignOwner { path: path.to_owned(), owner: stat.uid, me });
        }
        if !allow_network && let Some(kind) = super::fskind::network_kind(&root) {
            let why = format!("it is on {kind}, whose locks do not reach every process");
            return Err(StoreError::NoLocks { path: path.to_owned(), why });
        }
        check_locks(&root)?;
        ensure_dir(&root, place::PROJECTS)?;
        let state_id = mint_state_id(&root)?;
        Ok(Self { root, state_id })
    }

    /// The state directory's id.
    pub fn state_id(&self) -> &str {
        &self.state_id
    }

    /// The same directory, for reading.
    pub fn read(&self) -> ReadStore {
        ReadStore::new(self.root.path())
    }

    /// The directory of the project at `canonical`, made if need be.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn project(&self, canonical: &Path) -> Result<ProjectWrite, StoreError> {
        let key = project_key(canonical);
        let projects = self.root.sub(place::PROJECTS).map_err(|e| io_error("open", self.root.path(), e))?;
        let dir = ensure_dir(&projects, &key)?;
        for below in [place::RUNS, place::STAGING, place::LOCKS] {
            ensure_dir(&dir, below)?;
        }
        if matches!(dir.has("project.json"), Observation::Absent) {
            let file = ProjectFile { schema: SCHEMA, path: OsText::from(canonical.as_os_str()) };
            match dir.write_once("project.json", &file) {
                Ok(()) | Err(WriteError::Exists(_)) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(ProjectWrite { key, dir })
    }

    /// The directory of a project that is there already, by its key.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn project_by_key(&self, key: &str) -> Result<ProjectWrite, StoreError> {
        let path = self.root.path().join(place::PROJECTS).join(key);
        let dir = Dir::open(&path).map_err(|e| io_error("open", &path, e))?;
        Ok(ProjectWrite { key: key.to_owned(), dir })
    }
}

/// Makes a directory 0700, with its parents, if it is not there.
fn make_private(path: &Path) -> Result<(), StoreError> {
    at::private_builder().create(path).map_err(|e| io_error("make the state directory", path, e))
}

pub(super) fn ensure_dir(parent: &Dir, name: &str) -> Result<Dir, StoreError> {
    match parent.sub(name) {
        Ok(dir) => return Ok(dir),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(io_error("open", &parent.path().join(name), e)),
    }
    match parent.make(name) {
        Ok(dir) => Ok(dir),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            parent.sub(name).map_err(|e| io_error("open", &parent.path().join(name), e))
        }
        Err(e) => Err(io_error("make", &parent.path().join(name), e)),
    }
}

fn mint_state_id(root: &Dir) -> Result<String, StoreError> {
    use std::io::Write;
    match read_state_id(root) {
        Observation::Known(id) => return Ok(id),
        Observation::Unknown(why) => return Err(StoreError::Unreadable(why)),
        Observation::Absent => {}
    }
    let id = random_hex(8);
    let temp = format!(".state-id.{}.tmp", random_hex(8));
    let path = root.path().join(&temp);
    let mut file = root.create_empty(&temp)?;
    let written = writeln!(file, "{id}").and_then(|()| file.sync_all());
    let named = written.map_err(|e| io_error("write", &path, e)).and_then(|()| {
        match rename(root, &temp, root, "state-id", Taken::Refuse) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(e) => Err(io_error("name", &path, e)),
        }
    });
    root.remove_file(&temp)?;
    named?;
    match read_state_id(root) {
        Observation::Known(id) => Ok(id),
        Observation::Absent => Err(io_error("read", &root.path().join("state-id"), io::ErrorKind::NotFound)),
        Observation::Unknown(why) => Err(StoreError::Unreadable(why)),
    }
}

/// A lock must exclude, and must outlive the descriptor that took it while a copy of that is open: the lease
/// rests on both.
///
/// # Errors
/// [`StoreError::NoLocks`] with what was seen.
pub fn check_locks(root: &Dir) -> Result<(), StoreError> {
    let name = format!(".locks.{}.tmp", random_hex(8));
    let path = root.path().join(&name);
    root.create_empty(&name)?;
    let result = lock_round(root, &name);
    root.remove_file(&name)?;
    match result {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(StoreError::NoLocks { path: root.path().to_owned(), why: why.to_owned() }),
        Err(e) => {
            Err(StoreError::NoLocks { path: root.path().to_owned(), why: format!("{}: {e}", path.display()) })
        }
    }
}

fn lock_round(root: &Dir, name: &str) -> io::Result<Option<&'static str>> {
    let taker = root.open_lock(name)?;
    at::try_lock(&taker).map_err(|e| match e {
        std::fs::TryLockError::Error(e) => e,
        std::fs::TryLockError::WouldBlock => io::Error::other("a lock that nobody can hold reads held"),
    })?;
    if locks::probe(root, name) != Lease::Held {
        return Ok(Some("a lock that is held does not exclude"));
    }
    let heir = taker.try_clone()?;
    drop(taker);
    if locks::probe(root, name) != Lease::Held {
        return Ok(Some("a lock falls while a copy of its descriptor is open"));
    }
    drop(heir);
    // A client that is being started at this moment has a copy of every descriptor until its program begins.
    if locks::wait_free(root, name, locks::PATIENCE) != Lease::Free {
        return Ok(Some("a lock stays when its last descriptor is closed"));
    }
    Ok(None)
}

/// A project's directory.
#[derive(Debug)]
pub struct ProjectWrite {
    key: String,
    dir: Dir,
}

/// The run lock: whoever holds it is the only one that writes records or moves the run. Held for a re-read and
/// a write or for the steps of a removal, never across a wait.
#[derive(Debug)]
pub struct RunLock {
    id: RunId,
    _file: File,
}

impl RunLock {
    /// Whose lock it is.
    pub fn id(&self) -> &RunId {
        &self.id
    }
}

impl ProjectWrite {
    /// The project's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The open directory.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    pub(super) fn sub(&self, name: &str) -> Result<Dir, StoreError> {
        self.dir.sub(name).map_err(|e| io_error("open", &self.dir.path().join(name), e))
    }

    /// Reserves a new run id for ever, by making its lock file, which [`ProjectWrite::stage`] makes durable.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn reserve_id(&self) -> Result<RunId, StoreError> {
        let locks = self.sub(place::LOCKS)?;
        loop {
            let id = RunId::mint();
            match locks.create_new(&format!("{id}.lock")) {
                Ok(_) => return Ok(id),
                Err(WriteError::Exists(_)) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Takes the run lock.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if somebody holds it for longer than a lock is ever held.
    pub fn lock_run(&self, id: &RunId) -> Result<RunLock, StoreError> {
        let locks = self.sub(place::LOCKS)?;
        let name = format!("{id}.lock");
        let path = locks.path().join(&name);
        let file = locks.open_lock(&name).map_err(|e| io_error("open the run lock", &path, e))?;
        fault::around("lock.run", || locks::take(&file)).map_err(|why| StoreError::Busy { path, why })?;
        Ok(RunLock { id: id.clone(), _file: file })
    }

    /// Takes the run lock of a run that is there, or is about to be there again, and makes its file if that is gone.
    ///
    /// # Errors
    /// As [`ProjectWrite::lock_run`].
    pub fn lock_run_or_make(&self, id: &RunId) -> Result<RunLock, StoreError> {
        let locks = self.sub(place::LOCKS)?;
        let name = format!("{id}.lock");
        let path = locks.path().join(&name);
        let file = locks.open_or_create_lock(&name).map_err(|e| io_error("open the run lock", &path, e))?;
        fault::around("lock.run", || locks::take(&file)).map_err(|why| StoreError::Busy { path, why })?;
        Ok(RunLock { id: id.clone(), _file: file })
    }

    /// Takes the run lock if nobody holds it; `None` if somebody does.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn try_lock_run(&self, id: &RunId) -> Result<Option<RunLock>, StoreError> {
        let locks = self.sub(place::LOCKS)?;
        let name = format!("{id}.lock");
        let path = locks.path().join(&name);
        let file = locks.open_lock(&name).map_err(|e| io_error("open the run lock", &path, e))?;
        // An observer holds no run lock: whoever has it now works with it.
        match locks::take_within(&file, std::time::Duration::ZERO) {
            Ok(()) => Ok(Some(RunLock { id: id.clone(), _file: file })),
            Err(TakeError::Held) => Ok(None),
            Err(why @ TakeError::Io(_)) => Err(StoreError::Busy { path, why }),
        }
    }

    /// Fills `staging/<id>/` with what a run begins with.
    ///
    /// # Errors
    /// As the operating system says; nothing is left behind then but what a sweep removes.
    pub fn stage(&self, file: &RunFile) -> Result<Staged, StoreError> {
        let staging = self.sub(place::STAGING)?;
        let run = file.id.clone();
        let dir = staging
            .make(run.as_str())
            .map_err(|e| io_error("make", &staging.path().join(run.as_str()), e))?;
        let mut staged = Staged { run, dir, _maker: None };
        let fill = |staged: &Staged| {
            let lock = take_maker(&staged.dir, &self.sub(place::LOCKS)?, &staged.run)?;
            staged.fill(file)?;
            let locks = self.sub(place::LOCKS)?;
            locks.sync().map_err(|e| io_error("sync", locks.path(), e))?;
            Ok(lock)
        };
        match fill(&staged) {
            Ok(lock) => staged._maker = Some(lock),
            Err(e) => {
                self.give_up(&staged.run, &|_| {})?;
                return Err(e);
            }
        }
        Ok(staged)
    }

    /// Opens a staged run, from the process that becomes its engine.
    ///
    /// # Errors
    /// It is gone: given up by whoever staged it.
    pub fn open_staged(&self, id: &RunId) -> Result<Staged, StoreError> {
        let staging = self.sub(place::STAGING)?;
        let dir = staging
            .sub(id.as_str())
            .map_err(|e| io_error("open the staged run", &staging.path().join(id.as_str()), e))?;
        Ok(Staged { run: id.clone(), dir, _maker: None })
    }

    /// Gives a staged run up: renames it away, so that an engine that comes late loses, and removes it. `last` sees it
    /// in between.
    ///
    /// # Errors
    /// As the operating system says. `Ok(false)`: an engine was faster, and the run is published.
    pub fn give_up(&self, id: &RunId, last: &dyn Fn(&RunRead)) -> Result<bool, StoreError> {
        let staging = self.sub(place::STAGING)?;
        let away = format!(".{id}.{}", random_hex(4));
        match fault::around("launch.give-up", || {
            rename(&staging, id.as_str(), &staging, &away, Taken::Refuse)
        }) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(io_error("rename", &staging.path().join(id.as_str()), e)),
        }
        erase_staged(&staging, &away, id, last)?;
        Ok(true)
    }

    /// Publishes a staged run: takes its engine lock there, names the engine in the record, then renames it into `runs/`.
    ///
    /// # Errors
    /// The staging directory was given up meanwhile, or the operating system refused.
    pub fn publish(&self, staged: Staged, engine: Identity) -> Result<EngineRun, StoreError> {
        let Staged { run, mut dir, _maker } = staged;
        let mut engine_lock = None;
        let mut run_lock = None;
        if at::MOVES_WITH_OPEN_FILES {
            engine_lock = Some(take_engine_lock(&dir)?);
        } else {
            // An open file holds its directory in place here. Whoever acts on the run waits for the run lock instead.
            run_lock = Some(self.lock_run(&run)?);
        }
        // Whoever sees the run can wait for its engine, and all that was staged is durable.
        let record = Record { engine: Some(engine), ..Record::new() };
        match dir.write_once(name::STATE, &record) {
            Ok(()) => {}
            // An engine before this one died here.
            Err(WriteError::Exists(_)) => dir.replace(name::STATE, &record)?,
            Err(e) => return Err(e.into()),
        }
        let (staging, runs) = (self.sub(place::STAGING)?, self.sub(place::RUNS)?);
        fault::around("launch.publish", || {
            rename(&staging, run.as_str(), &runs, run.as_str(), Taken::Refuse)
        })
        .map_err(|e| io_error("publish", &staging.path().join(run.as_str()), e))?;
        runs.sync().map_err(|e| io_error("sync", runs.path(), e))?;
        dir.moved_to(runs.path().join(run.as_str()));
        let lock = match engine_lock {
            Some(lock) => lock,
            None => take_engine_lock(&dir)?,
        };
        drop(run_lock);
        Ok(EngineRun { run: RunWrite { id: run, dir }, _lock: lock })
    }

    /// Takes a published run up again: under the run lock, with its engine lock taken, and its stop request put
    /// aside, so that the new engine does not obey the old one.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if an engine holds its lock; [`StoreError::Forbidden`] if it cannot be resumed; as the
    /// operating system says.
    pub fn take_up(
        &self,
        lock: &RunLock,
        engine: Identity,
        proven: Option<Outcome>,
    ) -> Result<EngineRun, StoreError> {
        let run = self.run(lock)?;
        let file = take_engine_lock(&run.dir)?;
        let record: Record = match run.dir.read_json(name::STATE) {
            Observation::Known(record) => record,
            Observation::Absent => {
                return Err(io_error("read", &run.dir.path().join(name::STATE), io::ErrorKind::NotFound));
            }
            Observation::Unknown(why) => return Err(StoreError::Unreadable(why)),
        };
        let record = record.counting(run.attempts()?);
        let next = record.resumed(engine, proven)?;
        let aside = format!("stop.{}.json", record.rev);
        match fault::around("resume.put-stop-aside", || {
            rename(&run.dir, name::STOP, &run.dir, &aside, Taken::Refuse)
        }) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(io_error("put aside", &run.dir.path().join(name::STOP), e)),
        }
        run.dir.replace(name::STATE, &next)?;
        Ok(EngineRun { run, _lock: file })
    }

    /// Removes staged runs whose makers are gone: nobody holds their locks. `last` sees each before it is erased.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn sweep_staging(&self, last: &dyn Fn(&RunRead)) -> Result<(), StoreError> {
        let staging = self.sub(place::STAGING)?;
        let names = staging.names().map_err(|e| io_error("list", staging.path(), e))?;
        for entry in names.iter().filter_map(|n| n.to_str()) {
            let Ok(dir) = staging.sub(entry) else { continue };
            if let Ok(id) = RunId::parse(entry) {
                if is_abandoned(&dir, &self.sub(place::LOCKS)?, &id) {
                    self.give_up(&id, last)?;
                }
            } else if let Some(id) = given_up(entry) {
                erase_staged(&staging, entry, &id, last)?;
            }
        }
        Ok(())
    }

    /// A published run, for an act that holds the run lock.
    ///
    /// # Errors
    /// It is not there, cannot be opened, or a newer loopmux wrote in it.
    pub fn run(&self, lock: &RunLock) -> Result<RunWrite, StoreError> {
        let runs = self.sub(place::RUNS)?;
        let path = runs.path().join(lock.id.as_str());
        let dir = runs.sub(lock.id.as_str()).map_err(|e| io_error("open", &path, e))?;
        if let Some(file) = newer(&dir) {
            return Err(file.into());
        }
        Ok(RunWrite { id: lock.id.clone(), dir })
    }

    /// The control sessions, for changing: exclusive while the guard lives.
    ///
    /// # Errors
    /// Somebody holds the lock for longer than a window takes to be made.
    pub fn control(&self) -> Result<Control<'_>, StoreError> {
        let lock = "control.lock";
        if matches!(self.dir.has(lock), Observation::Absent) {
            match self.dir.create_empty(lock) {
                Ok(_) | Err(WriteError::Exists(_)) => {}
                Err(e) => return Err(e.into()),
            }
        }
        let path = self.dir.path().join(lock);
        let file = self.dir.open_lock(lock).map_err(|e| io_error("open", &path, e))?;
        fault::around("lock.control", || locks::take_within(&file, std::time::Duration::from_secs(60)))
            .map_err(|why| StoreError::Busy { path, why })?;
        Ok(Control { project: self, _lock: file })
    }
}

/// The lock of whoever stages a run.
fn take_maker(staged: &Dir, locks: &Dir, id: &RunId) -> Result<File, StoreError> {
    let path = staged.path();
    let file = locks::open_maker(staged, locks, id).map_err(|e| io_error("open", path, e))?;
    locks::take(&file).map_err(|why| StoreError::Busy { path: path.to_owned(), why })?;
    Ok(file)
}

fn take_engine_lock(run: &Dir) -> Result<File, StoreError> {
    let path = run.path().join(name::ENGINE_LOCK);
    let lock = run.open_lock(name::ENGINE_LOCK).map_err(|e| io_error("open", &path, e))?;
    fault::around("lock.engine", || locks::take(&lock)).map_err(|why| StoreError::Busy { path, why })?;
    Ok(lock)
}

/// Exclusive access to `control.json`.
#[derive(Debug)]
pub struct Control<'p> {
    project: &'p ProjectWrite,
    _lock: File,
}

impl Control<'_> {
    /// The file's content; empty where there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self) -> Result<ControlFile, StoreError> {
        match self.project.dir.read_json("control.json") {
            Observation::Known(file) => Ok(file),
            Observation::Absent => Ok(ControlFile { schema: SCHEMA, ..ControlFile::default() }),
            Observation::Unknown(why) => Err(StoreError::Unreadable(why)),
        }
    }

    /// Replaces it.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn write(&self, file: &ControlFile) -> Result<(), StoreError> {
        Ok(self.project.dir.replace("control.json", file)?)
    }
}

/// How long an empty staging directory is taken for one that was just made.
const JUST_MADE: u64 = 120;

/// Whether nobody makes a run of this staging directory any more. Its maker locks it before it writes anything into it,
/// and its engine has its own lock.
fn is_abandoned(dir: &Dir, locks: &Dir, id: &RunId) -> bool {
    if locks::probe_maker(dir, locks, id) != Lease::Free {
        return false;
    }
    match dir.names() {
        Ok(names) if names.is_empty() => {
            let Ok(stat) = dir.at().stat() else { return false };
            let made = u64::try_from(stat.modified.0).unwrap_or(u64::MAX);
            (super::files::now_ms() / 1000).saturating_sub(made) > JUST_MADE
        }
        Ok(_) => matches!(locks::probe(dir, name::ENGINE_LOCK), Lease::Free | Lease::NoFile),
        Err(_) => false,
    }
}

/// The run of a staging directory that was renamed away.
fn given_up(name: &str) -> Option<RunId> {
    let (id, _) = name.strip_prefix('.')?.split_once('.')?;
    RunId::parse(id).ok()
}

/// Erases a staging directory that was renamed away. Two may be at it.
fn erase_staged(staging: &Dir, name: &str, id: &RunId, last: &dyn Fn(&RunRead)) -> Result<(), StoreError> {
    let path = staging.path().join(name);
    match staging.sub(name) {
        Ok(dir) => last(&RunRead::at(id.clone(), dir)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(io_error("open", &path, e)),
    }
    match std::fs::remove_dir_all(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &path, e)),
        _ => Ok(()),
    }
}

/// A run in `staging/`: nobody else sees it yet.
#[derive(Debug)]
pub struct Staged {
    run: RunId,
    dir: Dir,
    /// Held by its maker: as long as it is, nobody sweeps it.
    _maker: Option<File>,
}

impl Staged {
    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.run
    }

    /// The open directory.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    fn fill(&self, file: &RunFile) -> Result<(), StoreError> {
        self.dir.write_new(name::RUN, file)?;
        self.dir.create_new(name::ENGINE_LOCK)?;
        for below in [name::ATTEMPTS, name::ENGINE] {
            self.dir.make(below).map_err(|e| io_error("make", &self.dir.path().join(below), e))?;
        }
        Ok(())
    }
}

/// A published run, for writing. Who writes its record must hold the engine lock, or the run lock with the
/// engine lock free.
#[derive(Debug)]
pub struct RunWrite {
    id: RunId,
    dir: Dir,
}

impl RunWrite {
    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The open directory.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The same run, for reading.
    ///
    /// # Errors
    /// The directory cannot be opened once more.
    pub fn read(&self) -> io::Result<RunRead> {
        Ok(RunRead::at(
            self.id.clone(),
            self.dir.sub(".").map(|mut d| {
                d.moved_to(self.dir.path().to_owned());
                d
            })?,
        ))
    }

    /// Appends to the journal.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn journal(&self, event: &Event) -> Result<(), StoreError> {
        Ok(journal::append(&self.dir, event)?)
    }

    /// Asks for a stop. A request that is there already stays.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn request_stop(&self, _lock: &RunLock, stop: &StopFile) -> Result<(), StoreError> {
        match self.dir.write_once(name::STOP, stop) {
            Ok(()) | Err(WriteError::Exists(_)) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Writes the record of a run that no engine drives: the run lock is held, and the engine lock was seen free
    /// under it.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if an engine holds its lock; [`StoreError::Forbidden`] if the record permits no such
    /// change.
    pub fn change_record_without_engine(&self, lock: &RunLock, change: Change) -> Result<Record, StoreError> {
        match locks::probe(&self.dir, name::ENGINE_LOCK) {
            Lease::Free | Lease::NoFile => {}
            Lease::Held => {
                return Err(StoreError::Busy {
                    path: self.dir.path().join(name::ENGINE_LOCK),
                    why: TakeError::Held,
                });
            }
            Lease::Unknown(why) => return Err(StoreError::Unreadable(why)),
        }
        self.change_record(lock, change)
    }

    /// The number of the latest attempt that has a directory; 0 where there is none.
    fn attempts(&self) -> Result<u32, StoreError> {
        let read = self.read().map_err(|e| io_error("open", self.dir.path(), e))?;
        match read.attempt_numbers() {
            Observation::Known(numbers) => Ok(numbers.last().copied().unwrap_or(0)),
            Observation::Absent => Ok(0),
            Observation::Unknown(why) => Err(StoreError::Unreadable(why)),
        }
    }

    /// Re-reads the record right before the write.
    fn change_record(&self, _lock: &RunLock, change: Change) -> Result<Record, StoreError> {
        let record: Record = match self.dir.read_json(name::STATE) {
            Observation::Known(record) => record,
            Observation::Absent => {
                return Err(io_error("read", &self.dir.path().join(name::STATE), io::ErrorKind::NotFound));
            }
            Observation::Unknown(why) => return Err(StoreError::Unreadable(why)),
        };
        let record = match &change {
            Change::Launch { .. } => record,
            Change::Started | Change::Pause { .. } | Change::End { .. } => record.counting(self.attempts()?),
        };
        let next = record.after(change)?;
        self.dir.replace(name::STATE, &next)?;
        Ok(next)
    }
}

/// A run whose engine lock this process holds.
#[derive(Debug)]
pub struct EngineRun {
    run: RunWrite,
    _lock: File,
}

impl EngineRun {
    /// The run.
    pub fn run(&self) -> &RunWrite {
        &self.run
    }

    /// Writes the record, under the run lock.
    ///
    /// # Errors
    /// [`StoreError::Forbidden`] if the record permits no such change; otherwise as the operating system says.
    pub fn change_record(&self, project: &ProjectWrite, change: Change) -> Result<Record, StoreError> {
        let lock = project.lock_run(&self.run.id)?;
        self.run.change_record(&lock, change)
    }

    /// Makes the directory of an attempt.
    ///
    /// # Errors
    /// It exists, or the operating system refused.
    pub fn make_attempt(&self, n: u32) -> Result<Dir, StoreError> {
        let path = self.run.dir.path().join(name::ATTEMPTS);
        let attempts = self.run.dir.sub(name::ATTEMPTS).map_err(|e| io_error("open", &path, e))?;
        let dir =
            attempts.make(&n.to_string()).map_err(|e| io_error("make", &path.join(n.to_string()), e))?;
        attempts.sync().map_err(|e| io_error("sync", &path, e))?;
        Ok(dir)
    }
}
