//! Who a process is, and whether it runs.

use super::sys::{self, Look};
use crate::process::{HostId, Identity, Life};
use std::os::windows::io::{AsHandle, BorrowedHandle, OwnedHandle};
use std::sync::OnceLock;
use windows_sys::Win32::System::Threading::{PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE};

/// The system's own first process.
const SYSTEM: u32 = 4;

/// The machine and boot of this process. Read once; what could not be read is empty.
pub fn host() -> &'static HostId {
    static HOST: OnceLock<HostId> = OnceLock::new();
    HOST.get_or_init(|| HostId { boot: boot(), machine: sys::machine(), pid_ns: None, time_ns: None })
}

/// The system's first process is made at its start, and a clock that is set later does not change when that was.
fn boot() -> String {
    let first = sys::all().ok().and_then(|all| all.into_iter().find(|row| row.pid == SYSTEM));
    match (first.map(|row| row.created).filter(|created| *created != 0), sys::boot_time()) {
        (Some(created), _) => format!("system-{created:016x}"),
        (None, Some(time)) => format!("boot-{time:016x}"),
        (None, None) => String::new(),
    }
}

/// This process. Where it cannot be looked at the identity has an empty boot, and everybody reads it as unknown.
pub fn current() -> Identity {
    let pid = std::process::id();
    match identify(pid) {
        Ok(Some(id)) => id,
        Ok(None) | Err(_) => Identity { pid, start: 0, boot: String::new(), pid_ns: None, time_ns: None },
    }
}

/// The identity of whatever process has that number now, or had it and is still held open by somebody; `None` if the
/// system knows none.
///
/// # Errors
/// Why it cannot be told.
pub fn identify(pid: u32) -> Result<Option<Identity>, String> {
    if host().boot.is_empty() {
        return Err("the boot of this machine cannot be told".to_owned());
    }
    match open(pid) {
        Look::Seen(process) => of(pid, process.as_handle()).map(Some),
        Look::Ended => Ok(None),
        Look::Refused(why) => match listed(pid) {
            Ok(Some(created)) => Ok(Some(identity(pid, created))),
            Ok(None) | Err(_) => Err(why),
        },
    }
}

/// The identity of the process behind a handle.
///
/// # Errors
/// Why it cannot be told.
pub fn started_by(pid: u32, process: BorrowedHandle<'_>) -> Result<Identity, String> {
    of(pid, process)
}

/// Whether the process of that identity runs. Another boot than ours is unknown.
pub fn life(id: &Identity) -> Life {
    if let Err(why) = comparable(id) {
        return Life::Unknown(why);
    }
    match open(id.pid) {
        Look::Seen(process) => life_of(id, process.as_handle()),
        Look::Ended => Life::Gone,
        Look::Refused(why) => match listed(id.pid) {
            Ok(Some(created)) if created == id.start => Life::Alive,
            Ok(Some(_)) => Life::Gone,
            Ok(None) | Err(_) => Life::Unknown(why),
        },
    }
}

pub(super) fn life_of(id: &Identity, process: BorrowedHandle<'_>) -> Life {
    match sys::created(process) {
        Ok(created) if created != id.start => Life::Gone,
        Ok(_) if sys::has_ended(process) => Life::Gone,
        Ok(_) => Life::Alive,
        Err(e) => Life::Unknown(format!("cannot look at process {}: {e}", id.pid)),
    }
}

/// When the process of that number was made, by the list of all processes; `None` if it is not in it.
fn listed(pid: u32) -> Result<Option<u64>, String> {
    Ok(sys::all()?.into_iter().find(|row| row.pid == pid).map(|row| row.created))
}

fn open(pid: u32) -> Look<OwnedHandle> {
    sys::open(pid, PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE)
}

pub(super) fn of(pid: u32, process: BorrowedHandle<'_>) -> Result<Identity, String> {
    let created = sys::created(process).map_err(|e| format!("cannot look at process {pid}: {e}"))?;
    Ok(identity(pid, created))
}

pub(super) fn identity(pid: u32, created: u64) -> Identity {
    Identity { pid, start: created, boot: host().boot.clone(), pid_ns: None, time_ns: None }
}

/// Whether numbers recorded with `id` mean the same here.
///
/// # Errors
/// Why they do not, or why nobody can tell.
pub(super) fn comparable(id: &Identity) -> Result<(), String> {
    let (host, pid) = (host(), id.pid);
    if id.boot.is_empty() || host.boot.is_empty() {
        return Err(format!("process {pid} cannot be compared: its boot or this one is not known"));
    }
    if id.boot != host.boot {
        return Err(format!("process {pid} was recorded in another boot"));
    }
    if id.pid_ns.is_some() || id.time_ns.is_some() {
        return Err(format!("process {pid} was recorded on another system"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_another_start_time_is_gone() {
        let me = current();
        assert!(!me.boot.is_empty());
        assert_eq!(life(&me), Life::Alive);
        assert_eq!(life(&Identity { start: me.start - 1, ..me.clone() }), Life::Gone);
        assert!(matches!(life(&Identity { boot: "another".to_owned(), ..me }), Life::Unknown(_)));
    }

    #[test]
    fn the_list_has_this_process_with_the_same_creation_time() {
        let me = current();
        assert_eq!(listed(me.pid).unwrap(), Some(me.start));
    }
}
