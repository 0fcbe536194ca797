//! Which file systems cannot carry a lease.

use super::dir::Dir;

/// The kind of a file system whose locks do not reach every process that can see its files, by its type; `None`
/// for all others, and where the type cannot be read: the lock test then decides alone.
pub fn network_kind(dir: &Dir) -> Option<&'static str> {
    crate::at::network_kind(dir.at())
}
