//! The windows of a run's engines, by their directories.

use crate::process::{self, Life};
use crate::run::dir::Dir;
use crate::run::files::{LaunchFile, StartFile, name};
use crate::run::store::RunRead;
use crate::verdict::Observation;

/// The directories of a run's engine windows, each with its number. Those that cannot be opened are left out.
pub fn engine_windows(run: &RunRead) -> Vec<(String, Dir)> {
    let Ok(engines) = run.dir().sub(name::ENGINE) else { return Vec::new() };
    let Ok(names) = engines.names() else { return Vec::new() };
    let names = names.into_iter().filter_map(|n| n.into_string().ok());
    names.filter_map(|n| engines.sub(&n).ok().map(|dir| (n, dir))).collect()
}

/// What their launch files say; those that cannot be read are left out.
pub fn launches(run: &RunRead) -> Vec<LaunchFile> {
    let read = |(_, dir): (String, Dir)| match dir.read_json::<LaunchFile>(name::LAUNCH) {
        Observation::Known(launch) => Some(launch),
        Observation::Absent | Observation::Unknown(_) => None,
    };
    engine_windows(run).into_iter().filter_map(read).collect()
}

/// Whether the keeper of one of them lives and has not written yet how its engine ended.
pub fn owes_a_receipt(run: &RunRead) -> bool {
    engine_windows(run).iter().any(|(_, dir)| {
        let start = dir.read_json::<StartFile>(name::START);
        let lives = start.known().is_some_and(|s| process::life(&s.keeper) == Life::Alive);
        lives && matches!(dir.has(name::EXIT), Observation::Absent)
    })
}
