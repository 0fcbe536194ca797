//! Finding and killing what does not end when asked.

use crate::observe::{AttemptView, holders, sweep};
use crate::process::{self, Handle, Identity, Life, Note, Opened, Scan, Signal};
use crate::run::store::AttemptRead;
use crate::verdict::{Lease, Observation};
use std::collections::HashMap;

/// A process of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Which one.
    pub process: Note,
    /// Why it counts, or why it could not be ended.
    pub why: String,
}

impl Survivor {
    /// It runs, or nobody can tell that it does not.
    pub fn still_lives(&self) -> bool {
        !matches!(process::life(&self.process.id), Life::Gone)
    }
}

/// Who was found, and what could not be looked at.
#[derive(Debug, Default)]
pub(super) struct Living {
    /// The processes, each once.
    pub found: Vec<Survivor>,
    /// Looks that were refused.
    pub unknown: Vec<String>,
}

impl Living {
    /// Adds those that are new; of the others the later word counts.
    pub(super) fn absorb(&mut self, more: &[Survivor]) {
        for survivor in more {
            match self.found.iter_mut().find(|s| s.process.id == survivor.process.id) {
                Some(known) => known.why.clone_from(&survivor.why),
                None => self.found.push(survivor.clone()),
            }
        }
    }

    fn take(&mut self, scan: Scan, why: &str, spared: &[u32]) {
        for process in scan.found {
            if !spared.contains(&process.id.pid) && !self.found.iter().any(|s| s.process.id == process.id) {
                self.found.push(Survivor { process, why: why.to_owned() });
            }
        }
    }
}

/// Everything of an attempt that can be seen alive. A process is listed by the first way that found it.
pub(super) fn living(read: &AttemptRead, view: &AttemptView, spared: &[u32]) -> Living {
    let mut living = Living::default();
    if let Some(keeper) = live_keeper(view) {
        living.take(process::descendants(keeper.pid), "descends from the keeper", spared);
    }
    // Whoever merely has the file open to probe it is no holder: the lease itself says whether there is one.
    if view.evidence.lease == Lease::Held {
        living.take(holders(read), "holds the lease", spared);
    }
    if let Some(token) = view.token() {
        living.take(process::with_token(token), "carries the token", spared);
    }
    let started = view.keeper().is_some();
    if started && live_keeper(view).is_none() && !matches!(view.evidence.emptied, Observation::Known(())) {
        // Who let go of lease and token was known to the keeper alone; what is left of it is its kernel session.
        let swept = sweep(read, view);
        for (process, how) in swept.found {
            let known = living.found.iter().any(|s| s.process.id == process.id);
            if !known && !spared.contains(&process.id.pid) {
                living.found.push(Survivor { process, why: how.to_owned() });
            }
        }
        living.unknown.extend(swept.refused);
    }
    for survivor in &mut living.found {
        if is_keeper(&survivor.process.id, view) {
            survivor.why = "the keeper, which stays until nothing of its program is left".to_owned();
        }
    }
    living.found.retain(|s| !is_only_parked(&s.process.id, view));
    living
}

fn is_keeper(id: &Identity, view: &AttemptView) -> bool {
    view.keeper() == Some(id)
}

/// A keeper that has given the lease back shows the end or is about to go: its window is no life of the attempt.
pub(super) fn is_only_parked(id: &Identity, view: &AttemptView) -> bool {
    is_keeper(id, view) && view.evidence.lease != Lease::Held
}

fn live_keeper(view: &AttemptView) -> Option<&Identity> {
    view.keeper().filter(|id| process::life(id) == Life::Alive)
}

/// Freezes everything that can be found until nothing new appears, then kills it through the handles that froze
/// it. The keeper is killed only with `keeper_too`, and only once nothing below it is left: right after the agent
/// CLI's end it still writes the receipt.
pub(super) fn kill_all(
    read: &AttemptRead,
    view: &AttemptView,
    spared: &[u32],
    keeper_too: bool,
) -> Vec<Survivor> {
    let keeper = view.keeper();
    let mut frozen: HashMap<Identity, (Handle, Survivor)> = HashMap::new();
    let mut met = Vec::new();
    // A chain of forks is frozen link by link; its length is bounded by what appears between two looks.
    for _ in 0..50 {
        let fresh: Vec<Survivor> = living(read, view, spared)
            .found
            .into_iter()
            .filter(|s| Some(&s.process.id) != keeper && !frozen.contains_key(&s.process.id))
            .filter(|s| !met.iter().any(|m: &Survivor| m.process.id == s.process.id))
            .collect();
        if fresh.is_empty() {
            break;
        }
        for mut survivor in fresh {
            match Handle::open(&survivor.process.id) {
                Opened::Handle(handle) => match handle.signal(Signal::Stop) {
                    Ok(()) => {
                        met.push(survivor.clone());
                        frozen.insert(survivor.process.id.clone(), (handle, survivor));
                    }
                    Err(e) => {
                        let whose =
                            survivor.process.uid.map(|uid| format!(" (user {uid})")).unwrap_or_default();
                        survivor.why = format!("{}; cannot be signalled: {e}{whose}", survivor.why);
                        met.push(survivor);
                    }
                },
                Opened::Gone => {}
                Opened::Unknown(why) => {
                    survivor.why = format!("{}; {why}", survivor.why);
                    met.push(survivor);
                }
            }
        }
    }
    let nothing_below = frozen.is_empty();
    for (handle, survivor) in frozen.values() {
        if let Err(e) = handle.signal(Signal::Kill) {
            tracing::debug!("kill {}: {e}", survivor.process.id.pid);
            // Not killed: it must not stay frozen.
            if let Err(e) = handle.signal(Signal::Cont) {
                tracing::debug!("continue {}: {e}", survivor.process.id.pid);
            }
        }
    }
    if let Some(id) = keeper
        && let Opened::Handle(handle) = Handle::open(id)
    {
        // A frozen keeper reaps nothing; one without anything below it only keeps the lease.
        let empty = keeper_too && nothing_below && {
            let below = process::descendants(id.pid);
            below.found.is_empty() && below.refused.is_empty()
        };
        let signal = if empty && view.evidence.lease == Lease::Held { Signal::Kill } else { Signal::Cont };
        if let Err(e) = handle.signal(signal) {
            tracing::debug!("{signal:?} to the keeper: {e}");
        }
    }
    met
}
