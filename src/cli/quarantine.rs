//! `loopmux list --quarantined`.

use super::page::{self, Cell, Column};
use super::report::RunReport;
use super::{Context, Outcome};
use crate::observe::{self, Looks};
use crate::ops::quarantine::quarantined;
use crate::run::store::place;
use crate::run::trash;
use schemars::JsonSchema;
use serde::Serialize;

/// `data` of `list --quarantined --json`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QuarantineReport {
    /// Runs that were put aside without proof, oldest first.
    pub quarantined: Vec<ListedQuarantined>,
}

/// A run that was put aside.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ListedQuarantined {
    /// Its id.
    pub run: String,
    /// The directory that it is in.
    pub dir: String,
    /// The run, as far as it can be read.
    pub report: Option<RunReport>,
}

const HEADS: [Column; 3] = [
    Column { heading: "run", shrinks_to: None },
    Column { heading: "status", shrinks_to: None },
    Column { heading: "directory", shrinks_to: None },
];

/// Lists them.
///
/// # Errors
/// They cannot be listed.
pub fn list(ctx: &Context) -> Outcome {
    let Some(read) = ctx.runs()? else {
        ctx.out().report(&QuarantineReport { quarantined: Vec::new() }, |_| String::new())?;
        return Ok(0);
    };
    let entries = quarantined(read.dir())?;
    let listed = entries.into_iter().map(|entry| {
        let run = trash::open(read.dir(), place::QUARANTINE, &entry).ok();
        ListedQuarantined {
            run: entry.id.to_string(),
            dir: read.path().join(place::QUARANTINE).join(&entry.name).display().to_string(),
            report: run.map(|run| RunReport::of(&observe::run(&run, &mut Looks::none()))),
        }
    });
    let report = QuarantineReport { quarantined: listed.collect() };
    ctx.out().report(&report, |r| {
        if r.quarantined.is_empty() {
            return String::new();
        }
        let rows: Vec<Vec<Cell>> = r
            .quarantined
            .iter()
            .map(|q| {
                let status = q.report.as_ref().map_or("unknown", |r| r.status.as_str());
                vec![Cell::from(&q.run), Cell::from(status), Cell::from(&q.dir)]
            })
            .collect();
        page::table(&HEADS, &rows, ctx.out().columns())
    })?;
    if report.quarantined.is_empty() && !ctx.out().json() {
        ctx.out().note("nothing is in quarantine in this project");
    }
    Ok(0)
}
