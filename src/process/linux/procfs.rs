//! Reading `/proc/<pid>/…` without mistaking a refused or hidden file for an ended process.

use std::io::{self, Read};

/// What one look at a file of a process gave.
#[derive(Debug)]
pub(super) enum Look<T> {
    /// The content.
    Seen(T),
    /// The kernel has no such process.
    Ended,
    /// The process is or may be there, and the look failed.
    Refused(String),
}

/// The fields of `/proc/<pid>/stat` that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    /// One letter: `Z` for a zombie, `X` for a dead one.
    pub(super) state: u8,
    /// The parent's pid.
    pub(super) parent: u32,
    /// The session id.
    pub(super) session: u32,
    /// Kernel flags.
    flags: u64,
    /// Clock ticks since boot.
    pub(super) start: u64,
}

impl Stat {
    /// A thread of the kernel: it has no files, no environment and no children of ours.
    pub(super) fn is_kernel_thread(&self) -> bool {
        const PF_KTHREAD: u64 = 0x0020_0000;
        self.flags & PF_KTHREAD != 0
    }

    /// The task has ended, and waits for its parent at most.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    fn parse(text: &[u8]) -> Option<Self> {
        // The program's name stands in brackets and may itself hold brackets and blanks: the last one counts.
        let after = text.iter().rposition(|b| *b == b')')? + 1;
        let rest = std::str::from_utf8(&text[after..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            flags: fields.get(6)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }
}

/// Reads `/proc/<pid>/<name>`, up to `limit` bytes.
pub(super) fn read(pid: u32, name: &str, limit: u64) -> Look<Vec<u8>> {
    let path = format!("/proc/{pid}/{name}");
    let mut bytes = Vec::new();
    match std::fs::File::open(&path).and_then(|f| f.take(limit).read_to_end(&mut bytes)) {
        Ok(_) => Look::Seen(bytes),
        Err(e) => failed(pid, &path, &e),
    }
}

/// The stat line of a process.
pub(super) fn stat(pid: u32) -> Look<Stat> {
    parse_stat(pid, "stat")
}

/// Whether every task of a process has ended: a main thread may end before the others.
pub(super) fn all_tasks_ended(pid: u32) -> Look<bool> {
    let tasks = match numbers(pid, "task") {
        Look::Seen(tasks) => tasks,
        Look::Ended => return Look::Ended,
        Look::Refused(why) => return Look::Refused(why),
    };
    for task in tasks {
        match parse_stat(pid, &format!("task/{task}/stat")) {
            Look::Seen(stat) if !stat.has_ended() => return Look::Seen(false),
            // A task that vanished between the listing and the look has ended too.
            Look::Seen(_) | Look::Ended => {}
            Look::Refused(why) => return Look::Refused(why),
        }
    }
    Look::Seen(true)
}

/// The entries of a directory of `/proc/<pid>` that are numbers.
pub(super) fn numbers(pid: u32, name: &str) -> Look<Vec<u32>> {
    let path = format!("/proc/{pid}/{name}");
    let list = || -> io::Result<Vec<u32>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&path)? {
            if let Some(n) = entry?.file_name().to_str().and_then(|n| n.parse().ok()) {
                found.push(n);
            }
        }
        Ok(found)
    };
    match list() {
        Ok(found) => Look::Seen(found),
        Err(e) => failed(pid, &path, &e),
    }
}

/// Every pid that `/proc` lists, and why that may not be all of them.
pub(super) fn all_pids() -> (Vec<u32>, Option<String>) {
    if let Err(why) = usable() {
        return (Vec::new(), Some(why));
    }
    let mut pids = Vec::new();
    let mut list = || -> io::Result<()> {
        for entry in std::fs::read_dir("/proc")? {
            if let Some(pid) = entry?.file_name().to_str().and_then(|n| n.parse().ok()) {
                pids.push(pid);
            }
        }
        Ok(())
    };
    if let Err(e) = list() {
        return (pids, Some(format!("cannot list /proc: {e}")));
    }
    // Every pid namespace has a process 1. Where it is not listed, those of other users are hidden.
    let hidden = (!pids.contains(&1))
        .then(|| "/proc hides the processes of other users (mount option hidepid)".to_owned());
    (pids, hidden)
}

/// Whether `/proc` numbers processes as this process does.
///
/// # Errors
/// Why it does not, or why that cannot be told.
pub(super) fn usable() -> Result<(), String> {
    static USABLE: std::sync::OnceLock<Result<(), String>> = std::sync::OnceLock::new();
    USABLE.get_or_init(look_at_own_entry).clone()
}

fn look_at_own_entry() -> Result<(), String> {
    let status = std::fs::read_to_string("/proc/self/status")
        .map_err(|e| format!("cannot read /proc/self/status: {e}"))?;
    // One number for each pid namespace from that of the mount down to our own.
    match status.lines().find_map(|l| l.strip_prefix("NSpid:")) {
        Some(pids) if pids.split_ascii_whitespace().count() != 1 => {
            Err("/proc belongs to another pid namespace".to_owned())
        }
        Some(_) => Ok(()),
        None if status.lines().any(|l| l == format!("Pid:\t{}", std::process::id())) => Ok(()),
        None => Err("/proc does not number this process as the kernel does".to_owned()),
    }
}

fn parse_stat(pid: u32, name: &str) -> Look<Stat> {
    match read(pid, name, 4096) {
        Look::Seen(bytes) => Stat::parse(&bytes)
            .map_or_else(|| Look::Refused(format!("/proc/{pid}/{name} cannot be parsed")), Look::Seen),
        Look::Ended => Look::Ended,
        Look::Refused(why) => Look::Refused(why),
    }
}

/// A file of `/proc` is missing when its process has ended, and when it is hidden: the kernel tells which.
pub(super) fn failed<T>(pid: u32, path: &str, error: &io::Error) -> Look<T> {
    let refused = || Look::Refused(format!("cannot read {path}: {error}"));
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ESRCH) => match exists(pid) {
            Ok(false) => Look::Ended,
            // It was reaped, or it became unreadable on its way out: both read the same, and only one ends.
            Ok(true) if error.raw_os_error() == Some(libc::ESRCH) => Look::Ended,
            Ok(true) => refused(),
            Err(why) => Look::Refused(why),
        },
        _ => refused(),
    }
}

/// Whether the kernel knows a process of that number, whoever's it is.
fn exists(pid: u32) -> Result<bool, String> {
    use rustix::io::Errno;
    let number = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let Some(number) = number else { return Ok(false) };
    match rustix::process::test_kill_process(number) {
        Ok(()) | Err(Errno::PERM) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(e) => Err(format!("cannot ask the kernel for process {pid}: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let line = b"4242 (a) (b) S 7) Z 17 18 19 34816 4242 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 0";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.state, stat.parent, stat.session, stat.start), (b'Z', 17, 19, 987_654));
        assert!(stat.has_ended());
        assert!(Stat::parse(b"4242 (a").is_none());
        assert!(Stat::parse(b"4242 (a) R 1 2 3").is_none());
    }

    #[test]
    fn an_ended_process_is_told_from_a_missing_file() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(matches!(stat(child.id()), Look::Ended));
        assert!(matches!(read(std::process::id(), "no-such-file", 10), Look::Refused(_)));
    }
}
