//! The control session: the mux session of a project that holds the windows of its detached engines. It is found
//! by its token, never by its name, and made anew when it is gone.

use super::programs::KeeperProgram;
use super::{launch, names};
use crate::observe;
use crate::process;
use crate::run::dir::{Dir, WriteError};
use crate::run::files::{
    ControlEntry, EnvFile, KEEPER_PROTOCOL, LaunchFile, Role, RunFile, SCHEMA, name, now_ms,
};
use crate::run::id::mint_token;
use crate::run::text::OsText;
use crate::run::write::{ProjectWrite, StoreError};
use loopmux_mux::{
    CreateError, CreateSpec, Created, HasSession, Multiplexer, Owned, Placement, ReplyClass, SessionName,
    Snapshot, TagScope, Tags, Trouble,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// An engine window that was not made.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The state directory could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The multiplexer does not say which control session there is.
    #[error("cannot look for the control session: {0}")]
    Unanswered(Trouble),
    /// The window was not made, or nobody can tell.
    #[error(transparent)]
    Create(#[from] CreateError),
}

/// What an engine's window needs.
pub struct Request<'a> {
    /// The run.
    pub file: &'a RunFile,
    /// The run's directory, staged or published.
    pub dir: &'a Dir,
    /// Which engine of the run this is, from 1.
    pub number: u32,
    /// Program and arguments of the engine.
    pub argv: Vec<OsString>,
    /// The caller's environment: the engine's, and through it the agent's.
    pub env: Vec<(OsString, OsString)>,
    /// The keeper.
    pub keeper: &'a KeeperProgram,
    /// Where the caller waits.
    pub poke: Option<&'a Path>,
}

/// Opens a window for an engine in the project's control session, and makes that session if there is none.
///
/// # Errors
/// [`ControlError`]; a window may still appear then, and its engine finds its run given up.
pub fn open_engine_window(
    project: &ProjectWrite,
    request: &Request<'_>,
    mux: &dyn Multiplexer,
) -> Result<Created, ControlError> {
    let file = request.file;
    let path = PathBuf::from(file.project.as_os_str());
    let tags = |run: &str| Tags {
        token: mint_token(),
        project: project.key().to_owned(),
        run: run.to_owned(),
        state: file.state.clone(),
    };
    let control = project.control()?;
    let mut entries = control.read()?;
    let here = |e: &ControlEntry| e.backend == mux.name() && e.socket == file.mux.socket;
    let known = entries.sessions.iter().find(|e| here(e)).cloned();
    let (placement, session) = match find(mux, known.as_ref())? {
        Some(owned) => {
            let name = SessionName::new(owned.session_name())
                .unwrap_or_else(|_| names::control_session(&path, project.key()));
            (Placement::InSession(owned), name)
        }
        None => {
            let name = free_name(mux, names::control_session(&path, project.key()));
            let tags = tags("ctl");
            let entry = ControlEntry {
                backend: mux.name().to_owned(),
                socket: file.mux.socket.clone(),
                tags: tags.clone(),
                name: name.clone(),
            };
            entries.sessions.retain(|e| !here(e));
            entries.sessions.push(entry);
            // The token is on disk before anything carries it.
            control.write(&entries)?;
            (Placement::NewSession { name: name.clone(), tags, size: file.size }, name)
        }
    };
    let title = file.name.clone().unwrap_or_else(|| file.work.agent());
    let window = names::window(&format!("run-{}-{title}", file.id.short()));
    let dir = fill(request, tags(file.id.as_str()), title, session, window.clone())?;
    let spec = CreateSpec {
        placement,
        window,
        tags: dir.1.tags.clone(),
        command: request.keeper.keep(dir.0.path()),
        cwd: path,
    };
    Ok(launch::window(mux, &spec)?)
}

/// The control session that carries the recorded token, on whatever server answers now.
fn find(mux: &dyn Multiplexer, known: Option<&ControlEntry>) -> Result<Option<Owned>, ControlError> {
    let Some(known) = known else { return Ok(None) };
    match observe::ask(mux) {
        Snapshot::Answered(answered) => Ok(answered.owned(&known.tags, TagScope::Session).into_iter().next()),
        Snapshot::NotServed(_) => Ok(None),
        // A server without a session, or one that is loading its configuration.
        Snapshot::Unknown(trouble) if trouble.class == ReplyClass::NoTarget => Ok(None),
        Snapshot::Unknown(trouble) => Err(ControlError::Unanswered(trouble)),
    }
}

/// A namesake without our token is somebody else's; ours then takes another name.
fn free_name(mux: &dyn Multiplexer, wanted: SessionName) -> SessionName {
    match mux.has_session(&wanted) {
        HasSession::Present { .. } => {
            SessionName::new(format!("{wanted}-{}", crate::run::dir::random_hex(2))).unwrap_or(wanted)
        }
        HasSession::AbsentOn { .. } | HasSession::NotServed(_) | HasSession::Unknown(_) => wanted,
    }
}

fn fill(
    request: &Request<'_>,
    tags: Tags,
    title: String,
    session: SessionName,
    window: SessionName,
) -> Result<(Dir, LaunchFile), ControlError> {
    let run = request.dir;
    let io = |source| WriteError::Io { what: "make", path: run.path().join(name::ENGINE), source };
    let dir = run.sub(name::ENGINE).and_then(|d| d.make(&request.number.to_string())).map_err(io)?;
    let launch = LaunchFile {
        schema: SCHEMA,
        protocol: KEEPER_PROTOCOL,
        role: Role::Engine,
        run: request.file.id.to_string(),
        attempt: request.number,
        tags,
        title,
        argv: request.argv.iter().map(|a| OsText(a.clone())).collect(),
        cwd: request.file.project.clone(),
        mux: request.file.mux.clone(),
        session,
        window,
        host: process::host().clone(),
        park: true,
        poke: request.poke.map(|p| OsText::from(p.as_os_str())),
        run_dir: run.identity().map_err(io)?,
        at_ms: now_ms(),
    };
    let vars = request.env.iter().map(|(n, v)| (OsText(n.clone()), OsText(v.clone()))).collect();
    dir.write_once(name::ENV, &EnvFile { schema: SCHEMA, vars })?;
    dir.write_once(name::LAUNCH, &launch)?;
    Ok((dir, launch))
}
