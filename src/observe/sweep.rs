//! Looking at the processes for what a free lease does not exclude: a descendant that closed its descriptors, after the
//! one that would have waited for it was killed.

use super::attempt::AttemptView;
use super::holders::holders as lease_holders;
use crate::process::{self, Identity, Note, Scan};
use crate::run::store::AttemptRead;
use crate::verdict::Observation;
use std::time::Duration;

/// Somebody who has a lease's file open only to look at it closes it within this time.
const PROBING: Duration = Duration::from_millis(20);
/// How often whoever has the file open is looked at again.
const LOOKS: u32 = 5;

/// What a look at the processes found of one attempt.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// Processes of it, each with how it was recognised.
    pub found: Vec<(Note, &'static str)>,
    /// Looks that were refused and could matter.
    pub refused: Vec<String>,
}

impl Sweep {
    /// Known: somebody was found. Absent: nobody is there.
    pub fn answer(&self) -> Observation<()> {
        if !self.found.is_empty() {
            return Observation::Known(());
        }
        match self.refused.split_first() {
            None => Observation::Absent,
            Some((first, [])) => Observation::unknown(first),
            Some((first, rest)) => Observation::unknown(format!("{first}, and {} more", rest.len())),
        }
    }

    fn take(&mut self, scan: Scan, keeper: Option<&Identity>, how: &'static str) {
        let me = std::process::id();
        for note in scan.found {
            if note.id.pid != me && !self.found.iter().any(|(known, _)| known.id == note.id) {
                self.found.push((note, how));
            }
        }
        for refused in scan.refused {
            let matters = match (keeper, &refused.process) {
                // Nothing of this boot descends from a keeper of another one.
                (Some(keeper), _) if process::is_another_boot(&keeper.boot) => false,
                // Whoever started before the keeper does not descend from it.
                (Some(keeper), Some(note)) => note.id.boot != keeper.boot || note.id.start >= keeper.start,
                (Some(_), None) => true,
                (None, _) => true,
            };
            if matters {
                let whom = refused
                    .process
                    .map_or_else(|| "the processes".to_owned(), |p| format!("{} `{}`", p.id.pid, p.command));
                let line = format!("cannot look at {whom}: {}", refused.why);
                if !self.refused.contains(&line) {
                    self.refused.push(line);
                }
            }
        }
    }
}

/// Looks for members of the kernel's session of an attempt, for carriers of its token, and for holders of its lease's
/// file. The process that looks is not found.
pub fn sweep(read: &AttemptRead, view: &AttemptView) -> Sweep {
    let mut sweep = Sweep::default();
    let keeper = view.keeper();
    members(&mut sweep, view);
    match (&view.launch, &belongs_here(read, view)) {
        (Observation::Known(launch), Observation::Known(())) => {
            sweep.take(process::with_token(&launch.tags.token), keeper, "carries its token");
        }
        // A copy of a directory: token and processes are the original's.
        (Observation::Known(_), Observation::Absent) => {}
        (Observation::Known(_), Observation::Unknown(why)) | (Observation::Unknown(why), _) => {
            sweep.refused.push(format!("its token is not known: {why}"));
        }
        (Observation::Absent, _) => sweep.refused.push("its token is not known: no launch file".to_owned()),
    }
    holders(&mut sweep, read, keeper);
    sweep
}

/// Whether an attempt was launched in the very directory that it lies in now. Absent: this is a copy, and what was
/// launched belongs to the original.
pub fn belongs_here(read: &AttemptRead, view: &AttemptView) -> Observation<()> {
    let launch = match &view.launch {
        Observation::Known(launch) => launch,
        Observation::Absent => return Observation::unknown("there is no launch file"),
        Observation::Unknown(why) => return Observation::Unknown(why.clone()),
    };
    match read.dir().above(2) {
        Ok(here) if here == launch.run_dir => Observation::Known(()),
        Ok(_) => Observation::Absent,
        Err(e) => Observation::unknown(format!("cannot look at the run's directory: {e}")),
    }
}

/// The session's number is the keeper's pid, and the kernel gives no number away while a session has it.
fn members(sweep: &mut Sweep, view: &AttemptView) {
    let (Some(keeper), start) = (view.keeper(), &view.start) else {
        if let Observation::Unknown(why) = &view.start {
            sweep.refused.push(format!("its kernel session is not known: {why}"));
        }
        return;
    };
    let Some(start) = start.known() else { return };
    let (session, autogroup) = match &view.spawned {
        Observation::Known(spawned) => (spawned.session, spawned.autogroup),
        Observation::Absent => (keeper.pid, None),
        Observation::Unknown(why) => {
            sweep.refused.push(format!("its kernel session is not known: {why}"));
            return;
        }
    };
    let here = process::host();
    if process::is_another_boot(&start.host.boot) {
        // A number of another boot names nobody in this one.
        return;
    }
    if start.host.pid_ns != here.pid_ns {
        sweep
            .refused
            .push("it ran in another pid namespace, whose processes cannot be seen from here".to_owned());
        return;
    }
    match process::identify(session) {
        // The number was given away again, so the session is gone.
        Ok(Some(now)) if session == keeper.pid && now != *keeper => return,
        Ok(_) => {}
        Err(why) => {
            sweep.refused.push(format!("cannot look at its kernel session: {why}"));
            return;
        }
    }
    sweep.take(process::members(session, autogroup), Some(keeper), "belongs to its kernel session");
}

/// An observer has the file open for a moment: only who still has it later counts.
fn holders(sweep: &mut Sweep, read: &AttemptRead, keeper: Option<&Identity>) {
    let mut scan = lease_holders(read);
    let me = std::process::id();
    for _ in 1..LOOKS {
        if scan.found.iter().all(|note| note.id.pid == me) {
            break;
        }
        std::thread::sleep(PROBING);
        let again = lease_holders(read);
        scan.found.retain(|note| again.found.iter().any(|n| n.id == note.id));
        scan.refused = again.refused;
    }
    sweep.take(scan, keeper, "has its lease open");
}
