//! What kind of reply a multiplexer gave.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The class of one reply. The words are a contract: recorded transcripts carry them, and reports show them.
///
/// No class proves that a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyClass {
    /// Exit 0 with output that the query asks for.
    Answered,
    /// Exit 0 without output. Eight different states of a server produce this; it says nothing.
    Empty,
    /// A yes to "is it there" that consists of exit 0 alone.
    ClaimsPresent,
    /// An act was taken, by exit 0 alone; whether it had an effect is another question.
    Accepted,
    /// A server answered that it has no such object under that name.
    Absent,
    /// A server without a current target: no sessions, still loading its configuration, or ending.
    NoTarget,
    /// Something is at the socket's path, and nobody listens.
    NoListener,
    /// Nothing is at the socket's path.
    NoSocket,
    /// Permissions or an access list refused the question.
    Denied,
    /// The connection ended before an answer came. The server may live.
    ServerLost,
    /// Client and server do not speak the same language.
    Incompatible,
    /// No reply within the deadline; the request may still be executed later.
    TimedOut,
    /// Anything else.
    Failed,
    /// A listing of which some rows could not be read: unknown for the rows that it lacks.
    Partial,
}

impl ReplyClass {
    /// Every class, in the order of their documentation.
    pub const ALL: [ReplyClass; 14] = [
        Self::Answered,
        Self::Empty,
        Self::ClaimsPresent,
        Self::Accepted,
        Self::Absent,
        Self::NoTarget,
        Self::NoListener,
        Self::NoSocket,
        Self::Denied,
        Self::ServerLost,
        Self::Incompatible,
        Self::TimedOut,
        Self::Failed,
        Self::Partial,
    ];

    /// The contract's word for this class.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Empty => "empty",
            Self::ClaimsPresent => "claims-present",
            Self::Accepted => "accepted",
            Self::Absent => "absent",
            Self::NoTarget => "no-target",
            Self::NoListener => "no-listener",
            Self::NoSocket => "no-socket",
            Self::Denied => "denied",
            Self::ServerLost => "server-lost",
            Self::Incompatible => "incompatible",
            Self::TimedOut => "timed-out",
            Self::Failed => "failed",
            Self::Partial => "partial",
        }
    }
}

impl fmt::Display for ReplyClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
