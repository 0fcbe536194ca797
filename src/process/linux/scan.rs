//! Looks at all processes: who holds a file open, who carries a token, who descends from whom.

use super::identity;
use super::procfs::{self, Look, Stat};
use crate::process::printable::printable;
use crate::process::{Identity, Note, Refused, Scan};
use rustix::fs::{AtFlags, StatxFlags};
use std::collections::HashSet;

/// Bytes of an environment that are looked at: the kernel allows a program less than this.
const ENVIRONMENT_LIMIT: u64 = 16 << 20;
/// How often the tree of descendants is walked at most, for processes that fork while it is walked.
const PASSES: usize = 16;

/// Who holds the exclusive lock on the file of that device and inode (as `stat` gives them): whoever has a
/// descriptor that the lock belongs to, be it the one that took it or an inherited one. Whoever merely has the
/// file open, to probe it or to wait for it, is no holder.
///
/// The file behind a descriptor is asked for nothing that a dead file system could answer late. A descriptor that
/// is on its way through a socket belongs to nobody, and is not found.
pub fn holders(dev: u64, ino: u64) -> Scan {
    every(|pid, _| holds_lock(pid, dev, ino))
}

/// Who was started with `LOOPMUX_TOKEN=<token>` in its environment.
pub fn with_token(token: &str) -> Scan {
    let wanted = format!("LOOPMUX_TOKEN={token}").into_bytes();
    every(|pid, _| match procfs::read(pid, "environ", ENVIRONMENT_LIMIT) {
        Look::Seen(bytes) => Look::Seen(bytes.split(|b| *b == 0).any(|var| var == wanted)),
        Look::Ended => Look::Ended,
        Look::Refused(why) => Look::Refused(why),
    })
}

/// Who belongs to the kernel's session of that id. Where `autogroup` is given, one of another autogroup is of a
/// later session with the same number, and does not belong.
pub fn members(session: u32, autogroup: Option<u64>) -> Scan {
    every(|pid, stat| {
        if stat.session != session {
            return Look::Seen(false);
        }
        let Some(wanted) = autogroup else { return Look::Seen(true) };
        match self::autogroup(pid) {
            Ok(Some(group)) => Look::Seen(group == wanted),
            Ok(None) | Err(_) => Look::Seen(true),
        }
    })
}

/// The autogroup of a process; `None` where the kernel has none.
///
/// # Errors
/// Why it could not be read.
pub fn autogroup(pid: u32) -> Result<Option<u64>, String> {
    match std::fs::read_to_string(format!("/proc/{pid}/autogroup")) {
        Ok(text) => Ok(text
            .strip_prefix("/autogroup-")
            .and_then(|rest| rest.split(' ').next())
            .and_then(|number| number.parse().ok())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(format!("cannot read /proc/{pid}/autogroup: {e}")),
    }
}

/// The children of a process, zombies left out.
pub fn children(pid: u32) -> Scan {
    tree(pid, false)
}

/// The children of a process, and theirs, zombies left out. One that forks faster than it is looked at can be
/// missed: whoever must have all of them freezes them first.
pub fn descendants(pid: u32) -> Scan {
    tree(pid, true)
}

/// The identities of the processes above this one, its parent first, as far as they can be told.
pub fn ancestors() -> Vec<Identity> {
    let mut above = Vec::new();
    let mut pid = std::process::id();
    while let procfs::Look::Seen(stat) = procfs::stat(pid)
        && stat.parent > 0
        && above.len() < 1000
    {
        pid = stat.parent;
        match super::identify(pid) {
            Ok(Some(id)) => above.push(id),
            Ok(None) | Err(_) => break,
        }
    }
    above
}

/// Describes a process; `None` if the kernel has none of that number.
///
/// # Errors
/// Why it cannot be told.
pub fn note(pid: u32) -> Result<Option<Note>, String> {
    procfs::usable()?;
    match procfs::stat(pid) {
        Look::Seen(stat) => Ok(Some(describe(pid, &stat))),
        Look::Ended => Ok(None),
        Look::Refused(why) => Err(why),
    }
}

/// Asks the same of every process that has not ended.
fn every(question: impl Fn(u32, &Stat) -> Look<bool>) -> Scan {
    let (pids, incomplete) = procfs::all_pids();
    let mut scan = Scan::default();
    scan.refused.extend(incomplete.map(|why| Refused { process: None, why }));
    for pid in pids {
        let stat = match procfs::stat(pid) {
            Look::Seen(stat) => stat,
            Look::Ended => continue,
            Look::Refused(why) => {
                scan.refused.push(Refused { process: None, why });
                continue;
            }
        };
        if stat.is_kernel_thread() {
            continue;
        }
        // A zombie waits for its parent, and does nothing; unless only its main thread has ended.
        if stat.has_ended() && matches!(procfs::all_tasks_ended(pid), Look::Seen(true) | Look::Ended) {
            continue;
        }
        match question(pid, &stat) {
            Look::Seen(true) => scan.found.push(describe(pid, &stat)),
            Look::Seen(false) | Look::Ended => {}
            Look::Refused(why) => {
                // A process on its way out refuses looks, and holds nothing.
                if !matches!(procfs::all_tasks_ended(pid), Look::Seen(true) | Look::Ended) {
                    scan.refused.push(Refused { process: Some(describe(pid, &stat)), why });
                }
            }
        }
    }
    scan
}

fn holds_lock(pid: u32, dev: u64, ino: u64) -> Look<bool> {
    let descriptors = match procfs::numbers(pid, "fd") {
        Look::Seen(descriptors) => descriptors,
        Look::Ended => return Look::Ended,
        Look::Refused(why) => return Look::Refused(why),
    };
    for fd in descriptors {
        match is_file(pid, fd, dev, ino) {
            Look::Seen(true) => {}
            Look::Seen(false) | Look::Ended => continue,
            Look::Refused(why) => return Look::Refused(why),
        }
        // The kernel lists the locks of an open file with each descriptor of it (since Linux 3.8).
        match procfs::read(pid, &format!("fdinfo/{fd}"), 4096) {
            Look::Seen(info) if has_exclusive_lock(&info) => return Look::Seen(true),
            Look::Seen(_) | Look::Ended => {}
            Look::Refused(why) => return Look::Refused(why),
        }
    }
    Look::Seen(false)
}

/// Whether one descriptor is of that file. `Ended` where the descriptor was closed meanwhile.
fn is_file(pid: u32, fd: u32, dev: u64, ino: u64) -> Look<bool> {
    let path = format!("/proc/{pid}/fd/{fd}");
    match std::fs::read_link(&path) {
        // Sockets, pipes and the like have no path.
        Ok(target) if !target.has_root() => return Look::Seen(false),
        Ok(_) => {}
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => return Look::Ended,
        // A path that is too long to be told: the look below decides.
        Err(e) if e.raw_os_error() == Some(libc::ENAMETOOLONG) => {}
        Err(e) => return procfs::failed(pid, &path, &e),
    }
    // The kernel tells the inode without asking the file system (since Linux 5.14).
    if let Look::Seen(info) = procfs::read(pid, &format!("fdinfo/{fd}"), 4096)
        && let Some(seen) = inode_of(&info)
        && seen != ino
    {
        return Look::Seen(false);
    }
    // Only a file of the same inode number is looked at, with what the kernel already has of it.
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    match rustix::fs::statx(rustix::fs::CWD, &path, flags, StatxFlags::INO) {
        Ok(stat) => Look::Seen(
            stat.stx_ino == ino && rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor) == dev,
        ),
        Err(rustix::io::Errno::NOENT) => Look::Ended,
        Err(e) => procfs::failed(pid, &path, &e.into()),
    }
}

fn has_exclusive_lock(info: &[u8]) -> bool {
    String::from_utf8_lossy(info).lines().filter_map(|l| l.strip_prefix("lock:")).any(|lock| {
        let words: Vec<&str> = lock.split_ascii_whitespace().collect();
        words.contains(&"FLOCK") && words.contains(&"WRITE")
    })
}

fn inode_of(info: &[u8]) -> Option<u64> {
    std::str::from_utf8(info).ok()?.lines().find_map(|l| l.strip_prefix("ino:"))?.trim().parse().ok()
}

/// Walks from a process to its children, until a walk finds nobody new.
fn tree(root: u32, deep: bool) -> Scan {
    let mut scan = Scan::default();
    let mut known: HashSet<Identity> = HashSet::new();
    for _ in 0..PASSES {
        let before = known.len();
        scan = walk(root, deep, &mut known);
        if known.len() == before || !scan.refused.is_empty() {
            break;
        }
    }
    scan
}

/// One walk. Gives who lives now, and adds everyone whom it met to `known`.
fn walk(root: u32, deep: bool, known: &mut HashSet<Identity>) -> Scan {
    let mut scan = Scan::default();
    let mut parents = vec![root];
    let mut met = HashSet::from([root]);
    while let Some(parent) = parents.pop() {
        let list = match children_of(parent) {
            Ok(list) => list,
            Err(why) => {
                scan.refused.push(Refused { process: None, why });
                continue;
            }
        };
        for pid in list {
            // A number can be met twice when a process moved to another parent between two looks.
            if !met.insert(pid) {
                continue;
            }
            let stat = match procfs::stat(pid) {
                Look::Seen(stat) => stat,
                Look::Ended => continue,
                Look::Refused(why) => {
                    scan.refused.push(Refused { process: None, why });
                    continue;
                }
            };
            known.insert(identity::of(pid, &stat));
            // A zombie has no children left: the kernel gave them away.
            if !stat.has_ended() || matches!(procfs::all_tasks_ended(pid), Look::Seen(false)) {
                scan.found.push(describe(pid, &stat));
                if deep {
                    parents.push(pid);
                }
            }
        }
    }
    scan
}

/// Pids of the children of all threads of a process.
fn children_of(pid: u32) -> Result<Vec<u32>, String> {
    procfs::usable()?;
    let tasks = match procfs::numbers(pid, "task") {
        Look::Seen(tasks) => tasks,
        Look::Ended => return Ok(Vec::new()),
        Look::Refused(why) => return Err(why),
    };
    let mut found = Vec::new();
    for task in tasks {
        match std::fs::read_to_string(format!("/proc/{pid}/task/{task}/children")) {
            Ok(list) => found.extend(list.split_ascii_whitespace().filter_map(|n| n.parse::<u32>().ok())),
            // The kernel keeps no such list, or the thread ended and its children are with another one.
            Err(_) => return children_by_parent(pid),
        }
    }
    Ok(found)
}

/// The same, by asking every process for its parent.
fn children_by_parent(parent: u32) -> Result<Vec<u32>, String> {
    let (pids, incomplete) = procfs::all_pids();
    if let Some(why) = incomplete {
        return Err(why);
    }
    let mut found = Vec::new();
    for pid in pids {
        match procfs::stat(pid) {
            Look::Seen(stat) if stat.parent == parent => found.push(pid),
            Look::Seen(_) | Look::Ended => {}
            Look::Refused(why) => return Err(why),
        }
    }
    Ok(found)
}

fn describe(pid: u32, stat: &Stat) -> Note {
    Note {
        id: identity::of(pid, stat),
        command: command_line(pid),
        started_ms: started_ms(stat.start),
        uid: effective_uid(pid),
    }
}

fn command_line(pid: u32) -> String {
    let words = match procfs::read(pid, "cmdline", 4096) {
        Look::Seen(bytes) => bytes,
        Look::Ended | Look::Refused(_) => Vec::new(),
    };
    let words = words.strip_suffix(b"\0").unwrap_or(&words);
    if !words.is_empty() {
        let text: Vec<_> = words.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
        return printable(&text.join(" "));
    }
    match procfs::read(pid, "comm", 64) {
        Look::Seen(name) => format!("[{}]", printable(String::from_utf8_lossy(&name).trim_end())),
        Look::Ended | Look::Refused(_) => String::new(),
    }
}

fn effective_uid(pid: u32) -> Option<u32> {
    let Look::Seen(status) = procfs::read(pid, "status", 4096) else { return None };
    let status = String::from_utf8_lossy(&status);
    status.lines().find_map(|l| l.strip_prefix("Uid:"))?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// From clock ticks since boot to milliseconds since the epoch, by the clocks as they stand now.
fn started_ms(start: u64) -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let ms = |t: rustix::time::Timespec| {
        u64::try_from(t.tv_sec).unwrap_or(0) * 1000 + u64::try_from(t.tv_nsec / 1_000_000).unwrap_or(0)
    };
    let age = ms(clock_gettime(ClockId::Boottime))
        .saturating_sub(start.saturating_mul(1000) / rustix::param::clock_ticks_per_second().max(1));
    ms(clock_gettime(ClockId::Realtime)).saturating_sub(age)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::printable::LIMIT;
    use crate::process::{Handle, Opened, Signal};
    use std::io::{BufRead, BufReader, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::process::{Child, Command, Stdio};

    /// A child that is ended with the test.
    struct Ended(Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn has(scan: &Scan, pid: u32) -> bool {
        scan.found.iter().any(|note| note.id.pid == pid)
    }

    #[test]
    fn a_holder_is_found_by_descriptor_even_where_the_path_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("lease")).unwrap();
        let meta = file.metadata().unwrap();
        let probe = std::fs::File::open(dir.path().join("lease")).unwrap();
        let opener = Ended(Command::new("sleep").arg("600").stdin(probe).spawn().unwrap());
        file.try_lock().unwrap();
        let holder =
            Ended(Command::new("sleep").arg("600").stdout(file.try_clone().unwrap()).spawn().unwrap());
        std::fs::remove_file(dir.path().join("lease")).unwrap();
        let scan = holders(meta.dev(), meta.ino());
        assert!(has(&scan, holder.0.id()) && has(&scan, std::process::id()), "{scan:?}");
        assert!(!has(&scan, opener.0.id()), "to have it open is not to hold it: {scan:?}");
        assert!(!has(&holders(meta.dev() + 1, meta.ino()), holder.0.id()), "another device");
        drop(file);
        assert!(!has(&holders(meta.dev(), meta.ino()), std::process::id()));
    }

    #[test]
    fn a_socket_a_pipe_and_a_deleted_file_do_not_stop_the_look() {
        let (a, _b) = std::os::unix::net::UnixStream::pair().unwrap();
        let meta = std::fs::metadata(format!("/proc/self/fd/{}", a.as_raw_fd())).unwrap();
        // A socket's inode is no file's: it is left out by its kind, whatever its number.
        assert!(!has(&holders(meta.dev(), meta.ino()), std::process::id()));
    }

    #[test]
    fn a_token_is_found_whole_and_only_whole() {
        let token = format!("{:032x}", std::process::id());
        let child = Ended(Command::new("sleep").arg("600").env("LOOPMUX_TOKEN", &token).spawn().unwrap());
        assert!(has(&with_token(&token), child.0.id()));
        assert!(!has(&with_token(&token[..31]), child.0.id()));
    }

    #[test]
    fn descendants_are_found_below_children_and_zombies_are_not() {
        let mut child = Ended(
            Command::new("sh")
                .args(["-c", "true & sh -c 'sleep 600 & echo $!; wait' & cat"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap(),
        );
        let mut line = String::new();
        BufReader::new(child.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let grandchild: u32 = line.trim().parse().unwrap();
        let below = descendants(child.0.id());
        let direct = children(child.0.id());
        let id = &below.found.iter().find(|n| n.id.pid == grandchild).unwrap().id;
        let Opened::Handle(handle) = Handle::open(id) else { panic!("it runs") };
        handle.signal(Signal::Kill).unwrap();
        assert!(below.refused.is_empty(), "{below:?}");
        assert!(!has(&direct, grandchild), "{direct:?}");
        assert!(direct.found.iter().all(|n| n.command != "[true]"), "{direct:?}");
        assert!(has(&descendants(std::process::id()), child.0.id()));
    }

    #[test]
    fn members_of_a_session_are_told_by_number_and_autogroup() {
        let mut child = Ended(
            Command::new("setsid")
                .args(["sh", "-c", "echo $$; sleep 600 & read x; kill $!"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap(),
        );
        let mut line = String::new();
        BufReader::new(child.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let session: u32 = line.trim().parse().unwrap();
        let group = autogroup(session).unwrap();
        assert!(has(&members(session, group), session));
        if let Some(group) = group {
            assert!(!has(&members(session, Some(group + 1)), session));
        }
        assert!(!has(&members(session, None), std::process::id()));
        child.0.stdin.take().unwrap().write_all(b"\n").unwrap();
        let pid = rustix::process::Pid::from_child(&child.0);
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).unwrap();
        assert!(!has(&members(session, None), session), "a zombie is no member");
        child.0.wait().unwrap();
    }

    #[test]
    fn a_zombie_is_no_member_of_its_session() {
        let mut child = Command::new("setsid")
            .args(["sh", "-c", "(sleep 600 & echo $! $$); exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let mut numbers = line.split_whitespace().map(|n| n.parse::<u32>().unwrap());
        let (sleep, session) = (numbers.next().unwrap(), numbers.next().unwrap());
        let mut group = Command::new("setsid").args(["true"]).spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&group);
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).unwrap();
        let zombie = members(group.id(), None);
        let living = members(session, None);
        group.wait().unwrap();
        let id = super::super::identity::identify(sleep).unwrap().unwrap();
        let Opened::Handle(handle) = Handle::open(&id) else { panic!("it runs") };
        handle.signal(Signal::Kill).unwrap();
        child.stdin.take();
        child.wait().unwrap();
        assert_eq!(zombie, Scan::default(), "it has ended");
        assert!(has(&living, sleep), "{living:?}");
    }

    #[test]
    fn a_note_is_printable_and_bounded() {
        let mut child = Command::new("sh")
            .args(["-c", "echo up; read x", "a\x1b[2Jb\u{202e}", &"y".repeat(500)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The kernel shows the arguments a moment after the program was executed.
        let mut up = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut up).unwrap();
        let note = note(child.id()).unwrap().unwrap();
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        child.wait().unwrap();
        assert!(!note.command.chars().any(|c| c.is_control() || c == '\u{202e}'), "{note:?}");
        assert_eq!(note.command.chars().count(), LIMIT + 1);
        assert_eq!(note.uid, Some(rustix::process::geteuid().as_raw()));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let now = u64::try_from(now.as_millis()).unwrap();
        assert!(note.started_ms.abs_diff(now) < 600_000, "{} {now}", note.started_ms);
    }
}
