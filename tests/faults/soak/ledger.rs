//! What really lives and what was asked for, kept by handles.

use crate::harness::World;
use crate::oracle::{Living, entries, lives, living, run_dir};
use loopmux::process::Identity;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Everything that was seen.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Processes that live, as far as the last look saw.
    alive: HashMap<Identity, Living>,
    /// Attempts that may end: they were asked to, they end by themselves, or their surroundings were killed.
    may_end: BTreeSet<(String, u64)>,
    /// Runs whose end is being asked for: whatever attempt appears meanwhile may end too.
    asked: BTreeMap<String, usize>,
    /// Exit receipts, which never change.
    receipts: BTreeMap<(String, String), Value>,
    /// Final records, which change only by a further attempt.
    finals: BTreeMap<String, Value>,
    /// Runs that are gone from every place.
    removed: BTreeSet<String>,
    known: BTreeSet<String>,
    processes: usize,
    looks: usize,
}

impl Ledger {
    /// Somebody asks for the end of a run.
    pub(crate) fn asked(&mut self, run: &str) {
        *self.asked.entry(run.to_owned()).or_default() += 1;
        self.license(|l| l.run == run);
    }

    /// Whoever asked has come back. What a run's stop request leaves behind it is for attempts that are there by then.
    pub(crate) fn asked_no_more(&mut self, run: Option<&str>) {
        if let Some(run) = run
            && let Some(n) = self.asked.get_mut(run)
        {
            *n -= 1;
            self.license(|l| l.run == run);
        }
    }

    /// Attempts to which something was done that may end them.
    pub(crate) fn license(&mut self, which: impl Fn(&Living) -> bool) {
        let more: Vec<_> =
            self.alive.values().filter(|l| which(l)).map(|l| (l.run.clone(), l.attempt)).collect();
        self.may_end.extend(more);
    }

    /// Every attempt that is there may end: something was done to the terminals, of which an agent has one from its first
    /// moment on, seen here or not yet.
    pub(crate) fn license_every_terminal(&mut self, world: &World) {
        self.license(|_| true);
        for run in entries(world, "runs") {
            let id = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
            for attempt in std::fs::read_dir(run.join("attempts")).into_iter().flatten().flatten() {
                if let Ok(n) = attempt.file_name().to_string_lossy().parse() {
                    self.may_end(&id, n);
                }
            }
        }
    }

    /// An attempt that may end from now on.
    pub(crate) fn may_end(&mut self, run: &str, attempt: u64) {
        self.may_end.insert((run.to_owned(), attempt));
    }

    /// The numbers of all this, for a person.
    pub(crate) fn in_words(&self) -> String {
        format!(
            "{} runs, {} processes, {} receipts, {} runs removed, {} looks",
            self.known.len(),
            self.processes,
            self.receipts.len(),
            self.removed.len(),
            self.looks
        )
    }

    /// Looks at everything, and at what has become of what was there before.
    #[track_caller]
    pub(crate) fn look(&mut self, world: &World, when: &str) {
        self.looks += 1;
        let gone: Vec<Identity> =
            self.alive.iter().filter(|(_, l)| !lives(l)).map(|(id, _)| id.clone()).collect();
        for id in gone {
            let one = self.alive.remove(&id).expect("it was there");
            let licensed = one.ends_by_itself || self.may_end.contains(&(one.run.clone(), one.attempt));
            assert!(licensed, "{when}: {one:?} was ended, and nobody asked for that");
        }
        for one in living(world) {
            let id = one.handle.identity().clone();
            if self.alive.contains_key(&id) {
                continue;
            }
            self.processes += 1;
            if self.asked.get(&one.run).is_some_and(|n| *n > 0) {
                self.may_end(&one.run, one.attempt);
            }
            self.alive.insert(id, one);
        }
        self.places(world, when);
        self.files(world, when);
    }

    /// What lives is where it was made, or on its way to trash and back.
    #[track_caller]
    fn places(&mut self, world: &World, when: &str) {
        for one in self.alive.values().filter(|l| lives(l)) {
            let there = run_dir(world, &one.run).is_some()
                || entries(world, "trash").iter().any(|p| {
                    p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&one.run))
                        && p.extension().is_none_or(|e| e != "erasing")
                })
                // Between the two looks it was moved back.
                || run_dir(world, &one.run).is_some();
            assert!(there || !lives(one), "{when}: {one:?} lives, and its run is gone");
        }
        let mut present = BTreeSet::new();
        for place in ["runs", "staging", "trash", "quarantine", "archive"] {
            for path in entries(world, place) {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let id = name.trim_start_matches('.').split('.').next().unwrap_or_default().to_owned();
                assert!(!self.removed.contains(&id), "{when}: {id} was removed, and is in {place} again");
                present.insert(id);
            }
        }
        self.known.extend(present.iter().cloned());
    }

    /// A run that the program said was deleted.
    pub(crate) fn removed(&mut self, world: &World, run: &str) {
        let archived = entries(world, "archive").iter().any(|p| p.to_string_lossy().contains(run));
        if !archived {
            self.removed.insert(run.to_owned());
        }
    }

    /// Receipts are written once, and what is final stays as it is.
    #[track_caller]
    fn files(&mut self, world: &World, when: &str) {
        let read = |path: &std::path::Path| -> Option<Value> {
            serde_json::from_slice(&std::fs::read(path).ok()?).ok()
        };
        for run in entries(world, "runs") {
            let id = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let attempts = std::fs::read_dir(run.join("attempts")).into_iter().flatten().flatten();
            for attempt in attempts {
                let Some(exit) = read(&attempt.path().join("exit.json")) else { continue };
                let key = (id.clone(), attempt.file_name().to_string_lossy().into_owned());
                let known = self.receipts.entry(key).or_insert_with(|| exit.clone());
                assert_eq!(*known, exit, "{when}: the exit receipt of {id} changed");
            }
            let Some(record) = read(&run.join("state.json")) else { continue };
            if record["ended_ms"].is_null() {
                continue;
            }
            let known = self.finals.entry(id.clone()).or_insert_with(|| record.clone());
            let ends = |record: &Value| record["earlier"].as_array().map_or(0, Vec::len);
            let again = ends(known) < ends(&record) || known["attempt"].as_u64() < record["attempt"].as_u64();
            assert!(*known == record || again, "{when}: what was final of {id} changed: {known} to {record}");
            *known = record;
        }
    }
}
