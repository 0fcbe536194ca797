//! The data directory of psmux: which sessions it names. Never a proof that another is not there, since a live server
//! can be without its files for seconds.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// The sessions that have a `.port` file, standby servers left out. A directory that is not there has none.
///
/// # Errors
/// The directory cannot be read.
pub(crate) fn names(data: &Path) -> io::Result<BTreeSet<String>> {
    let entries = match std::fs::read_dir(data) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(e) => return Err(e),
    };
    let mut names = BTreeSet::new();
    for entry in entries {
        let file = entry?.file_name();
        let path = Path::new(&file);
        if path.extension() != Some(OsStr::new("port")) {
            continue;
        }
        let Some(name) = path.file_stem().and_then(OsStr::to_str) else { continue };
        // A standby is no session. What has `__` in its name belongs to another namespace (`-L`).
        if !name.contains("__") {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

/// The port of the server that has the session of that id, as the data directory has it. It only leads there: whoever
/// answers is asked who it is.
pub(crate) fn port_of(data: &Path, session: &str) -> Option<u16> {
    let number = session.strip_prefix('$')?;
    for entry in std::fs::read_dir(data).ok()?.flatten() {
        let path = entry.path();
        let read = |path: &Path| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        if path.extension() == Some(OsStr::new("sid")) && read(&path).as_deref() == Some(number) {
            return read(&path.with_extension("port"))?.parse().ok();
        }
    }
    None
}

/// Whether psmux takes two names for one: its files are on a file system that ignores case.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_found_by_the_sessions_id() {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in
            [("a.sid", "1"), ("a.port", "5001"), ("b.sid", "12\n"), ("b.port", "5002\n"), ("c.sid", "3")]
        {
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        assert_eq!(port_of(dir.path(), "$12"), Some(5002));
        assert_eq!(port_of(dir.path(), "$1"), Some(5001));
        for session in ["$2", "$3", "12", "$"] {
            assert_eq!(port_of(dir.path(), session), None, "{session}");
        }
    }

    #[test]
    fn standbys_and_other_namespaces_are_not_sessions() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["a.port", "a.key", "b.key", "__warm__.port", "ns__a.port", "ns____warm__.port", "c.sid"]
        {
            std::fs::write(dir.path().join(file), "1").unwrap();
        }
        assert_eq!(names(dir.path()).unwrap(), BTreeSet::from(["a".to_owned()]));
        assert_eq!(names(&dir.path().join("gone")).unwrap(), BTreeSet::new());
        assert!(names(&dir.path().join("a.port")).is_err());
    }
}
