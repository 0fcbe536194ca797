//! Processes by identity: a pid alone names nobody, because the kernel reuses it.
//!
//! An identity is pid, kernel start time, boot and namespaces. A signal goes only through a [`Handle`], whose
//! identity was checked through the handle itself. Every look is three-valued: what could not be seen is said,
//! never left out.

use serde::{Deserialize, Serialize};

mod printable;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(target_os = "linux")]
pub use linux::{
    Handle, OWN_DESCRIPTORS, Watch, ancestors, autogroup, children, close_on_exec, current, descendants,
    holders, host, identify, life, members, note, with_token,
};
#[cfg(target_os = "macos")]
pub use macos::{
    Handle, OWN_DESCRIPTORS, Watch, ancestors, autogroup, children, close_on_exec, current, descendants,
    holders, host, identify, life, members, note, with_token,
};
#[cfg(unix)]
pub use unix::{most_files, signal_name};
#[cfg(windows)]
pub use windows::{
    Asked, Handle, Job, Watch, ancestors, autogroup, children, current, descendants, host, identify, life,
    members, most_files, note, signal_name, started_by, with_token,
};

/// What names one process for ever.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The process id in its own pid namespace.
    pub pid: u32,
    /// When the kernel started it, in the platform's own unit (Linux: clock ticks since boot).
    pub start: u64,
    /// The boot that `start` counts from; empty where it could not be read, and then nothing can be told of it.
    pub boot: String,
    /// Inode of the pid namespace, where the platform has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_ns: Option<u64>,
    /// Inode of the time namespace, where the platform has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<u64>,
}

/// The machine, boot and namespaces that something was recorded in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostId {
    /// The boot id; empty where it could not be read.
    pub boot: String,
    /// The machine id; empty where there is none. Container images share them.
    pub machine: String,
    /// Inode of the pid namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_ns: Option<u64>,
    /// Inode of the time namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<u64>,
}

/// Whether what was recorded in the boot of that id was recorded in another one than this. A boot that could not be read,
/// then or now, may be the same.
pub fn is_another_boot(then: &str) -> bool {
    let now = &host().boot;
    !then.is_empty() && !now.is_empty() && then != now
}

/// The answer to "does the process of this identity run".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Life {
    /// It runs.
    Alive,
    /// The kernel has no process of that identity, or only its zombie.
    Gone,
    /// Cannot be told from here: why.
    Unknown(String),
}

/// The answer to a try at opening a [`Handle`].
#[derive(Debug)]
#[must_use]
pub enum Opened {
    /// It runs, and this handle is of that process and no other.
    Handle(Handle),
    /// The kernel has no process of that identity, or only its zombie.
    Gone,
    /// Cannot be told from here: why.
    Unknown(String),
}

/// The signals that a stop sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// The terminal went away.
    Hup,
    /// Interrupt, as Ctrl-C.
    Int,
    /// End yourself.
    Term,
    /// Ended by the kernel.
    Kill,
    /// Frozen; cannot be caught.
    Stop,
    /// Goes on after a stop.
    Cont,
}

/// A process, described for a person.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// Its identity.
    pub id: Identity,
    /// Its command line: at most 200 characters, none of them a control character.
    pub command: String,
    /// When it started, in milliseconds since the Unix epoch; for people only.
    pub started_ms: u64,
    /// The user that it acts as; `None` where that could not be read.
    pub uid: Option<u32>,
}

/// A look that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Refused {
    /// The process that could not be looked at; `None` where the look failed as a whole.
    pub process: Option<Note>,
    /// Why.
    pub why: String,
}

/// What a look at all processes found, and what it could not look at.
///
/// An empty `found` says "there is none" only where `refused` is empty too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Scan {
    /// Who answers the question.
    pub found: Vec<Note>,
    /// Who could not be asked.
    pub refused: Vec<Refused>,
}

impl Scan {
    /// Leaves out refusals of processes that started before `ancestor`: they cannot descend from it. What was
    /// found stays, whenever it started.
    pub fn since(mut self, ancestor: &Identity) -> Self {
        self.refused.retain(|refused| {
            refused
                .process
                .as_ref()
                .is_none_or(|note| note.id.boot != ancestor.boot || note.id.start >= ancestor.start)
        });
        self
    }

    /// Both looks as one; a process that both found is found once.
    pub fn join(mut self, other: Self) -> Self {
        for note in other.found {
            if !self.found.iter().any(|known| known.id == note.id) {
                self.found.push(note);
            }
        }
        self.refused.extend(other.refused);
        self
    }
}
