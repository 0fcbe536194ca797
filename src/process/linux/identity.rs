//! Who a process is, and whether it runs.

use super::procfs::{self, Look, Stat};
use crate::process::{HostId, Identity, Life};
use std::sync::OnceLock;

/// The machine, boot and namespaces of this process. Read once; what could not be read is empty.
pub fn host() -> &'static HostId {
    static HOST: OnceLock<HostId> = OnceLock::new();
    HOST.get_or_init(|| HostId {
        boot: line_of("/proc/sys/kernel/random/boot_id"),
        machine: line_of("/etc/machine-id"),
        pid_ns: namespace("pid"),
        time_ns: namespace("time"),
    })
}

/// This process. Where the kernel's own entry cannot be read the identity has an empty boot, and everybody reads
/// it as unknown.
pub fn current() -> Identity {
    let pid = std::process::id();
    match identify(pid) {
        Ok(Some(id)) => id,
        Ok(None) | Err(_) => Identity { pid, start: 0, boot: String::new(), pid_ns: None, time_ns: None },
    }
}

/// The identity of whatever process has that number now, zombies included; `None` if the kernel knows none.
///
/// # Errors
/// Why it cannot be told.
pub fn identify(pid: u32) -> Result<Option<Identity>, String> {
    procfs::usable()?;
    if host().boot.is_empty() {
        return Err("the boot id of this machine cannot be read".to_owned());
    }
    match procfs::stat(pid) {
        Look::Seen(stat) => Ok(Some(of(pid, &stat))),
        Look::Ended => Ok(None),
        Look::Refused(why) => Err(why),
    }
}

/// Whether the process of that identity runs. Another boot or another namespace than ours is unknown: the
/// numbers mean something else there.
pub fn life(id: &Identity) -> Life {
    if let Err(why) = comparable(id) {
        return Life::Unknown(why);
    }
    let stat = match procfs::stat(id.pid) {
        Look::Seen(stat) => stat,
        Look::Ended => return Life::Gone,
        Look::Refused(why) => return Life::Unknown(why),
    };
    if stat.start != id.start {
        return Life::Gone;
    }
    if !stat.has_ended() {
        return Life::Alive;
    }
    match procfs::all_tasks_ended(id.pid) {
        Look::Seen(true) | Look::Ended => Life::Gone,
        Look::Seen(false) => Life::Alive,
        Look::Refused(why) => Life::Unknown(why),
    }
}

pub(super) fn of(pid: u32, stat: &Stat) -> Identity {
    let host = host();
    Identity { pid, start: stat.start, boot: host.boot.clone(), pid_ns: host.pid_ns, time_ns: host.time_ns }
}

/// Whether numbers recorded with `id` mean the same here.
///
/// # Errors
/// Why they do not, or why nobody can tell.
pub(super) fn comparable(id: &Identity) -> Result<(), String> {
    procfs::usable()?;
    let host = host();
    let pid = id.pid;
    if id.boot.is_empty() || host.boot.is_empty() {
        return Err(format!("process {pid} cannot be compared: its boot or this one is not known"));
    }
    if id.boot != host.boot {
        return Err(format!("process {pid} was recorded in another boot"));
    }
    if id.pid_ns != host.pid_ns {
        return Err(format!("process {pid} was recorded in another pid namespace"));
    }
    if id.time_ns != host.time_ns {
        return Err(format!("process {pid} was recorded in another time namespace"));
    }
    Ok(())
}

fn line_of(path: &str) -> String {
    std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

fn namespace(kind: &str) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(format!("/proc/self/ns/{kind}")).ok().map(|m| m.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn this_process_is_alive_and_another_start_time_is_gone() {
        let me = current();
        assert!(!me.boot.is_empty());
        assert_eq!(life(&me), Life::Alive);
        assert_eq!(life(&Identity { start: me.start - 1, ..me.clone() }), Life::Gone);
    }

    #[test]
    fn another_boot_or_namespace_is_unknown() {
        let me = current();
        for other in [
            Identity { boot: "another".to_owned(), ..me.clone() },
            Identity { boot: String::new(), ..me.clone() },
            Identity { pid_ns: me.pid_ns.map(|n| n + 1), ..me.clone() },
            Identity { pid_ns: None, ..me.clone() },
            Identity { time_ns: Some(1), ..me.clone() },
        ] {
            assert!(matches!(life(&other), Life::Unknown(_)), "{other:?}");
        }
    }

    #[test]
    fn a_zombie_is_gone_and_so_is_a_reaped_process() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let id = identify(child.id()).unwrap().unwrap();
        assert_eq!(life(&id), Life::Alive);
        drop(child.stdin.take());
        let pid = rustix::process::Pid::from_child(&child);
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).unwrap();
        assert_eq!(life(&id), Life::Gone, "a zombie");
        child.wait().unwrap();
        assert_eq!(life(&id), Life::Gone, "reaped");
        assert_eq!(identify(id.pid), Ok(None));
    }

    #[test]
    fn a_process_whose_main_thread_ended_before_the_others_is_alive() {
        let script = "import ctypes, sys, threading\n\
             threading.Thread(target=sys.stdin.read).start()\n\
             print('up', flush=True)\n\
             ctypes.CDLL(None).pthread_exit(None)";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut up = [0; 3];
        child.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
        let id = identify(child.id()).unwrap().unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let zombie_leader = loop {
            match procfs::stat(id.pid) {
                Look::Seen(stat) if stat.has_ended() => break true,
                Look::Seen(_) if std::time::Instant::now() < end => std::thread::yield_now(),
                _ => break false,
            }
        };
        let seen = life(&id);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(zombie_leader, "the main thread was to end first");
        assert_eq!(seen, Life::Alive);
    }
}
