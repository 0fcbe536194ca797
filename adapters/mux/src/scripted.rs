//! A backend without a multiplexer, for tests: windows in memory, and every way in which a real one misleads.
//!
//! [`Scripted`] behaves as the seam demands until it is told otherwise with [`Scripted::set_fault`],
//! [`Scripted::omit`] and the methods that do by hand what a person can do to a server. Clones share one server.
//!
//! It executes nothing: a created window has a pane whose program is only a list of words. Its programs end when a
//! test says so, or with their window.

mod server;

use crate::class::ReplyClass;
use crate::ids::{PaneId, SessionId, SessionName, Tags};
use crate::multiplexer::{
    AttachPlan, CreateError, CreateSpec, Created, Delivery, HasSession, Here, KillReply, KillScope,
    Multiplexer, Placement, Probe, Trouble,
};
use crate::snapshot::{Answered, Owned, Scope, Snapshot, TagScope};
use server::{Pane, Server};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The version that a scripted server says it has.
pub const VERSION: &str = "scripted-1";

/// A way in which a multiplexer fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No answer comes: every call takes the deadline and is then given up. Acts are carried out when the fault
    /// goes, as those of killed clients are.
    Hang(Duration),
    /// The request is carried out, and its reply is lost.
    LostReplies,
    /// Nobody serves the socket: the server may live (its socket was removed, say).
    NotServed(ReplyClass),
    /// No question is answered: denied, another version, garbage.
    Mute(ReplyClass),
    /// A listing is complete by all signs, and empty.
    EmptyListing,
    /// A listing lacks its end.
    CutListing,
    /// A kill reports success, and nothing is killed.
    IgnoredKills,
}

/// What was asked of the backend, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`Multiplexer::probe`].
    Probe,
    /// [`Multiplexer::snapshot`].
    Snapshot,
    /// [`Multiplexer::has_session`].
    HasSession(String),
    /// [`Multiplexer::create`], with the window's words.
    Create(Vec<OsString>),
    /// [`Multiplexer::kill`].
    Kill(PaneId, KillScope),
    /// [`Multiplexer::pipe`].
    Pipe(PaneId),
    /// [`Multiplexer::paste`].
    Paste(PaneId),
    /// [`Multiplexer::submit`].
    Submit(PaneId),
    /// [`Multiplexer::capture`].
    Capture(PaneId),
}

impl Call {
    /// Whether it only looks.
    pub fn is_observation(&self) -> bool {
        matches!(self, Self::Probe | Self::Snapshot | Self::HasSession(_) | Self::Capture(_))
    }
}

/// The backend. Clones are the same server seen by another process.
#[derive(Clone, Debug)]
pub struct Scripted {
    shared: Arc<Mutex<Shared>>,
    socket: PathBuf,
}

#[derive(Debug)]
struct Shared {
    server: Option<Server>,
    next_pid: u32,
    fault: Option<Fault>,
    omitted: Vec<PaneId>,
    calls: Vec<Call>,
    late: Vec<Late>,
    here: Option<Here>,
}

/// An act whose client was given up.
#[derive(Debug)]
enum Late {
    Create(Box<CreateSpec>),
    Kill(Owned, KillScope),
}

impl Default for Scripted {
    fn default() -> Self {
        Self::new()
    }
}

impl Scripted {
    /// A backend whose server is not started; the first create starts it.
    pub fn new() -> Self {
        let shared = Shared {
            server: None,
            next_pid: 1000,
            fault: None,
            omitted: Vec::new(),
            calls: Vec::new(),
            late: Vec::new(),
            here: None,
        };
        Self { shared: Arc::new(Mutex::new(shared)), socket: PathBuf::from("/scripted/socket") }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // A test that panicked while it held the lock has failed already.
        self.shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Fails in this way from now on, or in none. What hung meanwhile is carried out now.
    pub fn set_fault(&self, fault: Option<Fault>) {
        let mut shared = self.shared();
        shared.fault = fault;
        if !matches!(shared.fault, Some(Fault::Hang(_))) {
            for late in std::mem::take(&mut shared.late) {
                match late {
                    Late::Create(spec) => {
                        let _ = shared.create(&spec);
                    }
                    Late::Kill(owned, scope) => {
                        let _ = shared.kill(&owned, scope);
                    }
                }
            }
        }
    }

    /// Leaves a pane out of every listing, though it is there.
    pub fn omit(&self, pane: &PaneId) {
        self.shared().omitted.push(pane.clone());
    }

    /// What was asked so far.
    pub fn calls(&self) -> Vec<Call> {
        self.shared().calls.clone()
    }

    /// Ends the server, and every program in it.
    pub fn die(&self) {
        self.shared().server = None;
    }

    /// Ends the server and starts another: another pid, the same ids again.
    pub fn restart(&self) {
        let mut shared = self.shared();
        shared.server = None;
        shared.start();
    }

    /// A person makes a session; starts the server if there is none.
    pub fn session_by_hand(&self, name: &str) -> SessionId {
        let mut shared = self.shared();
        shared.start().add(None, name, "shell", &[]).session.clone()
    }

    /// A person renames a session.
    pub fn rename_by_hand(&self, session: &SessionId, name: &str) {
        if let Some(server) = &mut self.shared().server {
            server.rename(session, name);
        }
    }

    /// A person splits a window: one more pane, without tags of its own.
    pub fn split_by_hand(&self, pane: &PaneId) -> Option<PaneId> {
        self.shared().server.as_mut()?.split(pane)
    }

    /// Sets an object's own tags, or takes them off.
    pub fn retag(&self, pane: &PaneId, at: TagScope, tags: Option<&Tags>) {
        if let Some(server) = &mut self.shared().server {
            server.retag(pane, at, tags);
        }
    }

    /// The program of a pane ends. Its pane is kept, dead, if `keep`.
    pub fn end_program(&self, pane: &PaneId, keep: bool) {
        if let Some(server) = &mut self.shared().server {
            server.end_program(pane, keep);
        }
    }

    /// A person kills a pane, without conditions.
    pub fn kill_by_hand(&self, pane: &PaneId) {
        if let Some(server) = &mut self.shared().server {
            server.remove(|p| p.row.pane == *pane);
        }
    }

    /// Writes to a pane as its program would.
    pub fn print(&self, pane: &PaneId, text: &str) {
        self.with_pane(pane, |p| p.screen.push_str(text));
    }

    /// What the program of a pane was given: pasted bytes, and a carriage return for each Enter.
    pub fn received(&self, pane: &PaneId) -> Option<Vec<u8>> {
        self.with_pane(pane, |p| p.received.clone())
    }

    /// The words of a pane's program.
    pub fn command(&self, pane: &PaneId) -> Option<Vec<OsString>> {
        self.with_pane(pane, |p| p.command.clone())
    }

    /// The words that a pane is piped to.
    pub fn piped(&self, pane: &PaneId) -> Option<Vec<OsString>> {
        self.with_pane(pane, |p| p.piped.clone()).flatten()
    }

    /// Where the process seems to run from now on.
    pub fn set_here(&self, here: Option<Here>) {
        self.shared().here = here;
    }

    fn with_pane<T>(&self, pane: &PaneId, f: impl FnOnce(&mut Pane) -> T) -> Option<T> {
        self.shared().server.as_mut()?.pane(pane).map(f)
    }

    /// Notes the call, and gives the trouble that the fault makes of it. Sleeps through a hang.
    fn called(&self, call: Call) -> Result<MutexGuard<'_, Shared>, Trouble> {
        let mut shared = self.shared();
        let trouble =
            |class, said: &str| Trouble { class, tried: format!("{call:?}"), said: said.to_owned() };
        let result = match &shared.fault {
            Some(Fault::Hang(time)) => {
                let time = *time;
                let hung = trouble(ReplyClass::TimedOut, "no reply within the deadline");
                shared.calls.push(call);
                drop(shared);
                std::thread::sleep(time);
                return Err(hung);
            }
            Some(Fault::NotServed(class)) => Err(trouble(*class, "nobody serves the socket")),
            Some(Fault::Mute(class)) => Err(trouble(*class, "no answer")),
            _ if shared.server.is_none() && !matches!(call, Call::Create(_) | Call::Probe) => {
                Err(trouble(ReplyClass::NoListener, "no server"))
            }
            _ => Ok(()),
        };
        shared.calls.push(call);
        result.map(|()| shared)
    }

    fn lost(what: &str) -> Trouble {
        Trouble {
            class: ReplyClass::ServerLost,
            tried: what.to_owned(),
            said: "the reply was lost".to_owned(),
        }
    }

    fn give_up(&self, trouble: Trouble, late: Late) -> Trouble {
        if trouble.class == ReplyClass::TimedOut {
            self.shared().late.push(late);
        }
        trouble
    }

    fn deliver(&self, call: Call, owned: &Owned, bytes: &[u8]) -> Delivery {
        let mut shared = match self.called(call) {
            Ok(shared) => shared,
            Err(t) if t.class == ReplyClass::TimedOut => return Delivery::Unknown(t),
            Err(t) => return Delivery::NotDelivered(t),
        };
        let lost = shared.fault == Some(Fault::LostReplies);
        let refused = |said: &str| {
            let tried = "deliver".to_owned();
            Delivery::NotDelivered(Trouble { class: ReplyClass::Absent, tried, said: said.to_owned() })
        };
        let Some(server) = &mut shared.server else { return refused("no server") };
        if owned.at() != TagScope::Pane || !server.still(owned) {
            return refused("no pane of ours there");
        }
        match server.pane(owned.pane()) {
            Some(pane) if !pane.row.dead => pane.received.extend_from_slice(bytes),
            _ => return refused("its program has ended"),
        }
        if lost { Delivery::Unknown(Self::lost("deliver")) } else { Delivery::Delivered }
    }
}

impl Shared {
    fn start(&mut self) -> &mut Server {
        let next_pid = &mut self.next_pid;
        self.server.get_or_insert_with(|| {
            *next_pid += 1;
            Server::new(*next_pid)
        })
    }

    fn create(&mut self, spec: &CreateSpec) -> Result<Created, String> {
        let server = self.start();
        let row = match &spec.placement {
            Placement::NewSession { name, tags, .. } => {
                if server.has(name) {
                    return Err(format!("a session of the name {name} is there already"));
                }
                let row = server.add(None, name.as_str(), spec.window.as_str(), &spec.command);
                server.retag(&row.pane, TagScope::Session, Some(tags));
                row
            }
            Placement::InSession(owned) => {
                if owned.at() == TagScope::Session && !server.still(owned) {
                    return Err("the session is no longer the one that was seen".to_owned());
                }
                server.add(Some(owned.session()), owned.session_name(), spec.window.as_str(), &spec.command)
            }
        };
        server.retag(&row.pane, TagScope::Window, Some(&spec.tags));
        server.retag(&row.pane, TagScope::Pane, Some(&spec.tags));
        Ok(Created {
            server_pid: server.pid,
            version: VERSION.to_owned(),
            session: row.session,
            window: row.window,
            pane: row.pane,
            pane_pid: row.pane_pid,
            tagged: true,
        })
    }

    fn kill(&mut self, owned: &Owned, scope: KillScope) -> KillReply {
        let Some(server) = &mut self.server else { return KillReply::Refused("no server".to_owned()) };
        let at = match scope {
            KillScope::Pane => TagScope::Pane,
            KillScope::Window => TagScope::Window,
            KillScope::Session => TagScope::Session,
        };
        if owned.at() != at {
            return KillReply::Refused(format!(
                "the token was seen at the {:?}, not at the {at:?}",
                owned.at()
            ));
        }
        if !server.still(owned) {
            return KillReply::Refused("no object of ours there".to_owned());
        }
        server.remove(|p| match at {
            TagScope::Session => p.row.session == owned.session,
            TagScope::Window => p.row.window == owned.window,
            TagScope::Pane => p.row.pane == owned.pane,
        });
        KillReply::Done
    }
}

impl Multiplexer for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn binary(&self) -> &Path {
        Path::new("/scripted/binary")
    }

    fn socket(&self) -> &Path {
        &self.socket
    }

    fn probe(&self) -> Probe {
        let refused = self.called(Call::Probe).err();
        let version = refused.is_none().then(|| VERSION.to_owned());
        Probe { binary: Some(self.binary().to_owned()), version, refused }
    }

    fn snapshot(&self, scope: Scope) -> Snapshot {
        let Scope::Everything = scope;
        let shared = match self.called(Call::Snapshot) {
            Ok(shared) => shared,
            Err(t) if matches!(t.class, ReplyClass::NoListener | ReplyClass::NoSocket) => {
                return Snapshot::NotServed(t);
            }
            Err(t) => return Snapshot::Unknown(t),
        };
        let Some(server) = &shared.server else { return Snapshot::NotServed(Self::lost("snapshot")) };
        let mut panes = server.rows();
        match shared.fault {
            Some(Fault::EmptyListing) => panes.clear(),
            Some(Fault::LostReplies) => return Snapshot::Unknown(Self::lost("snapshot")),
            Some(Fault::CutListing) => {
                let (class, tried) = (ReplyClass::Failed, "snapshot".to_owned());
                return Snapshot::Unknown(Trouble { class, tried, said: "no end marker".to_owned() });
            }
            _ => {}
        }
        panes.retain(|row| !shared.omitted.contains(&row.pane));
        Snapshot::Answered(Answered {
            server_pid: server.pid,
            version: VERSION.to_owned(),
            panes,
            unlisted: Vec::new(),
        })
    }

    fn has_session(&self, name: &SessionName) -> HasSession {
        let shared = match self.called(Call::HasSession(name.to_string())) {
            Ok(shared) => shared,
            Err(t) if matches!(t.class, ReplyClass::NoListener | ReplyClass::NoSocket) => {
                return HasSession::NotServed(t);
            }
            Err(t) => return HasSession::Unknown(t),
        };
        match &shared.server {
            _ if shared.fault == Some(Fault::LostReplies) => HasSession::Unknown(Self::lost("has session")),
            None => HasSession::NotServed(Self::lost("has session")),
            Some(server) if server.has(name) => HasSession::Present { server_pid: server.pid },
            Some(server) => HasSession::AbsentOn { server_pid: server.pid },
        }
    }

    fn create(&self, spec: &CreateSpec) -> Result<Created, CreateError> {
        let refuse = |said| {
            let tried = "create".to_owned();
            CreateError::Refused(Trouble { class: ReplyClass::Failed, tried, said })
        };
        spec.tags.check().map_err(|e| refuse(e.to_string()))?;
        if spec.command.len() < 2 {
            return Err(refuse("a window's command needs two words at least".to_owned()));
        }
        let mut shared = match self.called(Call::Create(spec.command.clone())) {
            Ok(shared) => shared,
            Err(t) if t.class == ReplyClass::TimedOut => {
                return Err(CreateError::MayAppear(self.give_up(t, Late::Create(Box::new(spec.clone())))));
            }
            Err(t) => return Err(CreateError::Refused(t)),
        };
        let made = shared.create(spec).map_err(refuse)?;
        if shared.fault == Some(Fault::LostReplies) {
            return Err(CreateError::MayAppear(Self::lost("create")));
        }
        Ok(made)
    }

    fn kill(&self, owned: &Owned, scope: KillScope) -> KillReply {
        let mut shared = match self.called(Call::Kill(owned.pane().clone(), scope)) {
            Ok(shared) => shared,
            Err(t) => return KillReply::Unknown(self.give_up(t, Late::Kill(owned.clone(), scope))),
        };
        match shared.fault {
            Some(Fault::IgnoredKills) => return KillReply::Done,
            Some(Fault::LostReplies) => {
                let _ = shared.kill(owned, scope);
                return KillReply::Unknown(Self::lost("kill"));
            }
            _ => {}
        }
        shared.kill(owned, scope)
    }

    fn pipe(&self, server_pid: u32, pane: &PaneId, words: Option<&[OsString]>) -> Result<(), Trouble> {
        let mut shared = self.called(Call::Pipe(pane.clone()))?;
        let absent =
            |said: &str| Trouble { class: ReplyClass::Absent, tried: "pipe".into(), said: said.into() };
        let lost = shared.fault == Some(Fault::LostReplies);
        let server = shared.server.as_mut().filter(|s| s.pid == server_pid);
        let pane = server.ok_or_else(|| absent("another server"))?.pane(pane);
        pane.ok_or_else(|| absent("no such pane"))?.piped = words.map(<[OsString]>::to_vec);
        if lost { Err(Self::lost("pipe")) } else { Ok(()) }
    }

    fn paste(&self, owned: &Owned, bytes: &[u8]) -> Delivery {
        self.deliver(Call::Paste(owned.pane().clone()), owned, bytes)
    }

    fn submit(&self, owned: &Owned) -> Delivery {
        self.deliver(Call::Submit(owned.pane().clone()), owned, b"\r")
    }

    fn capture(&self, pane: &PaneId) -> Result<String, Trouble> {
        let mut shared = self.called(Call::Capture(pane.clone()))?;
        let found = shared.server.as_mut().and_then(|s| s.pane(pane));
        let absent =
            || Trouble { class: ReplyClass::Absent, tried: "capture".into(), said: "no such pane".into() };
        found.map(|p| p.screen.clone()).ok_or_else(absent)
    }

    fn attach_plan(&self, pane: &PaneId, session: &SessionId, here: Option<&Here>) -> AttachPlan {
        let words = |verb: &str| {
            let target = format!("{session}.{pane}");
            vec![self.binary().as_os_str().to_owned(), OsString::from(verb), OsString::from(target)]
        };
        match here {
            None => AttachPlan::Attach(words("attach")),
            Some(here) if here.socket == self.socket => AttachPlan::Switch(words("switch")),
            Some(here) => AttachPlan::Refused {
                why: format!("this terminal is inside the server at {}", here.socket.display()),
                instead: words("attach"),
            },
        }
    }

    fn here(&self) -> Option<Here> {
        self.shared().here.clone()
    }
}
