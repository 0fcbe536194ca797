//! The one way in which a backend executes its multiplexer.
//!
//! A multiplexer's client is a program that may hang for ever, print without end, leave its output open after
//! its own death, or fork a server that outlives it. So one call here
//!
//! * has a deadline of its own, and says from its own clock whether it passed. On expiry the client gets SIGKILL:
//!   asked to end politely, some clients exit 0 with nothing said, which reads like an empty answer;
//! * reads through pipes that it never waits on: the end of the client ends the call, not the end of its output,
//!   because a server that is stopped can hold a dead client's pipe open. A client that says more than the bound
//!   is killed, and its reply is marked as cut short: it is no answer;
//! * sleeps until something happens, without a tick;
//! * gives the client nothing of ours but three standard streams: every other descriptor is closed on execution
//!   (a server forked by the client would keep a lock of ours for its whole life), it runs in a session of its own
//!   (a Ctrl-C in our terminal is not for it), and the names of a run leave its environment.
//!
//! A request whose client was killed can still be carried out later.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;
#[cfg(windows)]
pub use windows::child;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an observation waits: two in a row still answer a person within three seconds.
pub const OBSERVE: Duration = Duration::from_millis(1500);

/// How long an act waits.
pub const ACT: Duration = Duration::from_secs(5);

/// How many bytes of output are read, of each stream: some ten thousand panes.
pub const LIMIT: usize = 4 << 20;

/// What no multiplexer may inherit: a server that a run starts outlives the run, and every later window would
/// carry its token.
pub const NEVER_INHERITED: [&str; 4] = ["LOOPMUX_RUN", "LOOPMUX_ATTEMPT", "LOOPMUX_TOKEN", "LOOPMUX_RESULT"];

/// One execution of a multiplexer's client.
#[derive(Clone, Debug)]
pub struct Invocation {
    binary: PathBuf,
    args: Vec<OsString>,
    set: Vec<(OsString, OsString)>,
    drop: Vec<OsString>,
    stdin: Option<Vec<u8>>,
    cwd: Option<PathBuf>,
    deadline: Duration,
    limit: usize,
}

/// What an executed client did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its exit code, if it exited by itself.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// The deadline passed, and it was killed. The request may still be carried out later.
    pub timed_out: bool,
    /// It said more than the bound on one stream, and was killed. Not an answer.
    pub truncated: bool,
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error.
    pub stderr: Vec<u8>,
}

/// Why a client was not executed. Nothing was asked.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// No program is at that path, or it is a script whose interpreter is not there.
    #[error("no program at {0}, or the interpreter that its first line names is not there")]
    NoProgram(PathBuf),
    /// The program may not be executed, or is none.
    #[error("{binary} cannot be executed: {source}", binary = .binary.display())]
    NotExecutable {
        /// The program.
        binary: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Arguments and environment together are more than the system passes on.
    #[error("the arguments and the environment for {0} are more than the system allows")]
    TooLong(PathBuf),
    /// The directory to start in is not there, or may not be entered.
    #[error("cannot start in {dir}: {source}", dir = .dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system could not start another program: out of processes, descriptors or memory.
    #[error("cannot start {binary}: {source}", binary = .binary.display())]
    System {
        /// The program.
        binary: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum InvokeError {
    /// The client was not executed: nothing was asked, and nothing can come of it.
    #[error(transparent)]
    NotStarted(#[from] SpawnError),
    /// The client was started and could not be followed to its end. What it asked may be carried out.
    #[error("started {binary}, and could not follow it: {source}", binary = .binary.display())]
    LostTrack {
        /// The program.
        binary: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Invocation {
    /// An execution of `binary` without arguments, with the deadline of an observation.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self {
            binary: binary.into(),
            args: Vec::new(),
            set: Vec::new(),
            drop: Vec::new(),
            stdin: None,
            cwd: None,
            deadline: OBSERVE,
            limit: LIMIT,
        }
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args<I: IntoIterator<Item = S>, S: Into<OsString>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the client's environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.set.push((name.into(), value.into()));
        self
    }

    /// Takes a variable out of the client's environment.
    pub fn env_drop(mut self, name: impl Into<OsString>) -> Self {
        self.drop.push(name.into());
        self
    }

    /// Gives the client these bytes on its standard input; without them it reads nothing.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Starts the client in this directory.
    pub fn cwd(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cwd = Some(dir.into());
        self
    }

    /// Bounds the call.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Bounds each output stream, in bytes.
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// The program.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Its arguments.
    pub fn arguments(&self) -> &[OsString] {
        &self.args
    }

    /// How long the call may take.
    pub fn time_limit(&self) -> Duration {
        self.deadline
    }

    /// Executes it and waits for its end or the deadline.
    ///
    /// # Errors
    /// [`InvokeError::NotStarted`] if nothing was executed, [`InvokeError::LostTrack`] if it was, and its end could
    /// not be seen.
    pub fn run(&self) -> Result<Reply, InvokeError> {
        system::run(self)
    }

    /// The environment's changes in order: a value that is set stands against a drop, except for a run's names.
    fn environment(&self) -> impl Iterator<Item = (&OsStr, Option<&OsStr>)> {
        let drops = self.drop.iter().map(|name| (name.as_os_str(), None));
        let sets = self.set.iter().map(|(name, value)| (name.as_os_str(), Some(value.as_os_str())));
        drops.chain(sets).chain(NEVER_INHERITED.iter().map(|name| (OsStr::new(*name), None)))
    }
}

impl Reply {
    /// Standard output as text; other bytes become U+FFFD.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text; other bytes become U+FFFD.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// What came back, in words for a person: how it ended, and the first of what it said.
    pub fn said(&self) -> String {
        let ended = match (self.timed_out, self.truncated, self.code, self.signal) {
            (true, ..) => "no reply within the deadline".to_owned(),
            (_, true, ..) => "more output than any answer has".to_owned(),
            (_, _, Some(code), _) => format!("exit {code}"),
            (_, _, _, Some(signal)) => format!("ended by signal {signal}"),
            _ => "ended in an unknown way".to_owned(),
        };
        let first = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let line = text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
            line.chars().filter(|c| !c.is_control()).take(200).collect::<String>()
        };
        match (first(&self.stderr), first(&self.stdout)) {
            (err, _) if !err.is_empty() => format!("{ended}, {err:?}"),
            (_, out) if !out.is_empty() => format!("{ended}, it printed {out:?}"),
            _ => format!("{ended}, it said nothing"),
        }
    }
}

#[cfg(all(test, unix))]
mod tests;
