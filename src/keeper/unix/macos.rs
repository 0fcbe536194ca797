//! What macOS has for a keeper, or has not. Type-checked; it has not been run.

use crate::run::dir::Dir;
use rustix::process::Pid;
use std::io;
use std::path::PathBuf;

/// Nothing adopts orphans here: a descendant that lost its parent is seen by the lease alone.
pub(super) fn adopt_descendants() -> Result<(), String> {
    Ok(())
}

/// There is no such signal here: a program that the kernel's HUP does not reach outlives its killed keeper.
pub(super) fn die_with(_keeper: Pid) -> io::Result<()> {
    Ok(())
}

/// The program and the directory by their paths: nothing else leads to them here.
pub(super) fn without_paths(dir: &Dir) -> (PathBuf, PathBuf) {
    (super::super::own_path(), dir.path().to_owned())
}

/// The allocator here gives back by itself.
pub(super) fn give_back_memory() {}
