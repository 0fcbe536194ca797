//! The environment of an agent CLI: the caller's, by a fixed rule.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Names that describe the caller's own terminal, or an attempt that the caller itself runs in.
const DROPPED: [&str; 14] = [
    "TMUX",
    "TMUX_PANE",
    "PSMUX_SESSION",
    "COLUMNS",
    "LINES",
    "TERM",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "LOOPMUX_RUN",
    "LOOPMUX_ATTEMPT",
    "LOOPMUX_TOKEN",
    "LOOPMUX_RESULT",
    "LOOPMUX_PROJECT",
    "PWD",
];

/// What an attempt adds of its own.
pub struct Own<'a> {
    /// The run's id.
    pub run: &'a str,
    /// The attempt's number.
    pub attempt: u32,
    /// The attempt's token.
    pub token: &'a str,
    /// Where the agent may write its result.
    pub result: &'a Path,
    /// The project.
    pub project: &'a Path,
    /// The agent's directory.
    pub cwd: &'a Path,
}

/// The caller's environment without what describes its terminal, with our own names, then `extra`.
///
/// `TERM` and its kin are not in it: the keeper adds them as the pane has them.
pub fn of_attempt(
    caller: impl IntoIterator<Item = (OsString, OsString)>,
    own: &Own<'_>,
    extra: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let mut vars: BTreeMap<OsString, OsString> =
        caller.into_iter().filter(|(name, _)| !DROPPED.iter().any(|d| OsStr::new(d) == name)).collect();
    let mut set = |name: &str, value: &OsStr| {
        vars.insert(name.into(), value.to_owned());
    };
    set("PWD", own.cwd.as_os_str());
    set("LOOPMUX_RUN", OsStr::new(own.run));
    set("LOOPMUX_ATTEMPT", OsStr::new(&own.attempt.to_string()));
    set("LOOPMUX_TOKEN", OsStr::new(own.token));
    set("LOOPMUX_RESULT", own.result.as_os_str());
    set("LOOPMUX_PROJECT", own.project.as_os_str());
    for (name, value) in extra {
        vars.insert(name.clone(), value.clone());
    }
    vars.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_environment_arrives_but_for_its_terminal() {
        let var = |n: &str, v: &str| (OsString::from(n), OsString::from(v));
        let caller = [
            var("FOO", "new"),
            var("TMUX", "/tmp/x,1,2"),
            var("LOOPMUX_TOKEN", "outer"),
            var("COLUMNS", "80"),
            var("LOOPMUX_STATE_DIR", "/s"),
            var("TERM", "screen"),
        ];
        let own = Own {
            run: "r",
            attempt: 2,
            token: "inner",
            result: Path::new("/r.json"),
            project: Path::new("/p"),
            cwd: Path::new("/p/sub"),
        };
        let vars = of_attempt(caller, &own, &[var("FOO", "mine;"), var("EMPTY", "")]);
        let get = |n: &str| vars.iter().find(|(k, _)| k == n).map(|(_, v)| v.to_str().unwrap());
        assert_eq!(get("FOO"), Some("mine;"));
        assert_eq!(get("EMPTY"), Some(""));
        assert_eq!(get("LOOPMUX_TOKEN"), Some("inner"));
        assert_eq!(get("LOOPMUX_ATTEMPT"), Some("2"));
        assert_eq!(get("LOOPMUX_STATE_DIR"), Some("/s"));
        assert_eq!(get("PWD"), Some("/p/sub"));
        for dropped in ["TMUX", "COLUMNS", "TERM"] {
            assert_eq!(get(dropped), None, "{dropped}");
        }
    }
}
