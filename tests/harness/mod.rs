//! A world of its own for each test: state directory, home, project, runtime directory and a private tmux server.
//! Everything that was started in it has ended when it is dropped, also on a panic.
#![allow(dead_code, unreachable_pub, unused_imports)]

mod disk;
mod people;
mod screen;
mod tree;

pub use disk::{Disk, interpose};
pub use people::{STRANGER, fixture, is_root, not_root, python, say};
pub use screen::Screen;
pub use tree::Tree;

use loopmux::process::{self, Handle, Opened, Signal};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take before the test is taken to hang: ten times what it takes on a busy machine.
pub const HANG: Duration = Duration::from_secs(30);

/// A world.
pub struct World {
    root: tempfile::TempDir,
    /// More environment of every command.
    pub env: Vec<(OsString, OsString)>,
    /// Words before every command: who executes it, and with which rights.
    pub prefix: Vec<OsString>,
    /// The program; a test that replaces it has its own copy.
    pub program: PathBuf,
    /// The state directory.
    pub state: PathBuf,
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts the exit code, and shows everything where it is another.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// The one JSON object on standard output; of a stream the last.
    #[track_caller]
    pub fn json(&self) -> Value {
        let line = self.out.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {:?} {:?}", self.out, self.err))
    }
}

impl World {
    /// A new world with an empty project. No server runs in it.
    pub fn new() -> Self {
        // Short: a socket's path has little room.
        let root = tempfile::Builder::new().prefix("lm").tempdir_in("/tmp").expect("a temporary directory");
        for dir in ["state", "home", "project", "run", "tmux", "bin"] {
            std::fs::create_dir(root.path().join(dir)).expect("a directory of the world");
        }
        for private in ["run", "tmux"] {
            use std::os::unix::fs::PermissionsExt;
            let path = root.path().join(private);
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).expect("chmod");
        }
        let program = PathBuf::from(env!("CARGO_BIN_EXE_loopmux"));
        let state = root.path().join("state");
        Self { root, env: Vec::new(), prefix: Vec::new(), program, state }
    }

    /// The world's own directory.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// The project's directory.
    pub fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// The state directory.
    pub fn state(&self) -> PathBuf {
        self.state.clone()
    }

    /// The socket of the private server.
    pub fn socket(&self) -> PathBuf {
        self.root.path().join("tmux").join("s")
    }

    /// A directory that is first on PATH.
    pub fn bin(&self) -> PathBuf {
        self.root.path().join("bin")
    }

    /// A directory for whatever the scripts of a test write.
    pub fn file(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A command in this world's surroundings, not started yet.
    pub fn bare(&self, program: impl AsRef<OsStr>) -> Command {
        let mut words = self.prefix.iter().map(OsString::as_os_str).chain([program.as_ref()]);
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words);
        self.surroundings(&mut command);
        command
    }

    fn surroundings(&self, command: &mut Command) {
        let path = std::env::var("PATH").expect("a PATH");
        command
            .env_clear()
            .env("PATH", format!("{}:{path}", self.bin().display()))
            .env("HOME", self.root.path().join("home"))
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .env("XDG_RUNTIME_DIR", self.root.path().join("run"))
            .env("LOOPMUX_STATE_DIR", self.state())
            .env("LOOPMUX_SOCKET", self.socket())
            .envs(self.env.iter().map(|(n, v)| (n, v)))
            .current_dir(self.project())
            .stdin(Stdio::null());
    }

    /// A loopmux command, not started yet.
    pub fn command<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I) -> Command {
        let mut command = self.bare(&self.program);
        command.args(args);
        command
    }

    /// Runs loopmux to its end.
    #[track_caller]
    pub fn loopmux<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I) -> Ran {
        finish(self.command(args))
    }

    /// Starts loopmux, and leaves it running.
    pub fn start<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("loopmux starts")
    }

    /// `run -d` of a command; the run's id.
    #[track_caller]
    pub fn detach<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, argv: I) -> String {
        let argv = argv.into_iter().map(|a| a.as_ref().to_owned());
        let words = ["run", "-d", "--"].into_iter().map(OsString::from).chain(argv);
        self.loopmux(words).exits(0).out.trim().to_owned()
    }

    /// A detached run whose program runs: its id, and its attempt as `status --json` has it.
    #[track_caller]
    pub fn launched<S: AsRef<OsStr>>(&self, argv: &[S]) -> (String, Value) {
        let run = self.detach(argv);
        let status = self.until(&run, |s| s["attempts"][0]["verdict"]["kind"] == "running");
        (run, status["attempts"][0].clone())
    }

    /// The pid of the agent CLI of a run's attempt, by the keeper's word.
    #[track_caller]
    pub fn cli(&self, run: &str, attempt: u32) -> u32 {
        let file = format!("attempts/{attempt}/spawned.json");
        eventually("the program", || {
            let there = self.run_dir(run).join(&file).exists();
            there.then(|| pid(&self.read(run, &file)["cli"])).ok_or_else(|| "not spawned".to_owned())
        })
    }

    /// A tmux client of the private server.
    #[track_caller]
    pub fn tmux<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I) -> Ran {
        let mut command = self.bare("/usr/bin/tmux");
        command.arg("-u").arg("-S").arg(self.socket()).args(args);
        finish(command)
    }

    /// The pid of the private server.
    #[track_caller]
    pub fn server(&self) -> u32 {
        let ran = self.tmux(["display-message", "-p", "#{pid}"]).exits(0);
        ran.out.trim().parse().expect("a pid")
    }

    /// The status object of a run: `data` of `status --json`.
    #[track_caller]
    pub fn status(&self, run: &str) -> Value {
        self.loopmux(["status", "--json", run]).exits(0).json()["data"].clone()
    }

    /// Asks for the status until `until` holds.
    #[track_caller]
    pub fn until(&self, run: &str, until: impl Fn(&Value) -> bool) -> Value {
        eventually("the status", || {
            let status = self.status(run);
            until(&status).then(|| status.clone()).ok_or_else(|| status.to_string())
        })
    }

    /// Waits until a run that has ended writes nothing more: its end is told before its keeper has gone.
    #[track_caller]
    pub fn settled(&self, run: &str) {
        self.until(run, |s| s["run"]["removable"] == true);
    }

    /// The directory of a run.
    #[track_caller]
    pub fn run_dir(&self, run: &str) -> PathBuf {
        let projects = self.state().join("projects");
        let found = std::fs::read_dir(projects).expect("projects").flatten().find_map(|project| {
            let dir = project.path().join("runs").join(run);
            dir.is_dir().then_some(dir)
        });
        found.unwrap_or_else(|| panic!("no directory of run {run}"))
    }

    /// A file of a run, read as JSON, once it is there: receipts follow what they tell by a moment.
    #[track_caller]
    pub fn read(&self, run: &str, file: &str) -> Value {
        let path = self.run_dir(run).join(file);
        let bytes = eventually("a file of a run", || {
            std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))
        });
        serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// An executable script in the directory that is first on PATH.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.bin().join(name);
        std::fs::write(&path, text).expect("a script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("chmod");
        path
    }

    /// Every process that was started in this world, by its environment or its command line, each with a handle
    /// of its own. Who names this world's private directory was started by this test.
    pub fn processes(&self) -> Vec<Handle> {
        let mine = std::process::id();
        let pids = std::fs::read_dir("/proc").expect("/proc").flatten();
        let pids = pids.filter_map(|e| e.file_name().to_str().and_then(|n| n.parse::<u32>().ok()));
        // Most of a busy machine is not ours: what is cheap to ask is asked first.
        pids.filter(|pid| *pid != mine && self.started(*pid))
            .filter_map(|pid| process::identify(pid).ok().flatten())
            .filter_map(|id| match Handle::open(&id) {
                Opened::Handle(handle) => Some(handle),
                Opened::Gone | Opened::Unknown(_) => None,
            })
            .filter(|handle| self.started(handle.identity().pid))
            .collect()
    }

    fn started(&self, pid: u32) -> bool {
        let needle = self.root.path().as_os_str().as_encoded_bytes();
        ["environ", "cmdline"].iter().any(|file| {
            std::fs::read(format!("/proc/{pid}/{file}"))
                .is_ok_and(|bytes| bytes.windows(needle.len()).any(|w| w == needle))
        })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let end = Instant::now() + HANG;
        loop {
            let left = self.processes();
            if left.is_empty() || Instant::now() > end {
                break;
            }
            for handle in &left {
                // One that has ended meanwhile is what this is for.
                let _ = handle.signal(Signal::Kill);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The pid of an identity in a file.
#[track_caller]
pub fn pid(identity: &Value) -> u32 {
    let pid = identity["pid"].as_u64().unwrap_or_else(|| panic!("no pid in {identity}"));
    u32::try_from(pid).expect("a pid")
}

/// Sends a signal to a process that a file or a test named, through a handle.
#[track_caller]
pub fn signal(pid: u32, signal: Signal) {
    let id = process::identify(pid).unwrap().unwrap_or_else(|| panic!("process {pid} is not there"));
    match Handle::open(&id) {
        Opened::Handle(handle) => {
            handle.signal(signal).unwrap_or_else(|e| panic!("{signal:?} to {pid}: {e}"))
        }
        other => panic!("process {pid}: {other:?}"),
    }
}

/// Runs a command to its end, and kills it where it hangs.
#[track_caller]
pub fn finish(mut command: Command) -> Ran {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    finish_child(child)
}

/// Waits for a child, and kills it where it hangs.
#[track_caller]
pub fn finish_child(child: Child) -> Ran {
    let id = process::identify(child.id()).expect("a child has an identity").expect("a child");
    let (done, hung) = std::sync::mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        let timed_out = hung.recv_timeout(HANG) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        if timed_out && let Opened::Handle(handle) = Handle::open(&id) {
            let _ = handle.signal(Signal::Kill);
        }
        timed_out
    });
    let output = child.wait_with_output().expect("a child");
    drop(done);
    let ran = Ran::of(output);
    assert!(!guard.join().expect("the guard"), "it hung\nstdout:\n{}\nstderr:\n{}", ran.out, ran.err);
    ran
}

/// Tries until it works; what it said last is in the failure.
#[track_caller]
pub fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + HANG;
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(last) if Instant::now() > end => panic!("{what} did not come: {last}"),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Whether a process runs: a zombie does not.
pub fn alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|s| {
            s.rsplit_once(')')
                .map(|(_, rest)| !matches!(rest.trim_start().as_bytes().first(), Some(b'Z' | b'X')))
        })
        .unwrap_or(false)
}
