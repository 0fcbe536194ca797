//! A private tmux server, hand-written attempt directories, and waiting by looking.

use loopmux::observe;
use loopmux::process::{self, Handle, Identity, Opened, Signal};
use loopmux::run::dir::{Dir, random_hex};
use loopmux::run::files::{
    EnvFile, ExitFile, HangupFile, KEEPER_PROTOCOL, LaunchFile, LeftoversFile, MuxRef, RefusedFile, Role,
    SCHEMA, SpawnedFile, StartFile, name, now_ms,
};
use loopmux::run::id::RunId;
use loopmux::run::output::{LogReader, Piece};
use loopmux::run::store::{AttemptRead, RunRead};
use loopmux::run::text::OsText;
use loopmux::verdict::{End, Lease, Observation, Verdict};
use loopmux_mux::{SessionName, Tags};
use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// The program under test.
pub(crate) const KEEP: &str = env!("CARGO_BIN_EXE_loopmux-keep");
/// A hang guard, not a measure: far beyond anything that works.
pub(crate) const GUARD: Duration = Duration::from_secs(60);

/// Looks again and again until `look` gives something.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + GUARD;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The script of a misbehaving program.
pub(crate) fn fixture(file: &str) -> String {
    format!("{}/fixtures/agents/{file}", env!("CARGO_MANIFEST_DIR"))
}

/// The interpreter itself: a shim in front of it would change the environment and be a process of its own.
pub(crate) fn python() -> &'static str {
    static PYTHON: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    PYTHON.get_or_init(|| {
        let out = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    })
}

/// Words of a command line.
pub(crate) fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// A tmux server of this test alone, with a session that keeps it alive. Ended with the test.
pub(crate) struct Mux {
    home: tempfile::TempDir,
    server: Identity,
}

impl Mux {
    pub(crate) fn new() -> Self {
        let home = tempfile::Builder::new().prefix("lmk").tempdir().unwrap();
        let started = command(home.path())
            .args(["new-session", "-d", "-s", "base", "-x", "100", "-y", "30", "--", "sleep", "1000000"])
            .output()
            .unwrap();
        assert!(started.status.success(), "{started:?}");
        let pid = command(home.path()).args(["display-message", "-p", "#{pid}"]).output().unwrap();
        let pid: u32 = String::from_utf8(pid.stdout).unwrap().trim().parse().unwrap();
        let server = process::identify(pid).unwrap().expect("the server runs");
        Self { home, server }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.home.path().join("tmux")
    }

    pub(crate) fn server(&self) -> &Identity {
        &self.server
    }

    /// One client command, whatever comes of it.
    pub(crate) fn try_tmux<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Output {
        command(self.home.path()).args(args).output().unwrap()
    }

    /// One client command that must succeed; its output without the last line break.
    #[track_caller]
    pub(crate) fn tmux<S: AsRef<OsStr> + Debug>(&self, args: &[S]) -> String {
        let out = self.try_tmux(args);
        assert!(out.status.success(), "tmux {args:?}: {out:?}");
        String::from_utf8(out.stdout).unwrap().trim_end_matches('\n').to_owned()
    }

    /// Launches an attempt in a session of its own, named as its launch file says.
    #[track_caller]
    pub(crate) fn launch(&self, attempt: &Attempt) {
        assert!(self.try_launch(attempt, &attempt.session()));
    }

    /// Launches an attempt in a session of that name. Whether tmux took it.
    pub(crate) fn try_launch(&self, attempt: &Attempt, session: &str) -> bool {
        let before = ["new-session", "-d", "-s", session, "-x", "100", "-y", "30", "--", KEEP, "keep"];
        let args = before.iter().map(OsStr::new).chain([attempt.dir.as_os_str()]);
        self.try_tmux(args).status.success()
    }

    /// Launches an attempt whose keeper meets faults on purpose.
    #[track_caller]
    pub(crate) fn launch_with(&self, attempt: &Attempt, fault: &str) {
        let fault = format!("LOOPMUX_FAULT={fault}");
        let session = attempt.session();
        let before =
            ["new-session", "-d", "-e", &fault, "-s", &session, "-x", "100", "-y", "30", "--", KEEP, "keep"];
        let args = before.iter().map(OsStr::new).chain([attempt.dir.as_os_str()]);
        assert!(self.try_tmux(args).status.success());
    }

    /// Sends keys to the window of an attempt.
    pub(crate) fn keys(&self, attempt: &Attempt, keys: &[&str]) {
        let target = format!("={}:", attempt.session());
        self.tmux(&[&["send-keys", "-t", &target], keys].concat());
    }

    /// What the window of an attempt shows; `None` once it is gone.
    pub(crate) fn screen(&self, attempt: &Attempt) -> Option<String> {
        let out = self.try_tmux(["capture-pane", "-p", "-J", "-t", &format!("={}:", attempt.session())]);
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
    }

    /// Waits for a text in the window of an attempt, and gives the whole screen.
    #[track_caller]
    pub(crate) fn shows(&self, attempt: &Attempt, text: &str) -> String {
        let mut last = None;
        let end = Instant::now() + GUARD;
        loop {
            last = self.screen(attempt).or(last);
            if let Some(screen) = last.as_ref().filter(|s| s.contains(text)) {
                return screen.clone();
            }
            assert!(Instant::now() < end, "no {text:?} in {last:?}; {}", attempt.dump());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Formats of the window of an attempt.
    #[track_caller]
    pub(crate) fn format(&self, attempt: &Attempt, format: &str) -> String {
        self.tmux(&["display-message", "-p", "-t", &format!("={}:", attempt.session()), format])
    }

    pub(crate) fn has(&self, attempt: &Attempt) -> bool {
        self.has_session(&attempt.session())
    }

    pub(crate) fn has_session(&self, name: &str) -> bool {
        self.try_tmux(["has-session", "-t", &format!("={name}")]).status.success()
    }

    /// Kills the server without giving it a chance.
    pub(crate) fn kill_server_hard(&self) {
        signal(&self.server, Signal::Kill);
    }
}

impl Drop for Mux {
    fn drop(&mut self) {
        // A keeper that a failed test left waiting would wait on without its window.
        end_with_descendants(&self.server);
    }
}

fn command(home: &Path) -> Command {
    let mut command = Command::new("tmux");
    command.env_clear().env("HOME", home).env("TMUX_TMPDIR", home).env("XDG_RUNTIME_DIR", home);
    command
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8");
    command.args(["-f", "/dev/null", "-u", "-S"]).arg(home.join("tmux"));
    command
}

/// Signals a process by its identity; one that is gone is none to signal.
#[track_caller]
pub(crate) fn signal(id: &Identity, signal: Signal) {
    match Handle::open(id) {
        Opened::Handle(handle) => {
            let _ = handle.signal(signal);
        }
        Opened::Gone => {}
        Opened::Unknown(why) => panic!("{why}"),
    }
}

pub(crate) fn is_gone(id: &Identity) -> bool {
    matches!(process::life(id), process::Life::Gone)
}

/// The identity of a process that must run now.
#[track_caller]
pub(crate) fn identify(pid: u32) -> Identity {
    process::identify(pid).unwrap().expect("it runs")
}

/// What to launch.
pub(crate) struct Spec {
    pub(crate) argv: Vec<OsString>,
    pub(crate) vars: Vec<(OsString, OsString)>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) park: bool,
    pub(crate) role: Role,
    pub(crate) poke: Option<PathBuf>,
    /// The last word on the launch file.
    pub(crate) edit: Box<dyn Fn(&mut LaunchFile)>,
}

impl Spec {
    pub(crate) fn new(argv: &[&str]) -> Self {
        let path = std::env::var_os("PATH").unwrap();
        Self {
            argv: words(argv),
            vars: vec![("PATH".into(), path), ("LC_ALL".into(), "C.UTF-8".into())],
            cwd: None,
            park: false,
            role: Role::Attempt,
            poke: None,
            edit: Box::new(|_| {}),
        }
    }

    pub(crate) fn sh(script: &str) -> Self {
        Self::new(&["sh", "-c", script])
    }

    pub(crate) fn park(mut self) -> Self {
        self.park = true;
        self
    }

    pub(crate) fn var(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.vars.push((name.into(), value.into()));
        self
    }

    pub(crate) fn write(self, mux: &Mux) -> Attempt {
        self.write_in(mux, mux.home())
    }

    /// Writes the directories and files that a launch makes, below `root`.
    pub(crate) fn write_in(self, mux: &Mux, root: &Path) -> Attempt {
        let token = random_hex(16);
        let id = format!("20261129-160042-{}", &token[..4]);
        let run_dir = root.join(format!("run-{}", &token[..12]));
        let (parent, n) = match self.role {
            Role::Attempt => (run_dir.join(name::ATTEMPTS), "1"),
            Role::Engine => (run_dir.join(name::ENGINE), "1"),
        };
        let dir = parent.join(n);
        std::fs::create_dir_all(&dir).unwrap();
        let home = Dir::open(&dir).unwrap();
        let mut launch = LaunchFile {
            schema: SCHEMA,
            protocol: KEEPER_PROTOCOL,
            role: self.role,
            run: id,
            attempt: 1,
            tags: Tags {
                token: token.clone(),
                project: "0123456789abcdef".to_owned(),
                run: "r".to_owned(),
                state: "fedcba9876543210".to_owned(),
            },
            title: "test".to_owned(),
            argv: self.argv.into_iter().map(OsText).collect(),
            cwd: OsText::from(self.cwd.unwrap_or_else(|| mux.home().to_owned())),
            mux: MuxRef {
                backend: "tmux".to_owned(),
                binary: OsText::from(which("tmux")),
                socket: OsText::from(mux.socket()),
                version: None,
            },
            session: SessionName::new(format!("t{}", &token[..8])).unwrap(),
            window: SessionName::new("w").unwrap(),
            host: process::host().clone(),
            park: self.park,
            poke: self.poke.map(OsText::from),
            run_dir: home.above(2).unwrap(),
            at_ms: now_ms(),
        };
        (self.edit)(&mut launch);
        if self.role == Role::Attempt {
            home.create_empty(name::LEASE).unwrap();
        }
        home.write_once(name::LAUNCH, &launch).unwrap();
        let vars = [(OsString::from("LOOPMUX_TOKEN"), OsString::from(&token))];
        let vars = self.vars.into_iter().chain(vars).map(|(n, v)| (OsText(n), OsText(v))).collect();
        home.write_once(name::ENV, &EnvFile { schema: SCHEMA, vars }).unwrap();
        Attempt { dir, run_dir, token, launch }
    }
}

fn which(program: &str) -> PathBuf {
    std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|dir| dir.join(program))
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("{program} is not on the PATH"))
}

/// One attempt's directory. Whatever still holds its lease or carries its token is ended with the test.
pub(crate) struct Attempt {
    pub(crate) dir: PathBuf,
    pub(crate) run_dir: PathBuf,
    pub(crate) token: String,
    pub(crate) launch: LaunchFile,
}

impl Attempt {
    pub(crate) fn session(&self) -> String {
        self.launch.session.as_str().to_owned()
    }

    pub(crate) fn open(&self) -> Dir {
        Dir::open(&self.dir).unwrap()
    }

    fn read<T>(&self, what: &str, seen: Observation<T>) -> Option<T> {
        match seen {
            Observation::Known(file) => Some(file),
            Observation::Absent => None,
            Observation::Unknown(why) => panic!("{what}: {why}"),
        }
    }

    pub(crate) fn attempt_read(&self) -> AttemptRead {
        let id = RunId::parse(&self.launch.run).unwrap();
        match RunRead::at(id, Dir::open(&self.run_dir).unwrap()).attempt(1) {
            Observation::Known(read) => read,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        observe::attempt_on_disk(&self.attempt_read()).verdict
    }

    pub(crate) fn start(&self) -> Option<StartFile> {
        self.read("start", self.open().read_json(name::START))
    }

    pub(crate) fn spawned(&self) -> Option<SpawnedFile> {
        self.read("spawned", self.open().read_json(name::SPAWNED))
    }

    pub(crate) fn exit(&self) -> Option<ExitFile> {
        self.read("exit", self.open().read_json(name::EXIT))
    }

    pub(crate) fn hangup(&self) -> Option<HangupFile> {
        self.read("hangup", self.open().read_json(name::HANGUP))
    }

    pub(crate) fn refused(&self) -> Option<RefusedFile> {
        self.read("refused", self.open().read_json(name::REFUSED))
    }

    pub(crate) fn leftovers(&self) -> Option<LeftoversFile> {
        self.read("leftovers", self.open().read_json(name::LEFTOVERS))
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        self.dir.join(file).exists()
    }

    pub(crate) fn lease(&self) -> Lease {
        loopmux::run::locks::probe(&self.open(), name::LEASE)
    }

    /// The keeper, once it has started.
    #[track_caller]
    pub(crate) fn keeper(&self) -> Identity {
        until("the start receipt is there", || self.start()).keeper
    }

    /// The program, once it runs.
    #[track_caller]
    pub(crate) fn program(&self) -> Identity {
        until("the program is spawned", || self.spawned()).cli
    }

    /// Waits for the exit receipt.
    #[track_caller]
    pub(crate) fn ended(&self) -> ExitFile {
        let end = Instant::now() + GUARD;
        loop {
            if let Some(exit) = self.exit() {
                return exit;
            }
            assert!(Instant::now() < end, "no exit receipt; {}", self.dump());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until the program exited, without a hang-up, and nothing is left.
    #[track_caller]
    pub(crate) fn exits(&self, code: i32) {
        let exit = self.ended();
        assert_eq!((&exit.end, exit.hangup), (&End::Code(code), false), "{}", self.dump());
        assert_eq!(exit.token, self.token);
        self.is_empty();
    }

    /// Waits until nothing of it is left.
    #[track_caller]
    pub(crate) fn is_empty(&self) {
        until("nothing holds the lease", || (self.lease() == Lease::Free).then_some(()));
        assert!(self.has(name::EMPTIED), "{}", self.dump());
    }

    /// The log, once nobody records any more.
    #[track_caller]
    pub(crate) fn log(&self) -> Vec<u8> {
        let mut reader = LogReader::new(self.open(), 0);
        until("the log is complete", || (reader.recorder() == Lease::Free).then_some(()));
        let mut all = Vec::new();
        while let Some(piece) = reader.read().unwrap() {
            match piece {
                Piece::Bytes(bytes) => all.extend(bytes),
                Piece::Gap(bytes) => panic!("a gap of {bytes} bytes"),
            }
        }
        all
    }

    /// Everything that helps to see why a test failed.
    pub(crate) fn dump(&self) -> String {
        let mut out = String::new();
        let Ok(list) = std::fs::read_dir(&self.dir) else { return "the directory is gone".to_owned() };
        for entry in list.flatten() {
            let text = std::fs::read(entry.path()).unwrap_or_default();
            let text = String::from_utf8_lossy(&text[..text.len().min(600)]).into_owned();
            out += &format!("\n{}: {text:?}", entry.file_name().to_string_lossy());
        }
        out + &format!("\nlease: {:?}", self.lease())
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let Ok(dir) = Dir::open(&self.dir) else { return };
        // A keeper that still writes would bring files back while the directories are removed.
        if let Observation::Known(start) = dir.read_json::<StartFile>(name::START) {
            end_with_descendants(&start.keeper);
        }
        // A free lease is nobody's, and a look at every process of the machine takes its time.
        if self.lease() != Lease::Held {
            return;
        }
        let Ok(lease) = std::fs::metadata(self.dir.join(name::LEASE)) else { return };
        let holders = process::holders(lease.dev(), lease.ino());
        for note in holders.join(process::with_token(&self.token)).found {
            if note.id.pid != std::process::id() {
                signal(&note.id, Signal::Kill);
            }
        }
    }
}

/// Kills a process and everything below it, and waits for their end.
fn end_with_descendants(id: &Identity) {
    if is_gone(id) {
        return;
    }
    let mut all = vec![id.clone()];
    all.extend(process::descendants(id.pid).found.into_iter().map(|note| note.id));
    for id in &all {
        signal(id, Signal::Kill);
    }
    let end = Instant::now() + GUARD;
    while Instant::now() < end && !all.iter().all(is_gone) {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A log of signals, written by the recorder.
pub(crate) struct Signals {
    path: PathBuf,
}

impl Signals {
    /// A program that records its signals, and survives those that are named.
    pub(crate) fn recorder(mux: &Mux, survives: &[&str]) -> (Self, Spec) {
        let path = mux.home().join(format!("signals-{}", random_hex(4)));
        let script = fixture("recorder.py");
        let log = path.to_str().unwrap().to_owned();
        let argv: Vec<&str> = [&[python(), &script, &log], survives].concat();
        let spec = Spec::new(&argv);
        (Self { path }, spec)
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.path).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Waits for a line that starts so.
    #[track_caller]
    pub(crate) fn line(&self, start: &str) -> String {
        until(&format!("a line {start:?} is recorded"), || {
            self.lines().into_iter().find(|line| line.starts_with(start))
        })
    }

    pub(crate) fn count(&self, start: &str) -> usize {
        self.lines().iter().filter(|line| line.starts_with(start)).count()
    }
}
