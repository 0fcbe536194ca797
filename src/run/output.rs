//! The output log: what a window printed, bounded.
//!
//! The first part is in `output.log`. Beyond it, later parts are in files named by the position of their first byte
//! (`output.tail.33554432`), of which the last two are kept: what is missing between is a gap. A position counts
//! recorded bytes from the start of the log, so one stays good however much is recorded later.
//!
//! What could not be recorded at all, on a full disk, is told in the log itself, in a line of its own.

use super::dir::Dir;
use super::files::name;
use super::locks;
use crate::verdict::Lease;
use std::fs::File;
use std::io;

/// Bytes of one piece at most.
const PIECE: usize = 64 << 10;

/// The next part of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes as the window printed them.
    Bytes(Vec<u8>),
    /// So many bytes were recorded and dropped again.
    Gap(u64),
}

/// Reads a log from any position, while it grows or afterwards.
#[derive(Debug)]
pub struct LogReader {
    dir: Dir,
    at: u64,
    part: Option<Part>,
}

#[derive(Debug)]
struct Part {
    start: u64,
    file: File,
}

impl LogReader {
    /// A reader of the log in an attempt's directory, from a position on: 0, or where another reader stood.
    pub fn new(dir: Dir, at: u64) -> Self {
        Self { dir, at, part: None }
    }

    /// Where it stands: the position after the last byte that it gave.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The log's end as it is now; 0 where there is no log yet.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn end(&self) -> io::Result<u64> {
        let Some(start) = self.starts()?.pop() else { return Ok(0) };
        match open(&self.dir, start)? {
            Some(file) => Ok(start + file.metadata()?.len()),
            // It was dropped between the two looks, so later ones exist.
            None => self.end(),
        }
    }

    /// Whether somebody still records: held is yes. Free is complete, nothing will be added. Without a file nothing
    /// was recorded yet.
    pub fn recorder(&self) -> Lease {
        locks::probe(&self.dir, name::OUTPUT)
    }

    /// The next piece; `None` where nothing more is there now.
    ///
    /// Whoever waits for the end asks [`LogReader::recorder`] first and reads afterwards: what was recorded before
    /// a free lock is all there is.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn read(&mut self) -> io::Result<Option<Piece>> {
        if let Some(bytes) = self.read_part()? {
            return Ok(Some(bytes));
        }
        let starts = self.starts()?;
        let later = |start: &u64| self.part.as_ref().is_none_or(|part| *start > part.start);
        let Some(next) = starts.into_iter().rfind(|start| *start <= self.at && later(start)) else {
            return self.skip_gap();
        };
        // This part is finished once another exists, and may have grown since it was read to its end.
        if let Some(bytes) = self.read_part()? {
            return Ok(Some(bytes));
        }
        match open(&self.dir, next)? {
            Some(file) => {
                self.part = Some(Part { start: next, file });
                match self.read_part()? {
                    Some(bytes) => Ok(Some(bytes)),
                    None => self.skip_gap(),
                }
            }
            None => self.skip_gap(),
        }
    }

    fn read_part(&mut self) -> io::Result<Option<Piece>> {
        let Some(part) = &self.part else { return Ok(None) };
        let Some(offset) = self.at.checked_sub(part.start) else { return Ok(None) };
        let mut buffer = vec![0; PIECE];
        let n = loop {
            match crate::at::read_at(&part.file, &mut buffer, offset) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        buffer.truncate(n);
        self.at += n as u64;
        Ok((n > 0).then_some(Piece::Bytes(buffer)))
    }

    /// Where the next byte that is still there lies ahead, everything before it was dropped.
    fn skip_gap(&mut self) -> io::Result<Option<Piece>> {
        let Some(next) = self.starts()?.into_iter().find(|start| *start > self.at) else { return Ok(None) };
        if let Some(bytes) = self.read_part()? {
            return Ok(Some(bytes));
        }
        let gap = next - self.at;
        self.at = next;
        self.part = None;
        Ok(Some(Piece::Gap(gap)))
    }

    /// The first positions of all parts that are there, in order.
    fn starts(&self) -> io::Result<Vec<u64>> {
        starts(&self.dir)
    }
}

/// The first positions of all parts of the log in a directory, in order.
///
/// # Errors
/// As the operating system says.
pub(crate) fn starts(dir: &Dir) -> io::Result<Vec<u64>> {
    let mut starts: Vec<u64> = dir.names()?.iter().filter_map(|n| start_of(n.to_str()?)).collect();
    starts.sort_unstable();
    Ok(starts)
}

/// The name of the part that starts at a position.
pub(crate) fn part_name(start: u64) -> String {
    if start == 0 { name::OUTPUT.to_owned() } else { format!("{}{start}", name::OUTPUT_TAIL) }
}

fn start_of(file: &str) -> Option<u64> {
    if file == name::OUTPUT {
        return Some(0);
    }
    file.strip_prefix(name::OUTPUT_TAIL)?.parse().ok()
}

fn open(dir: &Dir, start: u64) -> io::Result<Option<File>> {
    match dir.open_lock(&part_name(start)) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}
