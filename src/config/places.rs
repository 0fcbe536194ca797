//! Where the state, the configuration and the project are.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub(super) use system::share;

use super::env::bad;
use super::settings::{Setting, Source};
use super::{ConfigError, Env, PROJECT_FILE};
use std::path::{Path, PathBuf};

/// The state directory: `LOOPMUX_STATE_DIR`, which must be absolute, else `$XDG_STATE_HOME/loopmux`, else
/// `~/.local/state/loopmux`; on Windows `%LOCALAPPDATA%\loopmux\state`. Whether it is there is another question.
///
/// # Errors
/// The variable's path is relative, or there is no home either.
pub fn state_dir(env: &Env) -> Result<Setting<PathBuf>, ConfigError> {
    const NAME: &str = "LOOPMUX_STATE_DIR";
    if let Some(value) = env.get(NAME) {
        let path = Path::new(value);
        if !path.is_absolute() {
            return Err(bad(NAME, value, "it must be an absolute path"));
        }
        return Ok(Setting { value: path.to_owned(), source: Source::Environment(NAME) });
    }
    system::state_dir(env).ok_or(ConfigError::NoHome)
}

/// The user's configuration file: `$XDG_CONFIG_HOME/loopmux/config.toml`, else
/// `~/.config/loopmux/config.toml`, on Windows `%APPDATA%\loopmux\config.toml`, or `None` for a user without a home.
/// Whether it is there is another question.
pub fn user_config_file(env: &Env) -> Option<PathBuf> {
    system::user_config_file(env)
}

/// A base directory. The XDG specification has relative ones ignored.
fn absolute(env: &Env, name: &str) -> Option<PathBuf> {
    env.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The project that a command is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its root: absolute, and without links wherever it exists. It may be gone: runs outlive projects.
    pub root: PathBuf,
    /// What chose it.
    pub source: Source,
}

/// Finds the project: `--project`, else `LOOPMUX_PROJECT`, which must be absolute, else the nearest ancestor
/// of `cwd` with a `loopmux.toml` or a `.git` in it, else `cwd`.
///
/// # Errors
/// The variable's path is relative, or a directory on the way cannot be looked into.
pub fn project(flag: Option<&Path>, env: &Env, cwd: &Path) -> Result<Project, ConfigError> {
    const NAME: &str = "LOOPMUX_PROJECT";
    if let Some(dir) = flag {
        return Ok(Project { root: settled(&cwd.join(dir))?, source: Source::Flag });
    }
    if let Some(value) = env.get(NAME) {
        let dir = Path::new(value);
        if !dir.is_absolute() {
            return Err(bad(NAME, value, "it must be an absolute path"));
        }
        return Ok(Project { root: settled(dir)?, source: Source::Environment(NAME) });
    }
    let cwd = settled(cwd)?;
    match nearest_marked(cwd.ancestors())? {
        Some(found) => Ok(found),
        None => Ok(Project { root: cwd, source: Source::Default }),
    }
}

fn nearest_marked<'a>(dirs: impl Iterator<Item = &'a Path>) -> Result<Option<Project>, ConfigError> {
    for dir in dirs {
        for marker in [PROJECT_FILE, ".git"] {
            let path = dir.join(marker);
            match path.symlink_metadata() {
                Ok(_) => {
                    let source = Source::File { path, line: None };
                    return Ok(Some(Project { root: dir.to_owned(), source }));
                }
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => return Err(ConfigError::Project { path, source }),
            }
        }
    }
    Ok(None)
}

/// The path without links, in the way in which programs take one.
///
/// # Errors
/// As the operating system says; nothing is there, among it.
pub fn canonical(path: &Path) -> std::io::Result<PathBuf> {
    path.canonicalize().map(|path| system::plain(&path))
}

/// The path without links, or, where nothing is there any more, made plain by its text alone.
fn settled(path: &Path) -> Result<PathBuf, ConfigError> {
    match canonical(path) {
        Ok(path) => Ok(path),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let mut plain = PathBuf::new();
            for part in path.components() {
                match part {
                    std::path::Component::CurDir => {}
                    std::path::Component::ParentDir => {
                        plain.pop();
                    }
                    part => plain.push(part),
                }
            }
            Ok(plain)
        }
        Err(source) => Err(ConfigError::Project { path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().copied().collect()
    }

    #[cfg(unix)]
    #[test]
    fn the_state_directory_follows_its_order() {
        let all = [("LOOPMUX_STATE_DIR", "/s"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")];
        let at = |env: &Env| state_dir(env).unwrap().value;
        assert_eq!(at(&env(&all)), Path::new("/s"));
        assert_eq!(at(&env(&all[1..])), Path::new("/x/loopmux"));
        assert_eq!(at(&env(&all[2..])), Path::new("/h/.local/state/loopmux"));
        assert_eq!(
            at(&env(&[("XDG_STATE_HOME", "rel"), ("HOME", "/h")])),
            Path::new("/h/.local/state/loopmux")
        );
        assert!(matches!(state_dir(&env(&[])), Err(ConfigError::NoHome)));
        assert!(matches!(state_dir(&env(&[("HOME", "rel")])), Err(ConfigError::NoHome)));
    }

    #[test]
    fn a_relative_state_directory_is_refused_and_not_passed_over() {
        let error = state_dir(&env(&[("LOOPMUX_STATE_DIR", "s"), ("HOME", "/h")])).unwrap_err().to_string();
        assert_eq!(error, "environment variable LOOPMUX_STATE_DIR=\"s\": it must be an absolute path");
    }

    #[cfg(unix)]
    #[test]
    fn the_user_file_follows_its_order() {
        let at = |pairs: &[(&str, &str)]| user_config_file(&env(pairs));
        assert_eq!(at(&[("XDG_CONFIG_HOME", "/c"), ("HOME", "/h")]), Some("/c/loopmux/config.toml".into()));
        assert_eq!(at(&[("HOME", "/h")]), Some("/h/.config/loopmux/config.toml".into()));
        assert_eq!(at(&[]), None);
    }

    #[cfg(unix)]
    #[test]
    fn the_project_is_the_nearest_marked_ancestor() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let deep = top.join("repo/sub/deep");
        fs::create_dir_all(&deep).unwrap();
        // A linked worktree has a file of that name, not a directory.
        fs::write(top.join("repo/.git"), "gitdir: elsewhere\n").unwrap();
        let found = project(None, &env(&[]), &deep).unwrap();
        assert_eq!(found.root, top.join("repo"));
        fs::write(top.join("repo/sub").join(PROJECT_FILE), "").unwrap();
        let found = project(None, &env(&[]), &deep).unwrap();
        assert_eq!(found.root, top.join("repo/sub"));
        assert!(matches!(found.source, Source::File { .. }));
    }

    #[test]
    fn a_directory_without_a_marker_is_no_root() {
        let dir = tempfile::tempdir().unwrap();
        // Only this one directory: what lies above a temporary directory is not ours to know.
        assert_eq!(nearest_marked([dir.path()].into_iter()).unwrap(), None);
        fs::create_dir(dir.path().join(".git")).unwrap();
        assert_eq!(nearest_marked([dir.path()].into_iter()).unwrap().unwrap().root, dir.path());
    }

    #[cfg(unix)]
    #[test]
    fn the_flag_ranks_before_the_environment_and_needs_no_directory() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let variable = env(&[("LOOPMUX_PROJECT", "/from/env")]);
        let found = project(Some(Path::new("gone/../away")), &variable, &top).unwrap();
        assert_eq!(found, Project { root: top.join("away"), source: Source::Flag });
        let found = project(None, &variable, &top).unwrap();
        assert_eq!(found.root, Path::new("/from/env"));
        let error = project(None, &env(&[("LOOPMUX_PROJECT", "rel")]), &top).unwrap_err().to_string();
        assert!(error.contains("LOOPMUX_PROJECT") && error.contains("absolute"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_linked_path_is_the_project_that_it_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs::create_dir(top.join("real")).unwrap();
        std::os::unix::fs::symlink(top.join("real"), top.join("link")).unwrap();
        let found = project(Some(Path::new("link")), &env(&[]), &top).unwrap();
        assert_eq!(found.root, top.join("real"));
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_cannot_be_looked_into_is_an_error_and_not_a_project() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(top.join("loop"), top.join("loop")).unwrap();
        let error = project(Some(Path::new("loop")), &env(&[]), &top).unwrap_err();
        assert!(matches!(error, ConfigError::Project { .. }), "{error}");
    }
}
