//! What the evidence about a run permits.

use super::attempt::{Leftovers, Verdict};
use super::evidence::{Evidence, Lease, Observation, Why};
use super::status::{EngineSeen, Status};
use std::fmt;

/// Why a run may not be removed, or not be proven to be removable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Obstacle {
    /// Nothing of that status is ever removed.
    Status(Status),
    /// An engine drives it.
    Engine,
    /// Whether an engine drives it cannot be told.
    EngineUnknown(Why),
    /// Something of an attempt is alive.
    Alive(u32),
    /// Whether something of an attempt is alive cannot be told.
    Unproven(u32, Why),
    /// Its lease is free, but nothing proves that no descendant of it is left: the processes must be looked at.
    Unswept(u32),
    /// The attempts could not be listed.
    Attempts(Why),
}

impl Obstacle {
    /// It is certain that something is alive, or that nobody may touch the run as it is.
    pub fn is_certain(&self) -> bool {
        match self {
            Self::Status(Status::Unknown) => false,
            Self::Status(_) | Self::Engine | Self::Alive(_) => true,
            Self::EngineUnknown(_) | Self::Unproven(..) | Self::Unswept(_) | Self::Attempts(_) => false,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "its status is {status}"),
            Self::Engine => f.write_str("its engine runs"),
            Self::EngineUnknown(why) => write!(f, "cannot tell whether its engine runs: {why}"),
            Self::Alive(n) => write!(f, "something of attempt {n} is alive"),
            Self::Unproven(n, why) => {
                write!(f, "cannot tell whether something of attempt {n} is alive: {why}")
            }
            Self::Unswept(n) => write!(
                f,
                "cannot tell whether something of attempt {n} is alive: its keeper left no receipt that no descendant is \
                 left, so the processes must be looked at"
            ),
            Self::Attempts(why) => write!(f, "its attempts cannot be listed: {why}"),
        }
    }
}

/// What a reader knows to be permitted; whoever acts looks again under the run lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Permit {
    /// `resume` may make another attempt; `None` where nobody can tell.
    pub resumable: Option<bool>,
    /// The directory may be removed; `None` where nobody can tell without a look at the processes.
    pub removable: Option<bool>,
    /// Why it may not be removed, or why nobody can tell.
    pub obstacles: Vec<Obstacle>,
}

/// The proof that nothing of a run lives. Only [`Permit::prove_removable`] makes it, each removal uses it up, and a
/// run is moved and erased for nothing else.
#[derive(Debug)]
#[must_use]
pub struct Removable {
    _proven: (),
}

/// The proof that nothing is seen to hold a run: no engine has its lock, no process a lease, and nobody of it was found.
/// Whether something that cannot be seen lives is left to the person who asked. A run is put aside for it, not erased.
#[derive(Debug)]
#[must_use]
pub struct Unheld {
    _seen: (),
}

/// The proof that nothing is seen to hold a run: its engine lock, the leases of its attempts as they read here, and
/// whether somebody of it was found.
///
/// # Errors
/// Everything that is certain to be alive.
pub fn prove_unheld(
    engine: &Lease,
    attempts: &[(u32, Lease, Observation<()>)],
) -> Result<Unheld, Vec<Obstacle>> {
    let mut alive = Vec::new();
    if *engine == Lease::Held {
        alive.push(Obstacle::Engine);
    }
    for (n, lease, found) in attempts {
        if *lease == Lease::Held || matches!(found, Observation::Known(())) {
            alive.push(Obstacle::Alive(*n));
        }
    }
    if alive.is_empty() { Ok(Unheld { _seen: () }) } else { Err(alive) }
}

impl Permit {
    /// The proof that the directory may be removed. `sweep` looks at the processes for an attempt whose keeper left no
    /// last receipt: known is somebody of it, absent is nobody.
    ///
    /// # Errors
    /// Everything that stands against it.
    pub fn prove_removable(
        &self,
        mut sweep: impl FnMut(u32) -> Observation<()>,
    ) -> Result<Removable, Vec<Obstacle>> {
        let mut left = Vec::new();
        for obstacle in &self.obstacles {
            match obstacle {
                Obstacle::Unswept(n) => match sweep(*n) {
                    Observation::Absent => {}
                    Observation::Known(()) => left.push(Obstacle::Alive(*n)),
                    Observation::Unknown(why) => left.push(Obstacle::Unproven(*n, why)),
                },
                other => left.push(other.clone()),
            }
        }
        match (self.removable, left.is_empty()) {
            // What is left open is left open by the obstacles alone.
            (Some(true) | None, true) => Ok(Removable { _proven: () }),
            _ => Err(left),
        }
    }
}

/// Derives what is permitted from a status, the engine, and the evidence about all attempts.
pub fn permit(
    status: Status,
    engine: &EngineSeen,
    attempts: &Observation<Vec<(u32, &Evidence, &Verdict)>>,
) -> Permit {
    let mut alive = Vec::new();
    match engine {
        EngineSeen::Running => alive.push(Obstacle::Engine),
        EngineSeen::Unknown(why) => alive.push(Obstacle::EngineUnknown(why.clone())),
        EngineSeen::Gone => {}
    }
    let mut unswept = Vec::new();
    match attempts {
        Observation::Unknown(why) => alive.push(Obstacle::Attempts(why.clone())),
        Observation::Absent => {}
        Observation::Known(attempts) => {
            for (n, evidence, verdict) in attempts {
                alive.extend(of_attempt(*n, evidence, verdict));
                unswept.extend(unproven_descendants(*n, evidence, verdict));
            }
        }
    }
    let row = status.row();
    let resumable = permitted(row.resumable, &alive);
    let mut obstacles = Vec::new();
    if !row.removable && alive.is_empty() {
        obstacles.push(Obstacle::Status(status));
    }
    obstacles.append(&mut alive);
    if obstacles.is_empty() {
        obstacles = unswept;
    }
    Permit { resumable, removable: permitted(row.removable, &obstacles), obstacles }
}

/// A certain obstacle forbids, an uncertain one leaves it open.
fn permitted(by_status: bool, obstacles: &[Obstacle]) -> Option<bool> {
    if !by_status || obstacles.iter().any(Obstacle::is_certain) {
        Some(false)
    } else if obstacles.is_empty() {
        Some(true)
    } else {
        None
    }
}

fn of_attempt(n: u32, evidence: &Evidence, verdict: &Verdict) -> Option<Obstacle> {
    if evidence.lease == Lease::Held {
        return Some(Obstacle::Alive(n));
    }
    match verdict {
        Verdict::Launching => {
            Some(Obstacle::Unproven(n, Why::new("it was launched, and may start at any moment")))
        }
        Verdict::Unknown { why } => Some(Obstacle::Unproven(n, why.clone())),
        ended => match ended.leftovers() {
            Leftovers::None => None,
            Leftovers::Some | Leftovers::Settling => Some(Obstacle::Alive(n)),
            Leftovers::Unknown(why) => Some(Obstacle::Unproven(n, why)),
        },
    }
}

/// A free lease proves keeper and agent CLI dead, not every descendant: only the keeper's own receipt does.
fn unproven_descendants(n: u32, evidence: &Evidence, verdict: &Verdict) -> Option<Obstacle> {
    match (&evidence.emptied, verdict) {
        (Observation::Known(()), _) | (_, Verdict::NeverStarted { .. }) => None,
        (Observation::Absent, _) => Some(Obstacle::Unswept(n)),
        (Observation::Unknown(why), _) => Some(Obstacle::Unproven(n, why.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::evidence::End;
    use super::*;

    fn ended(lease: Lease, emptied: bool) -> (Evidence, Verdict) {
        let emptied = if emptied { Observation::Known(()) } else { Observation::Absent };
        let leftovers = match &lease {
            Lease::Free => Leftovers::None,
            Lease::Held => Leftovers::Some,
            Lease::NoFile | Lease::Unknown(_) => Leftovers::Unknown(Why::new("no look")),
        };
        let verdict = Verdict::Exited { end: End::Code(1), leftovers };
        (Evidence { lease, emptied, ..Evidence::none() }, verdict)
    }

    fn of(status: Status, engine: &EngineSeen, attempt: &(Evidence, Verdict)) -> Permit {
        permit(status, engine, &Observation::Known(vec![(1, &attempt.0, &attempt.1)]))
    }

    #[test]
    fn an_ended_and_emptied_run_may_be_resumed_and_removed() {
        let permit = of(Status::Failed, &EngineSeen::Gone, &ended(Lease::Free, true));
        assert_eq!((permit.resumable, permit.removable), (Some(true), Some(true)));
        assert!(permit.obstacles.is_empty());
    }

    #[test]
    fn what_lives_forbids_both() {
        for (engine, attempt) in
            [(EngineSeen::Gone, ended(Lease::Held, true)), (EngineSeen::Running, ended(Lease::Free, true))]
        {
            let permit = of(Status::Failed, &engine, &attempt);
            assert_eq!((permit.resumable, permit.removable), (Some(false), Some(false)), "{permit:?}");
            assert_eq!(permit.obstacles.len(), 1);
        }
    }

    #[test]
    fn what_cannot_be_seen_leaves_it_open_and_says_why() {
        let unseen = EngineSeen::Unknown(Why::new("no look"));
        for (engine, attempt) in [
            (EngineSeen::Gone, ended(Lease::Unknown(Why::new("no look")), true)),
            (unseen, ended(Lease::Free, true)),
        ] {
            let permit = of(Status::Failed, &engine, &attempt);
            assert_eq!((permit.resumable, permit.removable), (None, None), "{permit:?}");
            assert!(permit.obstacles[0].to_string().contains("no look"), "{permit:?}");
        }
    }

    #[test]
    fn a_free_lease_without_the_last_receipt_resumes_and_does_not_remove() {
        let permit = of(Status::Lost, &EngineSeen::Gone, &ended(Lease::Free, false));
        assert_eq!((permit.resumable, permit.removable), (Some(true), None));
        assert_eq!(permit.obstacles, [Obstacle::Unswept(1)]);
    }

    #[test]
    fn a_look_at_the_processes_settles_what_the_receipts_leave_open_and_nothing_else() {
        let lost = of(Status::Lost, &EngineSeen::Gone, &ended(Lease::Free, false));
        assert!(lost.prove_removable(|_| Observation::Absent).is_ok());
        assert_eq!(
            lost.prove_removable(|_| Observation::Known(())).unwrap_err(),
            [Obstacle::Alive(1)],
            "somebody was found"
        );
        let refused = lost.prove_removable(|_| Observation::unknown("no look")).unwrap_err();
        assert_eq!(refused, [Obstacle::Unproven(1, Why::new("no look"))]);
        let held = of(Status::Lost, &EngineSeen::Gone, &ended(Lease::Held, false));
        assert!(held.prove_removable(|_| Observation::Absent).is_err(), "a lease is no question of a sweep");
        let unknown = of(Status::Unknown, &EngineSeen::Gone, &ended(Lease::Free, true));
        assert!(unknown.prove_removable(|_| Observation::Absent).is_err());
        let engine = of(Status::Failed, &EngineSeen::Unknown(Why::new("x")), &ended(Lease::Free, true));
        assert!(engine.prove_removable(|_| Observation::Absent).is_err());
        let proven = of(Status::Failed, &EngineSeen::Gone, &ended(Lease::Free, true));
        assert!(proven.prove_removable(|_| panic!("nothing is left open")).is_ok());
    }

    #[test]
    fn what_is_seen_alive_is_not_put_aside_and_what_is_unknown_is() {
        let unseen = || Observation::unknown("no look");
        let of = |engine: Lease, lease: Lease, found| prove_unheld(&engine, &[(1, lease, found)]);
        let unknown = || Lease::Unknown(Why::new("no look"));
        assert!(of(unknown(), unknown(), unseen()).is_ok());
        assert!(of(Lease::NoFile, Lease::Free, Observation::Absent).is_ok());
        assert_eq!(of(Lease::Held, Lease::Free, unseen()).unwrap_err(), [Obstacle::Engine]);
        assert_eq!(of(Lease::Free, Lease::Held, unseen()).unwrap_err(), [Obstacle::Alive(1)]);
        assert_eq!(of(Lease::Free, unknown(), Observation::Known(())).unwrap_err(), [Obstacle::Alive(1)]);
    }

    #[test]
    fn a_status_that_is_never_removed_is_named_where_nothing_else_is() {
        let permit = of(Status::Unknown, &EngineSeen::Gone, &ended(Lease::Free, true));
        assert_eq!((permit.resumable, permit.removable), (Some(false), Some(false)));
        assert_eq!(permit.obstacles, [Obstacle::Status(Status::Unknown)]);
    }
}
