//! Windows: sources are handles that become signalled.
//!
//! An inbox is a named event. Its name is in the namespace of all sessions, as files are, with a hash that says nothing.

mod event;
mod files;

pub use files::Files;

use super::Woke;
use event::Event;
use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What can be waited for.
pub type Source<'a> = BorrowedHandle<'a>;

/// Whatever has a source.
pub trait AsSource {
    /// The source.
    fn as_source(&self) -> Source<'_>;
}

impl<T: AsHandle> AsSource for T {
    fn as_source(&self) -> Source<'_> {
        self.as_handle()
    }
}

/// One wait of the system takes no more than this.
const AT_ONCE: usize = 64;
/// How often more sources than that are looked at.
const TURN: Duration = Duration::from_millis(50);

/// Sleeps until one of `sources` is signalled, at most for `limit`.
///
/// # Errors
/// As the operating system says.
pub fn wait(sources: &[Source<'_>], limit: Option<Duration>) -> io::Result<Woke> {
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if sources.is_empty() {
            // Without an end and a source nothing could end this: look again now and then.
            std::thread::sleep(left.unwrap_or(super::SAFETY));
            return Ok(Woke::Timeout);
        }
        let turn = if sources.len() > AT_ONCE { Some(left.map_or(TURN, |l| l.min(TURN))) } else { left };
        for (part, at) in sources.chunks(AT_ONCE).zip((0..).step_by(AT_ONCE)) {
            let turn = if at == 0 { turn } else { Some(Duration::ZERO) };
            if let Some(index) = event::wait(part, turn)? {
                return Ok(Woke::By(at + index));
            }
        }
        if left.is_some_and(|left| left <= turn.unwrap_or_default()) {
            return Ok(Woke::Timeout);
        }
    }
}

/// An event with a name.
#[derive(Debug)]
pub struct Inbox {
    event: Event,
    path: PathBuf,
}

impl Inbox {
    /// Makes the event of that name. Only one living process may use a name: the caller holds the lock that says so.
    ///
    /// # Errors
    /// As the operating system says; waiting then falls back to looking once a second.
    pub fn bind(name: &str) -> io::Result<Self> {
        let path = named(name);
        let event = Event::named(&path)?;
        Ok(Self { event, path })
    }

    /// Where others poke.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes everything that has arrived.
    pub fn drain(&self) {
        self.event.reset();
    }
}

impl AsHandle for Inbox {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.event.as_handle()
    }
}

fn named(name: &str) -> PathBuf {
    PathBuf::from(format!(r"Global\loopmux-wake-{name}"))
}

/// Pokes whoever waits at an inbox. Nobody there is no error.
pub fn poke(path: &Path) {
    // The file was written before; whoever misses this looks again within a second.
    if let Ok(event) = Event::existing(path) {
        event.set();
    }
}

/// Pokes the inbox of that name.
pub fn poke_named(name: &str) {
    poke(&named(name));
}

/// A source that another thread rings once.
#[derive(Debug)]
pub struct Latch(Arc<Event>);

/// Rings a latch when it is dropped.
#[derive(Debug)]
pub struct Ringer(Arc<Event>);

/// A latch, and what rings it.
///
/// # Errors
/// As the operating system says.
pub fn latch() -> io::Result<(Latch, Ringer)> {
    let event = Arc::new(Event::new()?);
    Ok((Latch(Arc::clone(&event)), Ringer(event)))
}

impl Ringer {
    /// Whether somebody may still wait for it.
    pub fn is_wanted(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl Drop for Ringer {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl AsHandle for Latch {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.0.as_handle()
    }
}

/// A reader that goes away is noticed here with the next write only.
#[derive(Debug)]
pub struct Reader(std::convert::Infallible);

impl Reader {
    /// None.
    pub fn of_output() -> Option<Self> {
        None
    }
}

impl AsHandle for Reader {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poke_arrives_and_nobody_there_is_no_error() {
        let inbox = Inbox::bind(&format!("t-{}", std::process::id())).unwrap();
        let path = inbox.path().to_owned();
        poke(&path);
        assert_eq!(wait(&[inbox.as_source()], None).unwrap(), Woke::By(0));
        inbox.drain();
        assert_eq!(wait(&[inbox.as_source()], Some(Duration::ZERO)).unwrap(), Woke::Timeout);
        drop(inbox);
        poke(&path);
    }
}
