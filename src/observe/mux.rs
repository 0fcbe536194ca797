//! The multiplexer's word: asked once for all runs on a socket, and never believed about an end.

use super::attempt::{AttemptView, life_of};
use crate::process::{self, Identity};
use crate::run::files::MuxRef;
use crate::verdict::{Life, MuxObject, ServerSeen, Why, decide};
use loopmux_mux::{Answered, Multiplexer, PaneId, PaneRow, ReplyClass, Scope, SessionId, Snapshot};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// One look at one server.
#[derive(Clone, Debug)]
pub enum Look {
    /// Nobody asked.
    NotAsked,
    /// The backend itself cannot be used here.
    NoBackend(String),
    /// What came back, and who the server is that answered.
    Asked(Arc<MuxSide>),
}

/// A snapshot with the kernel's identity of the server that gave it.
#[derive(Clone, Debug)]
pub struct MuxSide {
    /// What came back.
    pub snapshot: Snapshot,
    /// The process that answered; `None` where nobody did or the kernel cannot identify it.
    pub server: Option<Identity>,
    /// Where a pane stands in the answer: a listing looks up hundreds of them.
    panes: HashMap<PaneId, usize>,
    sessions: HashSet<SessionId>,
}

impl MuxSide {
    /// The answer, whichever server gave it.
    pub fn answer(&self) -> Option<&Answered> {
        match &self.snapshot {
            Snapshot::Answered(answered) => Some(answered),
            Snapshot::NotServed(_) | Snapshot::Unknown(_) => None,
        }
    }

    /// The answer, if the server `recorded` has a part in it.
    pub fn answer_of(&self, recorded: &Identity) -> Option<&Answered> {
        let answered = self.answer().filter(|answered| answered.is_from(recorded.pid))?;
        let same = if answered.server_pid == recorded.pid {
            self.server.as_ref() == Some(recorded)
        } else {
            // One of many, where each session has a server of its own.
            identify_server(recorded.pid).as_ref() == Some(recorded)
        };
        same.then_some(answered)
    }
}

/// How often a multiplexer is asked whose server ends while it is asked, and the pause before the next time.
const ASKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Asks a multiplexer for everything that it has. A server that is on its way out when it is asked gives no answer; who
/// is there once it is gone does.
pub fn ask(mux: &dyn Multiplexer) -> Snapshot {
    for _ in 1..ASKS {
        match mux.snapshot(Scope::Everything) {
            Snapshot::Unknown(trouble) if trouble.class == ReplyClass::ServerLost => {
                std::thread::sleep(PAUSE)
            }
            other => return other,
        }
    }
    mux.snapshot(Scope::Everything)
}

/// Asks a multiplexer once.
pub fn look(mux: &dyn Multiplexer) -> Look {
    let snapshot = ask(mux);
    let server = match &snapshot {
        Snapshot::Answered(answered) => identify_server(answered.server_pid),
        Snapshot::NotServed(_) | Snapshot::Unknown(_) => None,
    };
    let rows = match &snapshot {
        Snapshot::Answered(answered) => answered.panes.as_slice(),
        Snapshot::NotServed(_) | Snapshot::Unknown(_) => &[],
    };
    let panes = rows.iter().enumerate().map(|(i, row)| (row.pane.clone(), i)).collect();
    let sessions = rows.iter().map(|row| row.session.clone()).collect();
    Look::Asked(Arc::new(MuxSide { snapshot, server, panes, sessions }))
}

/// The kernel's identity of a server's pid; `None` where the kernel cannot tell.
pub fn identify_server(pid: u32) -> Option<Identity> {
    process::identify(pid).ok().flatten()
}

/// Makes the backend for a recorded multiplexer.
type Open<'a> = Box<dyn Fn(&MuxRef) -> Result<Box<dyn Multiplexer>, String> + 'a>;

/// One look at each socket, taken when it is first needed.
pub struct Looks<'a> {
    open: Option<Open<'a>>,
    taken: HashMap<Key, Look>,
    /// Taken while something was read that they are asked about: what they lack may be younger than they are.
    early: HashSet<Key>,
}

/// A backend's name and a socket.
type Key = (String, PathBuf);

fn key(mux: &MuxRef) -> Key {
    (mux.backend.clone(), PathBuf::from(mux.socket.as_os_str()))
}

impl<'a> Looks<'a> {
    /// `open` makes the backend for a recorded multiplexer.
    pub fn new(open: impl Fn(&MuxRef) -> Result<Box<dyn Multiplexer>, String> + 'a) -> Self {
        Self { open: Some(Box::new(open)), taken: HashMap::new(), early: HashSet::new() }
    }

    /// Never asks.
    pub fn none() -> Self {
        Self { open: None, taken: HashMap::new(), early: HashSet::new() }
    }

    /// Every look that was taken, with the backend's name and the socket.
    pub fn taken(&self) -> impl Iterator<Item = (&str, &Path, &Look)> {
        self.taken.iter().map(|((backend, socket), look)| (backend.as_str(), socket.as_path(), look))
    }

    /// The look at the socket of `mux`.
    pub fn at(&mut self, mux: &MuxRef) -> Look {
        let key = key(mux);
        if let Some(look) = self.taken.get(&key) {
            return look.clone();
        }
        let look = match self.opened(mux) {
            None => return Look::NotAsked,
            Some(Ok(backend)) => look(&*backend),
            Some(Err(why)) => Look::NoBackend(why),
        };
        self.taken.insert(key, look.clone());
        look
    }

    /// The look at the socket of `mux`, for what the one before lacks: taken again if that may be the older one.
    pub(super) fn later(&mut self, mux: &MuxRef) -> Option<Look> {
        let key = key(mux);
        if !self.early.remove(&key) {
            return None;
        }
        match self.taken.get(&key) {
            Some(Look::Asked(side)) if !matches!(side.snapshot, Snapshot::Unknown(_)) => {
                self.taken.remove(&key);
                Some(self.at(mux))
            }
            // Asking once more would take as long, and no absence is claimed.
            _ => None,
        }
    }

    /// Does `work`, and looks at the sockets of `muxes` meanwhile.
    pub fn during<T>(&mut self, muxes: &[MuxRef], work: impl FnOnce() -> T) -> T {
        let mut backends = HashMap::new();
        for mux in muxes {
            if let Some(Ok(backend)) = self.opened(mux)
                && !self.taken.contains_key(&key(mux))
            {
                backends.insert(key(mux), backend);
            }
        }
        std::thread::scope(|scope| {
            let asked: Vec<_> = backends
                .into_iter()
                .map(|(key, backend)| (key, scope.spawn(move || look(&*backend))))
                .collect();
            let done = work();
            for (key, look) in asked {
                let look = look.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                self.early.insert(key.clone());
                self.taken.insert(key, look);
            }
            done
        })
    }

    fn opened(&self, mux: &MuxRef) -> Option<Result<Box<dyn Multiplexer>, String>> {
        self.open.as_ref().map(|open| open(mux))
    }
}

/// Adds what the multiplexer says to the evidence.
pub(super) fn explain(view: &mut AttemptView, look: &Look) {
    let unknown = |why: String| (ServerSeen::Unknown(Why::new(&why)), MuxObject::Unknown(Why::new(why)));
    let (server, object) = match look {
        Look::NotAsked => return,
        Look::NoBackend(why) => unknown(why.clone()),
        Look::Asked(side) => match (&side.snapshot, view.server()) {
            (Snapshot::Answered(answered), Some(recorded)) => {
                if side.answer_of(recorded).is_some() {
                    let (session, window) = find(view, side, answered);
                    let listed = |there| if there { MuxObject::Present } else { MuxObject::Absent };
                    let session = listed(session);
                    let pane = window.cloned();
                    view.evidence.session = session;
                    view.evidence.window = listed(pane.is_some());
                    view.evidence.server = ServerSeen::Same;
                    view.pane = pane;
                    view.verdict = decide(&view.evidence);
                    return;
                }
                let why = Why::new("another server answers at this socket");
                (ServerSeen::Other, MuxObject::Unknown(why))
            }
            (Snapshot::Answered(_), None) => unknown("no receipt names the server that had it".to_owned()),
            (Snapshot::NotServed(trouble), _) => (
                ServerSeen::Unknown(Why::new(trouble.to_string())),
                MuxObject::NotServed(Why::new(trouble.to_string())),
            ),
            (Snapshot::Unknown(trouble), _) => unknown(trouble.to_string()),
        },
    };
    let gone = life_of(view.server(), "no receipt names the server") == Life::Gone;
    view.evidence.server = if gone { ServerSeen::Gone } else { server };
    view.evidence.session = object.clone();
    view.evidence.window = object;
    view.verdict = decide(&view.evidence);
}

/// The recorded session and pane in a complete answer of the recorded server. Ids are never reused within one
/// server, and survive renaming, moving and splitting.
fn find<'a>(view: &AttemptView, side: &MuxSide, answered: &'a Answered) -> (bool, Option<&'a PaneRow>) {
    let created = view.created.known();
    let started = view.start.known();
    let session = created.map(|c| &c.session).or_else(|| started.and_then(|s| s.session.as_ref()));
    let pane = created.map(|c| &c.pane).or_else(|| started.and_then(|s| s.pane.as_ref()));
    let row = pane.and_then(|id| side.panes.get(id)).and_then(|at| answered.panes.get(*at));
    (session.is_some_and(|id| side.sessions.contains(id)), row)
}
