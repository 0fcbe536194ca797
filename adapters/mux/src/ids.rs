//! Ids, names and tags as types, so that a name never stands where an id is meant.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A name or value that this seam does not let through to a multiplexer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value:?} may hold only {allowed}")]
pub struct BadName {
    /// What was being named.
    pub what: &'static str,
    /// The refused value.
    pub value: String,
    /// Which characters are allowed.
    pub allowed: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes the id as the backend's own listing printed it.
            pub fn from_backend(id: impl Into<String>) -> Self {
                Self(id.into())
            }

            /// The id as the backend writes it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// A mux session's id. Means something only together with the server that gave it.
    SessionId
}
id! {
    /// A mux window's id. Means something only together with the server that gave it.
    WindowId
}
id! {
    /// A pane's id. Means something only together with the server that gave it.
    PaneId
}

/// The name of a mux session or window that we make: `[A-Za-z0-9_-]`, not empty, no leading `-`, at most 100
/// bytes. Multiplexers rewrite, expand or lose anything else.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionName(String);

impl SessionName {
    /// Takes a name that is already safe.
    ///
    /// # Errors
    /// The name is empty, too long, or has another character in it.
    pub fn new(name: impl Into<String>) -> Result<Self, BadName> {
        let name = name.into();
        let safe = !name.is_empty()
            && name.len() <= 100
            && !name.starts_with('-')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if safe {
            Ok(Self(name))
        } else {
            Err(BadName { what: "mux name", value: name, allowed: "[A-Za-z0-9_-], 1 to 100 of them" })
        }
    }

    /// Makes a safe name out of any text: other characters become `-`, runs of them one, at most `max` bytes,
    /// `fallback` where nothing is left. Two texts can give one name; names prove nothing.
    pub fn sanitized(text: &str, max: usize, fallback: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            let c = if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
            if !(c == '-' && (out.is_empty() || out.ends_with('-'))) {
                out.push(c);
            }
            if out.len() >= max {
                break;
            }
        }
        let out = out.trim_end_matches('-');
        if out.is_empty() { fallback.to_owned() } else { out.to_owned() }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SessionName {
    type Error = BadName;
    fn try_from(s: String) -> Result<Self, BadName> {
        Self::new(s)
    }
}

impl From<SessionName> for String {
    fn from(n: SessionName) -> String {
        n.0
    }
}

/// The four options that say whose a mux session, window or pane is.
///
/// Each is set at the session, the window and the pane under a key of its own, because a multiplexer lets a
/// pane inherit options from its window, its session and the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tags {
    /// 32 hex digits, minted for one attempt, one engine window or one control session.
    pub token: String,
    /// 16 hex digits: the project's key.
    pub project: String,
    /// The run id, or `ctl` for the control session.
    pub run: String,
    /// 16 hex digits, minted once per state directory.
    pub state: String,
}

impl Tags {
    /// Checks that every value is safe to stand in a multiplexer's condition: a `}` would end it and make it
    /// true, an empty token would match what carries none.
    ///
    /// # Errors
    /// Names the value that is not safe.
    pub fn check(&self) -> Result<(), BadName> {
        let hex = |what, value: &str, len: usize| {
            let ok = value.len() == len && value.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            if ok { Ok(()) } else { Err(BadName { what, value: value.to_owned(), allowed: "hex digits" }) }
        };
        hex("token", &self.token, 32)?;
        hex("project key", &self.project, 16)?;
        hex("state id", &self.state, 16)?;
        SessionName::new(self.run.clone()).map(|_| ())
    }
}
