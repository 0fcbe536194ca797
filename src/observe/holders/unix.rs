//! Unix: whoever has a descriptor that the lock belongs to.

use crate::process::{self, Scan};
use crate::run::files::name;
use crate::run::store::AttemptRead;
use std::os::unix::fs::MetadataExt;

pub(super) fn holders(read: &AttemptRead) -> Result<Scan, String> {
    match read.dir().open_lock(name::LEASE).and_then(|f| f.metadata()) {
        Ok(found) => Ok(process::holders(found.dev(), found.ino())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Scan::default()),
        Err(e) => Err(format!("cannot look at its lease: {e}")),
    }
}
