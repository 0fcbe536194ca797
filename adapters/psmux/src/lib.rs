//! The psmux leaf: the only place that knows psmux's arguments, formats, wordings and versions.
//!
//! psmux looks like tmux and is built otherwise: one server for each session, found through files in a data directory.
//! So there is no server that could say which sessions there are; what is not listed is not seen, and never absent.
//! Every execution is given the data directory, and every id has its session's in front.
//!
//! | file | what |
//! |---|---|
//! | `endpoint`, `registry` | which data directory, and which sessions it names |
//! | `argv` | how a command is written, and how a server judges a condition |
//! | `old` | what is otherwise below the floor |
//! | `ids` | a window's and a pane's id with the session's in front |
//! | [`classify()`] | what kind of reply came |
//! | [`version`] | the floor, and the first look at a program that nobody knows yet |
//! | `snapshot`, `create`, `kill`, `input`, `attach` | the methods of the seam |

mod argv;
mod attach;
mod classify;
mod create;
mod endpoint;
mod ids;
mod input;
mod kill;
mod old;
mod registry;
mod snapshot;
mod tags;
pub mod version;

pub use classify::classify;
pub use endpoint::{DATA_DIR, EndpointError, ForShells, for_shells, from_environment};

use argv::List;
use loopmux_mux::spawn::{self, Invocation, Reply};
use loopmux_mux::{
    AttachPlan, ByHand, CreateError, CreateSpec, Created, Delivery, HasSession, Here, KillReply, KillScope,
    Multiplexer, Owned, PaneId, Probe, ReplyClass, Said, Scope, SessionId, SessionName, Snapshot, Trouble,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The environment variable that names the binary to execute.
pub const BINARY_VARIABLE: &str = "LOOPMUX_PSMUX";

/// What would lead a client of psmux to another session than the one that it is told.
pub(crate) const REDIRECTS: [&str; 9] = [
    "TMUX",
    "TMUX_PANE",
    "PSMUX_SESSION",
    "PSMUX_SESSION_NAME",
    "PSMUX_TARGET_SESSION",
    "PSMUX_TARGET_FULL",
    "PSMUX_DEFAULT_SESSION",
    "PSMUX_REMOTE_ATTACH",
    "PSMUX_ROUTE_DEBUG",
];

/// psmux, in one data directory.
#[derive(Clone, Debug)]
pub struct Psmux {
    binary: PathBuf,
    data: PathBuf,
    environment: Vec<(OsString, OsString)>,
    observe: Duration,
    act: Duration,
    old: bool,
}

impl Psmux {
    /// psmux as the program `binary`, in the data directory `data`. Nothing is executed or made.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub fn new(binary: impl Into<PathBuf>, data: &Path) -> Result<Self, EndpointError> {
        Ok(Self {
            binary: binary.into(),
            data: endpoint::data_dir(data)?,
            environment: Vec::new(),
            observe: spawn::OBSERVE,
            act: spawn::ACT,
            old: false,
        })
    }

    /// The same for a psmux that is older than [`version::FLOOR`]: what a person asked for knowing [`version::LIMITS`].
    pub fn of_old(mut self) -> Self {
        self.old = true;
        self
    }

    /// The same with other deadlines, for observations and for acts.
    pub fn with_deadlines(mut self, observe: Duration, act: Duration) -> Self {
        self.observe = observe;
        self.act = act;
        self
    }

    /// The same with a variable in the environment of its clients, and of servers that they start.
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// A client that will say `list`.
    fn client(&self, list: &List) -> Invocation {
        let mut client = Invocation::new(&self.binary).args(list.argv()).deadline(self.observe);
        for name in REDIRECTS {
            client = client.env_drop(name);
        }
        // A standby server would be one more process for each data directory, which nobody asked for.
        client = client.env("PSMUX_NO_WARM", "1").env(DATA_DIR, &self.data);
        self.environment.iter().fold(client, |client, (name, value)| client.env(name, value))
    }

    /// The same to the server of a target, which is what the commands act on unless they name another.
    fn client_at(&self, target: &str, list: &List) -> Invocation {
        self.client(&List::new()).arg("-t").arg(target).args(list.argv())
    }

    /// The same to the server of a session, by its port: for commands to which any target means another session.
    fn client_by_port(&self, session: &str, list: &List) -> Option<Invocation> {
        let port = registry::port_of(&self.data, session)?;
        Some(self.client(list).env("TMUX", format!("{},{port},0", self.data.display())))
    }

    fn tried(&self, query: &str) -> String {
        format!("{} {query} in {}", self.binary.display(), self.data.display())
    }

    /// Executes a client. A reply that is none (cut short, not started) is trouble already.
    fn ask(&self, query: &str, client: &Invocation) -> Result<Heard, Trouble> {
        match client.run() {
            Ok(reply) => Ok(Self::heard(query, reply)),
            Err(e) => {
                Err(Trouble { class: ReplyClass::Failed, tried: self.tried(query), said: e.to_string() })
            }
        }
    }

    fn heard(query: &str, reply: Reply) -> Heard {
        // Line ends of the platform.
        let (stdout, stderr) = (reply.out().replace("\r\n", "\n"), reply.err());
        let said = Said { timed_out: reply.timed_out, code: reply.code, stdout: &stdout, stderr: &stderr };
        let class = if reply.truncated { ReplyClass::Failed } else { classify(query, said) };
        Heard { class, stdout, reply }
    }

    fn trouble(&self, query: &str, heard: &Heard) -> Trouble {
        // A class that sounds like success does not belong on trouble: the answer lacked what makes it one.
        let class = match heard.class {
            ReplyClass::Answered | ReplyClass::Accepted | ReplyClass::ClaimsPresent => ReplyClass::Failed,
            class => class,
        };
        Trouble { class, tried: self.tried(query), said: heard.reply.said() }
    }
}

/// A reply with its class.
struct Heard {
    class: ReplyClass,
    stdout: String,
    reply: Reply,
}

impl Multiplexer for Psmux {
    fn name(&self) -> &'static str {
        "psmux"
    }

    fn binary(&self) -> &Path {
        &self.binary
    }

    fn socket(&self) -> &Path {
        &self.data
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

    fn pipes(&self) -> bool {
        false
    }

    fn pipe(&self, _server_pid: u32, pane: &PaneId, _words: Option<&[OsString]>) -> Result<(), Trouble> {
        let said =
            format!("psmux gives the words for {pane} to a shell; the output has to be taken in the pane");
        Err(Trouble { class: ReplyClass::Failed, tried: self.tried("pipe-pane"), said })
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

    fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![(DATA_DIR.into(), self.data.clone().into())]
    }

    fn by_hand(&self, name: &SessionName) -> Option<ByHand> {
        Some(self.words_by_hand(name))
    }

    fn here(&self) -> Option<Here> {
        self.where_we_are(|name| std::env::var_os(name))
    }
}
