//! What stands against a removal by disk and kernel, and the proof where nothing does (rules L1, L10, L11).

use super::refusal::{Refusal, WayOut};
use crate::observe::{
    AttemptView, Looks, RunView, Sweep, attempt_on_disk, holders, run as observe_run, sweep,
};
use crate::process;
use crate::run::files::name;
use crate::run::locks;
use crate::run::store::{AttemptRead, RunRead};
use crate::run::tree;
use crate::verdict::{
    Lease, Observation, Obstacle, Permit, Removable, Unheld, Verdict, permit, prove_unheld,
};
use std::collections::HashMap;

/// Holders of a lease that are named at most.
const NAMED: usize = 8;

/// One look at a run: its evidence, and what a look at the processes adds.
pub struct Looked {
    /// The evidence.
    pub view: RunView,
    permit: Permit,
    sweeps: HashMap<u32, Sweep>,
}

/// Looks at a run through its open directory, wherever that is now.
pub fn look(run: &RunRead) -> Looked {
    let view = observe_run(run, &mut Looks::none());
    let attempts = view
        .attempts
        .as_ref()
        .map(|list| list.iter().map(|a| (a.n, &a.evidence, &a.verdict)).collect::<Vec<_>>());
    let permit = permit(view.status, &view.engine.seen, &attempts);
    Looked { view, permit, sweeps: HashMap::new() }
}

impl Looked {
    /// The proof that nothing of the run lives.
    ///
    /// # Errors
    /// Everything that stands against it.
    pub fn prove(&mut self, run: &RunRead) -> Result<Removable, Refusal> {
        let mut refusal = Refusal::new();
        let (permit, view, sweeps) = (&self.permit, &self.view, &mut self.sweeps);
        let proof = permit.prove_removable(|n| {
            let Some((read, attempt)) = open(run, view, n) else {
                return Observation::unknown("its directory cannot be opened");
            };
            let swept = sweep(&read, attempt);
            let answer = swept.answer();
            sweeps.insert(n, swept);
            answer
        });
        let proof = proof.map_err(|obstacles| {
            for obstacle in &obstacles {
                self.add(run, obstacle, &mut refusal);
            }
        });
        if !refusal.is_certain() {
            unreadable(&self.view, &mut refusal);
            recorders(run, &mut refusal);
        }
        match proof {
            Ok(proof) if refusal.is_empty() => Ok(proof),
            _ => {
                if refusal.is_certain() {
                    refusal.way_out(WayOut::Stop);
                } else {
                    refusal.way_out(WayOut::Status);
                    refusal.way_out(WayOut::Unproven);
                }
                Err(refusal)
            }
        }
    }

    /// Whether the run has ended, by proof. What a descendant that left no trace might still do is no question here.
    ///
    /// # Errors
    /// What stands against it, in words.
    pub fn prove_ended(&self) -> Result<(), String> {
        match self.permit.prove_removable(|_| Observation::Absent) {
            Ok(_) => Ok(()),
            Err(obstacles) => Err(obstacles.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
        }
    }

    /// The proof that nothing is seen to hold the run, whatever else is unknown. Locks are asked as they read here: one
    /// that is held is held, wherever the run was recorded.
    ///
    /// # Errors
    /// Everything that is certain to be alive.
    pub fn prove_unheld(&mut self, run: &RunRead) -> Result<Unheld, Refusal> {
        let mut locks = Vec::new();
        for read in attempts(run) {
            let attempt = attempt_on_disk(&read);
            let swept = match &attempt.evidence.emptied {
                Observation::Known(()) => Sweep::default(),
                Observation::Absent | Observation::Unknown(_) => sweep(&read, &attempt),
            };
            locks.push((read.n(), read.lease(), swept.answer()));
            self.sweeps.insert(read.n(), swept);
        }
        prove_unheld(&run.engine_lock(), &locks).map_err(|obstacles| {
            let mut refusal = Refusal::new();
            for obstacle in &obstacles {
                self.add(run, obstacle, &mut refusal);
            }
            refusal.way_out(WayOut::Stop);
            refusal
        })
    }

    /// An obstacle, with the processes behind it.
    fn add(&self, run: &RunRead, obstacle: &Obstacle, refusal: &mut Refusal) {
        match obstacle {
            Obstacle::Engine => self.add_engine(refusal),
            Obstacle::Alive(n) => self.add_living(run, *n, refusal),
            other => refusal.obstacle(other),
        }
    }

    fn add_engine(&self, refusal: &mut Refusal) {
        let recorded = self.view.engine.process.as_ref();
        let note = recorded.and_then(|id| match process::note(id.pid) {
            Ok(Some(note)) if note.id == *id => Some(note),
            Ok(_) | Err(_) => None,
        });
        match note {
            Some(note) => refusal.fact(true, "its engine runs:", Some(note)),
            None => {
                refusal.fact(
                    true,
                    "its engine lock is held, by a process that cannot be seen from here",
                    None,
                );
            }
        }
    }

    fn add_living(&self, run: &RunRead, n: u32, refusal: &mut Refusal) {
        let mut named = 0;
        if let Some(swept) = self.sweeps.get(&n) {
            for (note, how) in swept.found.iter().take(NAMED) {
                refusal.fact(true, format!("attempt {n}: {how}:"), Some(note.clone()));
                named += 1;
            }
        }
        let Some((read, attempt)) = open(run, &self.view, n) else { return };
        if read.lease() == Lease::Held {
            for note in holders(&read).found.into_iter().filter(|p| p.id.pid != std::process::id()) {
                if named == NAMED {
                    break;
                }
                refusal.fact(true, format!("the lease of attempt {n} is held by"), Some(note));
                named += 1;
            }
            if named == 0 {
                let text =
                    format!("the lease of attempt {n} is held, by a process that cannot be seen from here");
                refusal.fact(true, text, None);
            }
        }
        if let Verdict::Running { window_gone: Some(cause) } = &attempt.verdict {
            let text = format!("{}, so `attach` cannot show it", cause.in_words());
            refusal.fact(true, text, None);
        }
        if refusal.is_empty() {
            refusal.obstacle(&Obstacle::Alive(n));
        }
    }
}

/// The attempts of a run whose directories can be opened, whatever their files say.
fn attempts(run: &RunRead) -> Vec<AttemptRead> {
    let numbers = match run.attempt_numbers() {
        Observation::Known(numbers) => numbers,
        Observation::Absent | Observation::Unknown(_) => Vec::new(),
    };
    numbers
        .into_iter()
        .filter_map(|n| match run.attempt(n) {
            Observation::Known(read) => Some(read),
            Observation::Absent | Observation::Unknown(_) => None,
        })
        .collect()
}

fn open<'v>(run: &RunRead, view: &'v RunView, n: u32) -> Option<(AttemptRead, &'v AttemptView)> {
    let attempt = view.attempts.known()?.iter().find(|a| a.n == n)?;
    match run.attempt(n) {
        Observation::Known(read) => Some((read, attempt)),
        Observation::Absent | Observation::Unknown(_) => None,
    }
}

/// Files of ours that cannot be read, or are missing beside others that rest on them: whatever they say, it is not
/// known (rule L10).
fn unreadable(view: &RunView, refusal: &mut Refusal) {
    let mut unknown = |why: String| refusal.fact(false, why, None);
    let run_files: [Observation<()>; 3] =
        [view.file.as_ref().map(|_| ()), view.record.as_ref().map(|_| ()), view.stop.as_ref().map(|_| ())];
    for (file, must) in run_files.iter().zip([Some(name::RUN), Some(name::STATE), None]) {
        match (file, must) {
            (Observation::Unknown(why), _) => unknown(why.to_string()),
            (Observation::Absent, Some(file)) => unknown(format!("{file} is missing")),
            _ => {}
        }
    }
    // Attempts that cannot be listed are an obstacle of their own.
    let Observation::Known(attempts) = &view.attempts else { return };
    let latest = view.record.known().map_or(0, |r| r.attempt);
    for n in (1..=latest).filter(|n| !attempts.iter().any(|a| a.n == *n)) {
        unknown(format!("the directory of attempt {n} is missing"));
    }
    for a in attempts {
        let files: [Observation<()>; 8] = [
            a.launch.as_ref().map(|_| ()),
            a.start.as_ref().map(|_| ()),
            a.created.as_ref().map(|_| ()),
            a.spawned.as_ref().map(|_| ()),
            a.exit.as_ref().map(|_| ()),
            a.hangup.as_ref().map(|_| ()),
            a.leftovers.as_ref().map(|_| ()),
            a.emptied.as_ref().map(|_| ()),
        ];
        for file in files {
            if let Observation::Unknown(why) = file {
                unknown(why.to_string());
            }
        }
        if matches!((&a.launch, &a.start), (Observation::Absent, Observation::Known(_))) {
            unknown(format!("{} of attempt {} is missing", name::LAUNCH, a.n));
        }
    }
}

/// Whoever still records an attempt's output: the log is complete only when nobody has its lock.
fn recorders(run: &RunRead, refusal: &mut Refusal) {
    for read in attempts(run) {
        match locks::probe(read.dir(), name::OUTPUT) {
            Lease::Free | Lease::NoFile => {}
            Lease::Held => {
                let text = format!("the output of attempt {} is still being recorded", read.n());
                refusal.fact(true, text, None);
            }
            Lease::Unknown(why) => refusal.fact(false, why.to_string(), None),
        }
    }
}

/// Whatever lies in the directory and is not the run's: it would go with it.
///
/// # Errors
/// What was found.
pub fn survey(run: &RunRead, parent: &crate::run::dir::Dir) -> Result<Vec<tree::Entry>, Refusal> {
    let all = tree::survey(run.dir(), parent);
    all.and_then(|entries| tree::all_ours(run.dir().path(), &entries).map(|()| entries)).map_err(|e| {
        let mut refusal = Refusal::new();
        refusal.fact(false, e.to_string(), None);
        refusal.way_out(WayOut::Unproven);
        refusal
    })
}
