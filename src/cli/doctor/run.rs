//! The main job, once: a real run of a harmless command, on a server and in a state directory of its own.

use super::mux::{Usable, end_server, private_dir};
use super::{Doctor, Found};
use crate::backends;
use crate::observe::{self, AttemptView, Looks, RunView};
use crate::ops::programs::KeeperProgram;
use crate::run::output::{LogReader, Piece};
use crate::run::store::{ReadStore, RunRead};
use crate::verdict::{End, Observation, Verdict};
use loopmux_mux::Multiplexer;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the run may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A harmless command, which prints its last word.
const ECHO: &[&str] = if cfg!(windows) { &["cmd", "/d", "/c", "echo"] } else { &["echo"] };

/// What the harmless command prints.
const WORDS: &str = "loopmux-doctor was here";

/// Checks the keeper program, and a run with it.
pub(super) fn check(doctor: &mut Doctor, scratch: Option<&tempfile::TempDir>, mux: Option<&Usable>) {
    let keeper = doctor.check("keeper", keeper);
    let (Some(scratch), Some(usable), true) = (scratch, mux, keeper) else {
        doctor.skip(&["run"], "something that a run needs failed");
        return;
    };
    let (scratch, mux) = (scratch.path().to_owned(), Arc::clone(&usable.mux));
    doctor.check("run", move || match run(&scratch, &*mux) {
        Ok(()) => {
            Found::pass("a real run left its receipts and its output, and ended everything that it started")
        }
        Err(why) => Found::fail(why, "read what went wrong with: LOOPMUX_LOG=debug loopmux run -- true"),
    });
}

fn keeper() -> Found {
    let fix = "install loopmux again, both programs of it";
    let program = match KeeperProgram::find() {
        Ok(program) => program,
        Err(e) => return Found::fail(format!("the path of this program cannot be told: {e}"), fix),
    };
    match program.check() {
        Ok(()) => Found::pass(format!("{} speaks this program's protocol", program.path().display())),
        Err(e) => Found::fail(e.to_string(), fix),
    }
}

fn run(scratch: &Path, mux: &dyn Multiplexer) -> Result<(), String> {
    let place = |name: &str| -> Result<PathBuf, String> {
        let path = scratch.join(name);
        crate::at::private_builder()
            .create(&path)
            .map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        Ok(path)
    };
    let (state, project) = (place("state")?, place("project")?);
    let socket = private_dir().map_err(|e| format!("cannot make a directory for a socket: {e}"))?;
    let private = backends::elsewhere(mux, &socket.path().join("s")).map_err(|e| e.to_string())?;
    let driven = drive(&state, &project, &*private);
    let view = view(&state, &project);
    if let Ok((view, _)) = &view {
        end_server(view.latest().and_then(AttemptView::server));
    }
    driven?;
    let (view, run) = view?;
    promised(&view, &run)
}

fn drive(state: &Path, project: &Path, mux: &dyn Multiplexer) -> Result<(), String> {
    let me = std::env::current_exe().map_err(|e| format!("the path of this program cannot be told: {e}"))?;
    let mut command = Command::new(me);
    command.args(["--quiet", "--mux", mux.name(), "--project"]).arg(project).args(["run", "--no-park"]);
    command.arg("--").args(ECHO).arg(WORDS);
    command
        .env("LOOPMUX_STATE_DIR", state)
        .env("LOOPMUX_SOCKET", mux.socket())
        .env(format!("LOOPMUX_{}", mux.name().to_uppercase()), mux.binary())
        .current_dir(project)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    for outer in ["LOOPMUX_RUN", "LOOPMUX_ATTEMPT", "LOOPMUX_TOKEN", "LOOPMUX_RESULT", "LOOPMUX_PROJECT"] {
        command.env_remove(outer);
    }
    let mut child = command.spawn().map_err(|e| format!("cannot start this program: {e}"))?;
    let end = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(10)),
            Ok(None) => {
                // Its own stop would take as long again.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("the run was not over within {} s", PATIENCE.as_secs()));
            }
            Err(e) => return Err(format!("cannot wait for this program: {e}")),
        }
    };
    if status.success() {
        return Ok(());
    }
    let mut said = String::new();
    if let Some(stderr) = child.stderr.take() {
        // Whatever it said is enough.
        let _ = stderr.take(2000).read_to_string(&mut said);
    }
    Err(format!("{status}: {}", said.trim()))
}

/// The run that was made.
fn view(state: &Path, project: &Path) -> Result<(RunView, RunRead), String> {
    let project = crate::config::canonical(project).map_err(|e| format!("the project is gone: {e}"))?;
    let key = crate::run::id::project_key(&project);
    let Observation::Known(read) = ReadStore::new(state).project(&key) else {
        return Err("the run left no project".to_owned());
    };
    let ids = read.run_ids().known().cloned().unwrap_or_default();
    let id = ids.first().ok_or("the run left no directory")?;
    let Observation::Known(run) = read.run(id) else { return Err("the run's directory is gone".to_owned()) };
    Ok((observe::run(&run, &mut Looks::none()), run))
}

/// It must have left exactly what a person is promised.
fn promised(view: &RunView, run: &RunRead) -> Result<(), String> {
    match view.verdict() {
        Some(Verdict::Exited { end: End::Code(0), .. }) => {}
        other => return Err(format!("its verdict is {other:?}")),
    }
    let Observation::Known(attempt) = run.attempt(1) else { return Err("its attempt is gone".to_owned()) };
    if !matches!(attempt.emptied(), Observation::Known(_)) {
        return Err("its keeper left no receipt that nothing is left".to_owned());
    }
    let dir = attempt.dir().sub(".").map_err(|e| format!("its log cannot be read: {e}"))?;
    let mut log = LogReader::new(dir, 0);
    let mut text = Vec::new();
    while let Some(piece) = log.read().map_err(|e| format!("its log cannot be read: {e}"))? {
        if let Piece::Bytes(bytes) = piece {
            text.extend(bytes);
        }
    }
    if String::from_utf8_lossy(&text).contains(WORDS) {
        Ok(())
    } else {
        Err("its output was not recorded".to_owned())
    }
}
