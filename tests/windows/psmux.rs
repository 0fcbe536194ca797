//! The whole program with the real psmux: runs, windows that are killed, servers that go.

use loopmux::process::{Handle, Identity, Opened, Signal};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_loopmux");
/// The real `psmux.exe`. Without the variable there is nothing to test with; with it everything has to work.
const VARIABLE: &str = "LOOPMUX_TEST_PSMUX";
/// A hang guard, not a measure.
const GUARD: Duration = Duration::from_secs(240);

/// A state directory, a project and a data directory of one test; its servers end with it.
struct World {
    root: tempfile::TempDir,
    psmux: PathBuf,
}

/// What a command did.
#[derive(Debug)]
#[allow(dead_code, reason = "shown where a test fails")]
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl World {
    fn new() -> Option<Self> {
        let psmux = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from)?;
        assert!(psmux.is_file(), "{} is no program", psmux.display());
        let root = tempfile::tempdir().unwrap();
        for dir in ["state", "project"] {
            std::fs::create_dir(root.path().join(dir)).unwrap();
        }
        Some(Self { root, psmux })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn command(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.path("project")).stdin(Stdio::null());
        command.env("LOOPMUX_STATE_DIR", self.path("state")).env("LOOPMUX_PSMUX", &self.psmux);
        command.env("PSMUX_NO_WARM", "1").env("PSMUX_DATA_DIR", self.data());
        command
    }

    /// Where the project's servers are registered.
    fn data(&self) -> PathBuf {
        let projects = self.path("state").join("projects");
        let project = std::fs::read_dir(&projects).ok().and_then(|mut all| all.next()).and_then(Result::ok);
        project.map_or(projects, |p| p.path()).join("psmux")
    }

    /// Files and not pipes: a server keeps what its client was given.
    fn ran(&self, program: &Path, args: &[&str]) -> Ran {
        let (out, err) = (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
        let mut command = self.command(program, args);
        command.stdout(out.reopen().unwrap()).stderr(err.reopen().unwrap());
        let code = command.status().unwrap().code();
        let read = |file: &tempfile::NamedTempFile| std::fs::read_to_string(file.path()).unwrap_or_default();
        Ran { code, out: read(&out), err: read(&err) }
    }

    fn loopmux(&self, args: &[&str]) -> Ran {
        self.ran(Path::new(PROGRAM), args)
    }

    fn psmux(&self, args: &[&str]) -> Ran {
        self.ran(&self.psmux, args)
    }

    /// A run in the background, once its program runs: the process that drives it, and its id.
    fn running(&self) -> (Child, String) {
        let mut command = self.command(Path::new(PROGRAM), &["run", "--", "ping", "-n", "600", "127.0.0.1"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let id = until("a run is there", || {
            let listed = self.json(&["--json", "list"]);
            let run = listed["data"]["runs"].get(0)?.clone();
            (run["status"] == "running").then(|| run["id"].as_str().unwrap().to_owned())
        });
        (child, id)
    }

    fn json(&self, args: &[&str]) -> Value {
        let ran = self.loopmux(args);
        serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {ran:?}"))
    }

    fn latest(&self, id: &str) -> Value {
        self.json(&["--json", "status", id])["data"]["attempts"][0].clone()
    }

    fn identity(&self, id: &str, file: &str, field: &str) -> Identity {
        let attempt = self.latest(id)["dir"].as_str().unwrap().to_owned();
        let text = std::fs::read_to_string(Path::new(&attempt).join(file)).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        serde_json::from_value(value[field].clone()).unwrap()
    }

    /// The run is lost, for that reason, by what the command says that drove it and by what is on disk.
    fn is_lost(&self, mut child: Child, id: &str, causes: &[&str]) {
        let code = until("the run's command has ended", || child.try_wait().unwrap()).code();
        assert_eq!(code, Some(6), "{:?}", self.loopmux(&["status", id]));
        let attempt = self.latest(id);
        assert_eq!(attempt["verdict"]["kind"], "lost", "{attempt}");
        assert!(causes.contains(&attempt["verdict"]["cause"].as_str().unwrap()), "{attempt}");
        assert_eq!(attempt["evidence"]["exit"], "none", "{attempt}");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Only what is registered in this test's own data directory.
        let _ = self.psmux(&["kill-server"]);
    }
}

#[track_caller]
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + GUARD;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn kill(id: &Identity) {
    match Handle::open(id) {
        Opened::Handle(handle) => handle.signal(Signal::Kill).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_gives_the_exit_code_of_its_program() {
    let Some(world) = World::new() else { return };
    for code in [0, 3] {
        let ran = world.loopmux(&["--json", "run", "--", "cmd", "/d", "/c", &format!("exit {code}")]);
        assert_eq!(ran.code, Some(i32::from(code != 0)), "{ran:?}");
        let last = ran.out.lines().last().expect("a report");
        let report: Value = serde_json::from_str(last).unwrap();
        assert_eq!(report["data"]["attempts"][0]["verdict"]["kind"], "exited", "{last}");
        assert_eq!(report["data"]["attempts"][0]["verdict"]["code"], code, "{last}");
    }
}

#[test]
fn a_killed_session_or_window_is_a_loss() {
    let Some(world) = World::new() else { return };
    for kill in ["kill-session", "kill-pane"] {
        let (child, id) = world.running();
        let session = world.latest(&id)["mux"]["session"].as_str().unwrap().to_owned();
        let killed = world.psmux(&[kill, "-t", &session]);
        assert_eq!(killed.code, Some(0), "{killed:?}");
        world.is_lost(child, &id, &["session-killed", "server-gone", "window-killed"]);
        assert_eq!(world.loopmux(&["delete", &id]).code, Some(0));
    }
}

#[test]
fn a_killed_server_or_keeper_is_a_loss() {
    let Some(world) = World::new() else { return };
    for (field, cause) in [("server", "server-gone"), ("keeper", "keeper-killed")] {
        let (child, id) = world.running();
        kill(&world.identity(&id, "start.json", field));
        world.is_lost(child, &id, &[cause, "server-gone", "session-killed"]);
    }
}

#[test]
fn a_stop_ends_the_run_and_proves_it() {
    let Some(world) = World::new() else { return };
    let (mut child, id) = world.running();
    let program = world.identity(&id, "spawned.json", "cli");
    let stopped = world.loopmux(&["stop", &id, "--force"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert_eq!(loopmux::process::life(&program), loopmux::process::Life::Gone);
    until("the run's command has ended", || child.try_wait().unwrap());
    assert_eq!(world.json(&["--json", "status", &id])["data"]["run"]["status"], "stopped");
}
