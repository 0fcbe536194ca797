//! A private tmux server for one test: own socket, own home, ended with the test.

#![allow(dead_code, reason = "each test binary uses its own part")]

use loopmux_mux::{Answered, CreateSpec, Multiplexer, Placement, Scope, SessionName, Snapshot, Tags};
use loopmux_tmux::{Endpoint, Tmux};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A guard against hanging, far beyond what anything here takes.
pub(crate) const HANG: Duration = Duration::from_secs(30);

pub(crate) struct Lab {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) tmux: Tmux,
}

/// The tmux under test: `LOOPMUX_TMUX`, to try another version, or the first one on the path.
pub(crate) fn binary() -> PathBuf {
    let named = std::env::var_os("LOOPMUX_TMUX").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = || std::env::split_paths(&path).map(|dir| dir.join("tmux")).find(|tmux| tmux.is_file());
    named.or_else(found).expect("tmux is installed")
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with_config("")
    }

    /// A lab whose person has this in `~/.tmux.conf`.
    pub(crate) fn with_config(config: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("lab").tempdir().unwrap();
        std::fs::write(dir.path().join(".tmux.conf"), config).unwrap();
        let tmux = Tmux::new(binary(), &Endpoint::Path(dir.path().join("s"))).unwrap();
        let tmux = tmux.with_variable("HOME", dir.path()).with_variable("XDG_CONFIG_HOME", dir.path());
        // A busy machine is no fault of the server's.
        let tmux = tmux.with_deadlines(HANG, HANG);
        Self { dir, tmux }
    }

    /// Executes tmux as a person would, on this lab's server.
    pub(crate) fn by_hand(&self, args: &[&str]) -> Output {
        Command::new(binary())
            .arg("-u")
            .arg("-S")
            .arg(self.tmux.socket())
            .args(args)
            .env("HOME", self.dir.path())
            .env_remove("TMUX")
            .env_remove("TMUX_PANE")
            .output()
            .unwrap()
    }

    pub(crate) fn answered(&self) -> Answered {
        match self.tmux.snapshot(Scope::Everything) {
            Snapshot::Answered(answered) => answered,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.by_hand(&["kill-server"]);
    }
}

pub(crate) fn tags(n: u32) -> Tags {
    Tags {
        token: format!("{n:032x}"),
        project: "00000000000000aa".into(),
        run: format!("20261129-160042-{n:04x}"),
        state: "00000000000000bb".into(),
    }
}

pub(crate) fn name(text: &str) -> SessionName {
    SessionName::new(text).unwrap()
}

pub(crate) fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// A session of its own around a command.
pub(crate) fn session(lab: &Lab, called: &str, n: u32, command: &[&str]) -> CreateSpec {
    CreateSpec {
        placement: Placement::NewSession { name: name(called), tags: tags(n), size: (100, 30) },
        window: name("agent"),
        tags: tags(n),
        command: words(command),
        cwd: lab.dir.path().to_owned(),
    }
}

/// Waits for an event that a test caused, without judging how long it took.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < HANG, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn read(path: &Path) -> Option<Vec<u8>> {
    std::fs::read(path).ok()
}

/// An executable shell script. Another process writes it: a descriptor that is open for writing here could be
/// inherited by a child of another test at that moment, and the script could then not be executed.
pub(crate) fn script(lab: &Lab, called: &str, body: &str) -> PathBuf {
    let path = lab.path(called);
    let written = Command::new("/bin/sh")
        .args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(&path)
        .arg(body)
        .status();
    assert!(written.unwrap().success());
    path
}
