//! `loopmux mux`, `mux ls`, `mux set`: the multiplexers, their sessions, and the choice between them.

use super::Context;
use super::args::{MuxArgs, MuxCommand};
use super::error::{CliError, Outcome};
use super::page::{self, Cell, Column, shown};
use crate::backends::{self, Seen};
use crate::config::{self, BackendChoice};
use crate::observe::{Ownership, ownership};
use crate::verdict::Observation;
use loopmux_mux::{Answered, Scope, Snapshot, Tags};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// `data` of `mux --json`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MuxReport {
    /// Every backend.
    pub backends: Vec<BackendReport>,
    /// The name of the one that is used.
    pub selected: Option<String>,
}

/// One backend.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BackendReport {
    /// Its name.
    pub name: String,
    /// The platform that it is for.
    pub platform: String,
    /// Where its program is.
    pub found: Option<String>,
    /// The program's version.
    pub version: Option<String>,
    /// The oldest version that works.
    pub floor: Option<String>,
    /// It can be used.
    pub usable: bool,
    /// It is the one that is used.
    pub selected: bool,
    /// Why it is the one that is used.
    pub why: Option<String>,
    /// Why it cannot be used.
    pub trouble: Option<String>,
    /// The socket that is asked.
    pub socket: Option<String>,
    /// The server that answers there.
    pub server: Option<ServerReport>,
    /// Why no server answers there.
    pub no_server: Option<String>,
    /// What a person should know of client and server.
    pub warning: Option<String>,
}

/// A server that answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServerReport {
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// How many panes it has.
    pub panes: usize,
}

/// `data` of `mux ls --json`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SessionsReport {
    /// The backend that was asked.
    pub backend: String,
    /// The socket.
    pub socket: String,
    /// The server that answered.
    pub server: Option<ServerReport>,
    /// Every mux session; `null` where there is no answer.
    pub sessions: Option<Vec<SessionReport>>,
    /// Why there is no answer.
    pub trouble: Option<String>,
}

/// A mux session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionReport {
    /// Its name now.
    pub name: String,
    /// Its id on its server.
    pub id: String,
    /// Whose it is; `null` where the records here cannot be read.
    pub ownership: Option<Ownership>,
    /// The run that its tags name; `ctl` for a control session.
    pub run: Option<String>,
    /// How many windows it has.
    pub windows: usize,
    /// How many clients are attached to it.
    pub attached: u32,
    /// Runs of this project that have a window in it and are not named by its own tags.
    pub holds: Vec<String>,
}

/// `data` of `mux set --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SetReport {
    /// The file that was written.
    pub file: String,
    /// What it says now.
    pub backend: String,
    /// Another setting that ranks before the file, and says something else.
    pub overridden_by: Option<String>,
}

/// Executes the command.
///
/// # Errors
/// The configuration cannot be used, or there is no multiplexer to be asked.
pub fn execute(ctx: &Context, args: &MuxArgs) -> Outcome {
    match &args.command {
        None => show(ctx),
        Some(MuxCommand::Ls) => list(ctx),
        Some(MuxCommand::Set { name }) => set(ctx, *name),
    }
}

fn show(ctx: &Context) -> Outcome {
    let seen = backends::survey(ctx.settings()?);
    let selected = seen.iter().find(|s| s.selected.is_some()).map(|s| s.name.to_owned());
    let report = MuxReport { backends: seen.iter().map(BackendReport::of).collect(), selected };
    ctx.out().report(&report, show_text)?;
    Ok(0)
}

impl BackendReport {
    fn of(seen: &Seen) -> Self {
        let mut report = Self {
            name: seen.name.to_owned(),
            platform: seen.platform.to_owned(),
            found: seen.found.as_ref().ok().map(|p| p.display().to_string()),
            version: None,
            floor: seen.floor.map(str::to_owned),
            usable: false,
            selected: seen.selected.is_some(),
            why: seen.selected.clone(),
            trouble: seen.backend.as_ref().err().map(ToString::to_string),
            socket: None,
            server: None,
            no_server: None,
            warning: None,
        };
        if let Ok(mux) = &seen.backend {
            let probe = mux.probe();
            report.usable = probe.refused.is_none();
            report.trouble = probe.refused.map(|t| t.to_string());
            report.version = probe.version;
            report.socket = Some(mux.socket().display().to_string());
            if report.usable {
                match mux.snapshot(Scope::Everything) {
                    Snapshot::Answered(answered) => {
                        let client = report.version.as_deref().unwrap_or_default();
                        report.warning = backends::skew(seen.name, client, &answered.version);
                        report.server = Some(ServerReport::of(&answered));
                    }
                    Snapshot::NotServed(t) | Snapshot::Unknown(t) => report.no_server = Some(t.to_string()),
                }
            }
        }
        report
    }
}

impl ServerReport {
    fn of(answered: &Answered) -> Self {
        let panes: BTreeSet<&str> = answered.panes.iter().map(|p| p.pane.as_str()).collect();
        Self { pid: answered.server_pid, version: answered.version.clone(), panes: panes.len() }
    }
}

fn show_text(report: &MuxReport) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    for b in &report.backends {
        let mark = if b.selected { "*" } else { " " };
        let version = b.version.as_deref().unwrap_or("");
        let _ = writeln!(out, "{mark} {} {version}  ({})", page::styled(&b.name, page::HEADING), b.platform);
        let mut fact = |head: &str, text: &Option<String>| {
            if let Some(text) = text {
                let _ = writeln!(out, "    {head:<9} {}", shown(text));
            }
        };
        fact("program", &b.found);
        fact("needs", &b.floor.as_ref().map(|floor| format!("{floor} or newer")));
        fact("used", &b.why.as_ref().map(|why| format!("yes, {why}")));
        fact("trouble", &b.trouble);
        fact("socket", &b.socket);
        let server = b.server.as_ref().map(|s| format!("pid {}, {}, {} panes", s.pid, s.version, s.panes));
        fact("server", &server.or_else(|| b.no_server.as_ref().map(|why| format!("none answers: {why}"))));
        fact("warning", &b.warning);
    }
    out
}

fn list(ctx: &Context) -> Outcome {
    let selected = backends::select(ctx.settings()?)?;
    let mux = &*selected.mux;
    let (server, sessions, trouble) = match mux.snapshot(Scope::Everything) {
        Snapshot::Answered(answered) => {
            let sessions = sessions(ctx, &answered)?;
            (Some(ServerReport::of(&answered)), Some(sessions), None)
        }
        // Nobody serves there, so nothing is listed there.
        Snapshot::NotServed(trouble) => (None, Some(Vec::new()), Some(trouble.to_string())),
        Snapshot::Unknown(trouble) => (None, None, Some(trouble.to_string())),
    };
    let socket = mux.socket().display().to_string();
    let report = SessionsReport { backend: mux.name().to_owned(), socket, server, sessions, trouble };
    ctx.out().report(&report, |r| list_text(r, ctx.out().columns()))?;
    Ok(0)
}

fn sessions(ctx: &Context, answered: &Answered) -> Result<Vec<SessionReport>, CliError> {
    let (state, key, project) = (ctx.store()?.state_id(), ctx.key()?, ctx.runs()?);
    let whose = |tags: Option<&Tags>| match ownership(tags, &state, &key, project.as_ref()) {
        Observation::Known(whose) => Some(whose),
        Observation::Absent | Observation::Unknown(_) => None,
    };
    let mut by_id: BTreeMap<&str, Vec<&loopmux_mux::PaneRow>> = BTreeMap::new();
    for row in &answered.panes {
        by_id.entry(row.session.as_str()).or_default().push(row);
    }
    let mut sessions: Vec<SessionReport> = by_id
        .into_iter()
        .filter_map(|(id, rows)| {
            let first = rows.first()?;
            let own = first.session_tags.as_ref();
            let windows: BTreeSet<&str> = rows.iter().map(|r| r.window.as_str()).collect();
            let holds: BTreeSet<String> = rows
                .iter()
                .filter_map(|r| r.pane_tags.as_ref())
                .filter(|tags| own.is_none_or(|own| own.run != tags.run))
                .filter(|tags| whose(Some(tags)) == Some(Ownership::Ours))
                .map(|tags| tags.run.clone())
                .collect();
            Some(SessionReport {
                name: first.session_name.clone(),
                id: id.to_owned(),
                ownership: whose(own),
                run: own.map(|tags| tags.run.clone()),
                windows: windows.len(),
                attached: first.attached,
                holds: holds.into_iter().collect(),
            })
        })
        .collect();
    sessions.sort_by(|a, b| {
        (a.ownership != Some(Ownership::Ours), &a.name).cmp(&(b.ownership != Some(Ownership::Ours), &b.name))
    });
    Ok(sessions)
}

fn list_text(report: &SessionsReport, columns: Option<usize>) -> String {
    let mut out = String::new();
    let sessions = report.sessions.as_deref().unwrap_or_default();
    if !sessions.is_empty() {
        let column = |heading, shrinks_to| Column { heading, shrinks_to };
        let heads = [
            column("session", Some(12)),
            column("id", None),
            column("whose", None),
            column("run", Some(8)),
            column("windows", None),
            column("clients", None),
        ];
        let rows: Vec<Vec<Cell>> = sessions.iter().map(session_row).collect();
        out = page::table(&heads, &rows, columns);
    }
    if let Some(trouble) = &report.trouble {
        let (backend, socket) = (&report.backend, shown(&report.socket));
        let what = match report.sessions {
            Some(_) => "no server answers",
            None => "nobody can tell what is there",
        };
        out.push_str(&format!("{backend} at {socket}: {what}\n  {}\n", shown(trouble)));
    }
    if sessions.iter().any(|s| s.ownership == Some(Ownership::Foreign)) {
        out.push_str("foreign: of another state directory, or without a record in this one\n");
    }
    out
}

fn session_row(s: &SessionReport) -> Vec<Cell> {
    let whose = match s.ownership {
        Some(Ownership::Ours) => "ours",
        Some(Ownership::OtherProject) => "other-project",
        Some(Ownership::Untagged) => "untagged",
        Some(Ownership::Foreign) => "foreign",
        None => "unknown",
    };
    let mut run = s.run.clone().unwrap_or_default();
    if !s.holds.is_empty() {
        run = format!("{run} (with {})", s.holds.join(", ")).trim_start().to_owned();
    }
    vec![
        Cell::from(&s.name),
        Cell::from(&s.id),
        Cell::from(whose),
        Cell::from(run),
        Cell::from(s.windows.to_string()),
        Cell::from(s.attached.to_string()),
    ]
}

fn set(ctx: &Context, name: BackendChoice) -> Outcome {
    let file = config::set_backend(ctx.root()?, name)?;
    let now = &ctx.settings()?.backend;
    let overridden_by = (now.value != name).then(|| now.source.to_string());
    let report = SetReport { file: file.display().to_string(), backend: name.to_string(), overridden_by };
    ctx.out().report(&report, |r| {
        let by = r.overridden_by.as_ref().map(|by| format!("{by} says otherwise, and ranks before it\n"));
        format!("{}: [mux] backend = {:?}\n{}", shown(&r.file), r.backend, by.unwrap_or_default())
    })?;
    // The file may be meant for another machine: it is written, and said.
    if let Err(unusable) = backends::select(ctx.settings()?) {
        ctx.out().note(&format!("warning: {unusable}"));
    }
    Ok(0)
}
