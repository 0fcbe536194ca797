//! What delete, archive and clean have in common: the report, and how a refusal is told.

use super::page::{clock, quoted, shown};
use super::{CliError, Context, ErrorCode, Outcome};
use crate::backends;
use crate::ops::inside;
use crate::ops::recover::{self, Settled};
use crate::ops::refusal::{Fact, Refusal, WayOut};
use crate::ops::remove::NotRemoved;
use crate::run::files::MuxRef;
use crate::run::id::RunId;
use crate::run::store::{ProjectRead, RunRead};
use crate::run::write::{ProjectWrite, StoreError};
use crate::verdict::Observation;
use loopmux_mux::Multiplexer;
use schemars::JsonSchema;
use serde::Serialize;

/// `data` of `delete --json`, `archive --json` and `clean --json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RemovalReport {
    /// Runs whose directories are gone, archived ones among them.
    pub removed: Vec<RemovedRun>,
    /// Runs that are in an archive.
    pub archived: Vec<ArchivedRun>,
    /// Runs that stay where they are.
    pub kept: Vec<KeptRun>,
    /// Runs that were put aside.
    pub quarantined: Vec<QuarantinedRun>,
    /// With `--dry-run`: runs that would be removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub would_remove: Vec<RemovedRun>,
    /// With `--dry-run`: runs that would be archived.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub would_archive: Vec<RemovedRun>,
}

/// A run whose directory is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RemovedRun {
    /// Its id.
    pub run: String,
}

/// A run in an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ArchivedRun {
    /// Its id.
    pub run: String,
    /// The archive.
    pub file: String,
    /// Its length.
    pub bytes: Option<u64>,
    /// SHA-256 of the archive, in hex digits.
    pub sha256: Option<String>,
}

/// A run that stays where it is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KeptRun {
    /// Its id.
    pub run: String,
    /// Why.
    pub reason: String,
    /// The contract's code of a refusal or failure; `null` for a run that nothing was to be done with.
    pub code: Option<ErrorCode>,
    /// Processes that are alive.
    pub holders: Vec<super::report::ProcessReport>,
}

/// A run that was put aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuarantinedRun {
    /// Its id.
    pub run: String,
    /// The directory that it is in now.
    pub dir: String,
}

impl RemovalReport {
    /// What a person reads.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for one in &self.archived {
            let size = one.bytes.map(|b| format!(", {b} bytes")).unwrap_or_default();
            out.push_str(&format!("archived      {}  {}{size}\n", one.run, shown(&one.file)));
        }
        for one in self.removed.iter().filter(|r| !self.archived.iter().any(|a| a.run == r.run)) {
            out.push_str(&format!("removed       {}\n", one.run));
        }
        for one in &self.would_archive {
            out.push_str(&format!("would archive {}\n", one.run));
        }
        for one in &self.would_remove {
            out.push_str(&format!("would remove  {}\n", one.run));
        }
        for one in &self.quarantined {
            out.push_str(&format!("quarantined   {}  {}\n", one.run, shown(&one.dir)));
        }
        out
    }

    /// The same, with every run that stays.
    pub fn text_with_kept(&self) -> String {
        let line = |k: &KeptRun| format!("kept          {}  {}\n", k.run, shown(&k.reason));
        let kept: String = self.kept.iter().map(line).collect();
        let text = self.text() + &kept;
        if text.is_empty() { "nothing to clean\n".to_owned() } else { text }
    }

    /// Notes a run that was not removed, and gives the error for it.
    pub fn keep(&mut self, id: &RunId, act: &str, why: &NotRemoved) -> CliError {
        let error = error(id, act, why);
        let holders = match why {
            NotRemoved::Refused(r) => {
                r.facts.iter().filter_map(|f| f.process.as_ref()).map(Into::into).collect()
            }
            _ => Vec::new(),
        };
        self.kept.push(KeptRun { run: id.to_string(), reason: reason(why), code: Some(error.code), holders });
        error
    }
}

fn reason(why: &NotRemoved) -> String {
    match why {
        NotRemoved::Refused(r) => r.facts.iter().map(Fact::line).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

/// The error for one run that was not removed.
fn error(id: &RunId, act: &str, why: &NotRemoved) -> CliError {
    match why {
        NotRemoved::Refused(refusal) => refused(id, refusal),
        NotRemoved::Gone(_) => {
            CliError::new(ErrorCode::NotFound, format!("there is no run {id}, or not any more"))
        }
        NotRemoved::Store(e) => {
            let code = match e {
                StoreError::Busy { .. } => ErrorCode::Busy,
                StoreError::Unreadable(_) | StoreError::Forbidden(_) => ErrorCode::RefusedUnknown,
                _ => ErrorCode::Io,
            };
            CliError::new(code, format!("run {id} was not {act}: {e}"))
        }
        NotRemoved::Tree(e) => CliError::new(ErrorCode::Io, format!("run {id} was not {act}: {e}")),
        NotRemoved::PartlyErased(e) => {
            CliError::new(ErrorCode::Io, format!("run {id} was moved to trash and only partly erased: {e}"))
                .hint("the next delete, archive or clean goes on with it")
        }
        NotRemoved::NotArchived(e) => {
            CliError::new(ErrorCode::Io, format!("run {id} was not archived, and is where it was: {e}"))
        }
    }
}

fn refused(id: &RunId, refusal: &Refusal) -> CliError {
    let short = id.short();
    let (code, message) = if refusal.is_certain() {
        (ErrorCode::RefusedAlive, format!("something of run {short} is alive"))
    } else {
        (ErrorCode::RefusedUnknown, format!("it is not proven that nothing of run {short} is alive"))
    };
    let mut error = CliError::new(code, message).detail("run", id.as_str());
    for fact in &refusal.facts {
        error = error.note(match &fact.process {
            Some(p) => shown(&format!("{} (started {})", fact.line(), clock(p.started_ms))),
            None => shown(&fact.text),
        });
    }
    let mut ways = refusal.ways_out.iter().flat_map(|way| way_out(way, id));
    let first = ways.next();
    for way in ways {
        error = error.note(way);
    }
    match first {
        Some(way) => error.hint(way),
        None => error,
    }
}

fn way_out(way: &WayOut, id: &RunId) -> Vec<String> {
    match way {
        WayOut::Stop => vec![format!("to end it:  loopmux stop {id}")],
        WayOut::Status => vec![format!("the evidence:  loopmux status {id}")],
        WayOut::Cleanup => vec!["to close what is left in the multiplexer:  loopmux cleanup".to_owned()],
        WayOut::Unproven => vec![format!("to put it aside without proof:  loopmux delete --unproven {id}")],
        WayOut::Delete => vec![format!("to remove it without an archive:  loopmux delete {id}")],
        WayOut::ByHand(words) => {
            let typed = |words: &[std::ffi::OsString]| {
                words.iter().map(|w| quoted(&w.to_string_lossy())).collect::<Vec<_>>().join(" ")
            };
            vec![
                format!("to look at it:  {}", typed(&words.look)),
                format!("to end it:  {}", typed(&words.end)),
            ]
        }
    }
}

/// One error for several runs: what is alive counts first, then what is unknown, then the rest.
pub fn of_all(errors: Vec<CliError>) -> Option<CliError> {
    let rank = |e: &CliError| match e.code {
        ErrorCode::RefusedAlive => 0,
        ErrorCode::RefusedUnknown => 1,
        ErrorCode::Busy => 2,
        ErrorCode::NotFound => 4,
        _ => 3,
    };
    let many = errors.len();
    let mut errors = errors;
    errors.sort_by_key(rank);
    let mut errors = errors.into_iter();
    let first = errors.next()?;
    Some(if many == 1 {
        first
    } else {
        errors.fold(first, |e, other| e.note(other.page().trim_end().to_owned()))
    })
}

/// Ends a command: prints what was done, and gives the error for what was not.
///
/// # Errors
/// The error for what was not done, with the report beside it.
pub fn finish(ctx: &Context, report: &RemovalReport, errors: Vec<CliError>) -> Outcome {
    finish_with(ctx, report, errors, RemovalReport::text)
}

/// The same for a clean, which names every run that stays.
///
/// # Errors
/// As [`finish`].
pub fn finish_clean(ctx: &Context, report: &RemovalReport, errors: Vec<CliError>) -> Outcome {
    finish_with(ctx, report, errors, RemovalReport::text_with_kept)
}

fn finish_with(
    ctx: &Context,
    report: &RemovalReport,
    errors: Vec<CliError>,
    text: fn(&RemovalReport) -> String,
) -> Outcome {
    let error = of_all(errors);
    if let Some(error) = error {
        if !ctx.out().json() {
            ctx.out().text(&text(report))?;
        }
        return Err(error.with_data(report));
    }
    ctx.out().report(report, text)?;
    Ok(0)
}

/// The project of an act on its runs.
pub struct Yard {
    /// For reading.
    pub read: ProjectRead,
    /// For writing.
    pub project: ProjectWrite,
    /// The state directory's id.
    pub state: String,
    /// What interrupted removals had left.
    pub settled: Vec<Settled>,
}

/// Opens the project, and settles what interrupted removals have left; `None` where it has no runs and never had any.
///
/// # Errors
/// The state directory cannot be used.
pub fn enter(ctx: &Context) -> Result<Option<Yard>, CliError> {
    let Some(mut yard) = look(ctx)? else { return Ok(None) };
    yard.settled = recover::settle_all(&yard.project)?;
    for one in &yard.settled {
        ctx.out().note(&match one {
            Settled::PutBack(id) => format!("put back run {id}, whose removal was interrupted"),
            Settled::Erased(id) => format!("finished the removal of run {id}, which was interrupted"),
            Settled::Left(id, why) => format!("warning: what is left of run {id} stays in trash: {why}"),
        });
    }
    Ok(Some(yard))
}

/// The same for an act that only tells what it would do: nothing is settled.
///
/// # Errors
/// The state directory cannot be used.
pub fn look(ctx: &Context) -> Result<Option<Yard>, CliError> {
    let Some(read) = ctx.runs()? else { return Ok(None) };
    let store = ctx.write_store()?;
    let project = store.project_by_key(read.key())?;
    Ok(Some(Yard { read, project, state: store.state_id().to_owned(), settled: Vec::new() }))
}

/// A run that a command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// This one.
    Run(RunId),
    /// One whose interrupted removal was just finished.
    Finished(RunId),
}

/// Refuses what can be no reference, before anything is opened or made.
///
/// # Errors
/// [`ErrorCode::Usage`].
pub fn check(references: &[String]) -> Result<(), CliError> {
    references.iter().try_for_each(|r| super::context::check_reference(r))
}

/// The runs that references mean, each once; none of them is touched where one reference is wrong.
///
/// # Errors
/// As [`Context::resolve`].
pub fn named(ctx: &Context, yard: Option<&Yard>, references: &[String]) -> Result<Vec<Named>, CliError> {
    let mut all = Vec::new();
    for reference in references {
        let one = match ctx.resolve(reference) {
            Ok((_, id)) => Named::Run(id),
            Err(e) if e.code == ErrorCode::NotFound => match finished(yard, reference) {
                Some(id) => Named::Finished(id),
                None => return Err(e),
            },
            Err(e) => return Err(e),
        };
        if !all.contains(&one) {
            all.push(one);
        }
    }
    Ok(all)
}

fn finished(yard: Option<&Yard>, reference: &str) -> Option<RunId> {
    yard?.settled.iter().find_map(|one| match one {
        Settled::Erased(id) if id.as_str().starts_with(reference) || id.as_str().ends_with(reference) => {
            Some(id.clone())
        }
        _ => None,
    })
}

/// Makes the backends of records, by this command's settings.
///
/// # Errors
/// The configuration cannot be used.
pub fn opener(
    ctx: &Context,
) -> Result<impl Fn(&MuxRef) -> Result<Box<dyn Multiplexer>, String> + '_, CliError> {
    let settings = ctx.settings()?;
    Ok(move |mux: &MuxRef| backends::open(settings, mux))
}

/// An act that ends one of `runs` from inside its own window goes on in a copy of this process, outside. Gives the
/// exit code if this process lives to see it.
///
/// # Errors
/// The copy could not be started.
pub fn leave_window(ctx: &Context, yard: &Yard, act: &str, runs: &[RunId]) -> Result<Option<u8>, CliError> {
    let open: Vec<RunRead> = runs
        .iter()
        .filter_map(|id| match yard.read.run(id) {
            Observation::Known(run) => Some(run),
            Observation::Absent | Observation::Unknown(_) => None,
        })
        .collect();
    let left = inside::leave(&yard.read.path().join("reports"), act, open.iter())
        .map_err(|e| CliError::new(ErrorCode::Io, e.to_string()))?;
    let Some(copy) = left else { return Ok(None) };
    let file = copy.file.clone();
    ctx.out().note(&format!(
        "this window is the run's own; going on outside it, the result goes to {}",
        file.display()
    ));
    let (text, code) = copy
        .wait()
        .map_err(|e| CliError::new(ErrorCode::Io, format!("cannot read {}: {e}", file.display())))?;
    ctx.out().bytes(text.as_bytes())?;
    Ok(Some(code))
}
