//! Whose windows there are, by the records of this project alone.

use super::super::engine_windows::engine_windows;
use super::super::names;
use super::super::remove::{self, Ground};
use super::{Report, is_gone};
use crate::observe::{AttemptView, belongs_here};
use crate::ops::look;
use crate::process::{self, Identity, Life};
use crate::run::files::{ExitFile, LaunchFile, LeftWindow, MuxRef, StartFile, name};
use crate::run::id::RunId;
use crate::run::store::{ProjectRead, RunRead};
use crate::run::write::{Control, ProjectWrite, StoreError};
use crate::verdict::Observation;
use loopmux_mux::Tags;
use std::cell::RefCell;
use std::path::PathBuf;

/// What a recorded token stands for.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The tags.
    pub tags: Tags,
    /// The run.
    pub run: String,
    /// What the window is, in words.
    pub what: String,
    /// The session's name as it was made.
    pub session: String,
    /// Its multiplexer.
    pub mux: MuxRef,
    /// The server that had it, where a receipt names one.
    pub server: Option<Identity>,
    /// The program around which the window was made, where a receipt names it.
    pub keeper: Option<Identity>,
    /// It has ended, by proof, or why not.
    pub ended: Result<(), String>,
}

/// Every token of a project's records.
pub struct Owners {
    state: String,
    key: String,
    all: Vec<Owner>,
    sessions: Vec<(Tags, MuxRef)>,
    left: Vec<LeftWindow>,
    /// Names that sessions of runs bear.
    names: Vec<(String, String)>,
}

impl Owners {
    /// Reads the records, of one run or of all. Each run is looked at under its lock.
    ///
    /// # Errors
    /// The runs cannot be listed.
    pub(super) fn of(
        ground: &Ground<'_>,
        read: &ProjectRead,
        only: Option<&RunId>,
    ) -> Result<Self, StoreError> {
        let ids = match (only, read.run_ids()) {
            (Some(id), _) => vec![id.clone()],
            (None, Observation::Known(ids)) => ids,
            (None, Observation::Absent) => Vec::new(),
            (None, Observation::Unknown(why)) => return Err(StoreError::Unreadable(why)),
        };
        let control = match read.control() {
            Observation::Known(control) => control,
            Observation::Absent => Default::default(),
            Observation::Unknown(why) => return Err(StoreError::Unreadable(why)),
        };
        let at = |backend: &str, socket: &crate::run::text::OsText| MuxRef {
            backend: backend.to_owned(),
            binary: "".into(),
            socket: socket.clone(),
            version: None,
        };
        let mut owners = Self {
            state: ground.state.to_owned(),
            key: read.key().to_owned(),
            all: Vec::new(),
            sessions: control.sessions.iter().map(|s| (s.tags.clone(), at(&s.backend, &s.socket))).collect(),
            left: control.windows,
            names: Vec::new(),
        };
        for id in &ids {
            owners.add_run(ground, read, id);
        }
        if only.is_none() {
            owners.all.extend(owners.left.iter().map(Owner::of_left));
        }
        Ok(owners)
    }

    fn add_run(&mut self, ground: &Ground<'_>, read: &ProjectRead, id: &RunId) {
        let Observation::Known(run) = read.run(id) else { return };
        remove::settle(&run);
        // Under the run lock no engine can begin, so that what has ended has ended.
        let lock = ground.project.lock_run(id);
        let looked = look::look(&run);
        let ended = match (&lock, looked.prove_ended()) {
            (Err(e), _) => Err(e.to_string()),
            (Ok(_), Err(why)) => Err(why),
            (Ok(_), Ok(())) => Ok(()),
        };
        if let Some(file) = looked.view.file.known() {
            let project = PathBuf::from(file.project.as_os_str());
            let session = names::run_session(&project, read.key(), id.as_str());
            self.names.push((session.to_string(), id.to_string()));
        }
        for attempt in looked.view.attempts.known().map_or(&[][..], Vec::as_slice) {
            self.all.extend(Owner::of_attempt(&run, attempt, &ended));
        }
        self.all.extend(engines(&run, &ended));
    }

    /// What a pane's tags stand for.
    ///
    /// # Errors
    /// The run that they name, if any, and why it is not one that could be ended.
    pub(super) fn of_tags(&self, tags: &Tags) -> Result<&Owner, (String, String)> {
        if let Some(not_ours) = self.not_ours(tags) {
            return Err(not_ours);
        }
        self.all.iter().find(|o| o.tags == *tags).ok_or_else(|| self.no_record(tags))
    }

    /// The run that a session's tags stand for.
    ///
    /// # Errors
    /// As [`Owners::of_tags`].
    pub(super) fn of_session(&self, tags: &Tags) -> Result<String, (String, String)> {
        if let Some(not_ours) = self.not_ours(tags) {
            return Err(not_ours);
        }
        let of_run = self.all.iter().any(|o| o.tags == *tags);
        let of_control = self.sessions.iter().any(|(known, _)| known == tags);
        if of_run || of_control { Ok(tags.run.clone()) } else { Err(self.no_record(tags)) }
    }

    fn not_ours(&self, tags: &Tags) -> Option<(String, String)> {
        if tags.state != self.state {
            return Some((String::new(), format!("it belongs to another state directory ({})", tags.state)));
        }
        (tags.project != self.key)
            .then(|| (tags.run.clone(), format!("it belongs to another project ({})", tags.project)))
    }

    fn no_record(&self, tags: &Tags) -> (String, String) {
        (tags.run.clone(), format!("its tag names run {}, of which there is no such record here", tags.run))
    }

    /// The run whose name a session bears.
    pub(super) fn namesake(&self, session: &str) -> Option<String> {
        let recorded = self.all.iter().find(|o| o.session == session).map(|o| o.run.clone());
        recorded.or_else(|| self.names.iter().find(|(name, _)| name == session).map(|(_, run)| run.clone()))
    }

    /// Every multiplexer that the records name.
    pub(super) fn multiplexers(&self) -> impl Iterator<Item = &MuxRef> {
        self.all.iter().map(|o| &o.mux).chain(self.sessions.iter().map(|(_, mux)| mux))
    }

    /// Windows that may be open on a multiplexer that does not answer: of ended runs, whose first process is not proven
    /// gone, and neither is their server.
    pub(super) fn may_be_open(&self, mux: &MuxRef) -> Vec<&Owner> {
        let there = |o: &&Owner| o.mux.backend == mux.backend && o.mux.socket == mux.socket;
        let may = |o: &&Owner| {
            let keeper = o.keeper.as_ref().is_some_and(|id| process::life(id) != Life::Gone);
            o.ended.is_ok() && keeper && !is_gone(o.server.as_ref())
        };
        self.all.iter().filter(there).filter(may).collect()
    }

    /// Takes windows off the list that are gone: with their first process or their server, by proof; where neither was
    /// recorded, by an answer without them.
    pub(super) fn forget_windows(&self, control: &Control<'_>, report: &Report) -> Result<(), StoreError> {
        if self.left.is_empty() {
            return Ok(());
        }
        let mut file = control.read()?;
        let before = file.windows.len();
        let stays = |w: &LeftWindow| {
            let listed = self.left.iter().any(|known| known.tags == w.tags);
            let told = report.answered.iter().any(|(socket, server)| {
                *socket == w.mux.socket.display() && (w.server.is_none() || *server == w.server)
            });
            let gone = match &w.keeper {
                Some(_) => is_gone(w.keeper.as_ref()),
                None => told && !report.listed.contains(&w.tags),
            };
            !listed || !(is_gone(w.server.as_ref()) || gone)
        };
        file.windows.retain(stays);
        if file.windows.len() == before { Ok(()) } else { control.write(&file) }
    }
}

impl Owner {
    fn of_attempt(run: &RunRead, view: &AttemptView, ended: &Result<(), String>) -> Option<Self> {
        let launch = view.launch.known()?;
        let here = match run.attempt(view.n) {
            Observation::Known(read) => belongs_here(&read, view),
            Observation::Absent => Observation::unknown("its directory is gone"),
            Observation::Unknown(why) => Observation::Unknown(why),
        };
        let what = format!("window of attempt {}", view.n);
        let (server, keeper) = (view.server().cloned(), view.keeper().cloned());
        Some(Self::of(run, launch, what, (server, keeper), in_the_original(here, ended)))
    }

    fn of(
        run: &RunRead,
        launch: &LaunchFile,
        what: String,
        (server, keeper): (Option<Identity>, Option<Identity>),
        ended: Result<(), String>,
    ) -> Self {
        Self {
            tags: launch.tags.clone(),
            run: run.id().to_string(),
            what,
            session: launch.session.to_string(),
            mux: launch.mux.clone(),
            server,
            keeper,
            ended,
        }
    }

    fn of_left(left: &LeftWindow) -> Self {
        Self {
            tags: left.tags.clone(),
            run: left.tags.run.clone(),
            what: "window of the engine".to_owned(),
            session: String::new(),
            mux: left.mux.clone(),
            server: left.server.clone(),
            keeper: None,
            ended: Ok(()),
        }
    }
}

/// A copy of a run's directory proves nothing about the windows of the original.
fn in_the_original(here: Observation<()>, ended: &Result<(), String>) -> Result<(), String> {
    match here {
        Observation::Known(()) => ended.clone(),
        Observation::Absent => {
            Err("the run's directory is a copy, and the window is the original's".to_owned())
        }
        Observation::Unknown(why) => Err(why.to_string()),
    }
}

/// The windows of a run's engines. One whose program has not ended is not over, whatever its lock says.
fn engines(run: &RunRead, ended: &Result<(), String>) -> Vec<Owner> {
    let here = run.dir().identity();
    let mut all = Vec::new();
    for (n, dir) in engine_windows(run) {
        let Observation::Known(launch) = dir.read_json::<LaunchFile>(name::LAUNCH) else { continue };
        let start = dir.read_json::<StartFile>(name::START);
        let start = start.known();
        let belongs = match &here {
            Ok(here) if *here == launch.run_dir => Observation::Known(()),
            Ok(_) => Observation::Absent,
            Err(e) => Observation::unknown(format!("cannot look at the run's directory: {e}")),
        };
        let over = match (dir.read_json::<ExitFile>(name::EXIT), dir.has(name::REFUSED)) {
            (Observation::Known(_), _) | (_, Observation::Known(())) => in_the_original(belongs, ended),
            (Observation::Unknown(why), _) | (_, Observation::Unknown(why)) => Err(why.to_string()),
            (Observation::Absent, Observation::Absent) => {
                Err("the program of its engine's window has not ended".to_owned())
            }
        };
        let ids = (start.and_then(|s| s.server.clone()), start.map(|s| s.keeper.clone()));
        all.push(Owner::of(run, &launch, format!("window of engine {n}"), ids, over));
    }
    all
}

/// Engine windows that may outlive the directories of their runs, to be written down so that a cleanup knows them as ours.
///
/// A list that cannot be written forbids nothing: where the disk is full there is room once the runs are erased, and a
/// second try is made when this is dropped.
pub struct Windows<'p> {
    project: &'p ProjectWrite,
    unwritten: RefCell<Vec<LeftWindow>>,
}

impl<'p> Windows<'p> {
    /// None so far.
    pub fn of(project: &'p ProjectWrite) -> Self {
        Self { project, unwritten: RefCell::default() }
    }

    /// Writes down those of a run that is about to go.
    pub fn remember(&self, run: &RunRead) {
        self.unwritten.borrow_mut().extend(windows_to_remember(run));
        if let Err(e) = self.write() {
            tracing::debug!("the window of the engine of {} is written down later: {e}", run.id());
        }
    }

    fn write(&self) -> Result<(), StoreError> {
        let mut unwritten = self.unwritten.borrow_mut();
        if unwritten.is_empty() {
            return Ok(());
        }
        let control = self.project.control()?;
        let mut file = control.read()?;
        file.windows.retain(|known| !unwritten.iter().any(|w| w.tags == known.tags));
        file.windows.extend(unwritten.iter().cloned());
        control.write(&file)?;
        unwritten.clear();
        Ok(())
    }
}

impl Drop for Windows<'_> {
    fn drop(&mut self) {
        if let Err(e) = self.write() {
            tracing::warn!("the window of an engine stays that no cleanup will know: close it by hand ({e})");
        }
    }
}

fn windows_to_remember(run: &RunRead) -> Vec<LeftWindow> {
    let mut left = Vec::new();
    for (_, dir) in engine_windows(run) {
        let Observation::Known(launch) = dir.read_json::<LaunchFile>(name::LAUNCH) else { continue };
        let start = dir.read_json::<StartFile>(name::START);
        // The window is its keeper's, and goes with it.
        if start.known().is_some_and(|s| process::life(&s.keeper) == Life::Gone) {
            continue;
        }
        let server = start.known().and_then(|s| s.server.clone());
        let keeper = start.known().map(|s| s.keeper.clone());
        left.push(LeftWindow { mux: launch.mux, tags: launch.tags, server, keeper });
    }
    left
}
