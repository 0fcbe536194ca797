//! The JSON schemas of all reports, made from the types that are printed.

use super::args::SchemaArgs;
use super::error::{CliError, ErrorCode, ErrorReport, Outcome};
use super::output::{Envelope, SCHEMA};
use super::{Context, attach, doctor, list, logs, mux, report, status, stop};
use schemars::{JsonSchema, Schema, schema_for};
use serde_json::{Map, Value, json};

/// The schema of every command's `data` by the command's name, and of an error under `error`.
pub fn all() -> Vec<(&'static str, Schema)> {
    fn of<T: JsonSchema>() -> Schema {
        schema_for!(Envelope<'static, T>)
    }
    vec![
        ("attach", of::<attach::AttachReport>()),
        ("doctor", of::<doctor::DoctorReport>()),
        ("list", of::<list::ListReport>()),
        ("logs", of::<logs::LogsReport>()),
        ("logs-follow", of::<logs::LogsEvent>()),
        ("mux", of::<mux::MuxReport>()),
        ("mux-ls", of::<mux::SessionsReport>()),
        ("mux-set", of::<mux::SetReport>()),
        ("run", of::<report::RunAndAttempts>()),
        ("status", of::<status::StatusReport>()),
        ("stop", of::<stop::StopReport>()),
        ("error", schema_for!(ErrorReport)),
    ]
}

/// Prints all schemas as one object, each under its name.
///
/// # Errors
/// The output cannot be written.
pub fn execute(ctx: &Context, _args: &SchemaArgs) -> Outcome {
    let schemas: Map<String, Value> =
        all().into_iter().map(|(name, schema)| (name.to_owned(), schema.to_value())).collect();
    if ctx.out().json() {
        ctx.out().report(&json!({ "schema": SCHEMA, "schemas": schemas }), |_| String::new())?;
        return Ok(0);
    }
    let mut text = serde_json::to_string_pretty(&schemas)
        .map_err(|e| CliError::new(ErrorCode::Internal, format!("cannot write the schemas: {e}")))?;
    text.push('\n');
    ctx.out().bytes(text.as_bytes())?;
    Ok(0)
}
