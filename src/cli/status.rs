//! `loopmux status`: one run, its attempts, and the evidence in words.

use super::args::StatusArgs;
use super::error::Outcome;
use super::gather::{self, LookReport};
use super::page::{self, clock, shown, styled};
use super::refs::Refs;
use super::report::{AttemptReport, ProcessReport, RunAndAttempts, RunReport};
use super::{Context, words};
use crate::observe::{self, AttemptView, RunView};
use crate::process::{Identity, Scan};
use crate::run::files::Work;
use crate::run::store::RunRead;
use crate::verdict::{EngineSeen, Lease, Observation, Status, Verdict};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

/// `data` of `status --json`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StatusReport {
    /// The shortest reference that means this run alone, within its project.
    pub r#ref: String,
    /// The run.
    pub run: RunReport,
    /// Its attempts, ascending.
    pub attempts: Vec<AttemptReport>,
    /// What the multiplexer said.
    pub mux: Vec<LookReport>,
}

/// Executes the command.
///
/// # Errors
/// There is no such run, or the reference is ambiguous.
pub fn execute(ctx: &Context, args: &StatusArgs) -> Outcome {
    let (project, id) = ctx.resolve(&args.run)?;
    let mut looks = gather::looks(ctx)?;
    let read = match project.run(&id) {
        Observation::Known(read) => Some(read),
        Observation::Absent => return Err(ctx.gone(&args.run)),
        Observation::Unknown(_) => None,
    };
    let mut view = gather::run(&project, &id).ok_or_else(|| ctx.gone(&args.run))?;
    observe::explain(&mut view, &mut looks);
    let held = read.as_ref().map(|read| held_by(read, &view)).unwrap_or_default();
    let RunAndAttempts { run, mut attempts } = RunAndAttempts::of(&view);
    let keepers = view.attempts.known().map_or(&[][..], Vec::as_slice).iter().map(AttemptView::keeper);
    for ((attempt, scan), keeper) in attempts.iter_mut().zip(&held).zip(keepers) {
        attempt.add_holders(scan.as_ref(), keeper);
    }
    let mux = gather::looks_taken(&looks);
    let report = StatusReport { r#ref: Refs::of_project(&project).of(&id), run, attempts, mux };
    ctx.out().report(&report, |report| Page { view: &view, report, held: &held }.set())?;
    Ok(0)
}

/// Who holds the lease of each attempt; `None` where it is not held.
fn held_by(read: &RunRead, view: &RunView) -> Vec<Option<Scan>> {
    let attempts = view.attempts.known().map_or(&[][..], Vec::as_slice);
    let look = |a: &AttemptView| match (&a.evidence.lease, read.attempt(a.n)) {
        (Lease::Held, Observation::Known(attempt)) => {
            let scan = observe::holders(&attempt);
            // Whoever is older than the keeper cannot have got the lease from it.
            Some(match a.keeper() {
                Some(keeper) => scan.since(keeper),
                None => scan,
            })
        }
        _ => None,
    };
    attempts.iter().map(look).collect()
}

struct Page<'a> {
    view: &'a RunView,
    report: &'a StatusReport,
    held: &'a [Option<Scan>],
}

impl Page<'_> {
    fn set(&self) -> String {
        let mut out = String::new();
        self.head(&mut out);
        let attempts = self.view.attempts.known().map_or(&[][..], Vec::as_slice);
        for (i, attempt) in attempts.iter().enumerate() {
            self.attempt(&mut out, attempt, self.held.get(i).and_then(Option::as_ref));
        }
        for why in &self.report.run.unknown {
            line(&mut out, "unknown", &shown(why));
        }
        for look in self.report.mux.iter().filter(|_| !self.report.run.status.row().is_final) {
            if let Some(trouble) = &look.trouble {
                line(&mut out, &look.backend, &format!("could not be asked: {}", shown(trouble)));
            }
        }
        self.refused(&mut out);
        line(&mut out, "next", &self.next());
        out
    }

    fn head(&self, out: &mut String) {
        let run = &self.report.run;
        let name = run.name.as_deref().map(|n| format!("  {}", shown(n))).unwrap_or_default();
        let mark = if run.leftovers == Some(true) { ", and something of it still runs" } else { "" };
        let status = styled(run.status.as_str(), page::style(run.status.row().colour));
        line(out, "run", &format!("{}{name}   {status}{mark}", styled(&run.id, page::HEADING)));
        if let Some(reason) = &run.reason {
            line(out, "reason", &shown(reason));
        }
        if let Some(file) = self.view.file.known() {
            let Work::Command { argv, cwd } = &file.work;
            let words: Vec<String> = argv.iter().map(|w| page::quoted(&w.display())).collect();
            line(out, "command", &words.join(" "));
            line(out, "directory", &shown(&cwd.display()));
            let ended = self.view.record.known().and_then(|r| r.ended_ms);
            let ended = ended.map(|at| format!(", ended {}", clock(at))).unwrap_or_default();
            line(out, "created", &format!("{}{ended}", clock(file.created_ms)));
        }
        match &self.view.engine.seen {
            EngineSeen::Running => {
                let pid = run.engine.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
                line(out, "engine", &format!("runs{pid}"));
            }
            EngineSeen::Gone if run.status.row().is_final => {}
            EngineSeen::Gone => line(out, "engine", "gone, without an end of the run in its record"),
            EngineSeen::Unknown(why) => line(out, "engine", &format!("unknown: {}", shown(&why.to_string()))),
        }
        if let Some(stop) = self.view.stop.known()
            && !run.status.row().is_final
        {
            line(out, "stop", &format!("asked for at {} by pid {}", clock(stop.at_ms), stop.by.pid));
        }
    }

    fn attempt(&self, out: &mut String, view: &AttemptView, held: Option<&Scan>) {
        let agent = self.report.run.agent.as_deref().unwrap_or("?");
        let verdict = styled(&shown(&words::verdict(view)), verdict_style(&view.verdict));
        let _ = writeln!(out, "{:<9} {}    {verdict}", format!("attempt {}", view.n), shown(agent));
        fact(out, "lease", &words::lease(view));
        for holder in held.map_or(&[][..], |scan| scan.found.as_slice()) {
            fact(out, "", &format!("by {}", process(&ProcessReport::from(holder))));
        }
        let refused = held.map_or(&[][..], |scan| scan.refused.as_slice());
        if let Some(first) = refused.first() {
            let n = refused.len();
            fact(out, "", &format!("{n} processes could not be looked at: {}", shown(&first.why)));
        }
        fact(out, "start", &words::start(view));
        fact(out, "exit", &words::exit(view));
        if let Observation::Known(hangup) = &view.hangup {
            fact(out, "hang-up", &format!("at {}: {}", clock(hangup.at_ms), shown(&hangup.said)));
        }
        if self.view.latest().is_some_and(|latest| latest.n == view.n) {
            fact(out, "session", &shown(&words::session(view)));
        }
        if view.verdict.is_end()
            && view.evidence.lease == Lease::Held
            && held.is_none_or(|s| s.found.is_empty())
        {
            for note in view.leftovers.known().map_or(&[][..], |l| l.processes.as_slice()) {
                fact(out, "left", &process(&ProcessReport::of(note)));
            }
        }
    }

    fn refused(&self, out: &mut String) {
        let run = &self.report.run;
        if run.why_not_removable.is_empty() {
            return;
        }
        let (head, what) = match (run.resumable, run.removable) {
            (Some(false), Some(false)) => ("refused", "removal and resume"),
            (_, Some(false)) => ("refused", "removal"),
            _ => ("unproven", "removal"),
        };
        line(out, head, &format!("{what}: {}", shown(&run.why_not_removable.join("; "))));
    }

    fn next(&self) -> String {
        let short = &self.report.r#ref;
        let mut next = Vec::new();
        let latest = self.view.latest();
        let lives = latest.is_some_and(|a| !a.verdict.is_end()) || self.report.run.leftovers == Some(true);
        if latest.is_some_and(|a| a.pane.is_some()) {
            next.push(format!("loopmux attach {short}"));
        }
        if latest.is_some() {
            let follow = if self.report.run.status == Status::Running { " -f" } else { "" };
            next.push(format!("loopmux logs {short}{follow}"));
        }
        if lives || self.view.engine.seen == EngineSeen::Running {
            next.push(format!("loopmux stop {short}"));
        }
        if self.report.run.resumable == Some(true) {
            next.push(format!("loopmux resume {short}"));
        }
        // Where it is not proven yet, the deletion looks for itself.
        if self.report.run.removable != Some(false) {
            next.push(format!("loopmux delete {short}"));
        }
        if next.is_empty() {
            next.push("loopmux list".to_owned());
        }
        next.join("   ·   ")
    }
}

/// A line of the run.
fn line(out: &mut String, head: &str, text: &str) {
    // Writing to a String does not fail.
    let _ = writeln!(out, "{head:<9} {text}");
}

/// A line of an attempt.
fn fact(out: &mut String, head: &str, text: &str) {
    let _ = writeln!(out, "  {head:<10} {text}");
}

/// A process for a person.
pub fn process(process: &ProcessReport) -> String {
    let started = process.started.as_deref().and_then(page::parse_rfc3339);
    let started = started.map(|at| format!(" (started {})", clock(at))).unwrap_or_default();
    format!("pid {} `{}`{started}", process.pid, shown(&process.command))
}

fn verdict_style(verdict: &Verdict) -> anstyle::Style {
    let status = match verdict {
        Verdict::Launching => Status::Starting,
        Verdict::Running { .. } => Status::Running,
        Verdict::Unknown { .. } => Status::Unknown,
        ended => Status::of_verdict(ended).unwrap_or(Status::Unknown),
    };
    page::style(status.row().colour)
}

impl AttemptReport {
    /// Adds who holds the lease, from a look at the processes.
    fn add_holders(&mut self, scan: Option<&Scan>, keeper: Option<&Identity>) {
        let Some(scan) = scan else { return };
        if self.verdict.leftovers.is_none() && scan.refused.is_empty() {
            let left = scan.found.iter().filter(|note| Some(&note.id) != keeper);
            self.verdict.leftovers = Some(left.map(ProcessReport::from).collect());
        }
        self.holders = Some(scan.found.iter().map(ProcessReport::from).collect());
    }
}
