//! The program's own decisions, called on demand and remembered: `decide`, `derive_status`, `permit`,
//! `Record::after` and `Record::resumed`. Nothing of them is written down here a second time.

use crate::state::{Evidence as Read, Probe, Receipt, Tri, Went};
use loopmux::process::Identity;
use loopmux::run::record::{Change, Outcome, Record};
use loopmux::verdict::{
    self, End, EngineSeen, Evidence, ExitFact, HangupFact, Host, Lease, Leftovers, Life, Observation,
    Obstacle, RecordSeen, Status, Verdict, Why,
};
use std::collections::HashMap;

/// A record, by its number in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecordId(u8);

impl RecordId {
    /// The record of a run that was just made.
    pub(crate) const NEW: Self = Self(0);
}

/// What was seen of one attempt, and the verdict on it, by its number in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SeenId(u8);

impl SeenId {
    /// Nothing was seen.
    pub(crate) const NONE: Self = Self(u8::MAX);
}

/// What a keeper's or a server's fate tells about a cause; it decides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Explained {
    pub(crate) note: Went,
    pub(crate) other_boot: bool,
    pub(crate) keeper_lives: Option<bool>,
    pub(crate) server_lives: Option<bool>,
}

/// Nobody explains anything.
pub(crate) const UNEXPLAINED: Explained =
    Explained { note: Went::Nothing, other_boot: false, keeper_lives: None, server_lives: None };

/// What was seen of one attempt.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What the program is given: texts are empty, they decide nothing.
    pub(crate) evidence: Evidence,
    /// What the program said.
    pub(crate) verdict: Verdict,
}

/// What is permitted, as far as a command acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permitted {
    pub(crate) resumable: bool,
    pub(crate) removable: bool,
    /// Nothing is in the way but that the processes were not looked at yet.
    pub(crate) but_for_a_sweep: bool,
    /// Something is certain to be alive.
    pub(crate) certain: bool,
}

/// A change of the record, as the model names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Edit {
    Launch(u32),
    Started,
    Pause,
    End(Status, Option<SeenId>),
}

/// Everything that was asked so far.
pub(crate) struct Tables {
    seen: Vec<Seen>,
    seen_by: HashMap<(Read, Explained), SeenId>,
    records: Vec<Record>,
    edits: HashMap<(RecordId, Edit), Option<RecordId>>,
    permits: HashMap<(Status, Probe, Vec<SeenId>), Permitted>,
    more_to_decide: bool,
}

fn why() -> Why {
    Why::new("")
}

/// A process that stands for every engine: no decision looks at who it is.
fn engine() -> Identity {
    Identity { pid: 1, start: 1, boot: String::new(), pid_ns: None, time_ns: None }
}

impl Tables {
    /// `more_to_decide`: the run has a plan, so that its attempt's end is not yet its own.
    pub(crate) fn new(more_to_decide: bool) -> Self {
        Self {
            seen: Vec::new(),
            seen_by: HashMap::new(),
            records: vec![Record { engine: Some(engine()), ..Record::new() }],
            edits: HashMap::new(),
            permits: HashMap::new(),
            more_to_decide,
        }
    }

    /// Decides on what was read of an attempt.
    pub(crate) fn decide(&mut self, read: Read, explained: Explained) -> SeenId {
        if let Some(id) = self.seen_by.get(&(read, explained)) {
            return *id;
        }
        let evidence = in_full(read, explained);
        let seen = Seen { verdict: without_texts(verdict::decide(&evidence)), evidence };
        // Evidence that differs in nothing that is asked later is the same: fewer states.
        let same = |other: &Seen| summary(other) == summary(&seen);
        let id = match self.seen.iter().position(same) {
            Some(at) => at,
            None => {
                self.seen.push(seen);
                self.seen.len() - 1
            }
        };
        let id = SeenId(u8::try_from(id).expect("few kinds of evidence"));
        assert_ne!(id, SeenId::NONE, "few kinds of evidence");
        self.seen_by.insert((read, explained), id);
        id
    }

    /// The first that was seen with the same outcome: whoever writes it down needs no more.
    pub(crate) fn outcome(&self, id: SeenId) -> SeenId {
        let wanted = Outcome::of(self.verdict(id));
        let first = self.seen.iter().position(|seen| Outcome::of(&seen.verdict) == wanted);
        SeenId(first.and_then(|at| u8::try_from(at).ok()).unwrap_or(id.0))
    }

    /// What was seen.
    pub(crate) fn seen(&self, id: SeenId) -> &Seen {
        &self.seen[usize::from(id.0)]
    }

    /// The verdict on what was seen.
    pub(crate) fn verdict(&self, id: SeenId) -> &Verdict {
        &self.seen(id).verdict
    }

    /// The record.
    pub(crate) fn record(&self, id: RecordId) -> &Record {
        &self.records[usize::from(id.0)]
    }

    fn intern(&mut self, mut record: Record) -> RecordId {
        // What counts writes, and who wrote when and why, decides nothing.
        record.rev = 0;
        record.engine = None;
        record.reason = None;
        record.ended_ms = None;
        for earlier in &mut record.earlier {
            earlier.ended_ms = None;
        }
        let at = self.records.iter().position(|r| *r == record).unwrap_or_else(|| {
            self.records.push(record);
            self.records.len() - 1
        });
        RecordId(u8::try_from(at).expect("few records"))
    }

    /// The record after a change, or `None` where it permits none.
    pub(crate) fn after(&mut self, id: RecordId, edit: Edit) -> Option<RecordId> {
        if let Some(known) = self.edits.get(&(id, edit)) {
            return *known;
        }
        let change = match edit {
            Edit::Launch(attempt) => Change::Launch { attempt, engine: engine() },
            Edit::Started => Change::Started,
            Edit::Pause => Change::Pause { reason: String::new() },
            Edit::End(status, seen) => {
                let outcome = seen.and_then(|id| Outcome::of(self.verdict(id)));
                Change::End { status, outcome, reason: None, at_ms: 0 }
            }
        };
        let next = self.record(id).after(change).ok().map(|record| self.intern(record));
        self.edits.insert((id, edit), next);
        next
    }

    /// The record of a run that is taken up again, or `None` where it permits none.
    pub(crate) fn resumed(&mut self, id: RecordId, latest: Option<SeenId>) -> Option<RecordId> {
        let proven = latest.and_then(|id| Outcome::of(self.verdict(id)));
        self.record(id).resumed(engine(), proven).ok().map(|record| self.intern(record))
    }

    /// The record with every attempt counted that has a directory.
    pub(crate) fn counting(&mut self, id: RecordId, attempts: u32) -> RecordId {
        let record = self.record(id).clone().counting(attempts);
        self.intern(record)
    }

    /// For a mutant: the same record as if it were not final.
    pub(crate) fn reopened(&mut self, id: RecordId) -> RecordId {
        let record = Record { status: Status::Running, outcome: None, ..self.record(id).clone() };
        self.intern(record)
    }

    /// The status that a reader derives.
    pub(crate) fn status(&self, record: Option<RecordId>, engine: Probe, latest: Option<SeenId>) -> Status {
        let record = match record {
            Some(id) => Observation::Known(RecordSeen {
                status: self.record(id).status,
                more_to_decide: self.more_to_decide || self.record(id).launch_is_due(),
            }),
            None => Observation::Unknown(why()),
        };
        verdict::derive_status(&record, &engine_seen(engine), latest.map(|id| self.verdict(id)))
    }

    /// What is permitted.
    pub(crate) fn permit(&mut self, status: Status, engine: Probe, seen: &[SeenId]) -> Permitted {
        let key = (status, engine, seen.to_vec());
        if let Some(known) = self.permits.get(&key) {
            return *known;
        }
        let attempts = seen.iter().zip(1..).map(|(id, n)| (n, &self.seen(*id).evidence, self.verdict(*id)));
        let permit =
            verdict::permit(status, &engine_seen(engine), &Observation::Known(attempts.collect::<Vec<_>>()));
        let unswept = permit.obstacles.iter().all(|o| matches!(o, Obstacle::Unswept(_)));
        let permitted = Permitted {
            resumable: permit.resumable == Some(true),
            removable: permit.removable == Some(true),
            but_for_a_sweep: permit.removable.is_none() && unswept,
            certain: permit.obstacles.iter().any(Obstacle::is_certain),
        };
        self.permits.insert(key, permitted);
        permitted
    }
}

fn engine_seen(probe: Probe) -> EngineSeen {
    match probe {
        Probe::Held => EngineSeen::Running,
        Probe::Free => EngineSeen::Gone,
        Probe::NoFile | Probe::Unknown => EngineSeen::Unknown(why()),
    }
}

/// Everything that `permit`, `Outcome::of` and a stop read of an attempt.
fn summary(seen: &Seen) -> (Verdict, Lease, Observation<()>) {
    let lease = match seen.evidence.lease.clone() {
        Lease::NoFile => Lease::Free,
        other => other,
    };
    (seen.verdict.clone(), lease, seen.evidence.emptied.clone())
}

fn in_full(read: Read, explained: Explained) -> Evidence {
    let life = |lives: Option<bool>| match lives {
        Some(true) => Life::Alive,
        Some(false) => Life::Gone,
        None => Life::Unknown(why()),
    };
    let exit = |hangup| Observation::Known(ExitFact { end: End::Code(0), hangup });
    let went = |cause| Observation::Known(HangupFact { cause });
    Evidence {
        cancelled: tri(read.cancelled, ()),
        refused: tri(read.refused, String::new()),
        start: tri(read.start, ()),
        lease: match read.lease {
            Probe::Held => Lease::Held,
            Probe::Free => Lease::Free,
            Probe::NoFile => Lease::NoFile,
            Probe::Unknown => Lease::Unknown(why()),
        },
        exit: match read.exit {
            None => Observation::Unknown(why()),
            Some(Receipt::None) => Observation::Absent,
            Some(Receipt::Own) => exit(false),
            Some(Receipt::HangUp) => exit(true),
        },
        emptied: tri(read.emptied, ()),
        hangup: match explained.note {
            Went::Nothing => Observation::Absent,
            Went::Window => went(Some(verdict::Cause::SessionKilled)),
            Went::Server => went(Some(verdict::Cause::ServerGone)),
            Went::Unclear => went(None),
        },
        host: if explained.other_boot { Host::OtherBoot } else { Host::SameBoot },
        keeper: life(explained.keeper_lives),
        server_process: life(explained.server_lives),
        ..Evidence::none()
    }
}

fn tri<T>(seen: Tri, known: T) -> Observation<T> {
    match seen {
        Tri::Yes => Observation::Known(known),
        Tri::No => Observation::Absent,
        Tri::Unknown => Observation::Unknown(why()),
    }
}

fn without_texts(verdict: Verdict) -> Verdict {
    let plain = |left: Leftovers| match left {
        Leftovers::Unknown(_) => Leftovers::Unknown(why()),
        other => other,
    };
    match verdict {
        Verdict::Launching => Verdict::Launching,
        Verdict::Running { .. } => Verdict::Running { window_gone: None },
        Verdict::Exited { end, leftovers } => Verdict::Exited { end, leftovers: plain(leftovers) },
        Verdict::Lost { cause, end, leftovers } => Verdict::Lost { cause, end, leftovers: plain(leftovers) },
        Verdict::NeverStarted { .. } => Verdict::NeverStarted { why: String::new() },
        Verdict::Unknown { .. } => Verdict::Unknown { why: why() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_read() -> Vec<Read> {
        let mut all = Vec::new();
        for cancelled in [Tri::Yes, Tri::No, Tri::Unknown] {
            for refused in [Tri::Yes, Tri::No, Tri::Unknown] {
                for start in [Tri::Yes, Tri::No, Tri::Unknown] {
                    for lease in [Probe::Held, Probe::Free, Probe::NoFile, Probe::Unknown] {
                        for exit in [None, Some(Receipt::None), Some(Receipt::Own), Some(Receipt::HangUp)] {
                            for emptied in [Tri::Yes, Tri::No, Tri::Unknown] {
                                all.push(Read { cancelled, refused, start, lease, exit, emptied });
                            }
                        }
                    }
                }
            }
        }
        all
    }

    /// What a look keeps of an attempt is all that a permission depends on.
    #[test]
    fn evidence_with_the_same_summary_permits_the_same() {
        let mut tables = Tables::new(false);
        for read in every_read() {
            let id = tables.decide(read, UNEXPLAINED);
            let evidence = in_full(read, UNEXPLAINED);
            let verdict = verdict::decide(&evidence);
            for status in Status::ALL {
                let full = verdict::permit(
                    status,
                    &EngineSeen::Gone,
                    &Observation::Known(vec![(1, &evidence, &verdict)]),
                );
                let kept = tables.permit(status, Probe::Free, &[id]);
                assert_eq!(full.removable == Some(true), kept.removable, "{evidence:?}");
                assert_eq!(full.obstacles.iter().any(Obstacle::is_certain), kept.certain, "{evidence:?}");
                assert_eq!(full.resumable == Some(true), kept.resumable, "{evidence:?}");
            }
        }
        assert!(tables.seen.len() > 20, "{} kinds of evidence", tables.seen.len());
    }
}
