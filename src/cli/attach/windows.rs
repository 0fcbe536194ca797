//! Windows: a program cannot take the place of another one, so this one waits for it and ends as it does.

use std::io;
use std::process::Command;

/// Executes a command, and ends with its exit code. It comes back only with the reason why it could not.
pub(super) fn replace_this_process(command: &mut Command) -> io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(e) => e,
    }
}
