//! Reading many runs, and asking the multiplexer once about all of them.

use super::error::{CliError, ErrorCode};
use super::{Context, page};
use crate::backends;
use crate::observe::{self, Look, Looks, RunView};
use crate::run::files::{ControlEntry, MuxRef};
use crate::run::id::RunId;
use crate::run::store::{ProjectRead, RunRead};
use crate::run::text::OsText;
use crate::verdict::{EngineSeen, Observation, Why};
use loopmux_mux::{Answered, PaneRow, Snapshot};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Looks with the settings of this command.
///
/// # Errors
/// The configuration cannot be used.
pub fn looks(ctx: &Context) -> Result<Looks<'_>, CliError> {
    let settings = ctx.settings()?;
    Ok(Looks::new(move |mux: &MuxRef| backends::open(settings, mux)))
}

/// All runs of a project by disk and kernel alone, newest first. A run that cannot be read is among them.
///
/// # Errors
/// The runs cannot be listed.
pub fn runs(project: &ProjectRead, limit: Option<usize>) -> Result<Vec<RunView>, CliError> {
    let ids = match project.run_ids() {
        Observation::Known(ids) => ids,
        Observation::Absent => Vec::new(),
        Observation::Unknown(why) => {
            return Err(CliError::new(ErrorCode::Io, format!("cannot list the runs: {why}")));
        }
    };
    // Whatever was made in the same second as the last one wanted may be newer.
    let wanted = match limit.and_then(|n| n.checked_sub(1)).and_then(|last| ids.get(last)) {
        Some(last) => ids.iter().take_while(|id| id.second() >= last.second()).count(),
        None if limit == Some(0) => 0,
        None => ids.len(),
    };
    let mut views = in_brief(project, &ids[..wanted]);
    views.sort_by(newest_first);
    Ok(views)
}

/// Reads runs on two threads: what a listing waits for is the kernel, file by file.
fn in_brief(project: &ProjectRead, ids: &[RunId]) -> Vec<RunView> {
    const WORTH_A_THREAD: usize = 32;
    let read = |ids: &[RunId]| -> Vec<RunView> {
        ids.iter().filter_map(|id| seen(id, project.run(id), observe::run_in_brief)).collect()
    };
    if ids.len() < WORTH_A_THREAD {
        return read(ids);
    }
    let (here, there) = ids.split_at(ids.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| read(there));
        let mut views = read(here);
        match other.join() {
            Ok(more) => views.extend(more),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        views
    })
}

fn seen(id: &RunId, read: Observation<RunRead>, how: impl Fn(&RunRead) -> RunView) -> Option<RunView> {
    match read {
        Observation::Known(read) => Some(how(&read)),
        Observation::Absent => None,
        Observation::Unknown(why) => Some(observe::unreadable(id, &why)),
    }
}

/// One run by disk and kernel alone; `None` if it was removed meanwhile.
pub fn run(project: &ProjectRead, id: &RunId) -> Option<RunView> {
    seen(id, project.run(id), |read| observe::run(read, &mut Looks::none()))
}

/// The order of listings. An id tells the second, and within one the run's own file tells.
pub fn newest_first(a: &RunView, b: &RunView) -> Ordering {
    let created = |v: &RunView| v.file.known().map(|f| f.created_ms);
    (b.id.second(), created(b), &b.id).cmp(&(a.id.second(), created(a), &a.id))
}

/// Asks about everything that the multiplexer can explain: runs that are not over, and windows that were kept.
pub fn explain<'v>(views: impl IntoIterator<Item = &'v mut RunView>, looks: &mut Looks<'_>) {
    for view in views {
        let kept = view.file.known().is_some_and(|f| f.park);
        if kept || !view.status.row().is_final || view.has_leftovers() {
            observe::explain(view, looks);
        }
    }
}

/// Where the control sessions of a project are.
///
/// # Errors
/// It cannot be read.
pub fn control_sockets(project: &ProjectRead) -> Result<Vec<MuxRef>, Why> {
    let control = match project.control() {
        Observation::Known(control) => control,
        Observation::Absent => return Ok(Vec::new()),
        Observation::Unknown(why) => return Err(why),
    };
    // The program that is selected now is asked; the entry names none.
    let socket = |entry: ControlEntry| MuxRef {
        backend: entry.backend,
        binary: OsText::from(""),
        socket: entry.socket,
        version: None,
    };
    Ok(control.sessions.into_iter().map(socket).collect())
}

/// What a multiplexer said when it was asked once for all runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LookReport {
    /// The backend's name.
    pub backend: String,
    /// The socket.
    pub socket: String,
    /// The class of the reply; `null` where the backend itself cannot be used.
    pub class: Option<String>,
    /// The process of the server that answered.
    pub server_pid: Option<u32>,
    /// Why there is no answer.
    pub trouble: Option<String>,
}

/// Every look that was taken.
pub fn looks_taken(looks: &Looks<'_>) -> Vec<LookReport> {
    let mut reports: Vec<LookReport> =
        looks.taken().filter_map(|(backend, socket, look)| report_look(backend, socket, look)).collect();
    reports.sort_by(|a, b| (&a.backend, &a.socket).cmp(&(&b.backend, &b.socket)));
    reports
}

fn report_look(backend: &str, socket: &Path, look: &Look) -> Option<LookReport> {
    let (class, server_pid, trouble) = match look {
        Look::NotAsked => return None,
        Look::NoBackend(why) => (None, None, Some(why.clone())),
        Look::Asked(side) => match &side.snapshot {
            Snapshot::Answered(answered) => (Some("answered"), Some(answered.server_pid), None),
            Snapshot::NotServed(trouble) | Snapshot::Unknown(trouble) => {
                (Some(trouble.class.as_str()), None, Some(trouble.to_string()))
            }
        },
    };
    Some(LookReport {
        backend: backend.to_owned(),
        socket: socket.display().to_string(),
        class: class.map(str::to_owned),
        server_pid,
        trouble,
    })
}

/// Why the multiplexer could not be asked, a line each, for the foot of a page.
pub fn troubles(looks: &[LookReport]) -> String {
    looks
        .iter()
        .filter_map(|l| {
            Some(format!("{} could not be asked: {}\n", l.backend, page::shown(l.trouble.as_ref()?)))
        })
        .collect()
}

/// Everything that a look listed.
fn answers<'a>(looks: &'a Looks<'_>) -> impl Iterator<Item = &'a Answered> {
    looks.taken().filter_map(|(_, _, look)| match look {
        Look::Asked(side) => match &side.snapshot {
            Snapshot::Answered(answered) => Some(answered),
            Snapshot::NotServed(_) | Snapshot::Unknown(_) => None,
        },
        Look::NotAsked | Look::NoBackend(_) => None,
    })
}

/// How many windows wait for a key after their command has ended. A token tells whose a window is.
pub fn parked(views: &[&RunView], looks: &Looks<'_>) -> usize {
    let mut seen = HashSet::new();
    let by_id: HashMap<&str, &RunView> = views.iter().map(|v| (v.id.as_str(), *v)).collect();
    for answered in answers(looks) {
        for row in &answered.panes {
            let owner = row
                .pane_tags
                .as_ref()
                .and_then(|tags| by_id.get(tags.run.as_str()).filter(|v| state_of(v) == Some(&tags.state)));
            if owner.is_some_and(|view| is_parked(view, row)) {
                seen.insert((answered.server_pid, row.pane.clone()));
            }
        }
    }
    seen.len()
}

fn state_of(view: &RunView) -> Option<&String> {
    view.file.known().map(|f| &f.state)
}

/// The window's command has ended: an attempt by its verdict; an engine, whose window carries another token, when
/// nobody holds the engine lock.
fn is_parked(view: &RunView, row: &PaneRow) -> bool {
    let token = row.pane_tags.as_ref().map(|t| t.token.as_str());
    let attempts = view.attempts.known().map_or(&[][..], Vec::as_slice);
    match attempts.iter().find(|a| a.token() == token) {
        Some(attempt) => attempt.verdict.is_end(),
        None => view.engine.seen == EngineSeen::Gone,
    }
}
