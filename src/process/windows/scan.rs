//! Looks at all processes: who is in an attempt's job, who descends from whom.

use super::identity::{self, identity};
use super::job::Job;
use super::sys::{self, Look, Row};
use crate::process::printable::printable;
use crate::process::{Identity, Note, Refused, Scan};
use std::os::windows::io::{AsHandle, BorrowedHandle};
use windows_sys::Win32::System::Threading::{PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE};

/// Who belongs to the job of that token. Nothing leaves a job, and the environment of a process is told to nobody here.
pub fn with_token(token: &str) -> Scan {
    let mut scan = Scan::default();
    let members = match Job::existing(token) {
        Ok(Some(job)) => job.members(),
        // A job lives as long as its keeper, and its members no longer.
        Ok(None) => return scan,
        Err(e) => Err(format!("cannot look at the job of its token: {e}")),
    };
    match members {
        Ok(members) => {
            for (pid, process) in members.iter().filter(|(_, process)| !sys::has_ended(process.as_handle())) {
                match identity::of(*pid, process.as_handle()) {
                    Ok(id) => scan.found.push(describe(id, Some(process.as_handle()), "")),
                    Err(why) => scan.refused.push(Refused { process: None, why }),
                }
            }
        }
        Err(why) => scan.refused.push(Refused { process: None, why }),
    }
    scan
}

/// The kernel has no sessions of this kind here: what would be found by one is in the job of a token.
pub fn members(_session: u32, _autogroup: Option<u64>) -> Scan {
    Scan::default()
}

/// There are no autogroups here.
///
/// # Errors
/// None.
pub fn autogroup(_pid: u32) -> Result<Option<u64>, String> {
    Ok(None)
}

/// The children of a process.
pub fn children(pid: u32) -> Scan {
    below(pid, false)
}

/// The children of a process, and theirs, as far as parents still live. Children of a keeper that run the keeper's own
/// program are a part of it, and are left out.
pub fn descendants(pid: u32) -> Scan {
    below(pid, true)
}

fn below(root: u32, deep: bool) -> Scan {
    let mut scan = Scan::default();
    let rows = match sys::all() {
        Ok(rows) => rows,
        Err(why) => {
            scan.refused.push(Refused { process: None, why });
            return scan;
        }
    };
    let Some(top) = rows.iter().find(|row| row.pid == root) else { return scan };
    let mut parents = vec![top];
    let mut met = vec![root];
    while let Some(parent) = parents.pop() {
        for child in rows.iter().filter(|row| is_child(row, parent)) {
            let part_of_it = parent.pid == root && child.name == top.name;
            if met.contains(&child.pid) || part_of_it {
                continue;
            }
            met.push(child.pid);
            match note(child.pid) {
                Ok(Some(note)) if note.id.start == child.created => scan.found.push(note),
                Ok(_) => continue,
                Err(why) => scan.refused.push(Refused { process: None, why }),
            }
            if deep {
                parents.push(child);
            }
        }
    }
    scan
}

/// A parent's number may be another's by now: a child is never older than its parent.
fn is_child(row: &Row, parent: &Row) -> bool {
    row.parent == parent.pid && row.pid != parent.pid && row.created >= parent.created
}

/// The identities of the processes above this one, its parent first, as far as they still live.
pub fn ancestors() -> Vec<Identity> {
    let mut above = Vec::new();
    let Ok(rows) = sys::all() else { return above };
    let mut at = rows.iter().find(|row| row.pid == std::process::id());
    while let Some(row) = at
        && above.len() < 1000
    {
        at = rows.iter().find(|parent| is_child(row, parent));
        above.extend(at.map(|parent| identity(parent.pid, parent.created)));
    }
    above
}

/// Describes a process; `None` if the system has none of that number, or it has ended.
///
/// # Errors
/// Why it cannot be told.
pub fn note(pid: u32) -> Result<Option<Note>, String> {
    match sys::open(pid, PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE) {
        Look::Seen(process) if sys::has_ended(process.as_handle()) => Ok(None),
        Look::Seen(process) => {
            let id = identity::of(pid, process.as_handle())?;
            Ok(Some(describe(id, Some(process.as_handle()), "")))
        }
        Look::Ended => Ok(None),
        Look::Refused(why) => match sys::all()?.into_iter().find(|row| row.pid == pid) {
            Some(row) => Ok(Some(describe(identity(pid, row.created), None, &row.name))),
            None => Err(why),
        },
    }
}

fn describe(id: Identity, process: Option<BorrowedHandle<'_>>, name: &str) -> Note {
    let words = process.and_then(|process| sys::command_line(process).or_else(|| sys::program(process)));
    let command = words.map_or_else(|| name.to_owned(), |words| words.to_string_lossy().into_owned());
    // Tenths of microseconds since 1601.
    let started_ms = (id.start / 10_000).saturating_sub(11_644_473_600_000);
    Note { id, command: printable(&command), started_ms, uid: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_child_is_below_its_parent_and_this_process_above_it() {
        let mut child = Command::new("cmd").args(["/c", "pause"]).stdin(Stdio::piped()).spawn().unwrap();
        let scan = descendants(std::process::id());
        let found = scan.found.iter().find(|note| note.id.pid == child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.is_some_and(|note| note.command.contains("cmd")), "{scan:?}");
        assert!(!descendants(std::process::id()).found.iter().any(|note| note.id.pid == child.id()));
    }

    #[test]
    fn a_token_without_a_job_has_nobody() {
        assert_eq!(with_token("no-such-token"), Scan::default());
    }
}
