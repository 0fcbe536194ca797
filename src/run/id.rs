//! Run ids, tokens and project keys.

use super::dir::random_hex;
use super::text::to_hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::Path;

/// A run's id: `YYYYMMDD-HHMMSS-xxxx`, the time in UTC and four random hex digits. Never reused in a project.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

/// A text that is no run id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no run id: ids hold only [A-Za-z0-9_-], and start with a letter or a digit")]
pub struct BadRunId(pub String);

impl RunId {
    /// Takes an id that stands somewhere: a directory's name, an argument.
    ///
    /// # Errors
    /// It could lead out of a directory, or be taken for an option.
    pub fn parse(text: &str) -> Result<Self, BadRunId> {
        let safe = text.len() <= 64
            && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if safe { Ok(Self(text.to_owned())) } else { Err(BadRunId(text.to_owned())) }
    }

    /// A new id for this second. It is taken only once its lock file was made.
    pub fn mint() -> Self {
        let now = jiff::Timestamp::try_from(crate::fault::now()).unwrap_or_else(|_| jiff::Timestamp::now());
        let now = now.strftime("%Y%m%d-%H%M%S");
        Self(format!("{now}-{}", random_hex(2)))
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part that tells the second in which it was made.
    pub fn second(&self) -> &str {
        self.0.rsplit_once('-').map_or(&self.0, |(second, _)| second)
    }

    /// The part after the last `-`: enough to name a run to a person.
    pub fn short(&self) -> &str {
        self.0.rsplit('-').next().unwrap_or(&self.0)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for RunId {
    type Error = BadRunId;
    fn try_from(s: String) -> Result<Self, BadRunId> {
        Self::parse(&s)
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> String {
        id.0
    }
}

/// A new token: 128 bits in 32 hex digits.
pub fn mint_token() -> String {
    random_hex(16)
}

/// The key of a project: 16 hex digits of the SHA-256 of its canonical path.
pub fn project_key(canonical: &Path) -> String {
    to_hex(&Sha256::digest(canonical.as_os_str().as_encoded_bytes())[..8])
}

/// A short hash of any bytes, for names that have little room.
pub fn short_hash(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes)[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_lead_elsewhere_are_refused() {
        for bad in ["", ".", "..", "../x", "a/b", "-x", "a b", "a\n", "_", "\u{e9}", &"x".repeat(65)] {
            assert!(RunId::parse(bad).is_err(), "{bad:?}");
        }
        let id = RunId::mint();
        assert_eq!(RunId::parse(id.as_str()).unwrap(), id);
        assert_eq!(id.short().len(), 4);
    }

    #[test]
    fn a_project_key_has_sixteen_hex_digits_and_depends_on_the_path() {
        let (a, b) = (project_key(Path::new("/a")), project_key(Path::new("/b")));
        assert_ne!(a, b);
        assert!(a.len() == 16 && a.bytes().all(|c| c.is_ascii_hexdigit()));
    }
}
