//! A look: each read is a step of its own, in the fixed order. What is concluded is held against the truth.

use crate::model::{Model, Out, Who};
use crate::rules::Harm;
use crate::state::{
    ATTEMPTS, AWAY, Claim, Cli, Evidence, Foreign, Hold, Left, Looker, Made, NOTHING, Place, Probe, Read,
    Receipt, State, Tri, Went,
};
use crate::tables::{Explained, SeenId, UNEXPLAINED};
use loopmux::verdict::{Status, Verdict};

/// The beginning of a look at the engine lock, all attempts, the record.
pub(crate) fn at_everything() -> Looker {
    Looker { next: Read::Engine, whole: true, ..AWAY }
}

/// The same under the run lock, by whoever decides on a removal.
pub(crate) fn to_remove() -> Looker {
    Looker { emptied: true, locked: true, ..at_everything() }
}

/// The beginning of a look at one attempt.
pub(crate) fn at_attempt(a: u8) -> Looker {
    Looker { next: Read::Cancelled, at: a, listed: 1 << a, ..AWAY }
}

/// The steps of whoever looks. `put` puts the looker back, `done` says what follows the last read.
pub(crate) fn steps(
    m: &Model,
    s: &State,
    who: Who,
    looker: Looker,
    out: &mut Out<'_>,
    put: impl Fn(&mut State, Looker),
    done: impl Fn(&mut State),
) {
    let may_fail = m.scenario.errors && s.faults > 0;
    for fails in [false, true] {
        if fails && !(may_fail && looker.next != Read::Emptied) {
            continue;
        }
        let mut n = *s;
        n.faults -= u8::from(fails);
        let after = read(m, &mut n, looker, fails);
        put(&mut n, after);
        if after.next == Read::Done {
            done(&mut n);
        }
        let what = words(looker.next, fails);
        if matches!(looker.next, Read::Engine | Read::List | Read::Record) {
            out.push(who, what, n);
        } else {
            out.of(who, what, usize::from(looker.at), n);
        }
    }
}

fn words(read: Read, fails: bool) -> &'static str {
    match (read, fails) {
        (Read::Engine, false) => "probes the engine lock",
        (Read::List, false) => "lists the attempts",
        (Read::Cancelled, false) => "looks for `cancelled`",
        (Read::Refused, false) => "looks for a refusal",
        (Read::Start, false) => "reads the start receipt",
        (Read::Lease, false) => "probes the lease",
        (Read::Exit, false) => "reads the exit receipt",
        (Read::StartAgain, false) => "reads the start receipt again",
        (Read::LeaseAgain, false) => "probes the lease again",
        (Read::ExitAgain, false) => "reads the exit receipt again",
        (Read::Emptied, false) => "looks for the receipt that nothing is left",
        (Read::Place, false) => "looks whether the run is still in its place",
        (Read::Record, false) => "reads the record",
        (Read::Engine, true) => "cannot probe the engine lock",
        (Read::Lease | Read::LeaseAgain, true) => "cannot probe the lease",
        (Read::Record, true) => "cannot read the record",
        (Read::Start | Read::StartAgain, true) => "cannot read the start receipt",
        (Read::Exit | Read::ExitAgain, true) => "cannot read the exit receipt",
        (_, true) => "cannot read",
        (Read::Idle | Read::Done, false) => "does not look",
    }
}

fn there(s: &State, present: bool, fails: bool) -> Tri {
    match (fails, present && s.has_files()) {
        (true, _) => Tri::Unknown,
        (false, true) => Tri::Yes,
        (false, false) => Tri::No,
    }
}

/// What a probe of the engine lock says, by a directory that is open.
pub(crate) fn probe_engine(s: &State) -> Probe {
    match (s.place, s.engine_lock) {
        (Place::Gone, _) => Probe::NoFile,
        (_, crate::state::Lock::Free) => Probe::Free,
        _ => Probe::Held,
    }
}

/// What a probe of an attempt's lease says.
pub(crate) fn probe_lease(m: &Model, s: &State, a: usize) -> Probe {
    if s.place == Place::Gone || s.attempts[a].made < Made::Filled {
        Probe::NoFile
    } else if m.lease_held(s, a) {
        Probe::Held
    } else {
        Probe::Free
    }
}

/// One read, and what comes after it.
fn read(m: &Model, n: &mut State, mut l: Looker, fails: bool) -> Looker {
    let a = usize::from(l.at);
    let attempt = n.attempts[a];
    match l.next {
        Read::Engine => {
            l.engine = if fails { Probe::Unknown } else { probe_engine(n) };
            disturbed(m, n, Hold::Engine, &mut l.engine);
            l.next = Read::List;
            return l;
        }
        Read::List => {
            l.listed = if n.has_files() { n.made() } else { 0 };
            if fails {
                // Attempts that cannot be listed are nobody's end.
                l.engine = Probe::Unknown;
            }
            l.at = u8::try_from(l.listed.trailing_zeros() % 8).expect("few attempts");
            l.next = if l.listed == 0 { Read::Record } else { Read::Cancelled };
            return l;
        }
        Read::Record => {
            l.record = (!fails && n.has_files()).then_some(n.record);
            l.next = Read::Done;
            return l;
        }
        // Beside a start receipt neither says anything (a test holds that): fewer states.
        Read::Cancelled => l.evidence.cancelled = there(n, attempt.cancelled && !attempt.start, fails),
        Read::Refused => l.evidence.refused = there(n, attempt.refused && !attempt.start, fails),
        Read::Start | Read::StartAgain => {
            l.evidence.start = there(n, attempt.start, fails || (attempt.torn && n.has_files()));
        }
        Read::Lease | Read::LeaseAgain => {
            l.evidence.lease = if fails { Probe::Unknown } else { probe_lease(m, n, a) };
            disturbed(m, n, Hold::Lease(l.at), &mut l.evidence.lease);
        }
        Read::Exit | Read::ExitAgain => {
            let exit = if n.has_files() { attempt.exit } else { Receipt::None };
            l.evidence.exit = (!fails).then_some(exit);
        }
        Read::Emptied => l.evidence.emptied = there(n, attempt.emptied, fails),
        Read::Place if fails || n.place != Place::Runs => l.evidence.start = Tri::Unknown,
        Read::Place => {}
        Read::Idle | Read::Done => {}
    }
    l.next = following(m, &l);
    if l.next == Read::Done {
        conclude(m, n, &mut l);
        if l.whole {
            let rest = l.listed >> (l.at + 1);
            l.at += u8::from(rest > 0);
            l.next = if rest > 0 { Read::Cancelled } else { Read::Record };
        }
    }
    l
}

/// For a mutant: a probe that takes the lock exclusively is taken for its holder.
fn disturbed(m: &Model, n: &mut State, hold: Hold, seen: &mut Probe) {
    if !m.guards.probes_share && n.hold == hold && *seen == Probe::Free {
        *seen = Probe::Held;
        n.harmed(Harm::ReadDisturbed);
    }
}

/// The read after this one, within one attempt.
fn following(m: &Model, l: &Looker) -> Read {
    let g = &m.guards;
    let e = &l.evidence;
    let silent = e.exit == Some(Receipt::None) && (e.start == Tri::Yes || e.cancelled == Tri::Yes);
    let in_doubt = silent && matches!(e.lease, Probe::Free | Probe::NoFile);
    let place = if in_doubt && !l.locked && g.place_is_checked { Read::Place } else { Read::Done };
    let last = if l.emptied { Read::Emptied } else { place };
    let absent = l.evidence.start == Tri::No;
    let after_first = if absent && g.start_read_again { Read::StartAgain } else { last };
    match (l.next, g.start_before_lease, g.lease_before_exit) {
        (Read::Cancelled, ..) => Read::Refused,
        (Read::Refused, true, _) | (Read::Lease, false, _) => Read::Start,
        (Read::Refused, false, _) | (Read::Start, true, true) | (Read::Exit, true, false) => Read::Lease,
        (Read::Start, ..) | (Read::Lease, true, true) => Read::Exit,
        (Read::Exit, ..) | (Read::Lease, true, false) => after_first,
        (Read::StartAgain, ..) => {
            if absent {
                last
            } else {
                Read::LeaseAgain
            }
        }
        (Read::LeaseAgain, ..) => Read::ExitAgain,
        (Read::ExitAgain, ..) => last,
        (Read::Emptied, ..) => place,
        _ => Read::Done,
    }
}

/// The last read of an attempt was made: asks the program for its verdict.
fn conclude(m: &Model, n: &mut State, l: &mut Looker) {
    let a = usize::from(l.at);
    let given = distorted(m, n, a, l.evidence);
    let explained = if m.scenario.causes { explained(m, n, a) } else { UNEXPLAINED };
    let id = m.tables().decide(given, explained);
    l.seen[a] = id;
    check(m, n, a, id, &l.evidence);
    l.evidence = NOTHING;
}

/// Mutants distort what `decide` is given; it has no switches of its own.
fn distorted(m: &Model, s: &State, a: usize, mut e: Evidence) -> Evidence {
    if !m.guards.unknown_is_unknown {
        if e.lease == Probe::Unknown {
            e.lease = Probe::Free;
        }
        if e.start == Tri::Unknown {
            e.start = Tri::No;
        }
    }
    if !m.guards.listing_is_no_proof && !s.attempts[a].window && s.attempts[a].server > 0 {
        e.lease = Probe::Free;
    }
    if !m.guards.leftovers_count && e.exit != Some(Receipt::None) && e.lease == Probe::Held {
        e.lease = Probe::Free;
    }
    if !m.guards.emptied_counts {
        e.emptied = Tri::Yes;
    }
    e
}

fn explained(m: &Model, s: &State, a: usize) -> Explained {
    let attempt = &s.attempts[a];
    if !attempt.start || attempt.torn || m.scenario.foreign_space {
        return Explained { other_boot: s.rebooted, ..UNEXPLAINED };
    }
    Explained {
        note: attempt.note,
        other_boot: s.rebooted,
        keeper_lives: Some(s.keepers[s.parent(a)].at.lives()),
        server_lives: Some(s.server == attempt.server),
    }
}

/// A conclusion is held against the truth, and kept: it must never have to be taken back.
fn check(m: &Model, n: &mut State, a: usize, id: SeenId, read: &Evidence) {
    let tables = m.tables();
    let verdict = tables.verdict(id);
    if !verdict.is_end() {
        return;
    }
    let attempt = n.attempts[a];
    let may_record =
        (0..n.keepers.len()).any(|k| crate::state::attempt_of(k) == a && n.keepers[k].at.may_record());
    let (claim, truth) = match verdict {
        Verdict::NeverStarted { .. } => (Claim::Never, !attempt.start && attempt.cli == Cli::NotStarted),
        Verdict::Exited { .. } => (Claim::None, attempt.cli == Cli::Ended && attempt.exit == Receipt::Own),
        Verdict::Lost { end: Some(_), .. } => (Claim::None, attempt.exit == Receipt::HangUp),
        _ => {
            let silent = attempt.exit == Receipt::None && !may_record;
            (Claim::Lost, silent && attempt.cli != Cli::Alive && attempt.left != Left::Holding)
        }
    };
    if let Verdict::Lost { cause, .. } = verdict
        && m.scenario.causes
        && wrong_cause(n, a, *cause)
    {
        n.harmed(Harm::WrongCause);
    }
    // What this end rests on besides its receipt.
    let silent = matches!(verdict, Verdict::Lost { end: None, .. })
        || (claim == Claim::Never && read.refused != Tri::Yes);
    drop(tables);
    let unread =
        read.start == Tri::Unknown || read.exit.is_none() || (silent && read.lease == Probe::Unknown);
    let believed = !m.guards.listing_is_no_proof && !attempt.window;
    if unread {
        n.harmed(Harm::UnknownBelieved);
    } else if !truth || (attempt.claim != Claim::None && attempt.claim != claim) {
        n.harmed(match claim {
            Claim::Never => Harm::NeverStartedStarted,
            _ if believed => Harm::ListingBelieved,
            _ => Harm::FalseEnd,
        });
    }
    // What rests on a receipt needs no memory: a receipt is written once.
    if claim != Claim::None {
        n.attempts[a].claim = claim;
    }
}

/// A cause names what went away, and nothing else.
fn wrong_cause(s: &State, a: usize, cause: loopmux::verdict::Cause) -> bool {
    use loopmux::verdict::Cause;
    match cause {
        Cause::SessionKilled | Cause::WindowKilled => s.attempts[a].went != Went::Window,
        Cause::ServerGone => s.server == s.attempts[a].server,
        Cause::HostRestarted => !s.rebooted,
        Cause::KeeperKilled => s.keepers[s.parent(a)].at.lives(),
        Cause::Unexplained => false,
    }
}

/// What was seen of the latest attempt.
pub(crate) fn latest(l: &Looker) -> Option<SeenId> {
    listed(l).last()
}

/// How the latest attempt ended, for whoever writes it down.
pub(crate) fn outcome(m: &Model, l: &Looker) -> Option<SeenId> {
    latest(l).map(|id| m.tables().outcome(id))
}

/// What was seen of each listed attempt, the earliest first.
pub(crate) fn listed(l: &Looker) -> impl Iterator<Item = SeenId> {
    let l = *l;
    (0..ATTEMPTS).filter(move |a| l.listed & (1 << a) != 0).map(move |a| l.seen[a])
}

/// The status that follows from a look at everything.
pub(crate) fn status(m: &Model, l: &Looker) -> Status {
    m.tables().status(l.record, l.engine, latest(l))
}

/// What is permitted by a look at everything.
pub(crate) fn permit(m: &Model, l: &Looker) -> crate::tables::Permitted {
    let status = status(m, l);
    m.tables().permit(status, l.engine, &listed(l).collect::<Vec<_>>())
}

/// What a listing of the recorded server says of an attempt's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    /// A window to kill.
    Ours,
    /// None, or no answer that counts.
    Not,
}

/// Asks the multiplexer, which may omit or hang.
pub(crate) fn asks(
    m: &Model,
    s: &State,
    who: Who,
    a: usize,
    out: &mut Out<'_>,
    then: impl Fn(&mut State, Listed),
) {
    let ours = s.attempts[a].window && s.server == s.attempts[a].server;
    let by_name = !m.guards.kills_by_token && s.foreign != Foreign::None;
    let by_id = !m.guards.kills_on_recorded_server && s.foreign == Foreign::NameAndId;
    let listed = if ours || by_name || by_id { Listed::Ours } else { Listed::Not };
    let mut n = *s;
    then(&mut n, listed);
    out.of(who, "asks the multiplexer for the window", a, n);
    if ours && m.scenario.mux && s.faults > 0 {
        let mut n = *s;
        n.faults -= 1;
        then(&mut n, Listed::Not);
        out.of(who, "is told by the multiplexer, which omits the window or hangs,", a, n);
    }
}
