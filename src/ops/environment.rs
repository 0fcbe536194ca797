//! The environment of an agent CLI: the caller's, by a fixed rule. On the way to a window it lies in a file, which goes as
//! soon as nobody will read it any more.

use crate::run::dir::{Dir, WriteError};
use crate::run::files::name;
use crate::run::text::after_prefix;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Before the names of what `--env` asked for, in the environment of a detached engine.
const CARRIED: &str = "LOOPMUX_EXTRA_ENV_";

/// Names and values.
pub type Vars = Vec<(OsString, OsString)>;

/// The environment of a detached engine, which carries what `--env` asked for beside the caller's own.
pub fn carrying(caller: Vars, extra: Vars) -> Vars {
    let carried = extra.into_iter().map(|(name, value)| {
        let mut long = OsString::from(CARRIED);
        long.push(name);
        (long, value)
    });
    let ours: BTreeMap<OsString, OsString> = carried.collect();
    split(caller).0.into_iter().chain(ours).collect()
}

/// The caller's environment, and what `--env` asked for on top of it.
pub fn split(vars: impl IntoIterator<Item = (OsString, OsString)>) -> (Vars, Vars) {
    let (mut caller, mut extra) = (Vec::new(), Vec::new());
    for (name, value) in vars {
        match after_prefix(&name, CARRIED) {
            Some(short) => extra.push((short.to_owned(), value)),
            None => caller.push((name, value)),
        }
    }
    (caller, extra)
}

/// Removes the environment from the directory of an attempt or an engine, and what an interrupted write of it has left.
///
/// # Errors
/// As the operating system says.
pub fn forget(dir: &Dir) -> Result<(), WriteError> {
    dir.remove_unfinished(&[name::ENV])?;
    dir.remove_file(name::ENV)
}

/// The same for an engine of a run. A keeper that comes later starts nothing without it.
///
/// # Errors
/// As the operating system says.
pub fn forget_engine(run: &Dir, number: u32) -> Result<(), WriteError> {
    let path = run.path().join(name::ENGINE).join(number.to_string());
    match run.sub(name::ENGINE).and_then(|dir| dir.sub(&number.to_string())) {
        Ok(dir) => forget(&dir),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(WriteError::Io { what: "open", path, source }),
    }
}

/// The directories of a run's engines in which an environment lies, or a part of one.
///
/// # Errors
/// A directory cannot be listed.
pub fn of_engines(run: &Dir) -> Result<Vec<Dir>, WriteError> {
    let mut left = Vec::new();
    for number in engine_numbers(run) {
        let path = run.path().join(name::ENGINE).join(number.to_string());
        let failed = |source| WriteError::Io { what: "list", path, source };
        let open = || run.sub(name::ENGINE)?.sub(&number.to_string());
        let (dir, names) =
            open().and_then(|dir| Ok((dir.names()?, dir))).map(|(n, d)| (d, n)).map_err(failed)?;
        if names.iter().filter_map(|n| n.to_str()).any(|n| n.trim_start_matches('.').starts_with(name::ENV)) {
            left.push(dir);
        }
    }
    Ok(left)
}

/// The engines that a run has had in windows, ascending.
pub fn engine_numbers(run: &Dir) -> Vec<u32> {
    let names = run.sub(name::ENGINE).and_then(|d| d.names()).unwrap_or_default();
    let mut numbers: Vec<u32> = names.iter().filter_map(|n| n.to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

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
    fn what_was_asked_for_arrives_beside_the_callers_own() {
        let var = |n: &str, v: &str| (OsString::from(n), OsString::from(v));
        let stale = var("LOOPMUX_EXTRA_ENV_OLD", "of an outer engine");
        let asked = vec![var("A", "1"), var("A", "2"), var("B", "")];
        let (caller, extra) = split(carrying(vec![var("A", "0"), stale], asked));
        assert_eq!(caller, [var("A", "0")]);
        assert_eq!(extra, [var("A", "2"), var("B", "")]);
    }

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
