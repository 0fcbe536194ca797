//! `loopmux list`: the runs of a project, newest first.

use super::Context;
use super::args::ListArgs;
use super::error::{CliError, ErrorCode, Outcome};
use super::gather::{self, LookReport};
use super::page::{self, Cell, Column};
use super::refs::Refs;
use super::report::RunReport;
use crate::observe::{Looks, RunView};
use crate::run::files::now_ms;
use crate::run::store::ProjectRead;
use crate::verdict::{MuxObject, Observation, Verdict};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// `data` of `list --json`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ListReport {
    /// The runs, newest first.
    pub runs: Vec<ListedRun>,
    /// How many windows wait for a key after their command has ended; `null` where nobody could be asked.
    pub parked: Option<usize>,
    /// What the multiplexers said.
    pub mux: Vec<LookReport>,
    /// Projects that have runs, and are no longer at their path.
    pub vanished: Vec<String>,
}

/// A run in a list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ListedRun {
    /// The shortest reference that means this run alone, within its project.
    pub r#ref: String,
    /// Its window.
    pub window: WindowReport,
    /// The run.
    #[serde(flatten)]
    pub run: RunReport,
}

/// The window of a run's latest attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WindowReport {
    /// What is known of it.
    pub state: WindowState,
    /// Its id on its server, where it is listed.
    pub id: Option<String>,
}

/// What is known of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowState {
    /// Its program runs in it.
    Open,
    /// Its program has ended, and it waits for a key.
    Parked,
    /// Its program runs, and it is gone.
    Gone,
    /// Its program has ended, and nobody looked for it.
    Closed,
    /// Cannot be told.
    Unknown,
}

/// Executes the command.
///
/// # Errors
/// The runs cannot be listed.
pub fn execute(ctx: &Context, args: &ListArgs) -> Outcome {
    let projects = projects(ctx, args)?;
    let mut looks = gather::looks(ctx)?;
    let mut found = Vec::new();
    let before_filter = if args.status.is_empty() { args.limit } else { None };
    for project in &projects {
        let control = gather::control_sockets(project).unwrap_or_else(|why| {
            ctx.out().note(&format!("cannot look for parked windows: {why}"));
            Vec::new()
        });
        let views = looks.during(&control, || gather::runs(project, before_filter))?;
        let refs = match before_filter {
            None => Refs::of_all(&views),
            Some(_) => Refs::of_project(project),
        };
        found.extend(views.into_iter().map(|view| Found { short: refs.of(&view.id), view }));
    }
    found.sort_by(|a, b| gather::newest_first(&a.view, &b.view));
    gather::explain(found.iter_mut().map(|f| &mut f.view), &mut looks);
    let parked = parked(&found, &looks);
    found.retain(|f| args.status.is_empty() || args.status.contains(&f.view.status));
    found.truncate(args.limit.unwrap_or(usize::MAX));
    let runs: Vec<ListedRun> = found.into_iter().map(Found::report).collect();
    let vanished = if runs.is_empty() || args.all_projects { vanished(ctx)? } else { Vec::new() };
    let report = ListReport { runs, parked, mux: gather::looks_taken(&looks), vanished };
    ctx.out().report(&report, |r| text(r, args.all_projects, ctx.out().columns()))?;
    if report.runs.is_empty() && !ctx.out().json() {
        ctx.out().note(&nothing_there(ctx, args, &report)?);
    }
    Ok(0)
}

/// A run, and how a person may refer to it.
struct Found {
    short: String,
    view: RunView,
}

impl Found {
    fn report(self) -> ListedRun {
        ListedRun { r#ref: self.short, window: window(&self.view), run: RunReport::of(&self.view) }
    }
}

fn projects(ctx: &Context, args: &ListArgs) -> Result<Vec<ProjectRead>, CliError> {
    if !args.all_projects {
        return Ok(ctx.runs()?.into_iter().collect());
    }
    let store = ctx.store()?;
    let keys = match store.project_keys() {
        Observation::Known(keys) => keys,
        Observation::Absent => Vec::new(),
        Observation::Unknown(why) => return Err(CliError::new(ErrorCode::Io, why.to_string())),
    };
    let mut projects = Vec::new();
    for key in keys {
        match store.project(&key) {
            Observation::Known(project) => projects.push(project),
            Observation::Absent => {}
            Observation::Unknown(why) => return Err(CliError::new(ErrorCode::Io, why.to_string())),
        }
    }
    Ok(projects)
}

/// Nobody asked means that nothing could be parked.
fn parked(found: &[Found], looks: &Looks<'_>) -> Option<usize> {
    let unanswered = gather::looks_taken(looks).iter().any(|l| l.trouble.is_some());
    let views: Vec<&RunView> = found.iter().map(|f| &f.view).collect();
    match gather::parked(&views, looks) {
        0 if unanswered => None,
        n => Some(n),
    }
}

fn window(view: &RunView) -> WindowReport {
    let state = |state| WindowReport { state, id: None };
    let Some(latest) = view.latest() else { return state(WindowState::Unknown) };
    let ended = latest.verdict.is_end();
    if let Some(pane) = &latest.pane {
        let open = if ended { WindowState::Parked } else { WindowState::Open };
        return WindowReport { state: open, id: Some(pane.window.to_string()) };
    }
    if ended {
        return state(WindowState::Closed);
    }
    match (&latest.verdict, &latest.evidence.window) {
        (Verdict::Running { window_gone: Some(_) }, _) | (_, MuxObject::Absent) => state(WindowState::Gone),
        _ => state(WindowState::Unknown),
    }
}

/// Paths of projects that have runs, and are no longer there.
fn vanished(ctx: &Context) -> Result<Vec<String>, CliError> {
    let store = ctx.store()?;
    let Observation::Known(keys) = store.project_keys() else { return Ok(Vec::new()) };
    let mut gone = Vec::new();
    for key in keys {
        let Observation::Known(project) = store.project(&key) else { continue };
        let (Observation::Known(file), Observation::Known(ids)) = (project.file(), project.run_ids()) else {
            continue;
        };
        let is_gone = Path::new(file.path.as_os_str())
            .symlink_metadata()
            .is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound);
        if is_gone && !ids.is_empty() {
            gone.push(file.path.display());
        }
    }
    Ok(gone)
}

fn text(report: &ListReport, all_projects: bool, columns: Option<usize>) -> String {
    if report.runs.is_empty() {
        return String::new();
    }
    const fn column(heading: &'static str, shrinks_to: Option<usize>) -> Column {
        Column { heading, shrinks_to }
    }
    let mut heads = vec![
        column("ref", None),
        column("name", Some(8)),
        column("status", None),
        column("agent", Some(8)),
        column("attempt", None),
        column("age", None),
        column("window", None),
    ];
    if all_projects {
        heads.insert(1, column("project", Some(8)));
    }
    let now = now_ms();
    let rows: Vec<Vec<Cell>> = report.runs.iter().map(|r| row(r, all_projects, now)).collect();
    let mut page = page::table(&heads, &rows, columns);
    if report.runs.iter().any(|r| r.run.leftovers == Some(true)) {
        page.push_str("* its program has ended, and something of it still runs: see loopmux status\n");
    }
    match report.parked {
        None | Some(0) => {}
        Some(1) => page
            .push_str("1 window is parked: its command has ended, and Enter or loopmux cleanup closes it\n"),
        Some(n) => {
            page.push_str(&format!(
                "{n} windows are parked: their commands have ended, and Enter or loopmux cleanup closes them\n"
            ));
        }
    }
    // What is over needs no multiplexer.
    if report.runs.iter().any(|r| !r.run.status.row().is_final) {
        page.push_str(&gather::troubles(&report.mux));
    }
    page
}

fn row(listed: &ListedRun, all_projects: bool, now: u64) -> Vec<Cell> {
    let run = &listed.run;
    let mark = if run.leftovers == Some(true) { "*" } else { "" };
    let status = format!("{}{mark}", run.status);
    let age =
        run.created.as_deref().and_then(page::parse_rfc3339).map(|at| page::age(now.saturating_sub(at)));
    let window = match listed.window.state {
        WindowState::Open => listed.window.id.clone().unwrap_or_default(),
        WindowState::Parked => format!("{} parked", listed.window.id.as_deref().unwrap_or_default()),
        WindowState::Gone => "gone".to_owned(),
        WindowState::Closed => String::new(),
        WindowState::Unknown => "?".to_owned(),
    };
    let or_unknown = |text: &Option<String>| Cell::from(text.as_deref().unwrap_or("?"));
    let mut cells = vec![
        Cell::from(&listed.r#ref),
        Cell::from(run.name.as_deref().unwrap_or("-")),
        Cell::styled(&status, page::style(run.status.row().colour)),
        or_unknown(&run.agent),
        or_unknown(&run.attempt.map(|n| n.to_string())),
        or_unknown(&age),
        Cell::from(window),
    ];
    if all_projects {
        let folder = run.project.as_deref().map(|p| p.rsplit('/').next().unwrap_or(p).to_owned());
        cells.insert(1, or_unknown(&folder));
    }
    cells
}

fn nothing_there(ctx: &Context, args: &ListArgs, report: &ListReport) -> Result<String, CliError> {
    let what = if args.status.is_empty() { "no runs" } else { "no such runs" };
    let place = if args.all_projects {
        format!("in {}", ctx.state_dir()?.value.display())
    } else {
        format!("in the project {}", ctx.root()?.display())
    };
    let mut note = format!("{what} {}", page::shown(&place));
    for path in &report.vanished {
        let path = page::shown(path);
        note.push_str(&format!(
            "\nthe project {path} is gone, and its runs are kept: loopmux list --project {path}"
        ));
    }
    Ok(note)
}
