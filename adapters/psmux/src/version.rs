//! Versions of psmux.

use crate::{Psmux, classify};
use loopmux_mux::spawn::{Invocation, Reply};
use loopmux_mux::{Probe, ReplyClass, Said, Trouble};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The oldest version that is supported, as a person writes it.
pub const FLOOR: &str = "3.4.0";

/// The oldest version that works at all, and only where a setting asks for it.
pub const OLDEST: &str = "3.3.8";

/// What a person who asks for [`OLDEST`] goes without.
pub const LIMITS: &str = "psmux 3.3.8 keeps no options apart for each pane, so a session has one window of ours; it \
     does not say whether a session's end was carried out; and a session's name is taken for the whole machine";

/// A version in order.
pub type Version = (u32, u32, u32);

/// Reads `3.4.0` out of what the program says it is. `None` if it is no version of psmux.
pub fn parse(text: &str) -> Option<Version> {
    let mut numbers = text.trim().splitn(3, '.');
    let (major, minor, patch) = (numbers.next()?, numbers.next()?, numbers.next()?);
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    let end = patch.find(|c: char| !c.is_ascii_digit()).unwrap_or(patch.len());
    match &patch[end..] {
        rest if rest.is_empty() || rest.starts_with(['-', '+']) => {
            Some((digits(major)?, digits(minor)?, digits(&patch[..end])?))
        }
        _ => None,
    }
}

/// What a client said that it is: `tmux 3.4.0` and `psmux 3.4.0 (…)`, one below the other.
fn version_in(stdout: &str) -> Option<&str> {
    let line = stdout.lines().find_map(|line| line.trim().strip_prefix("psmux "))?;
    line.split_whitespace().next()
}

/// Whether a version that a record has is below the floor.
pub fn is_old(version: &str) -> bool {
    parse(version).is_some_and(|version| Some(version) < parse(FLOOR))
}

/// Why a version cannot be used, where a person asked for an old one or did not; `None` if it can.
fn too_old(version: Version, asked: bool) -> Option<String> {
    let lowest = parse(if asked { OLDEST } else { FLOOR })?;
    if version >= lowest {
        return None;
    }
    let (major, minor, patch) = version;
    let said = format!("psmux {major}.{minor}.{patch} is too old: {FLOOR} or newer is needed; ");
    Some(if Some(version) < parse(OLDEST) {
        format!(
            "{said}older ones end live servers when they are only asked for their version, and keep no value apart"
        )
    } else {
        format!("{said}only a setting allows it (mux.old-psmux), because {LIMITS}")
    })
}

/// What a person should know if the client and a server that it asks are of different versions. `None` if they are the
/// same.
pub fn skew(client: &str, server: &str) -> Option<String> {
    if client.trim() == server.trim() {
        return None;
    }
    Some(format!(
        "the psmux client is {} and a running server {}: some questions may get no answer until that session is \
         restarted with the newer program",
        client.trim(),
        server.trim()
    ))
}

/// A directory of its own that goes with it: a program that nobody knows yet may clean up in its profile.
struct ThrowAway(PathBuf);

impl ThrowAway {
    fn new() -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let nanos = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.subsec_nanos());
        let name =
            format!("loopmux-look-{}-{}-{nanos}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for ThrowAway {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Psmux {
    /// Asks the program what it is, where it finds nobody's servers: `-V` of a version that is refused here ends some.
    fn ask_version(&self, profile: &Path) -> Result<Reply, String> {
        let mut client = Invocation::new(&self.binary).arg("-V").deadline(self.observe);
        for (name, value) in &self.environment {
            client = client.env(name, value);
        }
        for name in crate::REDIRECTS {
            client = client.env_drop(name);
        }
        for name in ["HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", crate::DATA_DIR] {
            client = client.env(name, profile);
        }
        client.run().map_err(|e| e.to_string())
    }

    pub(crate) fn look_at_version(&self) -> Probe {
        let tried = format!("{} -V", self.binary.display());
        let refuse = |class, said| Some(Trouble { class, tried: tried.clone(), said });
        let reply = ThrowAway::new()
            .map_err(|e| format!("no directory to look at it in: {e}"))
            .and_then(|profile| self.ask_version(&profile.0));
        let reply = match reply {
            Ok(reply) => reply,
            Err(said) => {
                let binary = std::fs::symlink_metadata(&self.binary).is_ok().then(|| self.binary.clone());
                return Probe { binary, version: None, refused: refuse(ReplyClass::Failed, said) };
            }
        };
        let (stdout, stderr) = (reply.out(), reply.err());
        let said = Said { timed_out: reply.timed_out, code: reply.code, stdout: &stdout, stderr: &stderr };
        let class = classify("version", said);
        let version = (class == ReplyClass::Answered && !reply.truncated)
            .then(|| version_in(&stdout))
            .flatten()
            .map(str::to_owned);
        let refused = match version.as_deref().map(parse) {
            None if class == ReplyClass::TimedOut => refuse(class, reply.said()),
            None => refuse(ReplyClass::Failed, format!("this is not psmux: {}", reply.said())),
            Some(None) => refuse(
                ReplyClass::Incompatible,
                format!(
                    "cannot tell how old this version is: {:?}; {FLOOR} or newer is needed",
                    stdout.trim()
                ),
            ),
            Some(Some(version)) => {
                too_old(version, self.old).and_then(|said| refuse(ReplyClass::Incompatible, said))
            }
        };
        Probe { binary: Some(self.binary.clone()), version, refused }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_says_is_read() {
        let stdout = "tmux 3.4.0\npsmux 3.4.0 (20aa1d7)\n";
        assert_eq!(version_in(stdout), Some("3.4.0"));
        assert_eq!(version_in("tmux 3.4\n"), None, "another multiplexer");
        assert_eq!(version_in("psmux\n"), None);
        assert_eq!(parse("3.10.2-rc1"), Some((3, 10, 2)));
        for bad in ["", "3", "3.4", "3.4.x", "3.4.0x", "v3.4.0", "3..0"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_floor_refuses_with_the_reason() {
        for good in ["3.4.0", "3.4.1", "3.10.0", "4.0.0"] {
            assert_eq!(too_old(parse(good).unwrap(), false), None, "{good}");
        }
        assert!(too_old(parse("3.3.7").unwrap(), true).unwrap().contains("end live servers"));
        assert!(too_old(parse("3.3.8").unwrap(), false).unwrap().contains("no options apart"));
        assert_eq!(too_old(parse("3.3.8").unwrap(), true), None);
        assert!(is_old("3.3.8") && !is_old("3.4.0") && !is_old("what"));
    }

    #[test]
    fn a_throw_away_profile_goes() {
        let path = {
            let there = ThrowAway::new().unwrap();
            std::fs::write(there.0.join("x"), "").unwrap();
            there.0.clone()
        };
        assert!(!path.exists());
    }
}
