//! The verdict on one attempt.

use super::evidence::{End, Evidence, ExitFact, Host, Lease, Life, Observation, Why};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What went away when an attempt was lost. It names what, never who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The window or pane, while its session lives on.
    WindowKilled,
    /// The mux session, while its server lives on.
    SessionKilled,
    /// The multiplexer's server.
    ServerGone,
    /// The host restarted.
    HostRestarted,
    /// The keeper, while its server lives on.
    KeeperKilled,
    /// Something, and nothing tells what.
    Unexplained,
}

impl Cause {
    /// The contract's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WindowKilled => "window-killed",
            Self::SessionKilled => "session-killed",
            Self::ServerGone => "server-gone",
            Self::HostRestarted => "host-restarted",
            Self::KeeperKilled => "keeper-killed",
            Self::Unexplained => "unexplained",
        }
    }

    /// The cause in a person's words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::WindowKilled => "its window was killed",
            Self::SessionKilled => "its mux session was killed",
            Self::ServerGone => "the multiplexer's server is gone",
            Self::HostRestarted => "the host restarted",
            Self::KeeperKilled => "its keeper was killed",
            Self::Unexplained => "nothing tells why",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether something of an attempt still runs after its agent CLI ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Leftovers {
    /// Nothing holds the lease.
    None,
    /// The lease is held and the keeper has not yet said by what: normal for some milliseconds.
    Settling,
    /// Something holds the lease.
    Some,
    /// Cannot tell.
    Unknown(Why),
}

/// What became of one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Launched, and not yet known to have started.
    Launching,
    /// The agent CLI, or its keeper, runs.
    Running {
        /// Its terminal is gone; this went away, if it is known.
        window_gone: Option<Cause>,
    },
    /// The agent CLI ended by itself.
    Exited {
        /// How.
        end: End,
        /// What still runs.
        leftovers: Leftovers,
    },
    /// The attempt ended without the agent CLI's own end.
    Lost {
        /// What went away.
        cause: Cause,
        /// How the agent CLI ended, if its keeper saw it.
        end: Option<End>,
        /// What still runs.
        leftovers: Leftovers,
    },
    /// It never started, and never will.
    NeverStarted {
        /// Why.
        why: String,
    },
    /// Neither is proven.
    Unknown {
        /// What could not be told.
        why: Why,
    },
}

impl Verdict {
    /// The contract's word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Launching => "launching",
            Self::Running { .. } => "running",
            Self::Exited { .. } => "exited",
            Self::Lost { .. } => "lost",
            Self::NeverStarted { .. } => "never-started",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// The attempt has ended, by proof. Leftovers may still run.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Exited { .. } | Self::Lost { .. } | Self::NeverStarted { .. })
    }

    /// What still runs after the end; `Unknown` where nothing proves an end.
    pub fn leftovers(&self) -> Leftovers {
        match self {
            Self::Exited { leftovers, .. } | Self::Lost { leftovers, .. } => leftovers.clone(),
            Self::NeverStarted { .. } => Leftovers::None,
            Self::Launching | Self::Running { .. } => Leftovers::Some,
            Self::Unknown { why } => Leftovers::Unknown(why.clone()),
        }
    }
}

/// Decides what became of an attempt.
///
/// The engine's lock is no input: an attempt's end does not depend on who watches it. The multiplexer's answers
/// name a cause and nothing more.
pub fn decide(e: &Evidence) -> Verdict {
    match &e.start {
        Observation::Unknown(why) => Verdict::Unknown { why: Why::new(format!("start receipt: {why}")) },
        Observation::Absent => before_start(e),
        Observation::Known(()) => after_start(e),
    }
}

/// No start receipt, seen again after the lease was read.
fn before_start(e: &Evidence) -> Verdict {
    match &e.exit {
        Observation::Absent => {}
        Observation::Known(_) => {
            return Verdict::Unknown { why: Why::new("an exit receipt without a start receipt") };
        }
        Observation::Unknown(why) => {
            return Verdict::Unknown { why: Why::new(format!("exit receipt: {why}")) };
        }
    }
    // A keeper that refused never starts, whatever still holds the lease for a moment.
    match &e.refused {
        Observation::Known(why) => return Verdict::NeverStarted { why: why.clone() },
        Observation::Unknown(why) => return Verdict::Unknown { why: Why::new(format!("refusal: {why}")) },
        Observation::Absent => {}
    }
    match (&e.lease, &e.cancelled) {
        (Lease::Unknown(why), _) => Verdict::Unknown { why: Why::new(format!("lease: {why}")) },
        (Lease::Held, _) => Verdict::Launching,
        (_, Observation::Unknown(why)) => {
            Verdict::Unknown { why: Why::new(format!("cancellation marker: {why}")) }
        }
        (Lease::Free | Lease::NoFile, Observation::Known(())) => {
            Verdict::NeverStarted { why: "the launch was given up before it started".to_owned() }
        }
        (Lease::Free | Lease::NoFile, Observation::Absent) => Verdict::Launching,
    }
}

/// A start receipt exists: what the lease and the exit receipt say, read after it, in that order.
fn after_start(e: &Evidence) -> Verdict {
    match (&e.exit, &e.lease) {
        (Observation::Unknown(why), _) => Verdict::Unknown { why: Why::new(format!("exit receipt: {why}")) },
        (Observation::Known(ExitFact { end, hangup: false }), _) => {
            Verdict::Exited { end: end.clone(), leftovers: leftovers(e) }
        }
        (Observation::Known(ExitFact { end, hangup: true }), _) => {
            Verdict::Lost { cause: cause_of_hangup(e), end: Some(end.clone()), leftovers: leftovers(e) }
        }
        (Observation::Absent, Lease::Held) => Verdict::Running {
            window_gone: match &e.hangup {
                Observation::Known(h) => Some(h.cause.unwrap_or(Cause::Unexplained)),
                Observation::Absent | Observation::Unknown(_) => None,
            },
        },
        (Observation::Absent, Lease::Free) => {
            Verdict::Lost { cause: cause_without_receipt(e), end: None, leftovers: Leftovers::None }
        }
        (Observation::Absent, Lease::NoFile) => {
            Verdict::Unknown { why: Why::new("lease: its file is missing beside a start receipt") }
        }
        (Observation::Absent, Lease::Unknown(why)) => {
            Verdict::Unknown { why: Why::new(format!("lease: {why}")) }
        }
    }
}

fn leftovers(e: &Evidence) -> Leftovers {
    match &e.lease {
        Lease::Free => Leftovers::None,
        Lease::NoFile => Leftovers::Unknown(Why::new("the lease's file is missing")),
        Lease::Unknown(why) => Leftovers::Unknown(why.clone()),
        Lease::Held => match (&e.leftovers, &e.keeper) {
            (Observation::Absent, Life::Alive) => Leftovers::Settling,
            _ => Leftovers::Some,
        },
    }
}

/// The keeper saw the hang-up and wrote how its program ended.
fn cause_of_hangup(e: &Evidence) -> Cause {
    match &e.hangup {
        Observation::Known(h) => h.cause.unwrap_or(Cause::Unexplained),
        Observation::Absent if e.host == Host::OtherBoot => Cause::HostRestarted,
        Observation::Absent | Observation::Unknown(_) => Cause::Unexplained,
    }
}

/// The lease fell free without an exit receipt.
fn cause_without_receipt(e: &Evidence) -> Cause {
    if e.host == Host::OtherBoot {
        return Cause::HostRestarted;
    }
    match &e.hangup {
        Observation::Known(h) => return h.cause.unwrap_or(Cause::Unexplained),
        Observation::Unknown(_) => return Cause::Unexplained,
        Observation::Absent => {}
    }
    match (&e.keeper, &e.server_process) {
        (Life::Gone, Life::Gone) => Cause::ServerGone,
        (Life::Gone, Life::Alive) => Cause::KeeperKilled,
        _ => Cause::Unexplained,
    }
}
