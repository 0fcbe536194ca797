//! Removal in two phases, the archive before it, the quarantine beside it, and the recovery of what another
//! mutator left half done. All of it under the run lock.

use crate::look::{self, probe_engine, probe_lease, to_remove};
use crate::model::{Model, Out};
use crate::mutator::{enters, reports, unlocks, who};
use crate::mux;
use crate::rules::Harm;
use crate::state::{AWAY, Act, Archive, Cli, Command, Foreign, Left, Looker, Place, Probe, Report, State};
use loopmux::verdict::{Lease, Observation, Verdict};

/// A look at the processes for members of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sweep {
    Nobody,
    Somebody,
    Refused,
}

/// Looks for members of the keeper's session, the token, the descriptor.
pub(crate) fn sweep(m: &Model, s: &State, a: usize) -> Sweep {
    let attempt = &s.attempts[a];
    if m.scenario.foreign_space {
        return Sweep::Refused;
    }
    // Without autogroups a stranger's session that has the number of ours by now cannot be told from it.
    let stranger = m.scenario.no_autogroup && s.reused && attempt.start;
    match (attempt.cli, attempt.left) {
        (Cli::Alive, _) | (_, Left::Holding | Left::Member) => Sweep::Somebody,
        _ if stranger => Sweep::Somebody,
        _ => Sweep::Nobody,
    }
}

/// The worst of what a look at the processes says of the attempts whose last receipt was not seen.
pub(crate) fn sweep_all(m: &Model, s: &State, mask: u8) -> Sweep {
    let of = |a: usize| if mask & (1 << a) == 0 { Sweep::Nobody } else { sweep(m, s, a) };
    let all = [of(0), of(1)];
    match all {
        _ if all.contains(&Sweep::Somebody) => Sweep::Somebody,
        _ if all.contains(&Sweep::Refused) => Sweep::Refused,
        _ => Sweep::Nobody,
    }
}

/// The attempts that a look saw without the keeper's last receipt, one bit each.
pub(crate) fn unswept(m: &Model, l: &Looker) -> u8 {
    let tables = m.tables();
    (0..l.seen.len())
        .filter(|a| l.listed & (1 << a) != 0)
        .filter(|a| {
            let seen = tables.seen(l.seen[*a]);
            !matches!(seen.evidence.emptied, Observation::Known(()))
                && !matches!(seen.verdict, Verdict::NeverStarted { .. })
        })
        .map(|a| 1 << a)
        .sum()
}

/// The first look of a removal; a mutant skips it.
pub(crate) fn begins(m: &Model, n: &mut State, i: usize) {
    let command = n.mutators[i].command;
    let at = match command {
        Command::EraseQuarantined if m.guards.quarantine_is_looked_at => Act::LooksUnheld,
        Command::EraseQuarantined => Act::MarksErasing,
        _ if m.guards.removal_needs_verdict => Act::Looks,
        _ => Act::Renames,
    };
    n.mutators[i].proven = m.guards.removal_needs_verdict || command == Command::EraseQuarantined;
    goes(n, i, at);
}

/// The next act, with a look where it is one.
fn goes(n: &mut State, i: usize, at: Act) {
    let looks = matches!(at, Act::Looks | Act::LooksAgain | Act::LooksUnheld | Act::LooksUnheldAgain);
    n.mutators[i].look = if looks { to_remove() } else { AWAY };
    n.mutators[i].at = at;
}

/// The steps of a removal; `false` where the mutator is at none of them.
pub(crate) fn steps(m: &Model, s: &State, i: usize, out: &mut Out<'_>) -> bool {
    let mutator = &s.mutators[i];
    let mut n = *s;
    let me = who(i);
    match mutator.at {
        Act::Looks | Act::LooksAgain | Act::LooksUnheld | Act::LooksUnheldAgain => look::steps(
            m,
            s,
            me,
            mutator.look,
            out,
            |n, looker| n.mutators[i].look = looker,
            |n| looked(m, n, i),
        ),
        Act::GivesUp => {
            let latest = 7 - mutator.mask.leading_zeros() as usize;
            crate::stop::cancels(m, &mut n, latest);
            goes(&mut n, i, Act::Looks);
            out.of(me, "writes `cancelled`", latest, n);
        }
        Act::SweepsFirst => {
            match sweep_all(m, s, mutator.mask) {
                Sweep::Nobody => goes(&mut n, i, Act::AsksVeto),
                found => refuses(m, &mut n, i, found == Sweep::Somebody),
            }
            out.push(me, "looks for members of the run's sessions", n);
        }
        Act::AsksVeto => asks_veto(m, s, i, out),
        Act::ChecksArchive => checks_archive(m, s, i, out),
        Act::StagesArchive => {
            let next = if m.guards.archive_is_read_back { Act::ReadsBack } else { Act::NamesArchive };
            n.mutators[i].at = next;
            out.push(me, "writes and syncs an archive under a temporary name", n);
            if m.scenario.bad_disk && s.faults > 0 {
                n.faults -= 1;
                n.mutators[i].torn = true;
                out.push(me, "writes an archive, and the disk does not keep it", n);
            }
        }
        Act::ReadsBack if mutator.torn => {
            reports(&mut n, i, Report::Refused);
            out.push(me, "reads another archive back than it wrote, and removes that", n);
        }
        Act::ReadsBack => {
            n.mutators[i].at = Act::NamesArchive;
            out.push(me, "reads the archive back, and it is the run", n);
        }
        Act::NamesArchive => {
            n.archive = if mutator.torn { Archive::Torn } else { Archive::Good(s.made()) };
            n.mutators[i].torn = false;
            n.mutators[i].at = Act::Renames;
            out.push(me, "gives the archive its name", n);
        }
        Act::Renames => renames(m, s, i, out),
        Act::SweepsAgain => {
            let clean = sweep_all(m, s, mutator.mask) == Sweep::Nobody;
            goes(&mut n, i, if clean { Act::MarksErasing } else { Act::RenamesBack });
            out.push(me, "looks for members of the run's sessions", n);
        }
        Act::SweepsUnheld | Act::SweepsUnheldAgain => {
            // What cannot be seen is left to the person who asked; what is seen is not.
            let found = sweep_all(m, s, mutator.mask) == Sweep::Somebody;
            match (found, mutator.at) {
                (true, Act::SweepsUnheldAgain) => goes(&mut n, i, Act::RenamesBack),
                (true, _) => reports(&mut n, i, Report::Refused),
                (false, _) => unheld(m, &mut n, i),
            }
            out.push(me, "looks for members of the run's sessions", n);
        }
        Act::RenamesBack => renames_back(m, s, i, out),
        Act::MarksErasing => {
            if m.guards.erasing_is_marked {
                n.place = Place::Erasing;
            }
            n.mutators[i].at = Act::Unlinks;
            // What a person confirmed apart, nothing seen to hold it.
            let confirmed = mutator.command == Command::EraseQuarantined && mutator.proven;
            if !confirmed && is_unproven(s, mutator.proven) {
                n.harmed(Harm::ErasedUnproven);
            }
            out.push(me, "renames the entry to say that it is being erased", n);
        }
        Act::ProbesErasing => {
            let free = probe_engine(s) != Probe::Held
                && (0..s.attempts.len()).all(|a| probe_lease(m, s, a) != Probe::Held);
            if free {
                n.mutators[i].at = if s.place == Place::HalfErased { Act::RemovesNow } else { Act::Unlinks };
            } else {
                reports(&mut n, i, Report::Refused);
            }
            out.push(me, "probes the locks of what is being erased", n);
        }
        Act::Unlinks => {
            let good = s.archive == Archive::Good(s.made());
            if mutator.command == Command::Archive && !mutator.recovering && !good {
                n.harmed(Harm::ArchiveMissing);
            }
            n.place = Place::HalfErased;
            n.mutators[i].at = Act::RemovesNow;
            out.push(me, "unlinks everything but the lock files", n);
        }
        Act::RemovesNow => {
            n.place = Place::Gone;
            // Whoever wanted something else of it finds it gone.
            let removes = !matches!(mutator.command, Command::Stop | Command::Resume);
            reports(&mut n, i, if removes { Report::Success } else { Report::Refused });
            out.push(me, "unlinks the rest, and the run is gone", n);
        }
        Act::Quarantines => {
            n.place = Place::Quarantine;
            reports(&mut n, i, Report::Success);
            out.push(me, "renames the run into the quarantine", n);
        }
        _ => return false,
    }
    true
}

/// Nobody can ever prove that the run is dead; or nobody tried, and it is not.
fn is_unproven(s: &State, tried: bool) -> bool {
    let lives = s.engine_lives() || (0..s.attempts.len()).any(|a| s.runs(a));
    s.attempts.iter().any(|a| a.torn) || (!tried && lives)
}

/// A guard refuses: certain is that something lives. What is uncertain may be put aside, if that was asked.
fn refuses(m: &Model, n: &mut State, i: usize, certain: bool) {
    let command = n.mutators[i].command;
    if command == Command::Force && !m.guards.force_needs_proof {
        n.mutators[i].proven = false;
        goes(n, i, Act::Renames);
    } else if command == Command::Unproven && (!certain || !m.guards.quarantine_refuses_held) {
        n.mutators[i].proven = false;
        goes(n, i, Act::LooksUnheld);
    } else {
        reports(n, i, Report::Refused);
    }
}

/// A look is over: what it permits.
fn looked(m: &Model, n: &mut State, i: usize) {
    let l = n.mutators[i].look;
    let at = n.mutators[i].at;
    n.mutators[i].look = AWAY;
    n.mutators[i].mask = unswept(m, &l);
    let permitted = look::permit(m, &l);
    let launching = look::listed(&l).last().is_some_and(|id| *m.tables().verdict(id) == Verdict::Launching);
    match at {
        Act::LooksUnheld | Act::LooksUnheldAgain => {
            let held = l.engine == Probe::Held
                || look::listed(&l).any(|id| m.tables().seen(id).evidence.lease == Lease::Held);
            n.blind = l.engine == Probe::Unknown
                || look::listed(&l).any(|id| matches!(m.tables().seen(id).evidence.lease, Lease::Unknown(_)));
            match (held && m.guards.quarantine_refuses_held, at) {
                (true, Act::LooksUnheldAgain) => goes(n, i, Act::RenamesBack),
                (true, _) => reports(n, i, Report::Refused),
                (false, Act::LooksUnheldAgain) => goes(n, i, Act::SweepsUnheldAgain),
                (false, _) => goes(n, i, Act::SweepsUnheld),
            }
        }
        Act::LooksAgain => goes(
            n,
            i,
            match permitted {
                p if p.removable => Act::MarksErasing,
                p if p.but_for_a_sweep => Act::SweepsAgain,
                _ => Act::RenamesBack,
            },
        ),
        _ if launching && l.engine == Probe::Free && n.mutators[i].tries == 0 => {
            n.mutators[i].tries = 1;
            n.mutators[i].mask = l.listed;
            let next = if m.guards.launching_is_given_up_first { Act::GivesUp } else { Act::AsksVeto };
            goes(n, i, next);
        }
        _ if permitted.removable => goes(n, i, Act::AsksVeto),
        _ if permitted.but_for_a_sweep => goes(n, i, Act::SweepsFirst),
        _ => refuses(m, n, i, permitted.certain),
    }
}

/// Nothing is seen to hold the run.
fn unheld(m: &Model, n: &mut State, i: usize) {
    let mutator = n.mutators[i];
    let next = match (mutator.command, mutator.at) {
        (Command::EraseQuarantined, _) => Act::MarksErasing,
        (_, Act::SweepsUnheldAgain) => Act::Quarantines,
        _ if m.guards.quarantine_looks_again => Act::Renames,
        _ => Act::Quarantines,
    };
    goes(n, i, next);
}

/// What the multiplexer shows forbids; what it does not show allows nothing.
fn asks_veto(m: &Model, s: &State, i: usize, out: &mut Out<'_>) {
    let me = who(i);
    let shown = (0..s.attempts.len()).any(|a| mux::lists(s, a));
    let namesake = s.foreign == Foreign::Name;
    let next = if s.mutators[i].command == Command::Archive { Act::ChecksArchive } else { Act::Renames };
    let mut n = *s;
    if m.guards.listing_vetoes && (shown || namesake) {
        refuses(m, &mut n, i, shown);
    } else {
        goes(&mut n, i, next);
    }
    out.push(me, "asks the multiplexer for what may be the run's", n);
    if (shown || namesake) && m.scenario.mux && s.faults > 0 {
        let mut n = *s;
        n.faults -= 1;
        goes(&mut n, i, next);
        out.push(me, "asks the multiplexer, which omits what may be the run's", n);
    }
}

fn checks_archive(m: &Model, s: &State, i: usize, out: &mut Out<'_>) {
    let mut n = *s;
    let me = who(i);
    let same = s.archive == Archive::Good(s.made());
    match s.archive {
        Archive::None => {
            n.mutators[i].at = Act::StagesArchive;
            out.push(me, "finds no archive", n);
        }
        _ if same || !m.guards.archive_is_compared => {
            n.mutators[i].at = Act::Renames;
            out.push(me, "finds an archive of this run", n);
        }
        _ => {
            reports(&mut n, i, Report::Refused);
            out.push(me, "finds an archive that differs", n);
        }
    }
}

fn renames(m: &Model, s: &State, i: usize, out: &mut Out<'_>) {
    let mut n = *s;
    if s.place != Place::Runs {
        reports(&mut n, i, Report::Refused);
        out.push(who(i), "finds no run to rename", n);
        return;
    }
    n.place = Place::Trash;
    let next = match s.mutators[i].command {
        Command::Unproven => Act::LooksUnheldAgain,
        _ if m.guards.trash_is_looked_at => Act::LooksAgain,
        _ => Act::MarksErasing,
    };
    // A mutant erases what it did not prove: no look sends it back.
    let forced = s.mutators[i].command != Command::Unproven && !s.mutators[i].proven;
    let next = if forced { Act::MarksErasing } else { next };
    goes(&mut n, i, next);
    out.push(who(i), "renames the run to trash", n);
}

fn renames_back(m: &Model, s: &State, i: usize, out: &mut Out<'_>) {
    let mut n = *s;
    if s.place == Place::HalfErased {
        n.harmed(Harm::HalfErasedBack);
    }
    n.place = Place::Runs;
    n.blind = false;
    let mutator = &s.mutators[i];
    if mutator.recovering {
        n.mutators[i].recovering = false;
        n.mutators[i].mask = 0;
        unlocks(&mut n, i);
        again(m, &mut n, i);
    } else if mutator.command == Command::Restore {
        reports(&mut n, i, Report::Success);
    } else {
        // An archive that was made for a run which stays would be in the way of the next.
        if mutator.command == Command::Archive {
            n.archive = Archive::None;
        }
        reports(&mut n, i, Report::Refused);
    }
    out.push(who(i), "renames the run back", n);
}

/// What was interrupted is settled; the command begins with its own.
fn again(m: &Model, n: &mut State, i: usize) {
    n.mutators[i].at = Act::Idle;
    enters(m, n, i);
    if n.mutators[i].at == Act::Idle {
        reports(n, i, Report::Refused);
    }
}

/// The run lock is held: an erasing that was decided is finished, everything else in the trash is put back.
pub(crate) fn recovers(m: &Model, s: &State, i: usize, out: &mut Out<'_>) {
    let mut n = *s;
    n.mutators[i].recovering = true;
    let what = match s.place {
        Place::Trash => {
            n.mutators[i].at =
                if m.guards.undecided_is_put_back { Act::RenamesBack } else { Act::MarksErasing };
            "finds a removal that was interrupted"
        }
        Place::HalfErased if !m.guards.erasing_is_marked => {
            n.mutators[i].at = Act::RenamesBack;
            "finds a removal that was interrupted"
        }
        Place::Erasing | Place::HalfErased => {
            n.mutators[i].at = match s.place {
                _ if m.guards.erasing_is_probed => Act::ProbesErasing,
                Place::Erasing => Act::Unlinks,
                _ => Act::RemovesNow,
            };
            "finds an erasing that was interrupted"
        }
        _ => {
            n.mutators[i].recovering = false;
            unlocks(&mut n, i);
            again(m, &mut n, i);
            "finds that another one settled it"
        }
    };
    out.push(who(i), what, n);
}
