//! Unix: sources are descriptors that become readable.

mod inbox;
mod waiter;

pub use inbox::{Inbox, poke, poke_named};
pub use waiter::wait;

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};

/// What can be waited for.
pub type Source<'a> = BorrowedFd<'a>;

/// Whatever has a source.
pub trait AsSource {
    /// The source.
    fn as_source(&self) -> Source<'_>;
}

impl<T: AsFd> AsSource for T {
    fn as_source(&self) -> Source<'_> {
        self.as_fd()
    }
}

/// A source that another thread rings once.
#[derive(Debug)]
pub struct Latch(PipeReader);

/// Rings a latch when it is dropped.
#[derive(Debug)]
pub struct Ringer {
    _pipe: PipeWriter,
}

/// A latch, and what rings it.
///
/// # Errors
/// As the operating system says.
pub fn latch() -> io::Result<(Latch, Ringer)> {
    let (reader, writer) = io::pipe()?;
    Ok((Latch(reader), Ringer { _pipe: writer }))
}

impl Ringer {
    /// Whether somebody may still wait for it. Without an answer: yes.
    pub fn is_wanted(&self) -> bool {
        true
    }
}

impl AsFd for Latch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Our own output, where whoever reads it can go away: then the source tells it.
#[derive(Debug)]
pub struct Reader(io::Stdout);

impl Reader {
    /// The reader of our standard output, if that is a pipe.
    pub fn of_output() -> Option<Self> {
        let stdout = io::stdout();
        let stat = rustix::fs::fstat(&stdout).ok()?;
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        (kind == rustix::fs::FileType::Fifo).then_some(Self(stdout))
    }
}

impl AsFd for Reader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
