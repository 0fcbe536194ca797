//! Moving a run out of `runs/`, and erasing it.
//!
//! ```text
//! runs/<id>  ->  trash/<id>.<nonce>  ->  trash/<id>.<nonce>.erasing  ->  gone
//!                                    ->  quarantine/<id>.<nonce>
//! ```
//!
//! The first rename takes the run away from whoever would start something in it, and can be undone. The second one is
//! the point of no return: it is a name and not a file in the directory, so it needs no room on a full disk, and it goes
//! in the same step as the directory itself. Whoever finds an entry without it puts the run back, and with it erases on.

use super::dir::{Dir, random_hex, rename};
use super::files::name;
use super::id::RunId;
use super::locks;
use super::store::{RunRead, place};
use super::tree::{self, TreeError};
use super::write::{ProjectWrite, RunLock, StoreError, ensure_dir, io_error};
use crate::at::Taken;
use crate::fault;
use crate::verdict::{Lease, Observation, Removable, Unheld};
use std::ffi::OsStr;
use std::io;
use std::path::Path;

const ERASING: &str = "erasing";

/// One entry of `trash/` or `quarantine/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The run.
    pub id: RunId,
    /// The directory's name.
    pub name: String,
    /// Its erasure was decided.
    pub erasing: bool,
}

impl Entry {
    fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('.');
        let (id, nonce, end) = (parts.next()?, parts.next()?, parts.next());
        let id = RunId::parse(id).ok()?;
        let whole = !nonce.is_empty() && parts.next().is_none();
        match end {
            _ if !whole => None,
            None => Some(Self { id, name: name.to_owned(), erasing: false }),
            Some(ERASING) => Some(Self { id, name: name.to_owned(), erasing: true }),
            Some(_) => None,
        }
    }
}

/// The entries of `trash/` or `quarantine/` of a project, oldest id first.
pub fn entries(project: &Dir, below: &str) -> Observation<Vec<Entry>> {
    let path = project.path().join(below);
    match project.sub(below).and_then(|d| d.names()) {
        Ok(names) => {
            let mut all: Vec<Entry> =
                names.iter().filter_map(|n| n.to_str()).filter_map(Entry::parse).collect();
            all.sort_by(|a, b| a.name.cmp(&b.name));
            Observation::Known(all)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Observation::Absent,
        Err(e) => Observation::unknown(format!("cannot list {}: {e}", path.display())),
    }
}

/// An entry's directory, for reading.
///
/// # Errors
/// It cannot be opened.
pub fn open(project: &Dir, below: &str, entry: &Entry) -> Result<RunRead, StoreError> {
    let path = project.path().join(below).join(&entry.name);
    let dir = project.sub(below).and_then(|d| d.sub(&entry.name)).map_err(|e| io_error("open", &path, e))?;
    Ok(RunRead::at(entry.id.clone(), dir))
}

/// A run that was moved to `trash/`, and is whole.
#[derive(Debug)]
pub struct Trashed {
    runs: Dir,
    trash: Dir,
    name: String,
    run: RunRead,
}

/// Moves a run to `trash/`. Nothing can be started in it by its path any more; whoever has it open still has it.
///
/// # Errors
/// As the operating system says: the run is where it was.
pub fn take_away(
    project: &ProjectWrite,
    lock: &RunLock,
    run: RunRead,
    _proof: Removable,
) -> Result<Trashed, StoreError> {
    to_trash(project, lock, run)
}

/// The same for a run that is to be put aside: it goes through `trash/`, so that it is looked at once more where
/// nothing can be started in it, and so that whoever finds it there puts it back.
///
/// # Errors
/// As the operating system says: the run is where it was.
pub fn take_aside(
    project: &ProjectWrite,
    lock: &RunLock,
    run: RunRead,
    _proof: Unheld,
) -> Result<Trashed, StoreError> {
    to_trash(project, lock, run)
}

fn to_trash(project: &ProjectWrite, lock: &RunLock, run: RunRead) -> Result<Trashed, StoreError> {
    let (runs, trash) = (project.sub(place::RUNS)?, ensure_dir(project.dir(), place::TRASH)?);
    let name = format!("{}.{}", lock.id(), random_hex(4));
    let run = step("remove.trash", (&runs, lock.id().as_str()), (&trash, &name), run)?;
    Ok(Trashed { runs, trash, name, run })
}

impl Trashed {
    /// The run, where it is now.
    pub fn run(&self) -> &RunRead {
        &self.run
    }

    /// Moves the run back.
    ///
    /// # Errors
    /// As the operating system says: it stays in `trash/`, and the next act puts it back.
    pub fn put_back(self) -> Result<RunRead, StoreError> {
        let id = self.run.id().clone();
        step("remove.put-back", (&self.trash, &self.name), (&self.runs, id.as_str()), self.run)
    }

    /// Moves the run on to `quarantine/`, by what was seen after it was moved away, and gives the entry's name there.
    ///
    /// # Errors
    /// As the operating system says: it stays in `trash/`, and the next act puts it back.
    pub fn quarantine(self, project: &ProjectWrite, _proof: Unheld) -> Result<String, StoreError> {
        let quarantine = ensure_dir(project.dir(), place::QUARANTINE)?;
        step("quarantine.move", (&self.trash, &self.name), (&quarantine, &self.name), self.run)?;
        Ok(self.name)
    }

    /// Decides the erasure, by what was seen after the run was moved away. Nothing undoes it.
    ///
    /// # Errors
    /// As the operating system says: nothing was decided.
    pub fn commit(self, _proof: Removable) -> Result<Doomed, StoreError> {
        let name = format!("{}.{ERASING}", self.name);
        let run = step("remove.commit", (&self.trash, &self.name), (&self.trash, &name), self.run)?;
        Ok(Doomed { trash: self.trash, name, run })
    }
}

/// A run whose erasure is decided.
#[derive(Debug)]
pub struct Doomed {
    trash: Dir,
    name: String,
    run: RunRead,
}

/// An erasure that cannot be taken up again now: why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StillHeld(pub String);

impl Doomed {
    /// Takes up an erasure whose maker died. What it had proven is proven; all the same its locks must be free, or
    /// their files gone.
    ///
    /// # Errors
    /// It cannot be opened, or something holds one of its locks.
    pub fn take_up(
        project: &ProjectWrite,
        _lock: &RunLock,
        entry: &Entry,
    ) -> Result<Result<Self, StillHeld>, StoreError> {
        let run = open(project.dir(), place::TRASH, entry)?;
        if let Some(held) = held(&run) {
            return Ok(Err(held));
        }
        Ok(Ok(Self { trash: project.sub(place::TRASH)?, name: entry.name.clone(), run }))
    }

    /// Decides the erasure of a quarantined run.
    ///
    /// # Errors
    /// As the operating system says: it stays in quarantine.
    pub fn from_quarantine(
        project: &ProjectWrite,
        lock: &RunLock,
        entry: &Entry,
        run: RunRead,
        _proof: Unheld,
    ) -> Result<Self, StoreError> {
        let (quarantine, trash) = (project.sub(place::QUARANTINE)?, ensure_dir(project.dir(), place::TRASH)?);
        let name = format!("{}.{}.{ERASING}", lock.id(), random_hex(4));
        let run = step("remove.commit", (&quarantine, &entry.name), (&trash, &name), run)?;
        Ok(Self { trash, name, run })
    }

    /// Erases it. What cannot be erased stays in `trash/`, and the next act tries again.
    ///
    /// # Errors
    /// [`TreeError`]: what could not be erased, and why.
    pub fn erase(self) -> Result<(), TreeError> {
        tree::erase(self.run.dir(), &self.trash)?;
        let path = self.run.dir().path().to_owned();
        let failed = |what, source: io::Error| TreeError::Io { what, path: path.clone(), source };
        // The names in it are gone durably before the name that says so is.
        self.run.dir().sync().map_err(|e| failed("sync", e))?;
        let rmdir = || fault::room().and_then(|()| self.trash.at().rmdir(OsStr::new(&self.name)));
        fault::around("remove.rmdir", rmdir).map_err(|e| failed("remove", e))?;
        self.trash.sync().map_err(|e| failed("sync the directory of", e))
    }
}

/// Puts an entry of `trash/` back whose erasure was not decided.
///
/// # Errors
/// As the operating system says; a run of that id that is there already among them.
pub fn put_back(project: &ProjectWrite, lock: &RunLock, entry: &Entry) -> Result<(), StoreError> {
    let (runs, trash) = (project.sub(place::RUNS)?, project.sub(place::TRASH)?);
    let run = open(project.dir(), place::TRASH, entry)?;
    step("remove.put-back", (&trash, &entry.name), (&runs, lock.id().as_str()), run).map(|_| ())
}

/// Moves a quarantined run back to `runs/`.
///
/// # Errors
/// As the operating system says; a run of that id that is there already among them.
pub fn restore(project: &ProjectWrite, lock: &RunLock, entry: &Entry) -> Result<(), StoreError> {
    let (runs, quarantine) = (project.sub(place::RUNS)?, project.sub(place::QUARANTINE)?);
    let run = open(project.dir(), place::QUARANTINE, entry)?;
    step("quarantine.restore", (&quarantine, &entry.name), (&runs, lock.id().as_str()), run).map(|_| ())
}

/// One rename, made durable. The directory that moved must be the one that is open.
fn step(point: &str, from: (&Dir, &str), to: (&Dir, &str), run: RunRead) -> Result<RunRead, StoreError> {
    let path = from.0.path().join(from.1);
    let failed = |what| {
        let path = path.clone();
        move |e: io::Error| io_error(what, &path, e)
    };
    let opened = run.dir().identity().map_err(failed("look at"))?;
    let named = from.0.sub(from.1).and_then(|d| d.identity()).map_err(failed("look at"))?;
    if opened != named {
        return Err(io_error("move", &path, io::Error::other("it is another directory by now")));
    }
    fault::around(point, || rename(from.0, from.1, to.0, to.1, Taken::Refuse))
        .map_err(|e| cannot_move(&path, e))?;
    for dir in [from.0, to.0] {
        dir.sync().map_err(|e| io_error("sync", dir.path(), e))?;
    }
    Ok(run.moved_to(to.0.path().join(to.1)))
}

/// Where a file system has layers, a directory of a lower one is moved only once it is copied to the upper one.
fn cannot_move(path: &Path, e: io::Error) -> StoreError {
    if e.kind() != io::ErrorKind::CrossesDevices {
        return io_error("move", path, e);
    }
    let shown = path.display();
    let how = format!(
        "{e}: it is in a lower layer of its file system; copy it up, for example with: cp -a {shown} {shown}.up && \
         rm -r {shown} && mv {shown}.up {shown}"
    );
    io_error("move", path, io::Error::new(io::ErrorKind::CrossesDevices, how))
}

/// Whoever holds a lock of a run, by its files alone. A lock whose file is gone holds nothing.
fn held(run: &RunRead) -> Option<StillHeld> {
    let mut locks = vec![(name::ENGINE_LOCK.to_owned(), run.engine_lock())];
    match run.attempt_numbers() {
        Observation::Known(numbers) => {
            for n in numbers {
                let lease = format!("{}/{n}/{}", name::ATTEMPTS, name::LEASE);
                let probe = locks::probe(run.dir(), &lease);
                locks.push((lease, probe));
            }
        }
        Observation::Absent => {}
        Observation::Unknown(why) => return Some(StillHeld(why.to_string())),
    }
    locks.into_iter().find_map(|(lock, seen)| match seen {
        Lease::Free | Lease::NoFile => None,
        Lease::Held => Some(StillHeld(format!("{} is held", run.dir().path().join(lock).display()))),
        Lease::Unknown(why) => Some(StillHeld(why.to_string())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_entries() {
        let of = |name| Entry::parse(name).map(|e| (e.id.to_string(), e.erasing));
        assert_eq!(of("20260101-000000-7f3a.0a1b2c3d"), Some(("20260101-000000-7f3a".to_owned(), false)));
        assert_eq!(of("a.0a1b.erasing"), Some(("a".to_owned(), true)));
        for other in ["", "a", ".a.b", "a.", "a.b.c", "a.b.erasing.c", "../x.y"] {
            assert_eq!(of(other), None, "{other:?}");
        }
    }
}
