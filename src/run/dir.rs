//! An open directory, and the files in it.
//!
//! Everything goes through the open handle, never through a path again: a directory that was renamed stays the
//! same one, and in one that was removed nothing can be made.

use super::files::{SCHEMA, Schema};
use crate::at::{self, Kind, Open, Taken};
use crate::fault;
use crate::verdict::Observation;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The largest file that is read whole, in bytes: records and receipts are far below it.
pub const READ_LIMIT: u64 = 16 << 20;

/// A write that did not happen.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A write-once file is there already; it was not touched.
    #[error("{} is there already", .0.display())]
    Exists(PathBuf),
    /// The directory itself was removed.
    #[error("{} was removed", .0.display())]
    DirectoryGone(PathBuf),
    /// The operating system refused.
    #[error("cannot {what} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// What came back.
        source: io::Error,
    },
}

/// An open directory.
#[derive(Debug)]
pub struct Dir {
    at: at::Handle,
    path: PathBuf,
}

impl Dir {
    /// Opens a directory; a symbolic link at its end is refused.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { at: at::open(path)?, path: path.to_owned() })
    }

    /// Opens a directory inside this one.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn sub(&self, name: &str) -> io::Result<Self> {
        Ok(Self { at: self.at.sub(OsStr::new(name))?, path: self.path.join(name) })
    }

    /// Makes a directory inside this one, 0700, and opens it. Fails if it exists.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn make(&self, name: &str) -> io::Result<Self> {
        fault::around_file("make", name, || {
            fault::room()?;
            self.at.make(OsStr::new(name))
        })?;
        self.sub(name)
    }

    /// The handle, for what is done by name without the marks of a fault.
    pub fn at(&self) -> &at::Handle {
        &self.at
    }

    /// The path that it was opened by. It may lead elsewhere by now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path is told anew after a rename.
    pub fn moved_to(&mut self, path: PathBuf) {
        self.at.moved_to(&path);
        self.path = path;
    }

    /// Device and inode.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        self.at.identity()
    }

    /// Whether its path still leads to it. What was missing when it was read may be missing because somebody erases
    /// it; whoever erases moves it away first.
    pub fn in_place(&self) -> Observation<()> {
        match (self.identity(), Self::open(&self.path).and_then(|d| d.identity())) {
            (Ok(here), Ok(there)) if here == there => Observation::Known(()),
            (Ok(_), Ok(_)) => Observation::Absent,
            (Ok(_), Err(e)) if e.kind() == io::ErrorKind::NotFound => Observation::Absent,
            (Err(e), _) | (_, Err(e)) => {
                Observation::unknown(format!("cannot look at {}: {e}", self.path.display()))
            }
        }
    }

    /// Makes names in this directory durable.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn sync(&self) -> io::Result<()> {
        self.at.sync()
    }

    /// The names in it, unsorted.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn names(&self) -> io::Result<Vec<std::ffi::OsString>> {
        self.at.names()
    }

    /// The same of a directory inside this one, which is opened for that alone.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn names_in(&self, name: &str) -> io::Result<Vec<std::ffi::OsString>> {
        self.at.sub(OsStr::new(name))?.into_names()
    }

    /// Whether a name is there, of whatever kind.
    pub fn has(&self, name: &str) -> Observation<()> {
        match self.at.has(OsStr::new(name)) {
            Ok(true) => Observation::Known(()),
            Ok(false) => Observation::Absent,
            Err(e) => Observation::unknown(format!("cannot look at {}: {e}", self.path.join(name).display())),
        }
    }

    /// Reads a whole regular file of this user, up to `limit` bytes.
    pub fn read(&self, name: &str, limit: u64) -> Observation<Vec<u8>> {
        let path = || self.path.join(name).display().to_string();
        let mut file = match self.at.file(OsStr::new(name), Open::Read) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Observation::Absent,
            Err(e) => return Observation::unknown(format!("cannot open {}: {e}", path())),
        };
        let size = match at::kind_and_owner(&file) {
            Ok((Kind::File, owner, _)) if owner != at::me() => {
                return Observation::unknown(format!("{} belongs to user {owner}", path()));
            }
            Ok((Kind::File, _, len)) => len.min(limit),
            Ok(_) => return Observation::unknown(format!("{} is no regular file", path())),
            Err(e) => return Observation::unknown(format!("cannot look at {}: {e}", path())),
        };
        // One byte more than there is: a read that comes back short of it has seen the end.
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0) + 1];
        let filled = loop {
            match file.read(&mut bytes) {
                Ok(n) => break n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Observation::unknown(format!("cannot read {}: {e}", path())),
            }
        };
        if filled < bytes.len() && filled as u64 == size {
            bytes.truncate(filled);
            return Observation::Known(bytes);
        }
        // It grew or shrank meanwhile: the journal grows.
        bytes.truncate(filled);
        match file.take((limit + 1).saturating_sub(filled as u64)).read_to_end(&mut bytes) {
            Ok(_) if bytes.len() as u64 > limit => {
                Observation::unknown(format!("{} is larger than {limit} bytes", path()))
            }
            Ok(_) => Observation::Known(bytes),
            Err(e) => Observation::unknown(format!("cannot read {}: {e}", path())),
        }
    }

    /// Reads a JSON file. Torn, empty, newer or foreign is unknown.
    pub fn read_json<T: DeserializeOwned + Schema>(&self, name: &str) -> Observation<T> {
        #[derive(serde::Deserialize)]
        struct Head {
            schema: u32,
        }
        let bytes = match self.read(name, READ_LIMIT) {
            Observation::Known(bytes) => bytes,
            Observation::Absent => return Observation::Absent,
            Observation::Unknown(why) => return Observation::Unknown(why),
        };
        let path = || self.path.join(name).display().to_string();
        let newer = |schema: u32| {
            Observation::unknown(format!(
                "{} was written by a newer loopmux (schema {schema}, this one reads up to {SCHEMA})",
                path()
            ))
        };
        match serde_json::from_slice::<T>(&bytes) {
            Ok(value) if value.schema() > SCHEMA => newer(value.schema()),
            Ok(value) => Observation::Known(value),
            // What a newer one wrote may have another shape: say that it is newer, not that it is torn.
            Err(e) => match serde_json::from_slice::<Head>(&bytes) {
                Ok(head) if head.schema > SCHEMA => newer(head.schema),
                _ => Observation::unknown(format!("{} cannot be read as JSON: {e}", path())),
            },
        }
    }

    /// Opens an existing file for locking.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn open_lock(&self, name: &str) -> io::Result<File> {
        self.at.file(OsStr::new(name), Open::Read)
    }

    /// Opens a file for locking, and makes it 0600 if it is not there.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn open_or_create_lock(&self, name: &str) -> io::Result<File> {
        self.at.file(OsStr::new(name), Open::ReadWrite)
    }

    /// Makes a file that is locked from the moment in which it has its name. Fails if it exists.
    ///
    /// # Errors
    /// [`WriteError::Exists`], or what the operating system says.
    pub fn create_locked(&self, name: &str) -> Result<File, WriteError> {
        let temp = format!(".{name}.{}.tmp", random_hex(8));
        let file = self.create(&temp)?;
        let mut temp = Temp { dir: self, name: temp, file, done: false };
        at::try_lock(&temp.file).map_err(|e| self.failed("lock", name, e.into()))?;
        let file = temp.file.try_clone().map_err(|e| self.failed("open", name, e))?;
        fault::around_file("create", name, || temp.name_it(name, Taken::Refuse))?;
        Ok(file)
    }

    /// Makes an empty file, 0600, which a power failure may take again. Fails if it exists.
    ///
    /// # Errors
    /// [`WriteError::Exists`], or what the operating system says.
    pub fn create_plain(&self, name: &str) -> Result<File, WriteError> {
        self.create(name)
    }

    /// Device and inode of the directory `levels` above this one, wherever that is by now.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn above(&self, levels: usize) -> io::Result<(u64, u64)> {
        self.at.above(levels)
    }

    /// Makes an empty file, 0600. Fails if it exists.
    ///
    /// # Errors
    /// [`WriteError::Exists`], or what the operating system says.
    pub fn create_empty(&self, name: &str) -> Result<File, WriteError> {
        fault::around_file("create", name, || {
            let file = self.create(name)?;
            self.sync().map_err(|e| self.failed("sync", name, e))?;
            Ok(file)
        })
    }

    /// Makes an empty file, 0600, whose name is durable once [`Dir::sync`] has been called. Fails if it exists.
    ///
    /// # Errors
    /// [`WriteError::Exists`], or what the operating system says.
    pub fn create_new(&self, name: &str) -> Result<File, WriteError> {
        fault::around_file("create", name, || self.create(name))
    }

    /// Opens a file for appending, and makes it 0600 if it is not there.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn append(&self, name: &str) -> Result<File, WriteError> {
        self.at.file(OsStr::new(name), Open::Append).map_err(|e| self.failed("open", name, e))
    }

    /// Writes a file that must not exist yet, durably.
    ///
    /// # Errors
    /// [`WriteError::Exists`] where it does; it is not touched then.
    pub fn write_once<T: Serialize>(&self, name: &str, value: &T) -> Result<(), WriteError> {
        let temp = Temp::write(self, name, &json(value))?;
        temp.commit_new(name)
    }

    /// Writes or replaces a file, durably.
    ///
    /// # Errors
    /// As the operating system says; the old file is there then, whole.
    pub fn replace<T: Serialize>(&self, name: &str, value: &T) -> Result<(), WriteError> {
        let temp = Temp::write(self, name, &json(value))?;
        temp.commit_over(name)
    }

    /// Writes a file that must not exist yet. Its content is durable when it has its name; the name is once
    /// [`Dir::sync`] has been called.
    ///
    /// # Errors
    /// As [`Dir::write_once`].
    pub fn write_new<T: Serialize>(&self, name: &str, value: &T) -> Result<(), WriteError> {
        let mut temp = Temp::write(self, name, &json(value))?;
        temp.name_new(name)
    }

    /// Writes a file that must not exist yet, and that means nothing after a restart of the host: a power failure may
    /// take it, or a part of it.
    ///
    /// # Errors
    /// As [`Dir::write_once`].
    pub fn write_passing<T: Serialize>(&self, name: &str, value: &T) -> Result<(), WriteError> {
        let mut temp = Temp::create(self, name)?;
        temp.file.write_all(&json(value)).map_err(|e| self.failed("write", name, e))?;
        temp.name_new(name)
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// As the operating system says; a missing file is none.
    pub fn remove_file(&self, name: &str) -> Result<(), WriteError> {
        let unlink = || fault::room().and_then(|()| self.at.unlink(OsStr::new(name)));
        match fault::around_file("unlink", name, unlink) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(self.failed("remove", name, e)),
        }
    }

    /// Removes files that were written for one of `names` and never got it: their writer was killed. The caller knows
    /// that nobody writes any more.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn remove_unfinished(&self, names: &[&str]) -> Result<(), WriteError> {
        let all = self.names().map_err(|e| self.failed("list", ".", e))?;
        for entry in all.iter().filter_map(|n| n.to_str()) {
            let unfinished = |name: &&str| {
                let rest = entry.strip_prefix('.').and_then(|rest| rest.strip_prefix(*name));
                rest.is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".tmp"))
            };
            if names.iter().any(unfinished) {
                self.remove_file(entry)?;
            }
        }
        Ok(())
    }

    /// Takes room on the disk for a file that must be writable later, whatever happens to the disk meanwhile.
    ///
    /// # Errors
    /// As the operating system says, a full disk foremost.
    pub fn reserve(&self, name: &str, bytes: usize) -> Result<Temp<'_>, WriteError> {
        let temp = Temp::create(self, name)?;
        match at::take_room(&temp.file, bytes as u64) {
            Ok(true) => Ok(temp),
            // Where the file system promises nothing, only what was written has room.
            Ok(false) => temp.fill(name, &vec![b' '; bytes]),
            Err(e) => Err(self.failed("take room for", name, e)),
        }
    }

    fn create(&self, name: &str) -> Result<File, WriteError> {
        fault::room()
            .and_then(|()| self.at.file(OsStr::new(name), Open::New))
            .map_err(|e| self.failed("create", name, e))
    }

    fn failed(&self, what: &'static str, name: &str, source: io::Error) -> WriteError {
        let path = self.path.join(name);
        match source.kind() {
            io::ErrorKind::AlreadyExists => WriteError::Exists(path),
            io::ErrorKind::NotFound if what == "create" => WriteError::DirectoryGone(self.path.clone()),
            _ => WriteError::Io { what, path, source },
        }
    }
}

fn json<T: Serialize>(value: &T) -> Vec<u8> {
    // Our formats have string keys only and no fallible serializer.
    let mut bytes = serde_json::to_vec(value).expect("our own formats serialize");
    bytes.push(b'\n');
    bytes
}

/// A temporary file in its final directory. Dropped without a commit it is removed.
#[derive(Debug)]
pub struct Temp<'d> {
    dir: &'d Dir,
    name: String,
    file: File,
    done: bool,
}

impl<'d> Temp<'d> {
    fn create(dir: &'d Dir, name: &str) -> Result<Self, WriteError> {
        let temp = format!(".{name}.{}.tmp", random_hex(8));
        let file = dir.create(&temp)?;
        Ok(Self { dir, name: temp, file, done: false })
    }

    fn write(dir: &'d Dir, name: &str, bytes: &[u8]) -> Result<Self, WriteError> {
        Self::create(dir, name)?.fill(name, bytes)
    }

    fn fill(mut self, name: &str, bytes: &[u8]) -> Result<Self, WriteError> {
        self.file.write_all(bytes).map_err(|e| self.dir.failed("write", name, e))?;
        self.file.sync_all().map_err(|e| self.dir.failed("sync", name, e))?;
        Ok(self)
    }

    /// Overwrites a reserved file and gives it its name, which must be new; durable as [`Dir::write_new`]. On an
    /// error the room stays taken, for another try.
    ///
    /// # Errors
    /// As [`Dir::write_once`].
    pub fn overwrite_and_name<T: Serialize>(&mut self, name: &str, value: &T) -> Result<(), WriteError> {
        let bytes = json(value);
        at::write_all_at(&self.file, &bytes, 0).map_err(|e| self.dir.failed("write", name, e))?;
        self.file.set_len(bytes.len() as u64).map_err(|e| self.dir.failed("shorten", name, e))?;
        self.file.sync_all().map_err(|e| self.dir.failed("sync", name, e))?;
        self.name_new(name)
    }

    fn name_new(&mut self, name: &str) -> Result<(), WriteError> {
        fault::around_file("write", name, || self.name_it(name, Taken::Refuse))
    }

    fn commit_new(mut self, name: &str) -> Result<(), WriteError> {
        self.rename(name, Taken::Refuse)
    }

    fn commit_over(mut self, name: &str) -> Result<(), WriteError> {
        self.rename(name, Taken::Replace)
    }

    fn rename(&mut self, name: &str, taken: Taken) -> Result<(), WriteError> {
        let verb = if taken == Taken::Replace { "replace" } else { "write" };
        fault::around_file(verb, name, || {
            self.name_it(name, taken)?;
            self.sync_name(name)
        })
    }

    fn name_it(&mut self, name: &str, taken: Taken) -> Result<(), WriteError> {
        rename(self.dir, &self.name, self.dir, name, taken)
            .map_err(|e| self.dir.failed("rename to", name, e))?;
        self.done = true;
        Ok(())
    }

    fn sync_name(&self, name: &str) -> Result<(), WriteError> {
        self.dir.sync().map_err(|e| self.dir.failed("sync the directory of", name, e))
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if !self.done {
            // Best effort: a temp that stays behind is skipped by every reader.
            let _ = self.dir.at.unlink(OsStr::new(&self.name));
        }
    }
}

/// Gives something in a directory another name, in it or in another one of the same file system.
///
/// # Errors
/// As the operating system says.
pub fn rename(from_dir: &Dir, from: &str, to_dir: &Dir, to: &str, taken: Taken) -> io::Result<()> {
    fault::room()?;
    from_dir.at.rename(OsStr::new(from), &to_dir.at, OsStr::new(to), taken)
}

/// `n` random bytes as hex digits, from the kernel.
pub fn random_hex(n: usize) -> String {
    let mut bytes = vec![0u8; n];
    if let Err(e) = at::random(&mut bytes) {
        panic!("the kernel gives no random bytes: {e}");
    }
    super::text::to_hex(&bytes)
}
