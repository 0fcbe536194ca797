//! The observations that a verdict rests on.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why something could not be observed, in words for a person.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Why(pub String);

impl Why {
    /// A reason out of any text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One three-valued answer to one question. It cannot be turned into a `bool`: whoever uses it says what
/// happens in the third case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Observation<T> {
    /// It is there, and this is it.
    Known(T),
    /// It is not there, by an answer that cannot be mistaken for a failure to look.
    Absent,
    /// Nobody can tell.
    Unknown(Why),
}

impl<T> Observation<T> {
    /// Unknown, with a reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown(Why::new(why))
    }

    /// The same answer about a part of what is known.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Observation<U> {
        match self {
            Self::Known(t) => Observation::Known(f(t)),
            Self::Absent => Observation::Absent,
            Self::Unknown(why) => Observation::Unknown(why),
        }
    }

    /// The same answer, borrowed.
    pub fn as_ref(&self) -> Observation<&T> {
        match self {
            Self::Known(t) => Observation::Known(t),
            Self::Absent => Observation::Absent,
            Self::Unknown(why) => Observation::Unknown(why.clone()),
        }
    }

    /// The value where it is known. What is left is "not there or cannot tell": for showing, never for deciding.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(t) => Some(t),
            Self::Absent | Self::Unknown(_) => None,
        }
    }
}

/// How a program ended, as its parent saw it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It could not be executed; the text is the operating system's reason.
    SpawnError(String),
}

/// The exit receipt's two facts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExitFact {
    /// How the agent CLI ended.
    pub end: End,
    /// A hang-up of the terminal came no later than the end.
    pub hangup: bool,
}

/// What the keeper learnt when its terminal went away.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HangupFact {
    /// What went away, if the multiplexer answered.
    pub cause: Option<super::Cause>,
}

/// The lock that the keeper takes and that the agent CLI inherits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lease {
    /// Some process holds it.
    Held,
    /// Nobody holds it.
    Free,
    /// The file is not there.
    NoFile,
    /// The probe failed, or its answer means nothing here.
    Unknown(Why),
}

/// A process, by its recorded identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Life {
    /// It runs.
    Alive,
    /// It has ended: the kernel knows no process of that identity.
    Gone,
    /// It was not recorded, or cannot be told from here.
    Unknown(Why),
}

/// The machine that the attempt ran on, compared to this one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// The same boot of the same kernel.
    SameBoot,
    /// Another boot. It names a cause and authorises nothing.
    OtherBoot,
    /// Cannot be compared.
    Unknown(Why),
}

/// The multiplexer server that answered, compared to the recorded one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerSeen {
    /// The recorded server answered.
    Same,
    /// Another server answers at its place.
    Other,
    /// The recorded server process has ended.
    Gone,
    /// Cannot tell.
    Unknown(Why),
    /// Nobody asked.
    NotAsked,
}

/// A mux session or window, as the recorded server told it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MuxObject {
    /// The recorded server lists it.
    Present,
    /// The recorded server answered completely, and does not list it.
    Absent,
    /// Nobody serves the question.
    NotServed(Why),
    /// No answer that counts.
    Unknown(Why),
    /// Nobody asked.
    NotAsked,
}

/// Everything observed about one attempt, in the order in which it was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Evidence {
    /// Somebody gave this launch up before it was known to have started.
    pub cancelled: Observation<()>,
    /// The keeper would not start: why.
    pub refused: Observation<String>,
    /// The start receipt. Where it was absent, it was read a second time after the lease.
    pub start: Observation<()>,
    /// The lease, read after the start receipt.
    pub lease: Lease,
    /// The exit receipt, read after the lease.
    pub exit: Observation<ExitFact>,
    /// The keeper's word on its hang-up.
    pub hangup: Observation<HangupFact>,
    /// The keeper's list of what still ran after the agent CLI's end: how many.
    pub leftovers: Observation<usize>,
    /// The keeper's receipt that no descendant is left.
    pub emptied: Observation<()>,
    /// The machine, for the cause.
    pub host: Host,
    /// The keeper's process, for the cause.
    pub keeper: Life,
    /// The recorded server's process, as the kernel knows it, for the cause.
    pub server_process: Life,
    /// The server that answers now, for reports.
    pub server: ServerSeen,
    /// The mux session, for reports.
    pub session: MuxObject,
    /// The window, for reports.
    pub window: MuxObject,
}

impl Evidence {
    /// Evidence of an attempt of which nothing is on disk yet and nobody was asked.
    pub fn none() -> Self {
        Self {
            cancelled: Observation::Absent,
            refused: Observation::Absent,
            start: Observation::Absent,
            lease: Lease::NoFile,
            exit: Observation::Absent,
            hangup: Observation::Absent,
            leftovers: Observation::Absent,
            emptied: Observation::Absent,
            host: Host::SameBoot,
            keeper: Life::Unknown(Why::new("not recorded")),
            server_process: Life::Unknown(Why::new("not recorded")),
            server: ServerSeen::NotAsked,
            session: MuxObject::NotAsked,
            window: MuxObject::NotAsked,
        }
    }
}
