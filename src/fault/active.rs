//! The faults that this process was given.

use super::POINTS;
use std::cell::Cell;
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

/// What to do, and where.
#[derive(Debug)]
enum Wanted {
    Die(Place),
    Hold(Place, PathBuf),
    Full(Place),
    Clock(PathBuf),
    Trace(PathBuf),
}

/// A point, and the how manieth time that a process comes to it.
#[derive(Debug)]
struct Place {
    point: String,
    time: u64,
}

fn wanted() -> &'static [Wanted] {
    static WANTED: OnceLock<Vec<Wanted>> = OnceLock::new();
    WANTED.get_or_init(|| {
        let text = std::env::var("LOOPMUX_FAULT").unwrap_or_default();
        text.split(',').filter(|one| !one.is_empty()).filter_map(parse).collect()
    })
}

/// `None` where it is meant for another process. A fault that cannot be read is a fault of the test: a test that goes on
/// without it proves nothing.
fn parse(text: &str) -> Option<Wanted> {
    let mut parts = text.splitn(3, ':');
    let (verb, place, file) = (parts.next(), parts.next().unwrap_or_default(), parts.next());
    let (place, word) = place.split_once('~').map_or((place, None), |(place, word)| (place, Some(word)));
    let wanted = match (verb, file) {
        (Some("die"), None) => Wanted::Die(parse_place(place)),
        (Some("hold"), Some(file)) => Wanted::Hold(parse_place(place), file.into()),
        (Some("full"), None) => {
            let (step, time) = place.split_once('@').unwrap_or((place, "1"));
            Wanted::Full(parse_place(&format!("{step}.before@{time}")))
        }
        (Some("clock"), None) => Wanted::Clock(place.into()),
        (Some("trace"), None) => Wanted::Trace(place.into()),
        _ => panic!("LOOPMUX_FAULT: {text:?} is no fault"),
    };
    word.is_none_or(is_meant).then_some(wanted)
}

fn parse_place(text: &str) -> Place {
    let (point, time) = text.rsplit_once('@').map_or((text, Some(1)), |(p, n)| (p, n.parse().ok()));
    let known = point
        .rsplit_once('.')
        .is_some_and(|(name, side)| POINTS.contains(&name) && matches!(side, "before" | "after"));
    match time {
        Some(time) if known => Place { point: point.to_owned(), time },
        _ => panic!("LOOPMUX_FAULT: there is no point {text:?}"),
    }
}

fn is_meant(word: &str) -> bool {
    std::env::args_os().skip(1).any(|arg| {
        let arg = arg.to_string_lossy();
        arg == word || (word.contains('/') && arg.contains(word))
    })
}

pub(super) fn any() -> bool {
    !wanted().is_empty()
}

thread_local! {
    /// The step under way finds the disk full.
    static FULL: Cell<bool> = const { Cell::new(false) };
}

/// Whether the step is to find the disk full.
pub(super) fn point(name: &str, side: &str) -> bool {
    if !any() {
        return false;
    }
    static MET: OnceLock<Mutex<HashMap<String, u64>>> = OnceLock::new();
    assert!(POINTS.contains(&name), "the step {name:?} is not in the list of steps");
    let point = format!("{name}.{side}");
    let time = {
        let mut met = MET.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        let time = met.entry(point.clone()).or_default();
        *time += 1;
        *time
    };
    let mut full = false;
    for wanted in wanted() {
        match wanted {
            Wanted::Trace(file) => trace(file, &point, time),
            Wanted::Die(place) if place.point == point && place.time == time => die(),
            Wanted::Hold(place, file) if place.point == point && place.time == time => hold(file),
            Wanted::Full(place) if place.point == point && place.time == time => full = true,
            Wanted::Die(_) | Wanted::Hold(..) | Wanted::Full(_) | Wanted::Clock(_) => {}
        }
    }
    if full {
        FULL.set(true);
    }
    full
}

/// Asked once by a step that is to fail.
pub(super) fn is_full() -> bool {
    FULL.replace(false)
}

/// A step that was to find the disk full and did not ask for room is a fault of the test, which would prove nothing.
pub(super) fn settle(full: bool, name: &str) {
    assert!(!(full && is_full()), "LOOPMUX_FAULT: the step {name:?} needs no room");
}

/// The time as it is told. A file that cannot be read, or holds no number, changes nothing.
pub(super) fn wrong(now: SystemTime) -> SystemTime {
    let off = wanted().iter().find_map(|wanted| match wanted {
        Wanted::Clock(file) => std::fs::read_to_string(file).ok()?.trim().parse::<i64>().ok(),
        _ => None,
    });
    let by = Duration::from_millis(off.unwrap_or(0).unsigned_abs());
    let told = if off < Some(0) { now.checked_sub(by) } else { now.checked_add(by) };
    told.unwrap_or(now)
}

/// One write, so that the lines of several processes do not mix.
fn trace(file: &Path, point: &str, time: u64) {
    let args: Vec<String> =
        std::env::args_os().skip(1).map(|a| a.to_string_lossy().replace(['\t', '\n'], " ")).collect();
    let line = format!("{point}\t{time}\t{}\t{}\n", std::process::id(), args.join("\t"));
    let written = std::fs::File::options().append(true).create(true).open(file);
    written.and_then(|mut f| f.write_all(line.as_bytes())).expect("the trace of the steps");
}

/// As by SIGKILL: no destructor runs, and nothing is flushed.
fn die() -> ! {
    super::system::die();
    loop {
        std::thread::park();
    }
}

fn hold(file: &Path) {
    let mut reached = file.as_os_str().to_owned();
    reached.push(".reached");
    std::fs::write(reached, b"").expect("the mark of a held step");
    while file.symlink_metadata().is_err() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The name of a kind of file: without a temporary name's random part, without ids and numbers.
pub(super) fn plain(file: &str) -> &str {
    let hex = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
    // `.NAME.RANDOM.tmp`
    let file =
        match file.strip_prefix('.').and_then(|f| f.strip_suffix(".tmp")).and_then(|f| f.rsplit_once('.')) {
            Some((name, random)) if hex(random) => name,
            _ => file,
        };
    match file {
        "engine.lock" | "control.lock" => file,
        _ if file.ends_with(".lock") => "run.lock",
        _ if file.len() == 16 && hex(file) => "project",
        _ if file.bytes().all(|b| b.is_ascii_digit()) => "attempt",
        _ if file.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && file.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            "run"
        }
        _ if file.starts_with("output.tail.") => "output.log",
        _ => file,
    }
}
