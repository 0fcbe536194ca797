//! The programs that a launch needs beside the multiplexer: our own.

use crate::run::files::KEEPER_PROTOCOL;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The keeper program, found once by each engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperProgram {
    path: PathBuf,
}

/// A keeper program that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeeperTrouble {
    /// It is not there.
    #[error("the keeper program {} cannot be executed: {source}; reinstall loopmux, then resume", .path.display())]
    Missing {
        /// Where it was.
        path: PathBuf,
        /// What came back.
        source: std::io::Error,
    },
    /// It speaks another protocol: the program was replaced.
    #[error("{} speaks keeper protocol {found:?}, and this engine speaks {KEEPER_PROTOCOL}: loopmux was replaced by another version while this run was going on; resume it with the new one", .path.display())]
    Protocol {
        /// Where it is.
        path: PathBuf,
        /// What it said.
        found: String,
    },
}

impl KeeperProgram {
    /// The keeper beside the program that runs now; where there is none, that program itself.
    ///
    /// # Errors
    /// The path of this program cannot be told.
    pub fn find() -> std::io::Result<Self> {
        let me = std::env::current_exe()?;
        let beside = me.with_file_name(format!("loopmux-keep{}", std::env::consts::EXE_SUFFIX));
        Ok(Self { path: if beside.is_file() { beside } else { me } })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Asks the program for its protocol: it may have been replaced since the engine began.
    ///
    /// # Errors
    /// It is gone, or speaks another protocol.
    pub fn check(&self) -> Result<(), KeeperTrouble> {
        let output = Command::new(&self.path)
            .arg("--protocol")
            .env_clear()
            .stdin(std::process::Stdio::null())
            .output()
            .map_err(|source| KeeperTrouble::Missing { path: self.path.clone(), source })?;
        let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() && found == KEEPER_PROTOCOL.to_string() {
            Ok(())
        } else {
            Err(KeeperTrouble::Protocol { path: self.path.clone(), found: found.chars().take(40).collect() })
        }
    }

    /// The command of a window.
    pub fn keep(&self, dir: &Path) -> Vec<OsString> {
        vec![self.path.clone().into(), "keep".into(), dir.into()]
    }
}
