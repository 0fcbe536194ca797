//! Disks that are full, and directories that refuse or vanish. Mounting needs root: without it these tests say so
//! and do nothing.

use crate::support::*;
use loopmux::run::files::name;
use loopmux::run::output::{LogReader, Piece};
use loopmux::verdict::{End, Lease, Verdict};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system of its own, unmounted with the test.
struct Small {
    path: PathBuf,
}

impl Small {
    fn mount(mux: &Mux, size: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            let _ = writeln!(std::io::stderr(), "skipped: only root may mount a small file system");
            return None;
        }
        let path = mux.home().join("small");
        std::fs::create_dir(&path).unwrap();
        let options = format!("size={size},mode=700");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&path).status();
        assert!(mounted.unwrap().success(), "root can mount a tmpfs");
        Some(Self { path })
    }

    /// Takes every byte that is left, and proves it.
    fn fill(&self) {
        let path = self.path.join("ballast");
        let mut ballast = std::fs::File::create(&path).unwrap();
        for step in [65536, 4096, 1] {
            while ballast.write_all(&vec![b'x'; step]).is_ok() {}
        }
        let full = std::fs::write(self.path.join("one-more"), "x").unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull, "the fault is there");
    }

    fn free(&self) {
        std::fs::remove_file(self.path.join("ballast")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Lazily: a process that the test is about to end may still have a file open.
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

/// A directory in which nobody may change a name, root included.
struct Immutable<'p>(&'p Path);

impl<'p> Immutable<'p> {
    fn set(path: &'p Path) -> Option<Self> {
        let set = rustix::process::geteuid().is_root()
            && Command::new("chattr")
                .arg("+i")
                .arg(path)
                .stderr(std::process::Stdio::null())
                .status()
                .is_ok_and(|s| s.success());
        if !set {
            let _ = writeln!(std::io::stderr(), "skipped: no directory can be made immutable here");
            return None;
        }
        assert!(std::fs::write(path.join("probe"), "x").is_err(), "the fault is there");
        Some(Self(path))
    }
}

impl Drop for Immutable<'_> {
    fn drop(&mut self) {
        let _ = Command::new("chattr").arg("-i").arg(self.0).status();
    }
}

#[test]
fn a_disk_that_is_full_before_the_start_starts_nothing() {
    let mux = Mux::new();
    let Some(small) = Small::mount(&mux, "1m") else { return };
    let attempt = Spec::sh("echo x > started").write_in(&mux, &small.path);
    small.fill();
    mux.launch(&attempt);
    until("the window is gone", || (!mux.has(&attempt)).then_some(()));
    assert!(attempt.start().is_none() && attempt.exit().is_none(), "{}", attempt.dump());
    assert!(!mux.home().join("started").exists());
    // Whoever waits gives up as always, and it reads the same.
    small.free();
    if attempt.refused().is_none() {
        assert_eq!(attempt.verdict(), Verdict::Launching);
        attempt.open().create_empty(name::CANCELLED).unwrap();
    }
    assert!(matches!(attempt.verdict(), Verdict::NeverStarted { .. }), "{:?}", attempt.verdict());
}

#[test]
fn a_disk_that_fills_after_the_start_does_not_lose_the_end() {
    let mux = Mux::new();
    let Some(small) = Small::mount(&mux, "1m") else { return };
    let attempt = Spec::sh("until [ -e go ]; do sleep 0.01; done; exit 0").write_in(&mux, &small.path);
    mux.launch(&attempt);
    attempt.program();
    small.fill();
    std::fs::write(mux.home().join("go"), "").unwrap();
    let exit = attempt.ended();
    assert_eq!((exit.end, exit.hangup), (End::Code(0), false));
    until("the lease is free", || (attempt.lease() == Lease::Free).then_some(()));
    assert!(matches!(attempt.verdict(), Verdict::Exited { end: End::Code(0), .. }));
    let temps: Vec<_> = std::fs::read_dir(&attempt.dir)
        .unwrap()
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with('.'))
        .collect();
    assert!(temps.is_empty(), "{temps:?}");
}

/// Waits until the first bytes are in the log.
#[track_caller]
fn is_recorded(attempt: &Attempt) {
    until("it is recorded", || {
        let mut reader = LogReader::new(attempt.open(), 0);
        matches!(reader.read().unwrap(), Some(Piece::Bytes(_))).then_some(())
    });
}

#[test]
fn output_on_a_full_disk_is_dropped_counted_and_told() {
    let mux = Mux::new();
    let Some(small) = Small::mount(&mux, "2m") else { return };
    let script = "echo begin; until [ -e go ]; do sleep 0.01; done; seq 1 20000; echo middle
                  until [ -e free ]; do sleep 0.01; done; echo end";
    let attempt = Spec::sh(script).write_in(&mux, &small.path);
    mux.launch(&attempt);
    mux.shows(&attempt, "begin");
    is_recorded(&attempt);
    small.fill();
    std::fs::write(mux.home().join("go"), "").unwrap();
    mux.shows(&attempt, "middle");
    small.free();
    std::fs::write(mux.home().join("free"), "").unwrap();
    attempt.exits(0);
    let log = String::from_utf8(attempt.log()).unwrap();
    assert!(log.starts_with("begin\r\n") && log.ends_with("end\r\n"), "{} bytes", log.len());
    let mut recorded = log.len();
    let mut lost = 0;
    for (at, _) in log.match_indices("[loopmux: ") {
        let line = log[at..].find("]\r\n").expect("a whole line") + 3;
        recorded -= line + "\r\n".len();
        lost += log[at + 10..].split(' ').next().unwrap().parse::<usize>().unwrap();
    }
    assert!(lost > 0, "something was lost");
    let printed: usize = (1..=20_000).map(|n: u32| n.to_string().len() + 2).sum::<usize>()
        + "begin\r\nmiddle\r\nend\r\n".len();
    assert_eq!(recorded + lost, printed, "every byte is there or counted");
}

#[test]
fn a_loss_at_the_very_end_is_told_too() {
    let mux = Mux::new();
    let Some(small) = Small::mount(&mux, "2m") else { return };
    let script = "echo begin; until [ -e go ]; do sleep 0.01; done; seq 1 20000";
    let attempt = Spec::sh(script).write_in(&mux, &small.path);
    mux.launch(&attempt);
    mux.shows(&attempt, "begin");
    is_recorded(&attempt);
    small.fill();
    std::fs::write(mux.home().join("go"), "").unwrap();
    attempt.ended();
    let log = String::from_utf8(attempt.log()).unwrap();
    assert!(
        log.contains("bytes of output were not recorded: No space left"),
        "{:?}",
        &log[log.len() - 200..]
    );
}

#[test]
fn an_end_that_cannot_be_written_is_tried_until_it_can_with_the_lease_held() {
    let mux = Mux::new();
    let attempt = Spec::sh("until [ -e go ]; do sleep 0.01; done; exit 7").write(&mux);
    mux.launch(&attempt);
    let program = attempt.program();
    let Some(locked) = Immutable::set(&attempt.dir) else { return };
    std::fs::write(mux.home().join("go"), "").unwrap();
    until("the program is gone", || is_gone(&program).then_some(()));
    mux.shows(&attempt, "trying again until the end is recorded");
    assert_eq!(attempt.verdict(), Verdict::Running { window_gone: None });
    assert!(attempt.exit().is_none());
    drop(locked);
    attempt.exits(7);
}

#[test]
fn a_directory_that_vanished_is_not_made_again() {
    let mux = Mux::new();
    let attempt = Spec::sh("until [ -e go ]; do sleep 0.01; done; echo went on > ran; exit 7").write(&mux);
    mux.launch(&attempt);
    let keeper = attempt.keeper();
    attempt.program();
    until("it is recorded", || attempt.has(name::OUTPUT).then_some(()));
    std::fs::remove_dir_all(&attempt.run_dir).unwrap();
    std::fs::write(mux.home().join("go"), "").unwrap();
    until("the keeper ended with its program", || is_gone(&keeper).then_some(()));
    assert_eq!(std::fs::read_to_string(mux.home().join("ran")).unwrap(), "went on\n");
    assert!(!attempt.run_dir.exists());
}

#[test]
fn a_vanished_directory_is_said_in_the_window() {
    let mux = Mux::new();
    let attempt = Spec::sh("until [ -e go ]; do sleep 0.01; done; exit 7").park().write(&mux);
    mux.launch(&attempt);
    attempt.program();
    until("it is recorded", || attempt.has(name::OUTPUT).then_some(()));
    std::fs::remove_dir_all(&attempt.run_dir).unwrap();
    std::fs::write(mux.home().join("go"), "").unwrap();
    let screen = mux.shows(&attempt, "press Enter to close");
    assert!(screen.contains("the run's directory is gone"), "{screen}");
    mux.keys(&attempt, &["Enter"]);
    until("the window is gone", || (!mux.has(&attempt)).then_some(()));
}
