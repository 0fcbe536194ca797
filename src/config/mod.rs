//! What a person configured, and where the program's places are.
//!
//! Every value has one precedence: flag, environment, the project's `loopmux.toml`, the user's `config.toml`,
//! default. A value keeps where it came from ([`Setting::source`]), so that a report can say why it holds.
//! The environment is always passed in ([`Env`]), never read behind the caller's back.

mod duration;
mod edit;
mod env;
mod file;
mod places;
mod settings;
mod values;

pub use duration::{BadDuration, format_duration, parse_duration};
pub use edit::set_backend;
pub use env::Env;
pub use file::{KEYS, LineError};
pub use places::{Project, canonical, project, state_dir, user_config_file};
pub use settings::{Flags, Setting, Settings, Source};
pub use values::{BackendChoice, BadValue, Program, Size, Socket};

use std::io;
use std::path::PathBuf;

/// The project's configuration file, in the project's root.
pub const PROJECT_FILE: &str = "loopmux.toml";

/// A configuration that cannot be used. Nothing was done when one of these comes back.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A configuration file is there and cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A configuration file cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Unwritable {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A place in a configuration file is wrong.
    #[error("{}:{}: {}", .path.display(), .at.line, .at.what)]
    File {
        /// Which file.
        path: PathBuf,
        /// Where in it, and what is wrong.
        at: LineError,
    },
    /// A variable of the environment has a value that cannot be used.
    #[error("environment variable {name}={value:?}: {why}")]
    Environment {
        /// The variable.
        name: &'static str,
        /// Its value, as far as it is text.
        value: String,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// There is no place for the state.
    #[error(
        "cannot tell where to keep the state: HOME is not set; set LOOPMUX_STATE_DIR to an absolute path"
    )]
    NoHome,
    /// The project's root could not be looked for.
    #[error("cannot look for the project from {}: {source}; say which with --project DIR", .path.display())]
    Project {
        /// From where, or at what.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}
