//! Faults on purpose, for tests: every durable step of the program has a name, and can be made to die right before
//! or right after it, or be held there while another command runs.
//!
//! `LOOPMUX_FAULT` holds faults separated by commas. `@N` means the Nth time that this process comes to the point.
//!
//! * `die:POINT[@N]`: this process ends there, as by SIGKILL.
//! * `hold:POINT[@N]:FILE`: it makes `FILE.reached` there, and goes on once `FILE` exists.
//!
//! A step of [`POINTS`] has two points, `NAME.before` and `NAME.after`. A release build has none of this.

/// The name of every step.
pub const POINTS: &[&str] = &[
    // Names of files, wherever they are written.
    "write.run.json",
    "write.state.json",
    "replace.state.json",
    "write.stop.json",
    "write.project.json",
    "replace.control.json",
    "write.launch.json",
    "write.env.json",
    "write.extra.json",
    "write.start.json",
    "write.created.json",
    "write.spawned.json",
    "write.refused.json",
    "write.exit.json",
    "write.hangup.json",
    "replace.leftovers.json",
    "write.emptied.json",
    "replace.handover.json",
    "create.engine.lock",
    "create.control.lock",
    "create.archive.lock",
    "create.run.lock",
    "create.lease",
    "create.cancelled",
    "create.output.log",
    "unlink.env.json",
    "unlink.extra.json",
    "make.runs",
    "make.staging",
    "make.locks",
    "make.trash",
    "make.quarantine",
    "make.archive",
    "make.attempts",
    "make.engine",
    "make.run",
    "make.attempt",
    // Locks.
    "lock.run",
    "lock.engine",
    "lock.lease",
    "lock.control",
    "lock.archive",
    // Beginning a run.
    "launch.publish",
    "launch.give-up",
    "launch.create",
    "resume.put-stop-aside",
    // The keeper.
    "keeper.spawn",
    // Ending.
    "stop.ask",
    "stop.kill-window",
    "stop.kill",
    // Removing.
    "remove.trash",
    "remove.put-back",
    "remove.commit",
    "remove.unlink",
    "remove.rmdir",
    "quarantine.move",
    "quarantine.restore",
    "archive.stage",
    "archive.publish",
    "archive.withdraw",
    "archive.unlink",
    "archive.sweep",
    "restore.stage",
    "restore.publish",
    "cleanup.kill",
];

/// Executes one step, with a point before and one after it.
#[inline]
pub fn around<T>(name: &str, step: impl FnOnce() -> T) -> T {
    point(name, "before");
    let done = step();
    point(name, "after");
    done
}

/// The same, for a step that does something to a file of that name.
#[inline]
pub fn around_file<T>(verb: &str, file: &str, step: impl FnOnce() -> T) -> T {
    #[cfg(debug_assertions)]
    if active::any() && !file.starts_with('.') {
        return around(&format!("{verb}.{}", active::plain(file)), step);
    }
    #[cfg(not(debug_assertions))]
    let _ = (verb, file);
    step()
}

/// A release build knows no faults.
#[cfg(not(debug_assertions))]
#[inline]
fn point(_name: &str, _side: &str) {}

#[cfg(debug_assertions)]
use active::point;

#[cfg(debug_assertions)]
mod active {
    use std::collections::HashMap;
    use std::path::{Path, PathBuf};
    use std::sync::{Mutex, OnceLock, PoisonError};
    use std::time::Duration;

    /// What to do at a point.
    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Fault {
        Die,
        Hold(PathBuf),
    }

    #[derive(Debug)]
    struct Wanted {
        point: String,
        time: u64,
        fault: Fault,
    }

    fn wanted() -> &'static [Wanted] {
        static WANTED: OnceLock<Vec<Wanted>> = OnceLock::new();
        WANTED.get_or_init(|| {
            let text = std::env::var("LOOPMUX_FAULT").unwrap_or_default();
            text.split(',').filter(|one| !one.is_empty()).map(parse).collect()
        })
    }

    /// A fault that cannot be read is a fault of the test: a test that goes on without it proves nothing.
    fn parse(text: &str) -> Wanted {
        let mut parts = text.splitn(3, ':');
        let (verb, place, file) = (parts.next(), parts.next().unwrap_or_default(), parts.next());
        let fault = match (verb, file) {
            (Some("die"), None) => Fault::Die,
            (Some("hold"), Some(file)) => Fault::Hold(PathBuf::from(file)),
            _ => panic!("LOOPMUX_FAULT: {text:?} is neither die:POINT nor hold:POINT:FILE"),
        };
        let (point, time) = place.rsplit_once('@').map_or((place, Some(1)), |(p, n)| (p, n.parse().ok()));
        let known = point
            .rsplit_once('.')
            .is_some_and(|(name, side)| super::POINTS.contains(&name) && matches!(side, "before" | "after"));
        match time {
            Some(time) if known => Wanted { point: point.to_owned(), time, fault },
            _ => panic!("LOOPMUX_FAULT: there is no point {place:?}"),
        }
    }

    pub(super) fn any() -> bool {
        !wanted().is_empty()
    }

    pub(super) fn point(name: &str, side: &str) {
        if !any() {
            return;
        }
        static MET: OnceLock<Mutex<HashMap<String, u64>>> = OnceLock::new();
        assert!(super::POINTS.contains(&name), "the step {name:?} is not in the list of steps");
        let point = format!("{name}.{side}");
        let time = {
            let mut met = MET.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
            let time = met.entry(point.clone()).or_default();
            *time += 1;
            *time
        };
        for wanted in wanted().iter().filter(|w| w.point == point && w.time == time) {
            match &wanted.fault {
                Fault::Die => die(),
                Fault::Hold(file) => hold(file),
            }
        }
    }

    /// As by SIGKILL: no destructor runs, and nothing is flushed.
    fn die() -> ! {
        // It is this process itself that is signalled, whose number cannot be another's.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
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
        match file {
            "engine.lock" | "control.lock" | "archive.lock" => file,
            _ if file.ends_with(".lock") => "run.lock",
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
}
