//! The output sink: records what a pane prints, bounded, and never makes the multiplexer wait or fail.
//!
//! It is started by the multiplexer, reads its standard input to the end or to the keeper's mark, and holds the lock
//! of `output.log` from the moment that file has its name: a log that is there and not locked is complete.

use crate::at;
use crate::run::dir::{Dir, random_hex};
use crate::run::files::name;
use crate::run::output::{part_name, starts};
use loopmux_mux::{Here, Multiplexer};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of one read.
const CHUNK: usize = 32 << 10;
/// Room on the disk is taken in such steps.
const STEP: u64 = 64 << 10;
/// Of the room, so much is kept for the line that tells of a loss.
const FOR_THE_LOSS: u64 = 256;

/// How much of a window's output is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The first part, in bytes.
    pub head: u64,
    /// One later part, in bytes; two are kept.
    pub part: u64,
}

impl Limits {
    /// The first 32 MB and the last 16 to 32.
    pub const KEPT: Self = Self { head: 32 << 20, part: 16 << 20 };
}

/// What a keeper prints to end the record: invisible in a terminal, and not in the log.
pub(super) fn mark(nonce: &str) -> String {
    // CAN ends whatever sequence a program left unfinished; the rest is a control string that nobody knows.
    format!("\x18\x1bPloopmux-end;{nonce}\x1b\\")
}

/// Has this window's output recorded from here on, and gives the mark that ends the record.
pub(super) fn begin(
    dir: &Dir,
    mux: Result<Box<dyn Multiplexer>, String>,
    here: Option<&Here>,
) -> Result<String, String> {
    let mux = mux?;
    let (Some(server), Some(pane)) = (here.and_then(|h| h.server_pid), here.and_then(|h| h.pane.as_ref()))
    else {
        return Err("this is no window of a multiplexer".to_owned());
    };
    let nonce = random_hex(8);
    let words: [OsString; 4] =
        [super::own_path().into(), "sink".into(), dir.path().as_os_str().to_owned(), nonce.clone().into()];
    mux.pipe(server, pane, Some(&words)).map_err(|e| e.to_string())?;
    Ok(mark(&nonce))
}

/// The sink's program.
pub(super) fn main(path: &Path, nonce: &OsStr) -> i32 {
    super::system::outlive_the_terminal();
    let Ok(dir) = Dir::open(path) else { return 1 };
    let mark = mark(&nonce.to_string_lossy());
    record(&dir, io::stdin().lock(), mark.as_bytes(), Limits::KEPT);
    0
}

/// Records `input` as the output log of a directory, to its end or to `mark`. Whatever the disk says, it goes on
/// reading.
pub fn record(dir: &Dir, mut input: impl Read, mark: &[u8], limits: Limits) {
    let mut log = Log::new(dir, limits);
    let mut chunk = vec![0; CHUNK];
    // The start of a mark may be the end of one chunk.
    let mut held = 0;
    loop {
        let n = match input.read(&mut chunk[held..]) {
            Ok(0) => break,
            Ok(n) => held + n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        if let Some(at) = find(&chunk[..n], mark) {
            log.write(&chunk[..at]);
            held = 0;
            break;
        }
        let keep = begun(&chunk[..n], mark);
        log.write(&chunk[..n - keep]);
        chunk.copy_within(n - keep..n, 0);
        held = keep;
    }
    log.write(&chunk[..held]);
    log.finish();
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    let first = *mark.first()?;
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|b| *b == first) {
        let at = from + at;
        if bytes[at..].starts_with(mark) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

/// How many bytes at the end may be the beginning of a mark.
fn begun(bytes: &[u8], mark: &[u8]) -> usize {
    let most = mark.len().saturating_sub(1).min(bytes.len());
    (1..=most).rev().find(|n| mark.starts_with(&bytes[bytes.len() - n..])).unwrap_or(0)
}

/// The log's files.
struct Log<'d> {
    dir: &'d Dir,
    limits: Limits,
    /// `output.log`, kept open for its lock.
    head: Option<File>,
    part: Option<Part>,
    /// Bytes that could not be recorded since the last one that could.
    lost: u64,
    why: String,
    /// Another one records here: everything is read and dropped.
    foreign: bool,
}

/// The file that is written now.
struct Part {
    file: File,
    start: u64,
    len: u64,
    limit: u64,
    /// Up to here the disk has given room.
    room: u64,
}

impl<'d> Log<'d> {
    fn new(dir: &'d Dir, limits: Limits) -> Self {
        let mut log =
            Self { dir, limits, head: None, part: None, lost: 0, why: String::new(), foreign: false };
        log.open_head();
        log
    }

    fn open_head(&mut self) {
        match self.dir.create_locked(name::OUTPUT) {
            Ok(file) => match file.try_clone() {
                Ok(lock) => {
                    self.head = Some(lock);
                    self.part = Some(Part::new(file, 0, self.limits.head));
                }
                Err(e) => self.why = e.to_string(),
            },
            Err(crate::run::dir::WriteError::Exists(_)) => self.foreign = true,
            Err(e) => self.why = e.to_string(),
        }
    }

    /// Records bytes, or counts them as lost.
    fn write(&mut self, mut bytes: &[u8]) {
        if self.foreign || bytes.is_empty() {
            return;
        }
        if self.head.is_none() {
            self.open_head();
        }
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(why) => {
                    self.lost += bytes.len() as u64;
                    self.why = why;
                    return;
                }
            }
        }
    }

    /// Writes some of the bytes, at least one.
    fn try_write(&mut self, bytes: &[u8]) -> Result<usize, String> {
        if self.part.as_ref().is_some_and(|part| part.len >= part.limit) {
            self.next_part()?;
        }
        let Some(part) = &mut self.part else { return Err(self.why.clone()) };
        let left = usize::try_from(part.limit - part.len).unwrap_or(usize::MAX);
        let n = bytes.len().min(left).min(CHUNK);
        part.take_room(n as u64 + FOR_THE_LOSS).map_err(|e| e.to_string())?;
        if self.lost > 0 {
            part.append(loss(self.lost, &self.why).as_bytes()).map_err(|e| e.to_string())?;
            self.lost = 0;
        }
        part.append(&bytes[..n]).map_err(|e| e.to_string())?;
        Ok(n)
    }

    /// Starts the next part, and drops all but the one before it.
    fn next_part(&mut self) -> Result<(), String> {
        let Some(full) = &mut self.part else { return Ok(()) };
        let start = full.start + full.len;
        let file = self.dir.create_plain(&part_name(start)).map_err(|e| e.to_string())?;
        full.cut();
        self.part = Some(Part::new(file, start, self.limits.part));
        if let Ok(all) = starts(self.dir) {
            for old in all.into_iter().filter(|start| *start > 0).rev().skip(2) {
                // One that stays costs room and nothing else.
                let _ = self.dir.remove_file(&part_name(old));
            }
        }
        Ok(())
    }

    /// Tells of a loss, for which room was kept, and gives back the rest of the room.
    fn finish(mut self) {
        if let Some(mut part) = self.part.take() {
            if self.lost > 0 {
                let _ = part.append(loss(self.lost, &self.why).as_bytes());
            }
            part.cut();
        }
    }
}

fn loss(bytes: u64, why: &str) -> String {
    let why: String = why.chars().take(100).collect();
    format!("\r\n[loopmux: {bytes} bytes of output were not recorded: {why}]\r\n")
}

impl Part {
    fn new(file: File, start: u64, limit: u64) -> Self {
        Self { file, start, len: 0, limit, room: 0 }
    }

    /// Makes sure that so many more bytes fit, where the file system can promise that.
    fn take_room(&mut self, bytes: u64) -> io::Result<()> {
        while self.len + bytes > self.room {
            if at::take_room_ahead(&self.file, self.room, STEP)? {
                self.room += STEP;
            } else {
                // It promises nothing: what can be written shows when it is written.
                self.room = u64::MAX;
            }
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        at::write_all_at(&self.file, bytes, self.len)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Gives back the room that was not used.
    fn cut(&self) {
        let _ = self.file.set_len(self.len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::output::{LogReader, Piece};
    use crate::verdict::Lease;

    /// Gives its bytes in pieces of a fixed size.
    struct Pieces<'b>(&'b [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buffer.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn bytes(n: usize) -> Vec<u8> {
        (0..n).map(|i| (i / 7) as u8).collect()
    }

    fn pieces(dir: &Dir, at: u64) -> Vec<Piece> {
        let mut reader = LogReader::new(Dir::open(dir.path()).unwrap(), at);
        let mut all = Vec::new();
        while let Some(piece) = reader.read().unwrap() {
            match (all.last_mut(), piece) {
                (Some(Piece::Bytes(last)), Piece::Bytes(more)) => last.extend(more),
                (_, piece) => all.push(piece),
            }
        }
        assert_eq!(reader.position(), reader.end().unwrap());
        all
    }

    fn recorded(input: &[u8], step: usize, mark: &[u8], limits: Limits) -> (tempfile::TempDir, Vec<Piece>) {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open(home.path()).unwrap();
        record(&dir, Pieces(input, step), mark, limits);
        let all = pieces(&dir, 0);
        (home, all)
    }

    #[test]
    fn a_mark_ends_the_record_wherever_it_is_cut() {
        let mark = mark("00112233");
        let mut input = b"text \x18\x1bPloopmux-end;0011 more \x18".to_vec();
        let expected = input.clone();
        input.extend(mark.as_bytes());
        input.extend(b"after the end");
        for step in 1..input.len() {
            let (_home, all) = recorded(&input, step, mark.as_bytes(), Limits::KEPT);
            assert_eq!(all, [Piece::Bytes(expected.clone())], "in pieces of {step}");
        }
        // Without one the end of the input ends it, a begun mark included.
        let cut = &input[..expected.len() + 5];
        let (_home, all) = recorded(cut, 3, mark.as_bytes(), Limits::KEPT);
        assert_eq!(all, [Piece::Bytes(cut.to_vec())]);
    }

    #[test]
    fn the_first_and_the_last_part_are_kept_and_the_gap_is_counted() {
        let limits = Limits { head: 1000, part: 300 };
        let all_of_it = bytes(5000);
        for n in 0..5000 {
            if n % 37 != 0 && ![999, 1000, 1001, 1300, 1301, 1600, 1601, 1900, 1901].contains(&n) {
                continue;
            }
            let (home, all) = recorded(&all_of_it[..n], 90, b"\x18mark", limits);
            let mut position = 0;
            for piece in &all {
                match piece {
                    Piece::Bytes(found) => {
                        assert!(all_of_it[position..n].starts_with(found), "{n} at {position}");
                        position += found.len();
                    }
                    Piece::Gap(gap) => {
                        assert_eq!(position, 1000, "{n}: only behind the first part");
                        position += *gap as usize;
                    }
                }
            }
            assert_eq!(position, n, "every byte is there or counted");
            let kept: u64 =
                std::fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
            assert!(kept <= 1600, "{n}: {kept}");
            if n > 1600 {
                let Some(Piece::Bytes(last)) = all.last() else { panic!("{all:?}") };
                assert!(last.len() >= 300.min(n - 1000), "{n}: the last part is there");
            }
        }
    }

    #[test]
    fn a_reader_goes_on_from_any_position() {
        let limits = Limits { head: 1000, part: 300 };
        let all_of_it = bytes(2500);
        let (home, _) = recorded(&all_of_it, 64, b"\x18mark", limits);
        let dir = Dir::open(home.path()).unwrap();
        for at in (0..2500).step_by(11) {
            let position = pieces(&dir, at as u64).iter().fold(at, |position, piece| match piece {
                Piece::Bytes(found) => {
                    assert!(all_of_it[position..].starts_with(found), "from {at}");
                    position + found.len()
                }
                Piece::Gap(gap) => position + *gap as usize,
            });
            assert_eq!(position, 2500, "from {at}");
        }
    }

    #[test]
    fn a_reader_follows_a_log_that_overtakes_it() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open(home.path()).unwrap();
        let all_of_it = bytes(4000);
        let mut log = Log::new(&dir, Limits { head: 1000, part: 300 });
        let mut reader = LogReader::new(Dir::open(home.path()).unwrap(), 0);
        assert_eq!(reader.recorder(), Lease::Held);
        let mut position = 0;
        for (round, part) in all_of_it.chunks(130).enumerate() {
            log.write(part);
            // Sometimes it reads to the end, sometimes it falls behind by more than what is kept.
            if round % 9 == 8 {
                continue;
            }
            while let Some(piece) = reader.read().unwrap() {
                match piece {
                    Piece::Bytes(found) => {
                        assert!(all_of_it[position..].starts_with(&found), "at {position}");
                        position += found.len();
                    }
                    Piece::Gap(gap) => position += gap as usize,
                }
                assert_eq!(position as u64, reader.position());
            }
            assert_eq!(position, ((round + 1) * 130).min(4000));
        }
        log.finish();
        assert_eq!(reader.recorder(), Lease::Free);
        assert!(reader.read().unwrap().is_none());
    }

    #[test]
    fn a_log_that_somebody_else_records_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open(home.path()).unwrap();
        record(&dir, &b"first"[..], b"\x18mark", Limits::KEPT);
        record(&dir, &b"second"[..], b"\x18mark", Limits::KEPT);
        assert_eq!(pieces(&dir, 0), [Piece::Bytes(b"first".to_vec())]);
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_vanished_stops_no_reader() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open(home.path()).unwrap();
        std::fs::remove_dir_all(home.path()).unwrap();
        let input = bytes(100_000);
        let mut input = Pieces(&input, 1000);
        record(&dir, &mut input, b"\x18mark", Limits::KEPT);
        assert!(input.0.is_empty(), "everything was read");
        assert!(!home.path().exists());
    }
}
