//! What a command that did not do its work says: one contract code, one exit code, and words for a person.

use crate::config::ConfigError;
use crate::run::write::StoreError;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::io;

/// What a command gives back: the exit code of a command that did its work, or an error.
pub type Outcome = Result<u8, CliError>;

/// The codes of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    /// The command line is wrong.
    Usage,
    /// A configuration file or a variable is wrong.
    Config,
    /// There is no such run.
    NotFound,
    /// More than one run fits.
    Ambiguous,
    /// Something is alive.
    RefusedAlive,
    /// Something may be alive.
    RefusedUnknown,
    /// The multiplexer's program is not there.
    MuxMissing,
    /// The multiplexer cannot be asked.
    MuxUnreachable,
    /// The multiplexer is too old, or speaks another language.
    MuxIncompatible,
    /// Nothing was started.
    LaunchFailed,
    /// Another process holds a lock.
    Busy,
    /// The operating system refused.
    Io,
    /// A signal ended the command.
    Interrupted,
    /// The time was over.
    TimedOut,
    /// Something survived a stop.
    Survived,
    /// Neither alive nor dead could be proven.
    Unknown,
    /// A newer loopmux wrote it.
    UnsupportedSchema,
    /// A fault of this program.
    Internal,
}

impl ErrorCode {
    /// Every code.
    pub const ALL: [Self; 18] = [
        Self::Usage,
        Self::Config,
        Self::NotFound,
        Self::Ambiguous,
        Self::RefusedAlive,
        Self::RefusedUnknown,
        Self::MuxMissing,
        Self::MuxUnreachable,
        Self::MuxIncompatible,
        Self::LaunchFailed,
        Self::Busy,
        Self::Io,
        Self::Interrupted,
        Self::TimedOut,
        Self::Survived,
        Self::Unknown,
        Self::UnsupportedSchema,
        Self::Internal,
    ];

    /// The contract's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Config => "config",
            Self::NotFound => "not-found",
            Self::Ambiguous => "ambiguous",
            Self::RefusedAlive => "refused-alive",
            Self::RefusedUnknown => "refused-unknown",
            Self::MuxMissing => "mux-missing",
            Self::MuxUnreachable => "mux-unreachable",
            Self::MuxIncompatible => "mux-incompatible",
            Self::LaunchFailed => "launch-failed",
            Self::Busy => "busy",
            Self::Io => "io",
            Self::Interrupted => "interrupted",
            Self::TimedOut => "timed-out",
            Self::Survived => "survived",
            Self::Unknown => "unknown",
            Self::UnsupportedSchema => "unsupported-schema",
            Self::Internal => "internal",
        }
    }

    /// The exit code of the process.
    pub fn exit(self) -> u8 {
        match self {
            Self::Usage | Self::Config => 2,
            Self::NotFound | Self::Ambiguous => 3,
            Self::RefusedAlive | Self::RefusedUnknown | Self::Busy | Self::UnsupportedSchema => 4,
            Self::MuxMissing | Self::MuxUnreachable | Self::MuxIncompatible => 5,
            Self::LaunchFailed | Self::Io | Self::Survived | Self::Internal => 1,
            Self::TimedOut => 7,
            Self::Unknown => 8,
            Self::Interrupted => 130,
        }
    }

    /// The same command may work later, with nothing changed by a person.
    pub fn retryable(self) -> bool {
        matches!(self, Self::Busy | Self::MuxUnreachable | Self::TimedOut)
    }

    /// The word before the message. A guard that refuses is no fault.
    fn label(self) -> &'static str {
        match self {
            Self::RefusedAlive | Self::RefusedUnknown | Self::UnsupportedSchema => "refused",
            _ => "error",
        }
    }
}

/// A command that did not do its work.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CliError {
    /// The contract's code.
    pub code: ErrorCode,
    /// What was tried, on what, what came back.
    pub message: String,
    /// The reader of our output went away: nothing is said, and it is no failure.
    closed_pipe: bool,
    extra: Box<Extra>,
}

/// What stands beside the message.
#[derive(Clone, Debug, Default, PartialEq)]
struct Extra {
    /// Facts behind the message, a line each.
    notes: Vec<String>,
    /// What to do next.
    hint: Option<String>,
    /// Facts for a program.
    details: Map<String, Value>,
    /// A report that stands beside the error.
    data: Option<Value>,
}

impl CliError {
    /// An error with a message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), closed_pipe: false, extra: Box::default() }
    }

    /// The same, with one more fact.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.extra.notes.push(note.into());
        self
    }

    /// The same, with what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.extra.hint = Some(hint.into());
        self
    }

    /// The same, with one more fact for a program.
    #[must_use]
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extra.details.insert(name.to_owned(), value.into());
        self
    }

    /// The same, with a report beside it: `data` of the JSON object. In text the command prints its report itself.
    #[must_use]
    pub fn with_data(mut self, report: &impl Serialize) -> Self {
        self.extra.data = serde_json::to_value(report).ok();
        self
    }

    /// The same with this report, where none stands beside it yet.
    #[must_use]
    pub fn beside(self, report: &impl Serialize) -> Self {
        if self.extra.data.is_some() { self } else { self.with_data(report) }
    }

    /// The report that stands beside the error.
    pub fn data(&self) -> Option<&Value> {
        self.extra.data.as_ref()
    }

    /// The exit code of the process.
    pub fn exit(&self) -> u8 {
        if self.closed_pipe { 0 } else { self.code.exit() }
    }

    /// Nothing is to be said: the reader went away.
    pub fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }

    /// What a person reads: the message, the facts, the way out.
    pub fn page(&self) -> String {
        let mut page = format!("{}: {}\n", self.code.label(), self.message);
        for line in self.extra.notes.iter().chain(&self.extra.hint) {
            page.push_str(&format!("  {line}\n"));
        }
        page
    }

    /// What a program reads.
    pub fn report(&self) -> ErrorReport {
        let mut details = self.extra.details.clone();
        if !self.extra.notes.is_empty() {
            details.entry("notes").or_insert_with(|| self.extra.notes.clone().into());
        }
        ErrorReport {
            code: self.code,
            message: self.message.clone(),
            retryable: self.code.retryable(),
            hint: self.extra.hint.clone(),
            details,
        }
    }
}

/// The `error` of the JSON object.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ErrorReport {
    /// One of the contract's codes.
    pub code: ErrorCode,
    /// What was tried, on what, what came back.
    pub message: String,
    /// The same command may work later.
    pub retryable: bool,
    /// What to do next.
    pub hint: Option<String>,
    /// Facts for a program.
    pub details: Map<String, Value>,
}

impl From<ConfigError> for CliError {
    fn from(e: ConfigError) -> Self {
        let code =
            if matches!(e, ConfigError::Unwritable { .. }) { ErrorCode::Io } else { ErrorCode::Config };
        Self::new(code, e.to_string())
    }
}

impl From<StoreError> for CliError {
    fn from(e: StoreError) -> Self {
        let code = match &e {
            StoreError::Busy { .. } => ErrorCode::Busy,
            StoreError::Newer(_) => ErrorCode::UnsupportedSchema,
            StoreError::Unreadable(_) | StoreError::Forbidden(_) => ErrorCode::RefusedUnknown,
            StoreError::ForeignOwner { .. }
            | StoreError::NoLocks { .. }
            | StoreError::Io { .. }
            | StoreError::Write(_) => ErrorCode::Io,
        };
        Self::new(code, e.to_string())
    }
}

impl From<io::Error> for CliError {
    /// For output only: an error of a file says which one, and is made by hand.
    fn from(e: io::Error) -> Self {
        let closed_pipe = e.kind() == io::ErrorKind::BrokenPipe;
        Self { closed_pipe, ..Self::new(ErrorCode::Io, format!("cannot write the output: {e}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_word_and_its_exit_code() {
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), Value::from(code.as_str()));
            assert!(matches!(code.exit(), 1..=8 | 130), "{code:?}: {}", code.exit());
        }
    }

    #[test]
    fn a_closed_pipe_is_no_failure_and_a_full_disk_is_one() {
        let closed = CliError::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(closed.is_closed_pipe() && closed.exit() == 0);
        let full = CliError::from(io::Error::from(io::ErrorKind::StorageFull));
        assert!(!full.is_closed_pipe() && full.exit() == 1);
    }

    #[test]
    fn a_refusal_says_what_was_seen_and_the_way_out() {
        let error = CliError::new(ErrorCode::RefusedAlive, "something of run 7f3a is alive")
            .note("lease of attempt 1 is held by pid 42")
            .hint("to end it:  loopmux stop 7f3a");
        assert_eq!(
            error.page(),
            "refused: something of run 7f3a is alive\n  lease of attempt 1 is held by pid 42\n  to end it:  loopmux stop 7f3a\n"
        );
    }
}
