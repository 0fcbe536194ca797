//! Which socket is asked.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The longest socket path that is accepted, in bytes. The system's own limit is 104 or 108, of which tmux needs
/// some for its lock.
pub const LONGEST: usize = 100;

/// A socket as a person names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Endpoint {
    /// The server that a plain `tmux` would ask outside of any window.
    #[default]
    Default,
    /// The server that `tmux -L NAME` asks.
    Name(OsString),
    /// The server that `tmux -S PATH` asks.
    Path(PathBuf),
}

/// A socket that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Neither a name nor an absolute path.
    #[error(
        "the tmux socket {0:?} must be a plain name (as for tmux -L) or an absolute path (as for tmux -S)"
    )]
    Shape(OsString),
    /// Longer than a socket's path can be.
    #[error("the tmux socket {path} is {length} bytes long, at most {LONGEST} fit; choose a shorter one", path = .path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
    },
}

/// A socket's path, and the directory that tmux itself would make for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Socket {
    pub(crate) path: PathBuf,
    /// Only where the path is in tmux's own directory of this user.
    pub(crate) own_dir: Option<PathBuf>,
}

impl Endpoint {
    /// Reads a socket as configuration and environment write it: nothing, a name, or an absolute path.
    ///
    /// # Errors
    /// The text is empty, or is a relative path.
    pub fn parse(text: Option<&OsStr>) -> Result<Self, EndpointError> {
        let Some(text) = text else { return Ok(Self::Default) };
        let bytes = text.as_bytes();
        if bytes.starts_with(b"/") {
            return Ok(Self::Path(PathBuf::from(text)));
        }
        if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') {
            return Err(EndpointError::Shape(text.to_owned()));
        }
        Ok(Self::Name(text.to_owned()))
    }

    /// Finds the path as tmux does: below `TMUX_TMPDIR`, or below `/tmp` where that is unset or not there.
    pub(crate) fn resolve(&self, tmux_tmpdir: Option<&OsStr>, uid: u32) -> Result<Socket, EndpointError> {
        let in_own_dir = |name: &OsStr| {
            let base = tmux_tmpdir.map(Path::new).filter(|dir| dir.is_absolute() && dir.is_dir());
            let dir = base.unwrap_or(Path::new("/tmp")).join(format!("tmux-{uid}"));
            Socket { path: dir.join(name), own_dir: Some(dir) }
        };
        let socket = match self {
            Self::Default => in_own_dir(OsStr::new("default")),
            Self::Name(name) => in_own_dir(name),
            Self::Path(path) => Socket { path: path.clone(), own_dir: None },
        };
        let length = socket.path.as_os_str().len();
        if length > LONGEST {
            return Err(EndpointError::TooLong { path: socket.path, length });
        }
        Ok(socket)
    }
}

impl Socket {
    /// Sees to it that a server could make this socket: makes tmux's own directory and checks that it is this
    /// user's, as tmux does where it makes the path itself; a directory that a person chose must be there.
    pub(crate) fn prepare(&self, uid: u32) -> Result<(), Unprepared> {
        let dir = self.own_dir.as_deref().or(self.path.parent()).unwrap_or(Path::new("/"));
        let refuse = |why: String| Unprepared { dir: dir.to_owned(), why };
        if self.own_dir.is_none() {
            return match fs::metadata(dir) {
                Ok(found) if found.is_dir() => Ok(()),
                Ok(_) => Err(refuse("is not a directory".to_owned())),
                Err(e) => Err(refuse(format!("cannot be used: {e}"))),
            };
        }
        match fs::DirBuilder::new().mode(0o700).create(dir) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(refuse(format!("cannot be made: {e}")));
            }
            _ => {}
        }
        let found = fs::symlink_metadata(dir).map_err(|e| refuse(format!("cannot be looked at: {e}")))?;
        if !found.is_dir() {
            Err(refuse("is not a directory".to_owned()))
        } else if found.uid() != uid {
            Err(refuse(format!("belongs to the user {}, not to {uid}", found.uid())))
        } else if found.mode() & 0o007 != 0 {
            Err(refuse("is open to other users; take their permissions away (chmod 700)".to_owned()))
        } else {
            Ok(())
        }
    }
}

/// A directory in which no server of this user should be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the directory of the tmux socket, {dir}, {why}", dir = .dir.display())]
pub(crate) struct Unprepared {
    dir: PathBuf,
    why: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn parse(text: &str) -> Result<Endpoint, EndpointError> {
        Endpoint::parse(Some(OsStr::new(text)))
    }

    #[test]
    fn a_socket_is_nothing_a_name_or_an_absolute_path() {
        assert_eq!(Endpoint::parse(None), Ok(Endpoint::Default));
        assert_eq!(parse("work"), Ok(Endpoint::Name("work".into())));
        assert_eq!(parse("/run/x"), Ok(Endpoint::Path("/run/x".into())));
        for bad in ["", ".", "..", "a/b", "./a"] {
            assert!(matches!(parse(bad), Err(EndpointError::Shape(_))), "{bad:?}");
        }
    }

    #[test]
    fn names_are_below_the_directory_that_tmux_would_use() {
        let there = tempfile::tempdir().unwrap();
        let dir = Some(there.path().as_os_str());
        let socket = Endpoint::Default.resolve(dir, 7).unwrap();
        assert_eq!(socket.path, there.path().join("tmux-7/default"));
        let socket = parse("work").unwrap().resolve(dir, 7).unwrap();
        assert_eq!(socket.path, there.path().join("tmux-7/work"));
        let gone = there.path().join("gone");
        for missing in [None, Some(gone.as_os_str()), Some(OsStr::new("")), Some(OsStr::new("relative"))] {
            assert_eq!(Endpoint::Default.resolve(missing, 7).unwrap().path, Path::new("/tmp/tmux-7/default"));
        }
    }

    #[test]
    fn a_path_beyond_the_limit_is_refused_with_its_length() {
        let path = format!("/{}", "x".repeat(LONGEST));
        let e = parse(&path).unwrap().resolve(None, 7).unwrap_err();
        assert!(matches!(e, EndpointError::TooLong { length, .. } if length == LONGEST + 1));
        assert!(parse(&path[..LONGEST]).unwrap().resolve(None, 7).is_ok());
    }

    #[test]
    fn the_directory_is_made_private_and_a_strangers_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let uid = rustix::process::getuid().as_raw();
        let socket = Endpoint::Default.resolve(Some(base.path().as_os_str()), uid).unwrap();
        socket.prepare(uid).unwrap();
        let dir = base.path().join(format!("tmux-{uid}"));
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
        socket.prepare(uid).unwrap();
        assert!(socket.prepare(uid + 1).unwrap_err().to_string().contains("belongs to the user"));
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(socket.prepare(uid).unwrap_err().to_string().contains("open to other users"));
        fs::remove_dir(&dir).unwrap();
        std::os::unix::fs::symlink(base.path(), &dir).unwrap();
        assert!(socket.prepare(uid).unwrap_err().to_string().contains("not a directory"));
    }

    #[test]
    fn a_directory_of_a_persons_choice_is_not_made() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("sub/socket");
        let socket = Endpoint::Path(path.clone()).resolve(None, 0).unwrap();
        assert!(socket.prepare(0).unwrap_err().to_string().contains("sub"));
        assert!(!path.parent().unwrap().exists());
        fs::create_dir(base.path().join("sub")).unwrap();
        socket.prepare(0).unwrap();
    }
}
