//! Who holds the lease of an attempt.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

use crate::process::{Refused, Scan};
use crate::run::store::AttemptRead;

/// Whoever holds the lease of an attempt. Without a lease's file nobody does.
pub fn holders(read: &AttemptRead) -> Scan {
    system::holders(read)
        .unwrap_or_else(|why| Scan { found: Vec::new(), refused: vec![Refused { process: None, why }] })
}
