//! Short references: the end of an id that means one run alone, by the rules of [`crate::run::store::resolve`].

use crate::observe::RunView;
use crate::run::id::RunId;
use crate::run::store::ProjectRead;
use crate::verdict::Observation;
use std::collections::{HashMap, HashSet};

/// What a person may type in one project.
#[derive(Clone, Debug, Default)]
pub struct Refs {
    ids: Vec<RunId>,
    names: Vec<String>,
    /// How often each last part stands at the end of an id.
    ends: HashMap<String, usize>,
    /// What ids begin with, as long as a usual last part.
    starts: HashSet<String>,
}

/// The length of the last part of an id as it is minted.
const USUAL: usize = 4;

impl Refs {
    /// The references of a project's runs.
    pub fn of_project(project: &ProjectRead) -> Self {
        let ids = project.run_ids().known().cloned().unwrap_or_default();
        let name = |id: &RunId| match project.run(id) {
            Observation::Known(run) => run.file().known().and_then(|f| f.name.clone()),
            Observation::Absent | Observation::Unknown(_) => None,
        };
        let names = ids.iter().filter_map(name).collect();
        Self::new(ids, names)
    }

    fn new(ids: Vec<RunId>, names: Vec<String>) -> Self {
        let mut ends = HashMap::new();
        for id in &ids {
            // Whatever ends like it counts, be its last part longer.
            let whole = id.as_str();
            *ends.entry(whole[whole.len().saturating_sub(USUAL)..].to_owned()).or_default() += 1;
        }
        let starts = ids.iter().filter_map(|id| id.as_str().get(..USUAL)).map(str::to_owned).collect();
        Self { ids, names, ends, starts }
    }

    /// The references of runs that were read already: all of one project.
    pub fn of_all(views: &[RunView]) -> Self {
        let name = |v: &RunView| v.file.known().and_then(|f| f.name.clone());
        Self::new(views.iter().map(|v| v.id.clone()).collect(), views.iter().filter_map(name).collect())
    }

    /// The shortest end of `id` that means no other run: its last part, or more of it.
    pub fn of(&self, id: &RunId) -> String {
        let whole = id.as_str();
        let ends = whole.match_indices('-').map(|(at, _)| &whole[at + 1..]);
        ends.rev().find(|end| self.is_unique(end, id)).unwrap_or(whole).to_owned()
    }

    fn is_unique(&self, end: &str, id: &RunId) -> bool {
        // The usual case, without a walk over all ids for each of them.
        if end.len() == USUAL && end == id.short() && self.ends.get(end) == Some(&1) {
            return !self.starts.contains(end) && !self.names.iter().any(|name| name == end);
        }
        let others = self.ids.iter().filter(|other| *other != id);
        let taken = |other: &RunId| other.as_str().starts_with(end) || other.as_str().ends_with(end);
        !others.into_iter().any(taken) && !self.names.iter().any(|name| name == end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refs(ids: &[&str], names: &[&str]) -> Vec<String> {
        let ids: Vec<RunId> = ids.iter().map(|id| RunId::parse(id).unwrap()).collect();
        let refs = Refs::new(ids.clone(), names.iter().map(ToString::to_string).collect());
        ids.iter().map(|id| refs.of(id)).collect()
    }

    #[test]
    fn the_last_part_serves_where_it_is_alone() {
        assert_eq!(refs(&["20261129-160042-7f3a", "20261129-160042-00ff"], &[]), ["7f3a", "00ff"]);
    }

    #[test]
    fn one_that_means_more_is_lengthened() {
        assert_eq!(
            refs(&["20261129-160042-7f3a", "20261130-100000-7f3a"], &[]),
            ["160042-7f3a", "100000-7f3a"]
        );
        let last = "20261130-100000-2026";
        assert_eq!(refs(&[last, "20261129-160042-7f3a"], &[])[0], "100000-2026", "the beginning of another");
        assert_eq!(refs(&["20261129-160042-7f3a"], &["7f3a"]), ["160042-7f3a"], "the name of a run");
    }
}
