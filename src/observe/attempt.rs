//! The evidence about one attempt.

use crate::process;
use crate::run::files::{
    CreatedFile, EmptiedFile, ExitFile, HangupFile, LaunchFile, LeftoversFile, SpawnedFile, StartFile,
};
use crate::run::store::AttemptRead;
use crate::verdict::{
    Evidence, ExitFact, HangupFact, Host, Lease, Life, Observation, ServerSeen, Verdict, Why, decide,
};
use loopmux_mux::PaneRow;
use std::path::PathBuf;

/// Everything seen of one attempt, and the verdict on it.
#[derive(Debug)]
pub struct AttemptView {
    /// Its number.
    pub n: u32,
    /// The directory that was read.
    pub dir: PathBuf,
    /// What was launched.
    pub launch: Observation<LaunchFile>,
    /// The start receipt.
    pub start: Observation<StartFile>,
    /// The create's read-back.
    pub created: Observation<CreatedFile>,
    /// The agent CLI's identity.
    pub spawned: Observation<SpawnedFile>,
    /// The exit receipt.
    pub exit: Observation<ExitFile>,
    /// The keeper's word on its hang-up.
    pub hangup: Observation<HangupFile>,
    /// What still ran after the end.
    pub leftovers: Observation<LeftoversFile>,
    /// The keeper's receipt that no descendant is left.
    pub emptied: Observation<EmptiedFile>,
    /// The evidence.
    pub evidence: Evidence,
    /// The verdict.
    pub verdict: Verdict,
    /// The pane as the recorded server lists it now.
    pub pane: Option<PaneRow>,
}

impl AttemptView {
    /// The identity of the server that had the window, from whichever receipt has it.
    pub fn server(&self) -> Option<&process::Identity> {
        let started = self.start.known().and_then(|s| s.server.as_ref());
        started.or_else(|| self.created.known().and_then(|c| c.server.as_ref()))
    }

    /// The keeper's identity.
    pub fn keeper(&self) -> Option<&process::Identity> {
        self.start.known().map(|s| &s.keeper)
    }

    /// The token of the attempt, from whichever file has it.
    pub fn token(&self) -> Option<&str> {
        let launched = self.launch.known().map(|l| l.tags.token.as_str());
        launched.or_else(|| self.start.known().map(|s| s.token.as_str()))
    }

    /// Evidence that came back unknown, each with its reason: what a diagnosis must know was not seen.
    pub fn unknowns(&self) -> Vec<String> {
        let e = &self.evidence;
        let mut out = Vec::new();
        let mut note = |what: &str, why: &Why| out.push(format!("{what}: {why}"));
        if let Observation::Unknown(why) = &self.launch {
            note("launch file", why);
        }
        if let Observation::Unknown(why) = &e.start {
            note("start receipt", why);
        }
        if let Lease::Unknown(why) = &e.lease {
            note("lease", why);
        }
        if let Observation::Unknown(why) = &e.exit {
            note("exit receipt", why);
        }
        if let Observation::Unknown(why) = &e.cancelled {
            note("cancellation marker", why);
        }
        if let Observation::Unknown(why) = &e.refused {
            note("refusal", why);
        }
        if let Observation::Unknown(why) = &e.hangup {
            note("hang-up note", why);
        }
        for (what, file) in [
            ("the window's ids", self.created.as_ref().map(|_| ())),
            ("the program's identity", self.spawned.as_ref().map(|_| ())),
            ("what still runs", self.leftovers.as_ref().map(|_| ())),
            ("whether anything still runs", self.emptied.as_ref().map(|_| ())),
        ] {
            if let Observation::Unknown(why) = file {
                note(what, &why);
            }
        }
        if let ServerSeen::Unknown(why) = &e.server {
            note("multiplexer", why);
        }
        out
    }
}

/// The evidence of disk and kernel alone: all that a verdict needs.
pub fn attempt_on_disk(read: &AttemptRead) -> AttemptView {
    let cancelled = read.cancelled();
    let refused = read.refused();
    let mut start = read.start();
    let mut lease = read.lease();
    let mut exit = read.exit();
    if matches!(start, Observation::Absent) {
        // A keeper may have started and ended between the two reads. Write-once: a second look settles it.
        start = read.start();
        if !matches!(start, Observation::Absent) {
            lease = read.lease();
            exit = read.exit();
        }
    }
    let mut view = AttemptView {
        n: read.n(),
        dir: read.dir().path().to_owned(),
        hangup: read.hangup(),
        leftovers: read.leftovers(),
        emptied: read.emptied(),
        launch: read.launch(),
        created: read.created(),
        spawned: read.spawned(),
        start,
        exit,
        verdict: Verdict::Launching,
        evidence: Evidence { cancelled, refused: refused.map(|r| r.why), lease, ..Evidence::none() },
        pane: None,
    };
    let keeper = life_of(view.keeper(), "no start receipt names the keeper");
    let server = life_of(view.server(), "no receipt names the server");
    judge(read, &mut view, keeper, server);
    view
}

/// The same for a listing: the same reads in the same order, without those that cannot change the verdict or the
/// row. What was not read is absent from the view.
pub fn attempt_in_brief(read: &AttemptRead) -> AttemptView {
    let start = read.start();
    if !matches!(start, Observation::Known(_)) {
        return attempt_on_disk(read);
    }
    let lease = read.lease();
    let exit = read.exit();
    let ended = !matches!(exit, Observation::Absent);
    let lost = match &exit {
        Observation::Known(exit) => exit.hangup,
        Observation::Absent => true,
        Observation::Unknown(_) => false,
    };
    let free = lease == Lease::Free;
    let mut view = AttemptView {
        n: read.n(),
        dir: read.dir().path().to_owned(),
        hangup: if lost { read.hangup() } else { Observation::Absent },
        leftovers: if ended && !free { read.leftovers() } else { Observation::Absent },
        emptied: if ended || free { read.emptied() } else { Observation::Absent },
        launch: Observation::Absent,
        // An ended attempt's window is looked for only where it was kept, and the start receipt has its pane.
        created: if ended { Observation::Absent } else { read.created() },
        spawned: Observation::Absent,
        start,
        exit,
        verdict: Verdict::Launching,
        evidence: Evidence { lease, ..Evidence::none() },
        pane: None,
    };
    let (mut keeper, mut server) =
        (Life::Unknown(Why::new("not asked")), Life::Unknown(Why::new("not asked")));
    let without_receipt = free && !ended;
    if without_receipt || (ended && !free) {
        keeper = life_of(view.keeper(), "no start receipt names the keeper");
    }
    if without_receipt {
        server = life_of(view.server(), "no receipt names the server");
    }
    judge(read, &mut view, keeper, server);
    view
}

/// Puts what was read together as evidence, and decides.
fn judge(read: &AttemptRead, view: &mut AttemptView, keeper: Life, server_process: Life) {
    let (host, trusted) = compare_host(&view.launch, &view.start);
    let erased = erased_meanwhile(read, view);
    let e = &mut view.evidence;
    if let Err(why) = trusted
        && !matches!(e.lease, Lease::Unknown(_))
    {
        e.lease = Lease::Unknown(why);
    }
    e.start = match erased {
        None => view.start.as_ref().map(|_| ()),
        Some(why) => Observation::Unknown(why),
    };
    e.exit = view.exit.as_ref().map(|x| ExitFact { end: x.end.clone(), hangup: x.hangup });
    e.hangup = view.hangup.as_ref().map(|h| HangupFact { cause: h.cause });
    e.leftovers = view.leftovers.as_ref().map(|l| l.processes.len());
    e.emptied = view.emptied.as_ref().map(|_| ());
    e.host = host;
    e.keeper = keeper;
    e.server_process = server_process;
    view.verdict = decide(&view.evidence);
}

/// An end that rests on files that are missing counts only where the directory is still in its place: the files may be
/// missing because a removal, which moves it away first, erases them right now.
fn erased_meanwhile(read: &AttemptRead, view: &AttemptView) -> Option<Why> {
    let began = matches!(view.start, Observation::Known(_))
        || matches!(view.evidence.cancelled, Observation::Known(()));
    let silent = began && matches!(view.exit, Observation::Absent);
    if !silent || !matches!(view.evidence.lease, Lease::Free | Lease::NoFile) {
        return None;
    }
    match read.dir().in_place() {
        Observation::Known(()) => None,
        Observation::Absent => Some(Why::new(format!(
            "{} was moved away while it was read, or is another directory by now",
            read.dir().path().display()
        ))),
        Observation::Unknown(why) => Some(why),
    }
}

pub(super) fn life_of(identity: Option<&process::Identity>, unrecorded: &str) -> Life {
    let Some(identity) = identity else { return Life::Unknown(Why::new(unrecorded)) };
    match process::life(identity) {
        process::Life::Alive => Life::Alive,
        process::Life::Gone => Life::Gone,
        process::Life::Unknown(why) => Life::Unknown(Why::new(why)),
    }
}

/// Compares the recorded machine to this one, and says whether a lock means anything here: it does on the same
/// boot, whatever the namespaces, and on the same machine after a restart.
fn compare_host(launch: &Observation<LaunchFile>, start: &Observation<StartFile>) -> (Host, Result<(), Why>) {
    let Some(then) = start.known().map(|s| &s.host).or_else(|| launch.known().map(|l| &l.host)) else {
        return (Host::Unknown(Why::new("no file says where it was launched")), Ok(()));
    };
    let now = process::host();
    if then.boot.is_empty() || now.boot.is_empty() {
        let why = Why::new("the boot is not known");
        return (Host::Unknown(why.clone()), if then.machine == now.machine { Ok(()) } else { Err(why) });
    }
    if then.boot == now.boot {
        return (Host::SameBoot, Ok(()));
    }
    if then.machine.is_empty() || then.machine != now.machine {
        let why = Why::new("it was recorded on another machine, whose locks cannot be seen from here");
        return (Host::Unknown(why.clone()), Err(why));
    }
    (Host::OtherBoot, Ok(()))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::dir::Dir;
    use crate::run::files::{SCHEMA, name};
    use crate::run::id::RunId;
    use crate::run::store::RunRead;

    /// A removal moves a run away before it erases anything: whoever has it open does not take that for a loss.
    #[test]
    fn an_attempt_whose_directory_was_moved_away_is_unknown_and_not_lost() {
        let temp = tempfile::tempdir().unwrap();
        let run = temp.path().join("runs/x");
        std::fs::create_dir_all(run.join("attempts/1")).unwrap();
        let dir = Dir::open(&run.join("attempts/1")).unwrap();
        let start = StartFile {
            schema: SCHEMA,
            token: "t".to_owned(),
            keeper: process::current(),
            host: process::host().clone(),
            server: None,
            session: None,
            pane: None,
            at_ms: 0,
        };
        dir.write_once(name::START, &start).unwrap();
        dir.create_empty(name::LEASE).unwrap();
        let read = RunRead::at(RunId::parse("x").unwrap(), Dir::open(&run).unwrap());
        let Observation::Known(attempt) = read.attempt(1) else { panic!("no attempt") };
        assert_eq!(attempt_on_disk(&attempt).verdict.kind(), "lost");
        std::fs::rename(&run, temp.path().join("elsewhere")).unwrap();
        let moved = attempt_on_disk(&attempt).verdict;
        assert!(matches!(&moved, Verdict::Unknown { why } if why.0.contains("moved away")), "{moved:?}");
        std::fs::create_dir_all(run.join("attempts/1")).unwrap();
        assert_eq!(attempt_on_disk(&attempt).verdict.kind(), "unknown", "another directory of that name");
    }
}
