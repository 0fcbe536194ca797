//! The JSON schemas of all reports, made from the types that are printed.

use super::args::SchemaArgs;
use super::error::{CliError, ErrorCode, ErrorReport, Outcome};
use super::output::Envelope;
use super::{
    Context, attach, cleanup, doctor, list, logs, mux, quarantine, removal, report, restore, status, stop,
};
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
        ("wait", of::<report::RunAndAttempts>()),
        ("stop", of::<stop::StopReport>()),
        ("archive", of::<removal::RemovalReport>()),
        ("clean", of::<removal::RemovalReport>()),
        ("cleanup", of::<cleanup::CleanupReport>()),
        ("delete", of::<removal::RemovalReport>()),
        ("list-quarantined", of::<quarantine::QuarantineReport>()),
        ("restore", of::<restore::RestoreReport>()),
        ("error", schema_for!(ErrorReport)),
    ]
}

/// The files that hold the schemas: names and contents.
///
/// # Errors
/// A schema cannot be written as JSON.
pub fn files() -> Result<Vec<(String, String)>, CliError> {
    all()
        .into_iter()
        .map(|(name, schema)| Ok((format!("{name}.json"), pretty(&schema.to_value())?)))
        .collect()
}

fn pretty(value: &Value) -> Result<String, CliError> {
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|e| CliError::new(ErrorCode::Internal, format!("cannot write a schema: {e}")))?;
    Ok(format!("{text}\n"))
}

/// Prints all schemas as one object, each under its name, or writes a file each.
///
/// # Errors
/// The output or a file cannot be written.
pub fn execute(ctx: &Context, args: &SchemaArgs) -> Outcome {
    if let Some(dir) = &args.dir {
        for (name, text) in files()? {
            let path = dir.join(name);
            std::fs::write(&path, text)
                .map_err(|e| CliError::new(ErrorCode::Io, format!("cannot write {}: {e}", path.display())))?;
        }
        return Ok(0);
    }
    let schemas: Map<String, Value> =
        all().into_iter().map(|(name, schema)| (name.to_owned(), schema.to_value())).collect();
    if ctx.out().json() {
        ctx.out().report(&json!({ "schemas": schemas }), |_| String::new())?;
    } else {
        ctx.out().bytes(pretty(&Value::Object(schemas))?.as_bytes())?;
    }
    Ok(0)
}
