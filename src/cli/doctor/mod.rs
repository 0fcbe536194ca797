//! `loopmux doctor`: everything that a run needs, tried by really doing it.

mod mux;
mod run;
mod state;

use super::Context;
use super::args::DoctorArgs;
use super::error::Outcome;
use super::page::{self, shown};
use crate::verdict::Colour;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long one check may take: all that it does has shorter limits of its own, unless a file system hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// `data` of `doctor --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DoctorReport {
    /// Every check, in the order in which they were tried.
    pub checks: Vec<CheckReport>,
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many could not be tried.
    pub skipped: usize,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckReport {
    /// Its name.
    pub name: &'static str,
    /// How it went.
    pub result: CheckResult,
    /// What was tried, and what was seen.
    pub what: String,
    /// What to do about it.
    pub fix: Option<String>,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckResult {
    /// It works.
    Pass,
    /// It does not.
    Fail,
    /// It could not be tried, because something before it failed.
    Skip,
}

/// What a check found.
struct Found {
    result: CheckResult,
    what: String,
    fix: Option<String>,
}

impl Found {
    fn pass(what: impl Into<String>) -> Self {
        Self { result: CheckResult::Pass, what: what.into(), fix: None }
    }

    fn fail(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { result: CheckResult::Fail, what: what.into(), fix: Some(fix.into()) }
    }

    fn skip(what: impl Into<String>) -> Self {
        Self { result: CheckResult::Skip, what: what.into(), fix: None }
    }
}

/// The checks so far.
#[derive(Default)]
struct Doctor {
    checks: Vec<CheckReport>,
}

impl Doctor {
    /// Tries something in a thread of its own, so that a file system that hangs stops this check alone.
    fn check(&mut self, name: &'static str, check: impl FnOnce() -> Found + Send + 'static) -> bool {
        let (tell, told) = mpsc::channel();
        let began = Instant::now();
        std::thread::spawn(move || {
            // Nobody listens any more where it came too late.
            let _ = tell.send(check());
        });
        let found = told.recv_timeout(PATIENCE).unwrap_or_else(|e| match e {
            mpsc::RecvTimeoutError::Timeout => Found::fail(
                format!("no answer within {} s", PATIENCE.as_secs()),
                "look for a file system or a program that hangs",
            ),
            mpsc::RecvTimeoutError::Disconnected => {
                Found::fail("the check itself broke off", "please report this with the output above")
            }
        });
        self.note(name, found, began)
    }

    /// Notes what was found without trying anything.
    fn note(&mut self, name: &'static str, found: Found, began: Instant) -> bool {
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Found { result, what, fix } = found;
        self.checks.push(CheckReport { name, result, what, fix, ms });
        result == CheckResult::Pass
    }

    fn skip(&mut self, names: &[&'static str], why: &str) {
        for name in names {
            self.note(name, Found::skip(why), Instant::now());
        }
    }

    fn report(self) -> DoctorReport {
        let count = |result| self.checks.iter().filter(|c| c.result == result).count();
        let (passed, failed, skipped) =
            (count(CheckResult::Pass), count(CheckResult::Fail), count(CheckResult::Skip));
        DoctorReport { checks: self.checks, passed, failed, skipped }
    }
}

/// Executes the command.
///
/// # Errors
/// The output cannot be written.
pub fn execute(ctx: &Context, _args: &DoctorArgs) -> Outcome {
    let mut doctor = Doctor::default();
    let scratch = state::check(ctx, &mut doctor);
    let mux = mux::check(ctx, &mut doctor);
    run::check(&mut doctor, scratch.as_ref(), mux.as_ref());
    let report = doctor.report();
    ctx.out().report(&report, text)?;
    Ok(u8::from(report.failed > 0))
}

fn text(report: &DoctorReport) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    for check in &report.checks {
        let (word, colour) = match check.result {
            CheckResult::Pass => ("ok  ", Colour::Green),
            CheckResult::Fail => ("FAIL", Colour::Red),
            CheckResult::Skip => ("skip", Colour::Yellow),
        };
        let word = page::styled(word, page::style(colour));
        let _ = writeln!(out, "{word}  {:<14} {}", check.name, shown(&check.what));
        if let Some(fix) = &check.fix {
            let _ = writeln!(out, "{:22}to fix: {}", "", shown(fix));
        }
    }
    let DoctorReport { passed, failed, skipped, .. } = report;
    let _ = writeln!(out, "{passed} passed, {failed} failed, {skipped} skipped");
    out
}
