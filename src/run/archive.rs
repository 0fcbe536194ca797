//! One run in one file: `archive/<id>.tar.gz`.
//!
//! ```text
//! archive/.<id>.<nonce>.tmp      an archive that is being written
//! archive/.<id>.<nonce>.restore  a run that is being unpacked
//! archive/<id>.tar.gz            an archive that was read back and compared with its run
//! ```
//!
//! Names in it are relative and begin with the run's id. Directories and files have their modes and times, symbolic
//! links are stored and never followed, and what an environment or an option brought in is left out: secrets are in
//! neither.

mod content;
mod pack;

pub use content::{Content, Item};

use super::dir::{Dir, random_hex, rename};
use super::id::RunId;
use super::store::{RunRead, place};
use super::tree::{self, Entry, TreeError};
use super::write::{ProjectWrite, RunLock, StoreError, ensure_dir, io_error};
use crate::at::{self, Open, Taken};
use crate::fault;
use crate::verdict::Observation;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;

/// What an archive's name ends with.
const END: &str = ".tar.gz";

/// A run that was not archived, or an archive that was not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The state directory could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tree could not be walked.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Reading or writing the archive itself.
    #[error("cannot {what} the archive {}: {source}", .path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The archive.
        path: PathBuf,
        /// What came back.
        source: io::Error,
    },
    /// A pipe, a socket or a device.
    #[error("{} is a pipe, a socket or a device, which an archive does not hold", .0.display())]
    Special(PathBuf),
    /// Something in an archive that is none of ours.
    #[error("the archive {} holds {what}", .path.display())]
    Foreign {
        /// The archive.
        path: PathBuf,
        /// What it holds.
        what: String,
    },
    /// Archive and run differ.
    #[error("{} differs from the archive {}", .what, .path.display())]
    Differs {
        /// The first thing that differs.
        what: String,
        /// The archive.
        path: PathBuf,
    },
}

/// An archive that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The run.
    pub id: RunId,
    /// The file.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The archives of a project, oldest id first.
pub fn list(project: &Dir) -> Observation<Vec<Archive>> {
    let path = project.path().join(place::ARCHIVE);
    let (dir, names) = match project.sub(place::ARCHIVE).and_then(|d| Ok((d.names()?, d))) {
        Ok((names, dir)) => (dir, names),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Observation::Absent,
        Err(e) => return Observation::unknown(format!("cannot list {}: {e}", path.display())),
    };
    let mut all = Vec::new();
    for name in names.iter().filter_map(|n| n.to_str()) {
        let Some(id) = name.strip_suffix(END).and_then(|id| RunId::parse(id).ok()) else { continue };
        match dir.at().look(OsStr::new(name)) {
            Ok(stat) => all.push(Archive { id, path: path.join(name), bytes: stat.len }),
            // Removed meanwhile, by a restore.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => {
                return Observation::unknown(format!("cannot look at {}: {e}", path.join(name).display()));
            }
        }
    }
    all.sort_by(|a, b| a.id.cmp(&b.id));
    Observation::Known(all)
}

/// Opens the archive of a run; `None` if there is none.
///
/// # Errors
/// It is there and is no regular file of this user, or cannot be opened.
pub fn open(project: &Dir, id: &RunId) -> Result<Option<Opened>, ArchiveError> {
    let path = project.path().join(place::ARCHIVE).join(format!("{id}{END}"));
    let dir = match project.sub(place::ARCHIVE) {
        Ok(dir) => dir,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io_error("open", &path, e).into()),
    };
    let file = match dir.open_lock(&format!("{id}{END}")) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io_error("open", &path, e).into()),
    };
    let (kind, owner, _) = at::kind_and_owner(&file).map_err(|e| io_error("look at", &path, e))?;
    if kind != at::Kind::File || owner != at::me() {
        let what = "something else than a regular file of this user".to_owned();
        return Err(ArchiveError::Foreign { path, what });
    }
    Ok(Some(Opened { dir, file, path, id: id.clone() }))
}

/// An open archive.
#[derive(Debug)]
pub struct Opened {
    dir: Dir,
    file: File,
    path: PathBuf,
    id: RunId,
}

impl Opened {
    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// What is in it, by reading all of it.
    ///
    /// # Errors
    /// It is damaged, or holds what is none of ours.
    pub fn content(&mut self) -> Result<Content, ArchiveError> {
        pack::read(&mut self.file, &self.path, &self.id)
    }

    /// Its length and the SHA-256 of all its bytes, in hex digits.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn digest(&mut self) -> Result<(u64, String), ArchiveError> {
        let failed = |source| ArchiveError::File { what: "read", path: self.path.clone(), source };
        self.file.rewind().map_err(failed)?;
        content::digest(&mut self.file).map_err(failed)
    }

    /// Whether a run is what this archive holds.
    ///
    /// # Errors
    /// [`ArchiveError::Differs`] with the first difference.
    pub fn compare(&mut self, run: &RunRead, parent: &Dir) -> Result<(), ArchiveError> {
        let tree = Content::of_tree(run.dir(), parent)?;
        match self.content()?.difference(&tree) {
            None => Ok(()),
            Some(what) => Err(ArchiveError::Differs { what, path: self.path.clone() }),
        }
    }

    /// Unpacks it into a directory of its own, compares that with it, and moves it to `runs/`. The archive stays.
    ///
    /// # Errors
    /// As the operating system says, a run of that id that is there already among it; nothing is left behind but what a
    /// sweep removes.
    pub fn unpack(&mut self, project: &ProjectWrite, lock: &RunLock) -> Result<(), ArchiveError> {
        let runs = project.sub(place::RUNS)?;
        let name = format!(".{}.{}.restore", lock.id(), random_hex(4));
        let staged = fault::around("restore.stage", || self.dir.make(&name))
            .map_err(|e| io_error("make", &self.dir.path().join(&name), e))?;
        pack::unpack(&mut self.file, &self.path, &self.id, &staged)?;
        let unpacked = Content::of_tree(&staged, &self.dir)?;
        if let Some(what) = self.content()?.difference(&unpacked) {
            return Err(ArchiveError::Differs { what, path: self.path.clone() });
        }
        fault::around("restore.publish", || {
            rename(&self.dir, &name, &runs, lock.id().as_str(), Taken::Refuse)
        })
        .map_err(|e| io_error("name", &runs.path().join(lock.id().as_str()), e))?;
        sync(&[&runs, &self.dir])
    }

    /// Removes it: its run is there again, and was compared with it.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn remove(self, point: &str) -> Result<(), ArchiveError> {
        let name = format!("{}{END}", self.id);
        let unlink = || fault::room().and_then(|()| self.dir.at().unlink(OsStr::new(&name)));
        fault::around(point, unlink).map_err(|e| io_error("remove", &self.path, e))?;
        sync(&[&self.dir])
    }
}

/// Writes a run into a temporary archive, reads it back, compares it with the run, and gives it its name. One that is
/// there already is never touched.
///
/// # Errors
/// Nothing has the archive's name that was not compared; an existing archive is among the errors.
pub fn write(
    project: &ProjectWrite,
    lock: &RunLock,
    run: &RunRead,
    entries: &[Entry],
) -> Result<Opened, ArchiveError> {
    let (runs, dir) = (project.sub(place::RUNS)?, ensure_dir(project.dir(), place::ARCHIVE)?);
    sweep(project, Some(lock), &dir);
    let temp = Temp { name: format!(".{}.{}.tmp", lock.id(), random_hex(8)), dir: &dir };
    let path = dir.path().join(&temp.name);
    let failed = |what| {
        let path = path.clone();
        move |source: io::Error| ArchiveError::File { what, path, source }
    };
    let stage = || fault::room().and_then(|()| dir.at().file(OsStr::new(&temp.name), Open::NewReadWrite));
    let mut file: File = fault::around("archive.stage", stage).map_err(failed("create"))?;
    pack::write(&file, &path, run, &runs, entries)?;
    file.sync_all().map_err(failed("sync"))?;
    let written = pack::read(&mut file, &path, lock.id())?;
    if let Some(what) = written.difference(&Content::of_tree(run.dir(), &runs)?) {
        return Err(ArchiveError::Differs { what, path });
    }
    let name = format!("{}{END}", lock.id());
    fault::around("archive.publish", || rename(&dir, &temp.name, &dir, &name, Taken::Refuse))
        .map_err(|e| io_error("name", &dir.path().join(&name), e))?;
    sync(&[&dir])?;
    let path = dir.path().join(&name);
    let id = lock.id().clone();
    drop(temp);
    Ok(Opened { dir, file, path, id })
}

/// A temporary archive, which goes where it did not get its name.
struct Temp<'d> {
    name: String,
    dir: &'d Dir,
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        // Best effort: what stays behind is swept by the next one. One that has its name is not there under this one.
        let _ = self.dir.at().unlink(OsStr::new(&self.name));
    }
}

/// Removes what archives and restores that were interrupted have left. Each is its run's lock holder's; `lock` is the one
/// that the caller has.
pub fn sweep(project: &ProjectWrite, lock: Option<&RunLock>, dir: &Dir) {
    let names = match dir.names() {
        Ok(names) => names,
        Err(e) => {
            tracing::debug!("cannot look for temporary archives: {e}");
            return;
        }
    };
    for name in names.iter().filter_map(|n| n.to_str()) {
        let Some(id) = of_temp(name) else { continue };
        let other;
        if lock.is_none_or(|lock| id != *lock.id()) {
            other = project.try_lock_run(&id);
            if !matches!(&other, Ok(Some(_))) {
                continue;
            }
        }
        let removed = fault::around("archive.sweep", || {
            fault::room()?;
            if name.ends_with(".restore") {
                let inside = dir.sub(name).map(|staged| tree::erase(&staged, dir));
                if let Ok(Err(e)) = inside {
                    tracing::debug!("{e}");
                }
                dir.at().rmdir(OsStr::new(name))
            } else {
                dir.at().unlink(OsStr::new(name))
            }
        });
        if let Err(e) = removed {
            tracing::debug!("{} stays: {e}", dir.path().join(name).display());
        }
    }
}

fn of_temp(name: &str) -> Option<RunId> {
    let mut parts = name.strip_prefix('.')?.split('.');
    let (id, nonce, end) = (parts.next()?, parts.next()?, parts.next()?);
    let whole = !nonce.is_empty() && matches!(end, "tmp" | "restore") && parts.next().is_none();
    whole.then(|| RunId::parse(id).ok()).flatten()
}

fn sync(dirs: &[&Dir]) -> Result<(), ArchiveError> {
    for dir in dirs {
        dir.sync().map_err(|e| io_error("sync", dir.path(), e))?;
    }
    Ok(())
}

/// Reads to the end, so that a damaged end is an error.
fn drain(mut reader: impl Read) -> io::Result<u64> {
    io::copy(&mut reader, &mut io::sink())
}
