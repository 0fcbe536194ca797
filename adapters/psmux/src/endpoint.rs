//! Which data directory is asked.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// A data directory that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// A name or a relative path: psmux would make the directory wherever a client of it happens to run.
    #[error("the psmux data directory {0:?} must be an absolute path")]
    Relative(PathBuf),
}

/// Takes a data directory as a person or a record names it.
///
/// # Errors
/// It is no absolute path.
pub(crate) fn data_dir(path: &Path) -> Result<PathBuf, EndpointError> {
    if path.is_absolute() { Ok(path.to_owned()) } else { Err(EndpointError::Relative(path.to_owned())) }
}

/// Makes the directory, for this user alone where the system has modes.
///
/// # Errors
/// As the operating system says.
pub(crate) fn prepare(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// What a person puts in front of their own `psmux`, so that it shows the same sessions, for each shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForShells {
    /// For PowerShell.
    pub powershell: String,
    /// For cmd.
    pub cmd: String,
    /// For bash.
    pub bash: String,
}

/// The variable that names the data directory to psmux.
pub const DATA_DIR: &str = "PSMUX_DATA_DIR";

/// Words to paste for a data directory, for each shell.
pub fn for_shells(path: &Path) -> ForShells {
    let text = path.as_os_str().to_string_lossy();
    ForShells {
        powershell: format!("$env:{DATA_DIR} = '{}'", text.replace('\'', "''")),
        // cmd reads the quotes as the bounds of the assignment, and a percent sign doubled.
        cmd: format!("set \"{DATA_DIR}={}\"", text.replace('%', "%%")),
        bash: format!("export {DATA_DIR}='{}'", text.replace('\'', r"'\''")),
    }
}

/// Where the environment itself names a data directory.
pub fn from_environment(value: Option<&OsStr>) -> Option<PathBuf> {
    value.filter(|v| !v.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_directory_is_refused() {
        assert!(matches!(data_dir(Path::new("a/b")), Err(EndpointError::Relative(_))));
        let here = std::env::current_dir().unwrap();
        assert_eq!(data_dir(&here), Ok(here));
    }

    #[test]
    fn each_shell_has_its_own_quotes() {
        let words = for_shells(Path::new(r"C:\Users\O'Neil\100%\state"));
        assert_eq!(words.powershell, r"$env:PSMUX_DATA_DIR = 'C:\Users\O''Neil\100%\state'");
        assert_eq!(words.cmd, r#"set "PSMUX_DATA_DIR=C:\Users\O'Neil\100%%\state""#);
        assert_eq!(words.bash, r"export PSMUX_DATA_DIR='C:\Users\O'\''Neil\100%\state'");
    }

    #[test]
    fn the_directory_is_made_with_its_parents() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        prepare(&path).unwrap();
        prepare(&path).unwrap();
        assert!(path.is_dir());
    }
}
