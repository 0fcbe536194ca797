//! Unix: a program takes the place of this one.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Executes a command in the place of this process. It comes back only with the reason why it could not.
pub(super) fn replace_this_process(command: &mut Command) -> io::Error {
    command.exec()
}
