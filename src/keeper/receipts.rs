//! Writing receipts, and waking whoever waits for them.

use crate::process;
use crate::run::dir::{Dir, Temp, WriteError};
use crate::run::files::{LaunchFile, RefusedFile, SCHEMA, StartFile, name, now_ms};
use loopmux_mux::Here;
use serde::Serialize;
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// Room for the exit receipt: one block of the disk, far more than it needs.
const ROOM: usize = 4096;

/// The files that this keeper writes into its directory.
#[derive(Debug)]
pub(super) struct Receipts<'d> {
    pub(super) dir: &'d Dir,
    poke: Option<PathBuf>,
    /// Names were given that a power failure could take again.
    unsettled: Cell<bool>,
}

impl<'d> Receipts<'d> {
    pub(super) fn new(dir: &'d Dir, launch: Option<&LaunchFile>) -> Self {
        let poke = launch.and_then(|l| l.poke.as_ref());
        Self { dir, poke: poke.map(|p| PathBuf::from(p.as_os_str())), unsettled: Cell::new(false) }
    }

    /// Takes room on the disk for the one receipt that must not be lost.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn reserve(&self) -> Result<Temp<'d>, WriteError> {
        self.dir.reserve(name::EXIT, ROOM)
    }

    /// Writes a file that must not be there yet, durably, and wakes the waiter.
    ///
    /// # Errors
    /// As [`Dir::write_once`].
    pub(super) fn write_durably<T: Serialize>(&self, name: &str, value: &T) -> Result<(), WriteError> {
        self.dir.write_once(name, value)?;
        self.poke();
        Ok(())
    }

    /// The same, and what else the disk has to do for it is left to [`Receipts::settle`]: whoever waits for the
    /// fact need not wait for the power failure that would make it unknown again.
    ///
    /// # Errors
    /// As [`Dir::write_once`].
    pub(super) fn write<T: Serialize>(&self, name: &str, value: &T) -> Result<(), WriteError> {
        self.dir.write_new(name, value)?;
        self.unsettled.set(true);
        self.poke();
        Ok(())
    }

    /// The same into room that was taken before.
    ///
    /// # Errors
    /// As [`Temp::overwrite_and_name`].
    pub(super) fn write_into<T: Serialize>(
        &self,
        room: &mut Temp<'_>,
        name: &str,
        value: &T,
    ) -> Result<(), WriteError> {
        room.overwrite_and_name(name, value)?;
        self.unsettled.set(true);
        self.poke();
        Ok(())
    }

    /// Makes every receipt durable that is not yet. Called before each sleep and at the end.
    pub(super) fn settle(&self) {
        // Where it fails now it is tried again before the next sleep.
        if self.unsettled.get() && self.dir.sync().is_ok() {
            self.unsettled.set(false);
        }
    }

    /// Writes down that this keeper does not start and never will, and removes the environment, which nobody will
    /// read any more.
    pub(super) fn refuse(&self, why: &str, room: Option<Temp<'_>>) {
        let file = RefusedFile { schema: SCHEMA, why: why.to_owned(), at_ms: now_ms() };
        // Without room for a refusal the launch is given up by whoever waits for it, and reads the same.
        let _ = match room {
            Some(mut room) => self.write_into(&mut room, name::REFUSED, &file),
            None => self.write(name::REFUSED, &file),
        };
        let _ = self.dir.remove_file(name::ENV);
        self.settle();
    }

    /// Wakes the waiter.
    pub(super) fn poke(&self) {
        if let Some(path) = &self.poke {
            crate::wake::poke(Path::new(path));
        }
    }
}

/// What the start receipt says.
pub(super) fn start_receipt(launch: &LaunchFile, here: Option<&Here>) -> StartFile {
    // A server whose process cannot be looked at stays unnamed: a number alone names nobody.
    let server = here.and_then(|here| here.server_pid).and_then(|pid| process::identify(pid).ok().flatten());
    StartFile {
        schema: SCHEMA,
        token: launch.tags.token.clone(),
        keeper: process::current(),
        host: process::host().clone(),
        server,
        session: here.and_then(|here| here.session.clone()),
        pane: here.and_then(|here| here.pane.clone()),
        at_ms: now_ms(),
    }
}

/// The directory was removed under us, or moved away and removed.
pub(super) fn is_gone(e: &WriteError) -> bool {
    match e {
        WriteError::DirectoryGone(_) => true,
        WriteError::Io { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
        WriteError::Exists(_) => false,
    }
}
