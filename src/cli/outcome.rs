//! How runs came out, for `run` and `wait`: the sentence, the report, and the exit code.

use super::report::RunAndAttempts;
use super::{CliError, Context, words};
use crate::observe::RunView;
use crate::verdict::{self, Status};
use serde_json::{Value, json};

/// The exit code of one run.
pub fn exit_of(view: &RunView) -> u8 {
    verdict::exit_code(view.status, view.verdict())
}

/// One sentence about a run, without its id.
pub fn sentence(view: &RunView) -> String {
    if let (Status::Paused, Some(reason)) = (view.status, view.record.known().and_then(|r| r.reason.as_ref()))
    {
        return format!("paused: {reason}");
    }
    let latest = view.latest().map_or_else(|| "no attempt was made".to_owned(), words::verdict);
    // A lost or unknown verdict names the status itself.
    let word = view.status.as_str();
    if latest.starts_with(word) { latest } else { format!("{word}: {latest}") }
}

/// Prints how the runs came out: a line each, or the JSON object.
///
/// # Errors
/// The output cannot be written.
pub fn print(ctx: &Context, views: &[RunView]) -> Result<(), CliError> {
    let data = data(views);
    ctx.out().report(&data, |_| {
        views.iter().map(|v| format!("{}  {}\n", v.id, super::page::shown(&sentence(v)))).collect()
    })
}

/// `data.run` and `data.attempts`; of several runs also `data.runs`, each with both.
fn data(views: &[RunView]) -> Value {
    let each: Vec<Value> = views.iter().map(|v| json!(RunAndAttempts::of(v))).collect();
    match each.as_slice() {
        [one] => one.clone(),
        many => json!({
            "run": many.first().map(|v| &v["run"]),
            "attempts": many.first().map(|v| &v["attempts"]),
            "runs": many,
        }),
    }
}
