//! Unix: the base directories of the XDG specification.

use super::{Env, PathBuf, Setting, Source, absolute};
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

pub(super) fn state_dir(env: &Env) -> Option<Setting<PathBuf>> {
    if let Some(base) = absolute(env, "XDG_STATE_HOME") {
        let source = Source::Environment("XDG_STATE_HOME");
        return Some(Setting { value: base.join("loopmux"), source });
    }
    let home = absolute(env, "HOME")?;
    Some(Setting { value: home.join(".local/state/loopmux"), source: Source::Default })
}

pub(super) fn user_config_file(env: &Env) -> Option<PathBuf> {
    let base = absolute(env, "XDG_CONFIG_HOME").or_else(|| Some(absolute(env, "HOME")?.join(".config")));
    Some(base?.join("loopmux/config.toml"))
}

/// Gives a file the permissions of an ordinary one.
pub(crate) fn share(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o644))
}

/// The same path: there is one way to write it.
pub(super) fn plain(path: &Path) -> PathBuf {
    path.to_owned()
}
