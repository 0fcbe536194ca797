//! The evidence about one attempt.

use super::mux::Look;
use crate::process;
use crate::run::files::{
    CreatedFile, EmptiedFile, ExitFile, HangupFile, LaunchFile, LeftoversFile, SpawnedFile, StartFile,
};
use crate::run::store::AttemptRead;
use crate::verdict::{
    Evidence, ExitFact, HangupFact, Host, Lease, Life, MuxObject, Observation, ServerSeen, Verdict, Why,
    decide,
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

    /// The token of the attempt.
    pub fn token(&self) -> Option<&str> {
        self.launch.known().map(|l| l.tags.token.as_str())
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

/// Gathers the evidence about an attempt, the multiplexer's word included.
pub fn attempt(read: &AttemptRead, look: &Look) -> AttemptView {
    let mut view = attempt_on_disk(read);
    super::mux::explain(&mut view, look);
    view
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
    let hangup = read.hangup();
    let leftovers = read.leftovers();
    let emptied = read.emptied();
    let launch = read.launch();
    let created = read.created();
    let spawned = read.spawned();

    let (host, trusted) = compare_host(&launch, &start);
    if let Err(why) = trusted
        && !matches!(lease, Lease::Unknown(_))
    {
        lease = Lease::Unknown(why);
    }
    let evidence = Evidence {
        cancelled,
        refused: refused.map(|r| r.why),
        start: start.as_ref().map(|_| ()),
        lease,
        exit: exit.as_ref().map(|e| ExitFact { end: e.end.clone(), hangup: e.hangup }),
        hangup: hangup.as_ref().map(|h| HangupFact { cause: h.cause }),
        leftovers: leftovers.as_ref().map(|l| l.processes.len()),
        emptied: emptied.as_ref().map(|_| ()),
        host,
        keeper: life_of(start.known().map(|s| &s.keeper), "no start receipt names the keeper"),
        server_process: Life::Unknown(Why::new("not recorded")),
        server: ServerSeen::NotAsked,
        session: MuxObject::NotAsked,
        window: MuxObject::NotAsked,
    };
    let mut view = AttemptView {
        n: read.n(),
        dir: read.dir().path().to_owned(),
        launch,
        start,
        created,
        spawned,
        exit,
        hangup,
        leftovers,
        emptied,
        verdict: decide(&evidence),
        evidence,
        pane: None,
    };
    view.evidence.server_process = life_of(view.server(), "no receipt names the server");
    view.verdict = decide(&view.evidence);
    view
}

fn life_of(identity: Option<&process::Identity>, unrecorded: &str) -> Life {
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
