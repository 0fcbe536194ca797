//! What leaves the process: text for a person, or the one JSON object of the contract.

use super::error::{CliError, ErrorReport};
use anstream::{AutoStream, ColorChoice};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// The schema of the JSON object.
pub const SCHEMA: u32 = 1;

/// Columns of a terminal that does not tell.
const COLUMNS: usize = 80;

/// When text has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Colours {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<Colours> for ColorChoice {
    fn from(colours: Colours) -> Self {
        match colours {
            Colours::Auto => Self::Auto,
            Colours::Always => Self::Always,
            Colours::Never => Self::Never,
        }
    }
}

/// The JSON object: every command prints exactly one, and a command that streams prints one a line.
#[derive(Serialize, JsonSchema)]
pub struct Envelope<'a, T> {
    /// The schema of this object.
    pub schema: u32,
    /// The command did its work.
    pub ok: bool,
    /// Which command.
    pub command: &'a str,
    /// Its report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<T>,
    /// Why it did not do its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

/// Standard output and standard error of one command.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    json: bool,
    colours: Colours,
    quiet: bool,
    command: &'static str,
}

impl Output {
    /// The output of a command. `quiet` leaves out what is neither answer nor error.
    pub fn new(command: &'static str, json: bool, colours: Colours, quiet: bool) -> Self {
        Self { json, colours, quiet, command }
    }

    /// The command prints JSON.
    pub fn json(&self) -> bool {
        self.json
    }

    /// The command's name, as the JSON object has it.
    pub fn command(&self) -> &'static str {
        self.command
    }

    /// Prints a report: as the `data` of the JSON object, or as the text that `page` makes of it.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn report<T: Serialize>(&self, report: &T, page: impl FnOnce(&T) -> String) -> Result<(), CliError> {
        if self.json { self.object(Some(report), None, true) } else { self.text(&page(report)) }
    }

    /// Prints one line of a stream: an object of its own, or text.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn event<T: Serialize>(&self, event: &T, page: impl FnOnce(&T) -> String) -> Result<(), CliError> {
        self.report(event, page)
    }

    /// Prints text. Escapes in it reach only an output that has colours.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn text(&self, text: &str) -> Result<(), CliError> {
        let mut out = AutoStream::new(io::stdout(), self.colours.into());
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    /// Prints bytes as they are.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn bytes(&self, bytes: &[u8]) -> Result<(), CliError> {
        let mut out = io::stdout();
        out.write_all(bytes)?;
        Ok(out.flush()?)
    }

    /// Says something beside the answer, on standard error; not where a person asked for quiet.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.aside(&format!("{text}\n"));
        }
    }

    /// Says that a command did not do its work: the JSON object on standard output, or words on standard error.
    pub fn failed(&self, error: &CliError) {
        if error.is_closed_pipe() {
            return;
        }
        if self.json {
            // Whoever closed the pipe does not want to know; any other trouble with the output is said beside it.
            if let Err(unwritten) = self.object(error.data(), Some(error.report()), false)
                && !unwritten.is_closed_pipe()
            {
                self.aside(&error.page());
            }
        } else {
            self.aside(&error.page());
        }
    }

    fn aside(&self, text: &str) {
        // Nobody is left to tell that standard error is closed.
        let _ = AutoStream::new(io::stderr(), self.colours.into()).write_all(text.as_bytes());
    }

    fn object<T: Serialize>(
        &self,
        data: Option<&T>,
        error: Option<ErrorReport>,
        ok: bool,
    ) -> Result<(), CliError> {
        let envelope = Envelope { schema: SCHEMA, ok, command: self.command, data, error };
        let mut line = serde_json::to_vec(&envelope).map_err(|e| {
            CliError::new(super::error::ErrorCode::Internal, format!("cannot write the report as JSON: {e}"))
        })?;
        line.push(b'\n');
        self.bytes(&line)
    }

    /// How many columns a line may have; `None` where nobody looks at it: a pipe gets every value whole, unless
    /// `COLUMNS` says otherwise.
    pub fn columns(&self) -> Option<usize> {
        let told = std::env::var("COLUMNS").ok().and_then(|c| c.trim().parse().ok()).filter(|c| *c > 0);
        if told.is_some() || !io::stdout().is_terminal() {
            return told;
        }
        let size = terminal_size::terminal_size_of(io::stdout());
        Some(size.map(|(width, _)| usize::from(width.0)).filter(|c| *c > 0).unwrap_or(COLUMNS))
    }
}
