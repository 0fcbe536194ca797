//! Looks at all processes: who holds a file open, who carries a token, who descends from whom.

use super::identity;
use super::sys::{self, Info, Look};
use crate::process::printable::printable;
use crate::process::{Identity, Note, Refused, Scan};
use std::collections::HashSet;

/// Who has a descriptor of the file of that device and inode (as `stat` gives them).
pub fn holders(dev: u64, ino: u64) -> Scan {
    every(|pid, _| match sys::open_files(pid) {
        Look::Seen(files) => Look::Seen(files.contains(&(dev, ino))),
        Look::Ended => Look::Ended,
        Look::Refused(why) => Look::Refused(why),
    })
}

/// Who was started with `LOOPMUX_TOKEN=<token>` in its environment.
pub fn with_token(token: &str) -> Scan {
    let wanted = format!("LOOPMUX_TOKEN={token}").into_bytes();
    every(|pid, _| match sys::words(pid) {
        Look::Seen(words) => Look::Seen(words.vars.contains(&wanted)),
        Look::Ended => Look::Ended,
        Look::Refused(why) => Look::Refused(why),
    })
}

/// Who belongs to the kernel's session of that id. There are no autogroups here.
pub fn members(session: u32, _autogroup: Option<u64>) -> Scan {
    every(|pid, _| {
        let number = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
        match rustix::process::getsid(number) {
            Ok(id) => Look::Seen(u32::try_from(id.as_raw_nonzero().get()) == Ok(session)),
            Err(e) => sys::failed(pid, "ask for the session of", e.into()),
        }
    })
}

/// There are no autogroups here.
///
/// # Errors
/// None.
pub fn autogroup(_pid: u32) -> Result<Option<u64>, String> {
    Ok(None)
}

/// The children of a process, zombies left out.
pub fn children(pid: u32) -> Scan {
    every(|_, info| Look::Seen(info.parent == pid))
}

/// The children of a process, and theirs, zombies left out. One whose parent has ended is nobody's here.
pub fn descendants(pid: u32) -> Scan {
    let mut scan = Scan::default();
    let mut met = HashSet::from([pid]);
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        let Scan { found, refused } = children(parent);
        for note in found {
            if met.insert(note.id.pid) {
                parents.push(note.id.pid);
                scan.found.push(note);
            }
        }
        if parent == pid {
            scan.refused = refused;
        }
    }
    scan
}

/// The identities of the processes above this one, its parent first, as far as they can be told.
pub fn ancestors() -> Vec<Identity> {
    let mut above = Vec::new();
    let mut pid = std::process::id();
    while let Look::Seen(info) = sys::info(pid)
        && info.parent > 0
        && above.len() < 1000
    {
        pid = info.parent;
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
    match sys::info(pid) {
        Look::Seen(info) => Ok(Some(describe(pid, &info))),
        Look::Ended => Ok(None),
        Look::Refused(why) => Err(why),
    }
}

/// Asks the same of every process.
fn every(question: impl Fn(u32, &Info) -> Look<bool>) -> Scan {
    let mut scan = Scan::default();
    let pids = match sys::all_pids() {
        Ok(pids) => pids,
        Err(e) => {
            scan.refused.push(Refused { process: None, why: format!("cannot list processes: {e}") });
            return scan;
        }
    };
    for pid in pids {
        let info = match sys::info(pid) {
            Look::Seen(info) => info,
            Look::Ended => continue,
            Look::Refused(why) => {
                scan.refused.push(Refused { process: None, why });
                continue;
            }
        };
        match question(pid, &info) {
            Look::Seen(true) => scan.found.push(describe(pid, &info)),
            Look::Seen(false) | Look::Ended => {}
            Look::Refused(why) => {
                scan.refused.push(Refused { process: Some(describe(pid, &info)), why });
            }
        }
    }
    scan
}

fn describe(pid: u32, info: &Info) -> Note {
    let words = match sys::words(pid) {
        Look::Seen(words) => words.args,
        Look::Ended | Look::Refused(_) => Vec::new(),
    };
    let text: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
    Note {
        id: identity::of(pid, info),
        command: printable(&text.join(" ")),
        started_ms: info.start / 1000,
        uid: Some(info.uid),
    }
}
