//! Beginning a run: its id and files first, then an engine, here or in a window of the control session.

use super::{Engine, EngineError, Finished, Notice, Signals, Wakes};
use crate::observe::{self, Looks, RunView};
use crate::ops::cleanup;
use crate::ops::control::{self, ControlError, open_engine_window};
use crate::ops::environment::{self, Vars};
use crate::ops::programs::{KeeperProgram, KeeperTrouble};
use crate::ops::stop::engine_inbox;
use crate::process::{self, Handle};
use crate::run::dir::{Dir, WriteError};
use crate::run::files::{ExitFile, MuxRef, RefusedFile, RunFile, SCHEMA, Work, name, now_ms};
use crate::run::id::RunId;
use crate::run::journal::Event;
use crate::run::record::Outcome;
use crate::run::store::RunRead;
use crate::run::text::OsText;
use crate::run::write::{EngineRun, ProjectWrite, Staged, StoreError, WriteStore};
use crate::verdict::{End, Observation, Obstacle, Verdict, permit};
use crate::wake::{self, AsSource, Inbox};
use loopmux_mux::{CreateError, Multiplexer};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a detached engine may take to publish its run.
const PUBLISH_PATIENCE: Duration = Duration::from_secs(20);

/// What a person asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// A label.
    pub name: Option<String>,
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// The program's directory, absolute.
    pub cwd: PathBuf,
    /// The longest it may take.
    pub timeout: Option<Duration>,
    /// How long it may take to end when asked.
    pub grace: Duration,
    /// Windows stay after the end.
    pub park: bool,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Set on top of the caller's environment.
    pub extra: Vec<(OsString, OsString)>,
}

/// A run that was not begun, or an engine that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The state directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// No window for the engine.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The engine could not go on.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Something of the operating system.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What came back.
        source: std::io::Error,
    },
    /// The keeper program cannot be used; nothing was launched.
    #[error(transparent)]
    Keeper(#[from] KeeperTrouble),
    /// The run cannot be resumed.
    #[error("run {id} cannot be resumed: {obstacle}")]
    NotResumable {
        /// Which run.
        id: RunId,
        /// Why.
        obstacle: Obstacle,
    },
    /// The engine's window was made, and no engine came.
    #[error("the engine of run {id} did not begin: {why}; nothing was launched")]
    NoEngine {
        /// The run that was given up.
        id: RunId,
        /// What was seen.
        why: String,
    },
}

/// Reserves an id and fills the staging directory.
///
/// # Errors
/// As the operating system says; nothing was launched.
pub fn stage(
    store: &WriteStore,
    project: &ProjectWrite,
    root: &Path,
    asked: &Asked,
    mux: MuxRef,
) -> Result<(Staged, RunFile), StoreError> {
    let windows = cleanup::Windows::of(project);
    project.sweep_staging(&|run| windows.remember(run))?;
    drop(windows);
    let id = project.reserve_id()?;
    let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    let file = RunFile {
        schema: SCHEMA,
        id,
        name: asked.name.clone(),
        project: OsText::from(root.as_os_str()),
        state: store.state_id().to_owned(),
        created_ms: now_ms(),
        host: process::host().clone(),
        work: Work::Command {
            argv: asked.argv.iter().map(|a| OsText(a.clone())).collect(),
            cwd: OsText::from(asked.cwd.as_os_str()),
        },
        mux,
        size: asked.size,
        park: asked.park,
        timeout_ms: asked.timeout.map(millis),
        grace_ms: millis(asked.grace),
    };
    Ok((project.stage(&file)?, file))
}

/// The caller's environment, and what was asked on top of it.
pub type Environment = (Vars, Vars);

/// Publishes a staged run and drives it in this process.
///
/// # Errors
/// [`BeginError`].
pub fn drive(
    project: &ProjectWrite,
    staged: Staged,
    file: &RunFile,
    mux: &dyn Multiplexer,
    environment: Environment,
    notice: impl Fn(&Notice),
) -> Result<Finished, BeginError> {
    let signals = take_signals()?;
    let run = project.publish(staged, process::current())?;
    tell(run.run().dir());
    go(project, &run, file, mux, environment, signals, notice)
}

/// Takes a run up again and drives its next attempt in this process.
///
/// # Errors
/// [`BeginError`]; [`StoreError::Forbidden`] where the run cannot be resumed.
pub fn resume(
    project: &ProjectWrite,
    read: &RunRead,
    file: &RunFile,
    mux: &dyn Multiplexer,
    environment: Environment,
    notice: impl Fn(&Notice),
) -> Result<Finished, BeginError> {
    let signals = take_signals()?;
    let run = {
        let lock = project.lock_run(read.id())?;
        project.run(&lock)?;
        // Under the run lock: what is proven ended now stays ended, and no other engine can begin.
        let view = observe::run(read, &mut Looks::none());
        if let Some(obstacle) = obstacle(&view) {
            return Err(BeginError::NotResumable { id: read.id().clone(), obstacle });
        }
        let proven = view.verdict().and_then(Outcome::of);
        project.take_up(&lock, process::current(), proven)?
    };
    tell(run.run().dir());
    run.run().journal(&Event::new("engine", "resumed").text("with the environment of whoever resumed it"))?;
    go(project, &run, file, mux, environment, signals, notice)
}

/// What forbids another attempt, or leaves open whether one is permitted.
pub fn obstacle(view: &RunView) -> Option<Obstacle> {
    let attempts = view
        .attempts
        .as_ref()
        .map(|list| list.iter().map(|a| (a.n, &a.evidence, &a.verdict)).collect::<Vec<_>>());
    let permit = permit(view.status, &view.engine.seen, &attempts);
    match permit.resumable {
        Some(true) => None,
        _ => Some(permit.obstacles.into_iter().next().unwrap_or(Obstacle::Status(view.status))),
    }
}

fn take_signals() -> Result<Signals, BeginError> {
    Signals::take().map_err(|source| BeginError::Io { what: "take signals", source })
}

fn go(
    project: &ProjectWrite,
    run: &EngineRun,
    file: &RunFile,
    mux: &dyn Multiplexer,
    (caller, extra): Environment,
    signals: Signals,
    notice: impl Fn(&Notice),
) -> Result<Finished, BeginError> {
    let keeper = KeeperProgram::find()
        .map_err(|source| BeginError::Io { what: "find the path of this program", source })?;
    // Without a socket the engine looks once a second.
    let inbox = Inbox::bind(&engine_inbox(run.run().dir().path()))
        .inspect_err(|e| tracing::warn!("no socket to be poked at: {e}"))
        .ok();
    let mut engine = Engine {
        project,
        run,
        file,
        mux,
        keeper: &keeper,
        caller,
        extra,
        wakes: Wakes { inbox, signals },
        notice: Box::new(|what: &Notice| {
            if matches!(what, Notice::Started { .. }) {
                tell(run.run().dir());
            }
            notice(what);
        }),
    };
    let finished = engine.drive();
    tell(run.run().dir());
    Ok(finished?)
}

/// Until when whoever detaches waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// An engine drives the run.
    Published,
    /// Its attempt has started, or has come to nothing.
    Begun,
}

/// Puts the engine of a staged run into a window of the control session, and waits until the run is published,
/// or has begun.
///
/// # Errors
/// [`BeginError`]; the run was given up then, and an engine that comes late finds nothing.
pub fn detach(
    project: &ProjectWrite,
    staged: &Staged,
    file: &RunFile,
    mux: &dyn Multiplexer,
    argv: Vec<OsString>,
    environment: Environment,
    until: Until,
) -> Result<(), BeginError> {
    let there = || published(project, &file.id) && (until == Until::Published || begun(project, &file.id));
    let window = Window { dir: staged.dir(), number: 1, file, argv, environment };
    // Its window may stay, or come late, and says why.
    let windows = cleanup::Windows::of(project);
    let remember = |run: &RunRead| windows.remember(run);
    let why = match window.open(project, mux, &there) {
        Ok(None) => return Ok(()),
        Ok(Some(why)) => why,
        Err(e) => {
            project.give_up(&file.id, &remember)?;
            return Err(e);
        }
    };
    // Whoever renames first decides: either the engine published it meanwhile, or it finds nothing.
    if project.give_up(&file.id, &remember)? {
        Err(BeginError::NoEngine { id: file.id.clone(), why })
    } else {
        Ok(())
    }
}

/// Puts an engine that takes a run up again into a window of the control session, and waits until it has.
///
/// # Errors
/// [`BeginError`]; an engine that comes late may still take it up, and says so in the record.
pub fn detach_resume(
    project: &ProjectWrite,
    read: &RunRead,
    file: &RunFile,
    mux: &dyn Multiplexer,
    argv: Vec<OsString>,
    environment: Environment,
) -> Result<(), BeginError> {
    let (run, before) = {
        let lock = project.lock_run(read.id())?;
        let run = project.run(&lock)?;
        let view = observe::run(read, &mut Looks::none());
        if let Some(obstacle) = obstacle(&view) {
            return Err(BeginError::NotResumable { id: read.id().clone(), obstacle });
        }
        (run, view.record.known().map(|r| r.rev))
    };
    let there = || read.record().known().map(|r| r.rev) != before;
    let number = environment::engine_numbers(run.dir()).last().map_or(1, |n| n + 1);
    let window = Window { dir: run.dir(), number, file, argv, environment };
    match window.open(project, mux, &there)? {
        None => Ok(()),
        Some(_) if there() => Ok(()),
        Some(why) => {
            // A keeper that comes late starts nothing without its environment.
            environment::forget_engine(run.dir(), number)?;
            Err(BeginError::NoEngine { id: file.id.clone(), why })
        }
    }
}

/// An engine's window to be made.
struct Window<'a> {
    dir: &'a Dir,
    number: u32,
    file: &'a RunFile,
    argv: Vec<OsString>,
    environment: Environment,
}

impl Window<'_> {
    /// Makes the window and waits until `there`; gives why it did not come to that.
    fn open(
        self,
        project: &ProjectWrite,
        mux: &dyn Multiplexer,
        there: &dyn Fn() -> bool,
    ) -> Result<Option<String>, BeginError> {
        let keeper = KeeperProgram::find()
            .map_err(|source| BeginError::Io { what: "find the path of this program", source })?;
        keeper.check()?;
        let inbox = Inbox::bind(&format!("b-{}", crate::run::dir::random_hex(6))).ok();
        let (env, extra) = self.environment;
        let request = control::Request {
            file: self.file,
            dir: self.dir,
            number: self.number,
            argv: self.argv,
            env: environment::carrying(env, extra),
            keeper: &keeper,
            poke: inbox.as_ref().map(Inbox::path),
        };
        let (pane, trouble) = match open_engine_window(project, &request, mux) {
            Ok(created) => (created.pane_pid.and_then(|pid| Handle::watch(pid).ok().flatten()), None),
            Err(ControlError::Create(CreateError::MayAppear(trouble))) => (None, Some(trouble.to_string())),
            Err(e) => {
                environment::forget_engine(self.dir, self.number)?;
                return Err(e.into());
            }
        };
        let end = Instant::now() + PUBLISH_PATIENCE;
        loop {
            if there() {
                return Ok(None);
            }
            let ended = pane.as_ref().is_some_and(|p| wake::is_ready(p.as_source()));
            if let Some(why) = came_to_nothing(self.dir, self.number) {
                return Ok(Some(why));
            }
            if ended {
                return Ok(Some("its window closed at once".to_owned()));
            }
            if Instant::now() >= end {
                let late = || "its window did not start in time".to_owned();
                return Ok(Some(trouble.unwrap_or_else(late)));
            }
            let pane = pane.iter().map(AsSource::as_source);
            let sources: Vec<_> = inbox.iter().map(AsSource::as_source).chain(pane).collect();
            if wake::wait(&sources, Some(wake::SAFETY)).is_ok()
                && let Some(inbox) = &inbox
            {
                inbox.drain();
            }
        }
    }
}

/// What the keeper of an engine's window says where no engine runs in it. If a run has begun meanwhile, that counts
/// more.
fn came_to_nothing(run_dir: &Dir, number: u32) -> Option<String> {
    let dir = run_dir.sub(name::ENGINE).and_then(|d| d.sub(&number.to_string())).ok()?;
    match dir.read_json::<RefusedFile>(name::REFUSED) {
        Observation::Known(refused) => return Some(refused.why),
        Observation::Absent | Observation::Unknown(_) => {}
    }
    match dir.read_json::<ExitFile>(name::EXIT) {
        Observation::Known(exit) => Some(match exit.end {
            End::Code(code) => format!("it exited {code} at once, and its window says why"),
            End::Signal(signal) => format!("signal {signal} ended it at once"),
            End::SpawnError(why) => why,
        }),
        Observation::Absent | Observation::Unknown(_) => None,
    }
}

fn published(project: &ProjectWrite, id: &RunId) -> bool {
    let there = project.dir().sub(crate::run::store::place::RUNS).map(|runs| runs.has(id.as_str()));
    matches!(there, Ok(Observation::Known(())))
}

/// The attempt of a run is known to have started, or to have ended.
fn begun(project: &ProjectWrite, id: &RunId) -> bool {
    let run = project.dir().sub(crate::run::store::place::RUNS).and_then(|runs| runs.sub(id.as_str()));
    let Ok(dir) = run else { return false };
    let view = observe::run(&RunRead::at(id.clone(), dir), &mut Looks::none());
    !view.status.row().active || !matches!(view.verdict(), None | Some(Verdict::Launching))
}

/// Wakes whoever detached the engine, to look again: the address is in the launch file of the engine's window.
fn tell(run_dir: &Dir) {
    let Some(latest) = environment::engine_numbers(run_dir).last().map(u32::to_string) else { return };
    let launch = run_dir
        .sub(name::ENGINE)
        .and_then(|d| d.sub(&latest))
        .map(|d| d.read_json::<crate::run::files::LaunchFile>(name::LAUNCH));
    if let Ok(Observation::Known(launch)) = launch
        && let Some(path) = launch.poke
    {
        wake::poke(Path::new(path.as_os_str()));
    }
}
