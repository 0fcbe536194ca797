//! Files that a newer loopmux wrote: a reader shows them as unknown, and whoever acts leaves their run alone.

use super::dir::{Dir, READ_LIMIT};
use super::files::{SCHEMA, name};
use crate::verdict::Observation;
use serde::Deserialize;
use std::path::PathBuf;

/// A file of a schema that this program does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} was written by a newer loopmux (schema {schema}, this one knows up to {SCHEMA}); use that one", .path.display())]
pub struct Newer {
    /// The file.
    pub path: PathBuf,
    /// Its schema.
    pub schema: u32,
}

const OF_A_RUN: [&str; 3] = [name::RUN, name::STATE, name::STOP];
const OF_AN_ATTEMPT: [&str; 10] = [
    name::LAUNCH,
    name::START,
    name::CREATED,
    name::SPAWNED,
    name::REFUSED,
    name::EXIT,
    name::EMPTIED,
    name::HANGUP,
    name::LEFTOVERS,
    name::HANDOVER,
];

/// The first file of a run's directory that a newer loopmux wrote. What cannot be read at all is not looked at here:
/// whoever needs it finds it unknown.
pub fn newer(run: &Dir) -> Option<Newer> {
    let attempts = run.sub(name::ATTEMPTS).ok();
    let numbers = attempts.as_ref().and_then(|dir| dir.names().ok()).unwrap_or_default();
    let of_attempts = numbers.iter().filter_map(|n| attempts.as_ref()?.sub(n.to_str()?).ok());
    newer_in(run, &OF_A_RUN).or_else(|| {
        let mut found = of_attempts.filter_map(|attempt| newer_in(&attempt, &OF_AN_ATTEMPT));
        found.next()
    })
}

fn newer_in(dir: &Dir, names: &[&str]) -> Option<Newer> {
    #[derive(Deserialize)]
    struct Head {
        schema: u32,
    }
    names.iter().find_map(|name| {
        let Observation::Known(bytes) = dir.read(name, READ_LIMIT) else { return None };
        let head: Head = serde_json::from_slice(&bytes).ok()?;
        (head.schema > SCHEMA).then(|| Newer { path: dir.path().join(name), schema: head.schema })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_file_is_found_wherever_it_is_and_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let attempt = dir.path().join("attempts/2");
        std::fs::create_dir_all(&attempt).unwrap();
        std::fs::write(dir.path().join("run.json"), r#"{"schema":1}"#).unwrap();
        std::fs::write(dir.path().join("state.json"), "torn").unwrap();
        std::fs::write(attempt.join("result.json"), r#"{"schema":99}"#).unwrap();
        let run = Dir::open(dir.path()).unwrap();
        assert_eq!(newer(&run), None);
        std::fs::write(attempt.join("exit.json"), r#"{"schema":2,"new":"shape"}"#).unwrap();
        assert_eq!(newer(&run), Some(Newer { path: attempt.join("exit.json"), schema: 2 }));
    }
}
