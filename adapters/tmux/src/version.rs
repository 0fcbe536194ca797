//! Versions of tmux.

use crate::argv::Verb;
use crate::{Said, Tmux, classify};
use loopmux_mux::spawn::Invocation;
use loopmux_mux::{Probe, ReplyClass, Trouble};

/// The oldest version that is supported, as a person writes it.
pub const FLOOR: &str = "3.2a";

/// A version in order: number, number, letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// A release, or one of its candidates.
    Release {
        /// The first number.
        major: u32,
        /// The second number.
        minor: u32,
        /// The letter behind it, as a number from 1; 0 without one.
        letter: u8,
    },
    /// A development version without a number.
    Development,
}

/// Reads what a client or a server says its version is: `3.3a`, `next-3.8`, `master`, `openbsd-7.5`, with or
/// without the program's name in front. `None` if it is no version of tmux.
pub fn parse(text: &str) -> Option<Version> {
    let text = text.trim();
    let text = text.strip_prefix("tmux ").unwrap_or(text).trim();
    if text == "master" {
        return Some(Version::Development);
    }
    if let Some(system) = text.strip_prefix("openbsd-") {
        // The system's own tmux has no number of its own; 7.0 came with what became 3.3.
        let (major, _, _) = numbers(system)?;
        let minor = if major >= 7 { 3 } else { 0 };
        return Some(Version::Release { major: 3, minor, letter: 0 });
    }
    let (text, next) = match text.strip_prefix("next-") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let (major, minor, rest) = numbers(text)?;
    let mut rest = rest.chars();
    let letter = match rest.next() {
        None | Some('-' | '~' | '+' | ' ') => 0,
        Some(c @ 'a'..='z') if !rest.next().is_some_and(|c| c.is_ascii_alphanumeric()) => c as u8 - b'a' + 1,
        Some(_) => return None,
    };
    Some(Version::Release { major, minor, letter: if next { 0 } else { letter } })
}

fn numbers(text: &str) -> Option<(u32, u32, &str)> {
    let (major, rest) = text.split_once('.')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some((major.parse().ok()?, rest[..end].parse().ok()?, &rest[end..]))
}

fn meets_floor(version: Version) -> bool {
    Some(version) >= parse(FLOOR)
}

/// What a person should know if the client and the server that it asks are of different versions. `None` if they
/// are the same.
pub fn skew(client: &str, server: &str) -> Option<String> {
    let (client, server) = (client.trim(), server.trim());
    let plain = |v: &str| v.strip_prefix("tmux ").unwrap_or(v).to_owned();
    if plain(client) == plain(server) {
        return None;
    }
    Some(format!(
        "the tmux client is {} and the running server {}: some questions may get no answer until the server is \
         restarted with the newer program",
        plain(client),
        plain(server)
    ))
}

impl Tmux {
    /// The version in `NAME VERSION`. tmux calls itself by the name that it was executed under.
    fn version_in(&self, line: &str) -> Option<String> {
        let (name, version) = line.split_once(' ')?;
        let ours = name == "tmux" || self.binary.file_name().is_some_and(|own| own == name);
        ours.then(|| version.to_owned())
    }

    pub(crate) fn look_at_version(&self) -> Probe {
        let tried = format!("{} -V", self.binary.display());
        let client = Invocation::new(&self.binary).arg("-V").deadline(self.observe);
        let reply = match client.run() {
            Ok(reply) => reply,
            Err(e) => {
                let binary = self.binary.exists().then(|| self.binary.clone());
                let refused = Some(Trouble { class: ReplyClass::Failed, tried, said: e.to_string() });
                return Probe { binary, version: None, refused };
            }
        };
        let (stdout, stderr) = (reply.out(), reply.err());
        let said = Said { timed_out: reply.timed_out, code: reply.code, stdout: &stdout, stderr: &stderr };
        let class = classify(Verb::Display.name(), said);
        let version = (class == ReplyClass::Answered && !reply.truncated)
            .then(|| self.version_in(stdout.trim()))
            .flatten();
        let refuse = |class, said| Some(Trouble { class, tried: tried.clone(), said });
        let refused = match version.as_deref().map(parse) {
            None if class == ReplyClass::TimedOut => refuse(class, reply.said()),
            None => refuse(ReplyClass::Failed, format!("this is not tmux: {}", reply.said())),
            Some(None) => refuse(
                ReplyClass::Incompatible,
                format!(
                    "cannot tell how old this version is: {:?}; {FLOOR} or newer is needed",
                    stdout.trim()
                ),
            ),
            Some(Some(version)) if !meets_floor(version) => refuse(
                ReplyClass::Incompatible,
                format!("{} is too old: {FLOOR} or newer is needed; install a newer one", stdout.trim()),
            ),
            Some(Some(_)) => None,
        };
        Probe { binary: Some(self.binary.clone()), version, refused }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_releases_candidates_and_development() {
        let ordered =
            ["tmux 1.8", "2.6", "3.0a", "3.2", "tmux 3.2a", "3.3-rc", "3.3a", "3.4", "next-3.8", "master"];
        let versions: Vec<_> = ordered.iter().map(|v| parse(v).unwrap_or_else(|| panic!("{v}"))).collect();
        assert!(versions.is_sorted(), "{versions:?}");
        for (text, met) in
            ordered.iter().zip([false, false, false, false, true, true, true, true, true, true])
        {
            assert_eq!(meets_floor(parse(text).unwrap()), met, "{text}");
        }
        assert!(meets_floor(parse("tmux openbsd-7.5").unwrap()));
        assert!(!meets_floor(parse("openbsd-6.4").unwrap()));
        assert_eq!(parse("3.2-rc4"), parse("3.2"));
        assert!(meets_floor(parse("3.10").unwrap()));
    }

    #[test]
    fn what_is_no_version_is_none() {
        for text in ["", "tmux", "screen 4.9.0x", "tmux three", "3", "3.", "3.3abc", "4"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_difference_is_said_once_per_pair() {
        assert_eq!(skew("tmux 3.3a", "3.3a"), None);
        let text = skew("3.5a", "3.7c").unwrap();
        assert!(text.contains("3.5a") && text.contains("3.7c"), "{text}");
    }
}
