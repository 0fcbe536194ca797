//! A server in memory.

use crate::ids::{PaneId, SessionId, SessionName, Tags, WindowId};
use crate::snapshot::{Owned, PaneRow, TagScope};
use std::ffi::OsString;

#[derive(Debug)]
pub(super) struct Pane {
    pub(super) row: PaneRow,
    pub(super) command: Vec<OsString>,
    pub(super) received: Vec<u8>,
    pub(super) screen: String,
    pub(super) piped: Option<Vec<OsString>>,
}

/// One server instance. Ids start at 0 again with each; only the pid differs.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) pid: u32,
    panes: Vec<Pane>,
    sessions: u32,
    windows: u32,
    made: u32,
}

impl Server {
    pub(super) fn new(pid: u32) -> Self {
        Self { pid, panes: Vec::new(), sessions: 0, windows: 0, made: 0 }
    }

    /// Adds a window with one pane, to a session or as a new one, without tags of the window's own.
    pub(super) fn add(
        &mut self,
        session: Option<&SessionId>,
        session_name: &str,
        window_name: &str,
        command: &[OsString],
    ) -> PaneRow {
        let session = session.cloned().unwrap_or_else(|| {
            self.sessions += 1;
            SessionId::from_backend(format!("s{}", self.sessions - 1))
        });
        self.windows += 1;
        let sibling = self.panes.iter().find(|p| p.row.session == session).map(|p| p.row.clone());
        let row = PaneRow {
            server_pid: self.pid,
            window: WindowId::from_backend(format!("w{}", self.windows - 1)),
            pane: self.next_pane(),
            pane_pid: Some(self.pid * 100 + self.made),
            dead: false,
            attached: 0,
            session_tags: sibling.as_ref().and_then(|s| s.session_tags.clone()),
            window_tags: None,
            pane_tags: None,
            session_name: sibling.map_or_else(|| session_name.to_owned(), |s| s.session_name),
            window_name: window_name.to_owned(),
            session,
        };
        self.push(row.clone(), command);
        row
    }

    pub(super) fn split(&mut self, pane: &PaneId) -> Option<PaneId> {
        let row = self.panes.iter().find(|p| p.row.pane == *pane)?.row.clone();
        let new = self.next_pane();
        let pane_pid = Some(self.pid * 100 + self.made);
        self.push(PaneRow { pane: new.clone(), pane_pid, dead: false, pane_tags: None, ..row }, &[]);
        Some(new)
    }

    fn next_pane(&mut self) -> PaneId {
        self.made += 1;
        PaneId::from_backend(format!("p{}", self.made - 1))
    }

    fn push(&mut self, row: PaneRow, command: &[OsString]) {
        let (received, screen) = (Vec::new(), String::new());
        self.panes.push(Pane { row, command: command.to_vec(), received, screen, piped: None });
    }

    pub(super) fn pane(&mut self, id: &PaneId) -> Option<&mut Pane> {
        self.panes.iter_mut().find(|p| p.row.pane == *id)
    }

    pub(super) fn has(&self, name: &SessionName) -> bool {
        self.panes.iter().any(|p| p.row.session_name == name.as_str())
    }

    pub(super) fn rows(&self) -> Vec<PaneRow> {
        self.panes.iter().map(|p| p.row.clone()).collect()
    }

    /// Whether an owned object is there as it was seen.
    pub(super) fn still(&self, owned: &Owned) -> bool {
        let own = |row: &PaneRow| match owned.at {
            TagScope::Session => {
                row.session == owned.session && row.session_tags.as_ref() == Some(&owned.tags)
            }
            TagScope::Window => row.window == owned.window && row.window_tags.as_ref() == Some(&owned.tags),
            TagScope::Pane => row.pane == owned.pane && row.pane_tags.as_ref() == Some(&owned.tags),
        };
        self.pid == owned.server_pid && self.panes.iter().any(|p| own(&p.row))
    }

    pub(super) fn retag(&mut self, pane: &PaneId, at: TagScope, tags: Option<&Tags>) {
        let Some(of) = self.panes.iter().find(|p| p.row.pane == *pane).map(|p| p.row.clone()) else { return };
        for Pane { row, .. } in &mut self.panes {
            match at {
                TagScope::Session if row.session == of.session => row.session_tags = tags.cloned(),
                TagScope::Window if row.window == of.window => row.window_tags = tags.cloned(),
                TagScope::Pane if row.pane == of.pane => row.pane_tags = tags.cloned(),
                _ => {}
            }
        }
    }

    pub(super) fn rename(&mut self, session: &SessionId, name: &str) {
        for p in self.panes.iter_mut().filter(|p| p.row.session == *session) {
            name.clone_into(&mut p.row.session_name);
        }
    }

    pub(super) fn end_program(&mut self, pane: &PaneId, keep: bool) {
        if !keep {
            self.remove(|p| p.row.pane == *pane);
        } else if let Some(pane) = self.pane(pane) {
            pane.row.dead = true;
        }
    }

    /// Takes panes away. An empty window or session goes with its last pane.
    pub(super) fn remove(&mut self, gone: impl Fn(&Pane) -> bool) {
        self.panes.retain(|p| !gone(p));
    }
}
