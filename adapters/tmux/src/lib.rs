//! The tmux leaf: the only place that knows tmux's arguments, formats, wordings and versions.
//!
//! Every question names the socket (`-S`), so that neither `$TMUX` nor a label chooses another server, and asks
//! for UTF-8 (`-u`), because tmux rewrites the separator of our rows elsewhere. One question is one execution of
//! the client, and its answer counts only with the server's pid in front and behind.
//!
//! | file | what |
//! |---|---|
//! | [`Endpoint`] | which socket |
//! | `argv` | how a command is written |
//! | [`classify()`] | what kind of reply came |
//! | [`version`] | the floor, and what differs |
//! | [`Tmux::hazards`] | options of a person's server that could end or keep windows |
//! | `snapshot`, `create`, `kill`, `input`, `attach` | the methods of the seam |

#![cfg(unix)]

mod argv;
mod attach;
mod classify;
mod create;
mod endpoint;
mod hazards;
mod input;
mod kill;
mod snapshot;
mod tags;
pub mod version;

pub use classify::classify;
pub use endpoint::{Endpoint, EndpointError, LONGEST};
pub use hazards::Hazard;
pub use loopmux_mux::Said;

use argv::{Script, Verb};
use endpoint::Socket;
use loopmux_mux::spawn::{self, Invocation, InvokeError, Reply};
use loopmux_mux::{
    AttachPlan, ByHand, CreateError, CreateSpec, Created, Delivery, HasSession, Here, KillReply, KillScope,
    Multiplexer, Owned, PaneId, Probe, ReplyClass, Scope, SessionId, SessionName, Snapshot, Trouble,
};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The environment variable that names the binary to execute.
pub const BINARY_VARIABLE: &str = "LOOPMUX_TMUX";

/// The environment variable that names the socket.
pub const SOCKET_VARIABLE: &str = "LOOPMUX_SOCKET";

/// tmux, on one socket.
#[derive(Clone, Debug)]
pub struct Tmux {
    binary: PathBuf,
    socket: Socket,
    uid: u32,
    environment: Vec<(OsString, OsString)>,
    observe: Duration,
    act: Duration,
}

impl Tmux {
    /// tmux as the program `binary`, on the socket that `endpoint` names for this user and environment. Nothing
    /// is executed or made.
    ///
    /// # Errors
    /// The socket cannot be used.
    pub fn new(binary: impl Into<PathBuf>, endpoint: &Endpoint) -> Result<Self, EndpointError> {
        Self::below(binary, endpoint, std::env::var_os("TMUX_TMPDIR").as_deref())
    }

    /// The same with a value of `TMUX_TMPDIR` in place of the environment's.
    ///
    /// # Errors
    /// The socket cannot be used.
    pub fn below(
        binary: impl Into<PathBuf>,
        endpoint: &Endpoint,
        tmux_tmpdir: Option<&OsStr>,
    ) -> Result<Self, EndpointError> {
        let uid = rustix::process::getuid().as_raw();
        let socket = endpoint.resolve(tmux_tmpdir, uid)?;
        Ok(Self {
            binary: binary.into(),
            socket,
            uid,
            environment: Vec::new(),
            observe: spawn::OBSERVE,
            act: spawn::ACT,
        })
    }

    /// The same with other deadlines, for observations and for acts.
    pub fn with_deadlines(mut self, observe: Duration, act: Duration) -> Self {
        self.observe = observe;
        self.act = act;
        self
    }

    /// The same with a variable in the environment of its clients, and of a server that they start.
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// A client that will say `script` to the server.
    fn client(&self, script: &Script) -> Invocation {
        let client = Invocation::new(&self.binary)
            .args([OsStr::new("-u"), OsStr::new("-S"), self.socket.path.as_os_str()])
            .args(script.argv())
            .env_drop("TMUX")
            .env_drop("TMUX_PANE")
            .deadline(self.observe);
        self.environment.iter().fold(client, |client, (name, value)| client.env(name, value))
    }

    /// The words of a client for a person's terminal.
    fn for_terminal(&self, script: &Script) -> Vec<OsString> {
        let mut words = vec![self.binary.clone().into_os_string()];
        words.extend([OsString::from("-u"), OsString::from("-S"), self.socket.path.clone().into_os_string()]);
        words.extend(script.argv());
        words
    }

    fn tried(&self, verb: Verb) -> String {
        format!("{} {} on {}", self.binary.display(), verb.name(), self.socket.path.display())
    }

    /// Executes a client. A reply that is none (cut short, not started) is trouble already.
    fn ask(&self, verb: Verb, client: &Invocation) -> Result<Heard, Trouble> {
        match client.run() {
            Ok(reply) => Ok(self.heard(verb, reply)),
            Err(e) => {
                Err(Trouble { class: ReplyClass::Failed, tried: self.tried(verb), said: e.to_string() })
            }
        }
    }

    fn heard(&self, verb: Verb, reply: Reply) -> Heard {
        let (stdout, stderr) = (reply.out(), reply.err());
        let said = Said { timed_out: reply.timed_out, code: reply.code, stdout: &stdout, stderr: &stderr };
        let class = if reply.truncated { ReplyClass::Failed } else { classify(verb.name(), said) };
        Heard { class, stdout, stderr, reply }
    }

    fn trouble(&self, verb: Verb, heard: &Heard) -> Trouble {
        // A class that sounds like success does not belong on trouble: the answer lacked what makes it one.
        let class = match heard.class {
            ReplyClass::Answered | ReplyClass::Accepted | ReplyClass::ClaimsPresent => ReplyClass::Failed,
            class => class,
        };
        Trouble { class, tried: self.tried(verb), said: heard.reply.said() }
    }
}

/// A reply with its class.
struct Heard {
    class: ReplyClass,
    stdout: String,
    stderr: String,
    reply: Reply,
}

/// Whether a failed execution can have reached the server.
fn never_asked(e: &InvokeError) -> bool {
    matches!(e, InvokeError::NotStarted(_))
}

impl Multiplexer for Tmux {
    fn name(&self) -> &'static str {
        "tmux"
    }

    fn binary(&self) -> &Path {
        &self.binary
    }

    fn socket(&self) -> &Path {
        &self.socket.path
    }

    fn probe(&self) -> Probe {
        self.look_at_version()
    }

    fn snapshot(&self, scope: Scope) -> Snapshot {
        let Scope::Everything = scope;
        self.look_at_everything()
    }

    fn has_session(&self, name: &SessionName) -> HasSession {
        self.look_for_session(name)
    }

    fn create(&self, spec: &CreateSpec) -> Result<Created, CreateError> {
        self.create_window(spec)
    }

    fn kill(&self, owned: &Owned, scope: KillScope) -> KillReply {
        self.kill_if_ours(owned, scope)
    }

    fn pipe(&self, server_pid: u32, pane: &PaneId, words: Option<&[OsString]>) -> Result<(), Trouble> {
        self.pipe_pane(server_pid, pane, words)
    }

    fn paste(&self, owned: &Owned, bytes: &[u8]) -> Delivery {
        self.paste_into(owned, bytes)
    }

    fn submit(&self, owned: &Owned) -> Delivery {
        self.press_enter(owned)
    }

    fn capture(&self, pane: &PaneId) -> Result<String, Trouble> {
        self.visible_text(pane)
    }

    fn attach_plan(&self, pane: &PaneId, session: &SessionId, here: Option<&Here>) -> AttachPlan {
        self.plan_attach(pane, session, here)
    }

    fn by_hand(&self, name: &SessionName) -> Option<ByHand> {
        Some(self.words_by_hand(name))
    }

    fn here(&self) -> Option<Here> {
        attach::here(std::env::var_os("TMUX").as_deref(), std::env::var_os("TMUX_PANE").as_deref())
    }
}
