//! Launching one attempt (rules L14, L18): everything that finds and stops it is on disk before the multiplexer
//! is asked for a window.

use super::environment::{self, Own};
use super::names;
use super::programs::KeeperProgram;
use crate::fault;
use crate::observe::{AttemptView, Look, identify_server, look};
use crate::process;
use crate::run::dir::{Dir, WriteError};
use crate::run::files::{
    CreatedFile, EnvFile, KEEPER_PROTOCOL, LaunchFile, Role, RunFile, SCHEMA, Work, name, now_ms,
};
use crate::run::id::mint_token;
use crate::run::locks;
use crate::run::text::OsText;
use crate::run::write::{EngineRun, StoreError};
use loopmux_mux::{
    CreateError, CreateSpec, Created, Multiplexer, Owned, Placement, ReplyClass, TagScope, Tags,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a launch needs besides the run's own file.
pub struct Request<'a> {
    /// The run.
    pub file: &'a RunFile,
    /// The project's key.
    pub project_key: &'a str,
    /// The attempt's number.
    pub attempt: u32,
    /// The caller's environment, and what was asked on top of it.
    pub caller: &'a [(OsString, OsString)],
    /// `--env`.
    pub extra: &'a [(OsString, OsString)],
    /// The keeper.
    pub keeper: &'a KeeperProgram,
    /// Where the engine waits.
    pub poke: Option<&'a Path>,
    /// The run's mux session, where an earlier attempt left it.
    pub session: Option<Owned>,
}

/// The run's mux session, if one of `attempts` made it and it is still there with its token.
pub fn session_of(attempts: &[AttemptView], mux: &dyn Multiplexer) -> Option<Owned> {
    let Look::Asked(side) = look(mux) else { return None };
    let made = attempts.iter().rev().filter_map(|a| Some((a.launch.known()?, side.answer_of(a.server()?)?)));
    made.flat_map(|(launch, answered)| answered.owned(&launch.tags, TagScope::Session)).next()
}

/// An attempt directory that a keeper could run.
#[derive(Debug)]
pub struct Prepared {
    /// The open directory.
    pub dir: Dir,
    /// What is launched.
    pub launch: LaunchFile,
    spec: CreateSpec,
}

/// Fills the attempt's directory. Nothing runs yet.
///
/// # Errors
/// As the operating system says; what was written stays, and reads as launching until it is given up.
pub fn prepare(run: &EngineRun, dir: Dir, request: &Request<'_>) -> Result<Prepared, StoreError> {
    let file = request.file;
    let Work::Command { argv, cwd } = &file.work;
    let project = PathBuf::from(file.project.as_os_str());
    let tags = Tags {
        token: mint_token(),
        project: request.project_key.to_owned(),
        run: file.id.to_string(),
        state: file.state.clone(),
    };
    let title = file.name.clone().unwrap_or_else(|| file.work.agent());
    let run_dir = run.run().dir();
    let launch = LaunchFile {
        schema: SCHEMA,
        protocol: KEEPER_PROTOCOL,
        role: Role::Attempt,
        run: file.id.to_string(),
        attempt: request.attempt,
        tags: tags.clone(),
        title: title.clone(),
        argv: argv.clone(),
        cwd: cwd.clone(),
        mux: file.mux.clone(),
        session: names::run_session(&project, request.project_key, file.id.as_str()),
        window: names::window(&title),
        host: process::host().clone(),
        park: file.park,
        poke: request.poke.map(|p| OsText::from(p.as_os_str())),
        run_dir: run_dir.identity().map_err(|source| {
            StoreError::from(WriteError::Io { what: "look at", path: run_dir.path().to_owned(), source })
        })?,
        at_ms: now_ms(),
    };
    let cwd = PathBuf::from(cwd.as_os_str());
    let own = Own {
        run: file.id.as_str(),
        attempt: request.attempt,
        token: &tags.token,
        result: &dir.path().join("result.json"),
        project: &project,
        cwd: &cwd,
    };
    let vars = environment::of_attempt(request.caller.iter().cloned(), &own, request.extra)
        .into_iter()
        .map(|(n, v)| (OsText(n), OsText(v)))
        .collect();
    if locks::LEASE_IS_MADE_AT_LAUNCH {
        dir.create_new(name::LEASE)?;
    }
    dir.write_passing(name::ENV, &EnvFile { schema: SCHEMA, vars })?;
    // The last one makes the others' names durable with its own.
    dir.write_once(name::LAUNCH, &launch)?;
    let spec = CreateSpec {
        placement: Placement::NewSession {
            name: launch.session.clone(),
            tags: tags.clone(),
            size: file.size,
        },
        window: launch.window.clone(),
        tags,
        command: request.keeper.keep(dir.path()),
        cwd,
    };
    Ok(Prepared { dir, launch, spec })
}

/// How often a window is asked for of a server that ends while it is asked, and the pause before the next time.
const ASKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Asks the multiplexer for a window. A server that goes with its last session when it is asked makes none; whatever it
/// made all the same goes with it, and of two keepers of one directory only one starts.
pub(super) fn window(mux: &dyn Multiplexer, spec: &CreateSpec) -> Result<Created, CreateError> {
    for _ in 1..ASKS {
        match fault::around("launch.create", || mux.create(spec)) {
            Err(CreateError::MayAppear(trouble)) if trouble.class == ReplyClass::ServerLost => {
                std::thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
    mux.create(spec)
}

/// Asks the multiplexer for the window, and writes down what its read-back said.
///
/// # Errors
/// [`CreateError`]; whatever it says, the receipts decide what happened.
pub fn create(prepared: &Prepared, mux: &dyn Multiplexer) -> Result<Created, CreateError> {
    let created = window(mux, &prepared.spec)?;
    let file = CreatedFile {
        schema: SCHEMA,
        server: identify_server(created.server_pid),
        version: created.version.clone(),
        session: created.session.clone(),
        window: created.window.clone(),
        pane: created.pane.clone(),
        pane_pid: created.pane_pid,
        at_ms: now_ms(),
    };
    // The start receipt holds the same, so that a disk that is full right now loses nothing.
    if let Err(e) = prepared.dir.write_new(name::CREATED, &file) {
        tracing::warn!("the window's ids were not written down: {e}");
    }
    Ok(created)
}
