//! Processes by identity: a pid alone names nobody, because the kernel reuses it.
//!
//! An identity is pid, kernel start time, boot and namespaces. A signal goes only through a [`Handle`], whose
//! identity was checked through the handle itself.

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::*;

/// What names one process for ever.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The process id in its own pid namespace.
    pub pid: u32,
    /// When the kernel started it, in the platform's own unit (Linux: clock ticks since boot).
    pub start: u64,
    /// The boot that `start` counts from.
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
