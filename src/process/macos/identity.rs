//! Who a process is, and whether it runs.

use super::sys::{self, Info, Look};
use crate::process::{HostId, Identity, Life};
use std::sync::OnceLock;

/// The machine and boot of this process. Read once; what could not be read is empty.
pub fn host() -> &'static HostId {
    static HOST: OnceLock<HostId> = OnceLock::new();
    HOST.get_or_init(|| HostId {
        boot: sys::named_value(c"kern.bootsessionuuid"),
        machine: sys::machine(),
        pid_ns: None,
        time_ns: None,
    })
}

/// This process. Where it cannot be looked at the identity has an empty boot, and everybody reads it as unknown.
pub fn current() -> Identity {
    let pid = std::process::id();
    match identify(pid) {
        Ok(Some(id)) => id,
        Ok(None) | Err(_) => Identity { pid, start: 0, boot: String::new(), pid_ns: None, time_ns: None },
    }
}

/// The identity of whatever process has that number now; `None` if the kernel has none, or only a zombie.
///
/// # Errors
/// Why it cannot be told.
pub fn identify(pid: u32) -> Result<Option<Identity>, String> {
    if host().boot.is_empty() {
        return Err("the boot id of this machine cannot be read".to_owned());
    }
    match sys::info(pid) {
        Look::Seen(info) => Ok(Some(of(pid, &info))),
        Look::Ended => Ok(None),
        Look::Refused(why) => Err(why),
    }
}

/// Whether the process of that identity runs. Another boot than ours is unknown.
pub fn life(id: &Identity) -> Life {
    let host = host();
    if id.boot.is_empty() || host.boot.is_empty() {
        return Life::Unknown(format!("process {} cannot be compared: a boot is not known", id.pid));
    }
    if id.boot != host.boot {
        return Life::Unknown(format!("process {} was recorded in another boot", id.pid));
    }
    if id.pid_ns.is_some() || id.time_ns.is_some() {
        return Life::Unknown(format!("process {} was recorded on another system", id.pid));
    }
    match sys::info(id.pid) {
        Look::Seen(info) if info.start == id.start => Life::Alive,
        Look::Seen(_) | Look::Ended => Life::Gone,
        Look::Refused(why) => Life::Unknown(why),
    }
}

pub(super) fn of(pid: u32, info: &Info) -> Identity {
    Identity { pid, start: info.start, boot: host().boot.clone(), pid_ns: None, time_ns: None }
}
