//! Linux: inotify tells what is written in a directory.

use rustix::fs::inotify;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Tells when something is written in one of some directories.
#[derive(Debug)]
pub struct Files(OwnedFd);

impl Files {
    /// Of no directory yet.
    ///
    /// # Errors
    /// As the operating system says: a user has few of these.
    pub fn new() -> io::Result<Self> {
        Ok(Self(inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?))
    }

    /// Adds a directory.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn add(&self, dir: &Path) -> io::Result<()> {
        use inotify::WatchFlags as W;
        let what = W::MODIFY | W::CREATE | W::MOVED_TO | W::CLOSE_WRITE | W::ONLYDIR;
        inotify::add_watch(&self.0, dir, what)?;
        Ok(())
    }

    /// Takes everything that was told.
    pub fn drain(&self) {
        let mut buffer = [0; 4096];
        while rustix::io::read(&self.0, &mut buffer).is_ok_and(|n| n > 0) {}
    }
}

impl AsFd for Files {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
