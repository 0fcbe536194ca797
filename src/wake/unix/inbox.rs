//! The datagram socket of one waiting process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// The longest path that every Unix takes for a socket, in bytes.
const PATH_LIMIT: usize = 100;

/// A bound socket; its file goes when it is dropped.
#[derive(Debug)]
pub struct Inbox {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Inbox {
    /// Binds the socket of that name. Only one living process may use a name: the caller holds the lock that says
    /// so, and a file that a dead process left is replaced.
    ///
    /// # Errors
    /// No directory for sockets can be had; waiting then falls back to looking once a second.
    pub fn bind(name: &str) -> io::Result<Self> {
        let path = directory()?.join(name);
        if path.as_os_str().len() > PATH_LIMIT {
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, "the socket's path is too long"));
        }
        match std::fs::remove_file(&path) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        let socket = UnixDatagram::bind(&path)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, path })
    }

    /// Where others poke.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes everything that has arrived.
    pub fn drain(&self) {
        let mut buffer = [0u8; 64];
        while self.socket.recv(&mut buffer).is_ok() {}
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // Best effort: the next one of this name replaces a file that stayed.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Pokes whoever waits at a socket. Nobody there is no error.
pub fn poke(path: &Path) {
    if let Ok(socket) = UnixDatagram::unbound()
        && socket.set_nonblocking(true).is_ok()
    {
        // The file was written before; whoever misses this looks again within a second.
        let _ = socket.send_to(b"look", path);
    }
}

/// Pokes the socket of that name, in the directory that this process's environment gives.
pub fn poke_named(name: &str) {
    if let Ok(directory) = directory() {
        poke(&directory.join(name));
    }
}

/// `$XDG_RUNTIME_DIR/loopmux`, else a directory of this user under the temporary directory, 0700 and its own.
fn directory() -> io::Result<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_absolute());
    let me = rustix::process::geteuid().as_raw();
    let candidates =
        [runtime.map(|p| p.join("loopmux")), Some(std::env::temp_dir().join(format!("loopmux-{me}")))];
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for path in candidates.into_iter().flatten() {
        if path.as_os_str().len() + 20 > PATH_LIMIT {
            continue;
        }
        match private(&path, me) {
            Ok(()) => return Ok(path),
            Err(e) => last = e,
        }
    }
    Err(last)
}

fn private(path: &Path, me: u32) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(e),
    }
    let found = std::fs::symlink_metadata(path)?;
    if found.is_dir() && found.uid() == me && found.mode() & 0o077 == 0 {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "the socket directory is not private"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poke_is_readable_and_a_dead_socket_is_replaced() {
        let name = format!("t-{}", crate::run::dir::random_hex(6));
        let first = Inbox::bind(&name).unwrap();
        let path = first.path().to_owned();
        std::mem::forget(first);
        let inbox = Inbox::bind(&name).unwrap();
        poke(&path);
        assert_eq!(crate::wake::wait(&[inbox.as_fd()], None).unwrap(), crate::wake::Woke::By(0));
        inbox.drain();
        assert_eq!(
            crate::wake::wait(&[inbox.as_fd()], Some(std::time::Duration::ZERO)).unwrap(),
            crate::wake::Woke::Timeout
        );
        drop(inbox);
        assert!(!path.exists());
        poke(&path);
    }
}
