//! The journal: what happened to a run, one event a line, appended and never rewritten.

use super::dir::{Dir, WriteError};
use super::files::{name, now_ms};
use crate::verdict::Observation;
use serde::{Deserialize, Serialize};
use std::io::Write;

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Who wrote it: `engine`, `stop` and so on.
    pub by: String,
    /// What happened.
    pub event: String,
    /// The attempt that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Details in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Event {
    /// An event of now.
    pub fn new(by: &str, event: &str) -> Self {
        Self { at_ms: now_ms(), by: by.to_owned(), event: event.to_owned(), attempt: None, text: None }
    }

    /// The same, about an attempt.
    #[must_use]
    pub fn attempt(mut self, n: u32) -> Self {
        self.attempt = Some(n);
        self
    }

    /// The same, with details.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }
}

/// Appends one event, in one write.
///
/// # Errors
/// The operating system refused; the journal may then end in a torn line, which readers skip.
pub fn append(run: &Dir, event: &Event) -> Result<(), WriteError> {
    let mut file = run.append(name::JOURNAL)?;
    let mut line = serde_json::to_vec(event).expect("an event serializes");
    line.push(b'\n');
    file.write_all(&line).map_err(|source| WriteError::Io {
        what: "append to",
        path: run.path().join(name::JOURNAL),
        source,
    })
}

/// All whole lines.
pub fn read(run: &Dir) -> Observation<Vec<Event>> {
    run.read(name::JOURNAL, super::dir::READ_LIMIT).map(|bytes| {
        bytes.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    })
}
