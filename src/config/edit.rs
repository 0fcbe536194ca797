//! Changing the project's configuration file, with everything else in it left as it is.

use super::{BackendChoice, ConfigError, LineError, PROJECT_FILE};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Table, value};

/// Writes `[mux] backend` into the project's `loopmux.toml`, which is made if it is not there. Gives its path.
///
/// # Errors
/// The file has something in it that cannot be used, or cannot be written. It is untouched then.
pub fn set_backend(project_root: &Path, backend: BackendChoice) -> Result<PathBuf, ConfigError> {
    let path = project_root.join(PROJECT_FILE);
    // A link stays a link: what it leads to is written.
    let path = path.canonicalize().unwrap_or(path);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(ConfigError::Unreadable { path, source }),
    };
    super::file::parse(&text).map_err(|at| ConfigError::File { path: path.clone(), at })?;
    let mut document: DocumentMut = text.parse().map_err(|e: toml_edit::TomlError| {
        let at = e.span().map_or(0, |span| span.start);
        let line = text.as_bytes().iter().take(at).filter(|b| **b == b'\n').count() + 1;
        ConfigError::File { path: path.clone(), at: LineError { line, what: e.message().to_owned() } }
    })?;
    set(&mut document, backend);
    write(&path, &document.to_string())
        .map_err(|source| ConfigError::Unwritable { path: path.clone(), source })?;
    Ok(path)
}

fn set(document: &mut DocumentMut, backend: BackendChoice) {
    let mux = document.entry("mux").or_insert_with(|| Item::Table(Table::new()));
    match mux.get_mut("backend").and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = backend.as_str().into();
            *old.decor_mut() = decor;
        }
        None => mux["backend"] = value(backend.as_str()),
    }
    if let Some(one_line) = mux.as_inline_table_mut() {
        // A new key would else stand behind the blank of the last one.
        one_line.fmt();
    }
}

/// A reader sees the old file or the new one. The file keeps its mode.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut temp = tempfile::NamedTempFile::new_in(dir)?;
    match path.metadata() {
        Ok(old) => temp.as_file().set_permissions(old.permissions())?,
        // A configuration in a project is shared with it.
        Err(_) => super::places::share(temp.as_file())?,
    }
    temp.write_all(text.as_bytes())?;
    temp.as_file().sync_all()?;
    temp.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(before: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(PROJECT_FILE), before).unwrap();
        let path = set_backend(dir.path(), BackendChoice::Tmux).unwrap();
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn comments_and_order_stay() {
        assert_eq!(
            after("# ours\n[run]\npark = true # yes\n\n[mux] # here\nsocket = 'w'\nbackend = 'auto' # why\n"),
            "# ours\n[run]\npark = true # yes\n\n[mux] # here\nsocket = 'w'\nbackend = \"tmux\" # why\n"
        );
    }

    #[test]
    fn what_is_not_there_is_made() {
        assert_eq!(after(""), "[mux]\nbackend = \"tmux\"\n");
        assert_eq!(after("[mux]\nsocket = \"w\"\n"), "[mux]\nsocket = \"w\"\nbackend = \"tmux\"\n");
        assert_eq!(after("mux.socket = \"w\"\n"), "mux.socket = \"w\"\nmux.backend = \"tmux\"\n");
        assert_eq!(after("mux = { socket = \"w\" }\n"), "mux = { socket = \"w\", backend = \"tmux\" }\n");
        let dir = tempfile::tempdir().unwrap();
        let path = set_backend(dir.path(), BackendChoice::Auto).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "[mux]\nbackend = \"auto\"\n");
    }

    #[test]
    fn a_file_that_cannot_be_used_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(PROJECT_FILE);
        for bad in ["[mux\n", "\n[mux]\nbakend = 'tmux'\n"] {
            std::fs::write(&path, bad).unwrap();
            let error = set_backend(dir.path(), BackendChoice::Tmux).unwrap_err();
            assert!(matches!(error, ConfigError::File { .. }), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), bad);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_a_mode_stay() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real.toml");
        std::fs::write(&real, "").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, dir.path().join(PROJECT_FILE)).unwrap();
        set_backend(dir.path(), BackendChoice::Tmux).unwrap();
        assert!(dir.path().join(PROJECT_FILE).is_symlink());
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "[mux]\nbackend = \"tmux\"\n");
        assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }
}
