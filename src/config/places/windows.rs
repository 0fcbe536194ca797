//! Windows: the directories of the user's profile.

use super::{Env, PathBuf, Setting, Source, absolute};
use std::fs::File;
use std::io;
use std::path::{Component, Path, Prefix};

pub(super) fn state_dir(env: &Env) -> Option<Setting<PathBuf>> {
    let base = absolute(env, "LOCALAPPDATA")?;
    Some(Setting { value: base.join(r"loopmux\state"), source: Source::Default })
}

pub(super) fn user_config_file(env: &Env) -> Option<PathBuf> {
    Some(absolute(env, "APPDATA")?.join(r"loopmux\config.toml"))
}

/// A file has the rights of its directory here.
pub(crate) fn share(_file: &File) -> io::Result<()> {
    Ok(())
}

/// The longest path that every program takes, in characters.
const LONGEST: usize = 240;

/// A path without the prefix that turns interpretation off: many programs do not take one as their directory. What
/// needs the prefix keeps it.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut parts = path.components();
    let Some(Component::Prefix(prefix)) = parts.next() else { return path.to_owned() };
    let Prefix::VerbatimDisk(disk) = prefix.kind() else { return path.to_owned() };
    let mut plain = PathBuf::from(format!("{}:\\", char::from(disk)));
    plain.push(parts.as_path().strip_prefix(r"\").unwrap_or(parts.as_path()));
    // A reserved name, or a dot at an end, would mean something else without the prefix.
    let same = plain.canonicalize().is_ok_and(|there| there == path);
    if same && plain.as_os_str().len() <= LONGEST { plain } else { path.to_owned() }
}
