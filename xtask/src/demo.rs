//! `cargo xtask demo`: the main job, on a real command, in a private state directory and on a private server.

use crate::build::loopmux;
use crate::json::Json;
use crate::setup::{Consent, need_tmux};
use crate::shell::typed;
use crate::{Failure, switches};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// No step takes a tenth of it.
const HANG: Duration = Duration::from_secs(60);

pub(crate) fn run(words: &[String]) -> Result<(), Failure> {
    let [yes, release] = switches(words, ["--yes", "--release"])?;
    need_tmux(if yes { Consent::Given } else { Consent::AskAPerson })?;
    let bin = loopmux(release)?;
    let house = House::new(bin)?;

    house.say("A command runs in a window of tmux, and loopmux says how it ended.");
    house.loopmux(&["run", "--name", "greeting", "--", "sh", "-c", "echo hello from a window; exit 3"], 1)?;
    house.say("Its exit code is kept, and so is what it printed.");
    house.loopmux(&["logs", "greeting"], 0)?;

    house.say("A longer one, in the background.");
    house.loopmux(&["run", "--detach", "--name", "long", "--", "sleep", "600"], 0)?;
    house.until_running("long")?;
    house.loopmux(&["list"], 0)?;
    house.loopmux(&["status", "long"], 0)?;

    house.say("Somebody kills its session, behind our back. That is no exit of the command, and is not taken for one.");
    let session = house.session_of("long")?;
    house.tmux(&["kill-session", "-t", &session])?;
    house.loopmux(&["wait", "long"], 6)?;
    house.loopmux(&["status", "long"], 0)?;

    house.say("One more, that is stopped: success is reported when nothing of it runs any more.");
    house.loopmux(&["run", "--detach", "--name", "other", "--", "sleep", "600"], 0)?;
    house.until_running("other")?;
    house.loopmux(&["stop", "other"], 0)?;
    house.loopmux(&["list"], 0)?;
    println!("\nThe demonstration is over; its server and its state directory are removed.");
    Ok(())
}

/// A private place for everything. Dropped, it ends its own server and removes itself.
struct House {
    dir: PathBuf,
    bin: PathBuf,
}

impl House {
    fn new(bin: PathBuf) -> Result<Self, Failure> {
        let dir = std::env::temp_dir().join(format!("loopmux-demo-{}", std::process::id()));
        let failed = |e| Failure::new(format!("cannot make {}: {e}", dir.display()));
        for part in ["home", "runtime", "project"] {
            std::fs::create_dir_all(dir.join(part)).map_err(failed)?;
        }
        #[cfg(unix)]
        for part in ["", "runtime"] {
            use std::os::unix::fs::PermissionsExt;
            let private = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(dir.join(part), private).map_err(failed)?;
        }
        Ok(Self { dir, bin })
    }

    fn say(&self, text: &str) {
        println!("\n# {text}");
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("socket")
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.dir.join("project")).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LOOPMUX_") || name == "TMUX" || name == "TMUX_PANE" {
                command.env_remove(name);
            }
        }
        command
            .env("HOME", self.dir.join("home"))
            .env("XDG_RUNTIME_DIR", self.dir.join("runtime"))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env("LOOPMUX_PROJECT", self.dir.join("project"))
            .env("LOOPMUX_STATE_DIR", self.dir.join("state"))
            .env("LOOPMUX_MUX", "tmux")
            .env("LOOPMUX_SOCKET", self.socket());
        command
    }

    /// Shows one command of ours, and checks its exit code.
    fn loopmux(&self, words: &[&str], expected: i32) -> Result<(), Failure> {
        println!("\n$ loopmux {}", typed(words));
        let status = bounded(self.command(&self.bin).args(words))?;
        println!("(exit code {})", status.code().map_or("none".to_owned(), |code| code.to_string()));
        if status.code() == Some(expected) {
            return Ok(());
        }
        Err(Failure::new(format!("`loopmux {}` ended with {status}, not {expected}", typed(words))))
    }

    /// The id of the mux session that a run's latest attempt was given.
    fn session_of(&self, run: &str) -> Result<String, Failure> {
        let json = self.status(run)?;
        let session = json.list("data.attempts").last().and_then(|attempt| attempt.text("mux.session_id"));
        session
            .map(str::to_owned)
            .ok_or_else(|| Failure::new(format!("no session in `status --json`: {json:?}")))
    }

    /// A detached run comes back before its window is there; what is shown next should not depend on that.
    fn until_running(&self, run: &str) -> Result<(), Failure> {
        let start = Instant::now();
        while self.status(run)?.text("data.run.status") != Some("running") {
            if start.elapsed() > HANG {
                return Err(Failure::new(format!("run {run} does not start")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn status(&self, run: &str) -> Result<Json, Failure> {
        let output = self.command(&self.bin).args(["status", run, "--json"]).output();
        let output = output.map_err(|e| Failure::new(format!("cannot execute loopmux: {e}")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Json::parse(&text).map_err(|e| Failure::new(format!("status --json: {e}: {text}")))
    }

    fn tmux(&self, words: &[&str]) -> Result<(), Failure> {
        println!("\n$ tmux {}", typed(words));
        let status = bounded(self.command(Path::new("tmux")).arg("-S").arg(self.socket()).args(words))?;
        if status.success() { Ok(()) } else { Err(Failure::new(format!("tmux ended with {status}"))) }
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // Something is left only where a step failed. The server at that socket was started by this
        // demonstration and by nobody else.
        for run in ["greeting", "long", "other"] {
            let mut stop = self.command(&self.bin);
            stop.args(["stop", "--force", run]).stdout(Stdio::null()).stderr(Stdio::null());
            let _ = bounded(&mut stop);
        }
        let mut end = self.command(Path::new("tmux"));
        end.arg("-S").arg(self.socket()).arg("kill-server").stdout(Stdio::null()).stderr(Stdio::null());
        let _ = end.status();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Waits for a command, and ends it if it hangs.
fn bounded(command: &mut Command) -> Result<ExitStatus, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |e| Failure::new(format!("cannot execute {name}: {e}"));
    let mut child = command.spawn().map_err(failed)?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        if start.elapsed() > HANG {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failure::new(format!("{name} hangs: no end after {} s", HANG.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
