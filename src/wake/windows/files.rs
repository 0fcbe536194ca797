//! Windows: nothing tells what is written in a directory; whoever follows one looks every second.

use std::io;
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::path::Path;

/// There is none here.
#[derive(Debug)]
pub struct Files(std::convert::Infallible);

impl Files {
    /// Fails: a follower looks every second instead.
    ///
    /// # Errors
    /// Always.
    pub fn new() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "files are not watched on Windows"))
    }

    /// Adds a directory.
    ///
    /// # Errors
    /// None: there is none of these.
    pub fn add(&self, _dir: &Path) -> io::Result<()> {
        match self.0 {}
    }

    /// Takes everything that was told.
    pub fn drain(&self) {
        match self.0 {}
    }
}

impl AsHandle for Files {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        match self.0 {}
    }
}
