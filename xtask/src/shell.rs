//! Executing other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    // The directory of this package is its child.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// The cargo that runs this task, in the workspace's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // Set for this task by the outer cargo, and wrong for the inner one.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PKG_NAME"] {
        command.env_remove(name);
    }
    command
}

/// Whether a program can be executed with these arguments and says yes.
pub(crate) fn works(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> bool {
    let quiet = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    matches!(quiet, Ok(status) if status.success())
}

/// What a program prints, trimmed, or `None` where it cannot be executed or says no.
pub(crate) fn says(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A command as a person would type it.
pub(crate) fn typed<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let words = words.into_iter().map(|word| {
        let word = word.as_ref();
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./=:@,+%".contains(&b);
        if !word.is_empty() && word.bytes().all(plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::typed;

    #[test]
    fn commands_are_quoted_where_a_shell_needs_it() {
        assert_eq!(typed(["sh", "-c", "echo hi; exit 3"]), "sh -c 'echo hi; exit 3'");
        assert_eq!(typed(["a'b", ""]), r"'a'\''b' ''");
    }
}
