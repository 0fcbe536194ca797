//! Ending what is left in the multiplexer (rules L6, L12, L13): windows of runs that have ended, by proof.
//!
//! Only panes are killed, each by its own token on the server that had it, so that whatever a person put beside one
//! stays; a session goes with its last pane. Then everything is looked at again, and only that look is reported.

mod owners;
mod verify;

pub use owners::{Owner, Owners, Windows};

use super::remove::Ground;
use crate::fault;
use crate::observe::{Look, MuxSide, look};
use crate::process::{self, Identity, Life};
use crate::run::files::MuxRef;
use crate::run::id::RunId;
use crate::run::store::ProjectRead;
use crate::run::write::StoreError;
use loopmux_mux::{
    KillScope, Multiplexer, Owned, PaneId, PaneRow, ReplyClass, SessionId, Snapshot, TagScope, Tags, Trouble,
};
use std::collections::BTreeMap;

/// A window of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The mux session's name when it was seen.
    pub session: String,
    /// The pane's id on its server.
    pub pane: String,
    /// The server's socket.
    pub socket: String,
    /// The run.
    pub run: String,
    /// What was seen of it in the end.
    pub why: String,
}

/// A mux session that was left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub session: String,
    /// The server's socket.
    pub socket: String,
    /// The run that it is of, or whose name it bears.
    pub run: Option<String>,
    /// Why.
    pub reason: String,
}

/// What a cleanup did, by a fresh look.
#[derive(Debug, Default)]
pub struct Report {
    /// Windows that are gone.
    pub ended: Vec<Window>,
    /// Windows that would be ended.
    pub would_end: Vec<Window>,
    /// Sessions that were left alone.
    pub kept: Vec<Kept>,
    /// Windows that are still there.
    pub survived: Vec<Window>,
    /// Windows of which nobody can tell.
    pub unverifiable: Vec<Kept>,
    /// The tags of panes that a server listed and that were not seen to go.
    pub listed: Vec<Tags>,
    /// The servers that answered, with the socket.
    pub answered: Vec<(String, Option<Identity>)>,
    /// Multiplexers that could not be asked, with the socket.
    pub unasked: Vec<(String, Trouble)>,
}

/// What to clean up.
#[derive(Clone, Copy, Debug)]
pub struct What<'a> {
    /// Look only.
    pub dry_run: bool,
    /// The windows of this run alone, and nothing is said about others.
    pub only: Option<&'a RunId>,
}

/// Ends the windows of all ended runs of a project, on every multiplexer that it ever used, and on `selected`.
///
/// # Errors
/// The state directory cannot be read or written. That a multiplexer cannot be asked is in the report.
pub fn cleanup(
    ground: &Ground<'_>,
    read: &ProjectRead,
    selected: Option<&MuxRef>,
    what: What<'_>,
) -> Result<Report, StoreError> {
    let owners = Owners::of(ground, read, what.only)?;
    let mut report = Report::default();
    let mut sockets: Vec<MuxRef> = Vec::new();
    for mux in selected.into_iter().chain(owners.multiplexers()) {
        if !sockets.iter().any(|m| m.backend == mux.backend && m.socket == mux.socket) {
            sockets.push(mux.clone());
        }
    }
    // A window that is just being made in the control session would go with the session's last pane.
    let control = if what.dry_run { None } else { Some(ground.project.control()?) };
    for reference in &sockets {
        one_server(ground, &owners, reference, what, &mut report);
    }
    if let Some(control) = control {
        owners.forget_windows(&control, &report)?;
    }
    Ok(report)
}

fn one_server(ground: &Ground<'_>, owners: &Owners, reference: &MuxRef, what: What<'_>, report: &mut Report) {
    let socket = reference.socket.display();
    let trouble = match (ground.open)(reference) {
        Err(said) => {
            Trouble { class: ReplyClass::Failed, tried: format!("to use {}", reference.backend), said }
        }
        Ok(mux) => match look(&*mux) {
            Look::Asked(side) => match &side.snapshot {
                Snapshot::Answered(answered) => {
                    let server = Server { mux: &*mux, side: &side, owners, socket: &socket, what };
                    report.answered.push((socket.clone(), side.server.clone()));
                    let tags = answered.panes.iter().filter_map(|row| row.tags(TagScope::Pane));
                    report.listed.extend(tags.cloned());
                    server.clean(&answered.panes, report);
                    return;
                }
                Snapshot::NotServed(trouble) | Snapshot::Unknown(trouble) => trouble.clone(),
            },
            Look::NotAsked | Look::NoBackend(_) => return,
        },
    };
    // Nobody is there to be asked, which is no trouble where nothing of ours can be there.
    let nobody = matches!(trouble.class, ReplyClass::NoListener | ReplyClass::NoSocket);
    let open = owners.may_be_open(reference);
    if !nobody {
        report.unasked.push((socket.clone(), trouble.clone()));
    }
    for owner in open {
        report.unverifiable.push(Kept {
            session: owner.session.clone(),
            socket: socket.clone(),
            run: Some(owner.run.clone()),
            reason: trouble.to_string(),
        });
    }
}

/// One server that answered.
struct Server<'a> {
    mux: &'a dyn Multiplexer,
    side: &'a MuxSide,
    owners: &'a Owners,
    socket: &'a str,
    what: What<'a>,
}

/// A pane that was asked to end.
struct Asked {
    window: Window,
    pane: PaneId,
    tags: Tags,
}

impl Server<'_> {
    fn clean(&self, panes: &[PaneRow], report: &mut Report) {
        let mut sessions: BTreeMap<&SessionId, Vec<&PaneRow>> = BTreeMap::new();
        for row in panes {
            sessions.entry(&row.session).or_default().push(row);
        }
        let mut asked = Vec::new();
        for rows in sessions.values() {
            self.one_session(rows, &mut asked, report);
        }
        if !asked.is_empty() {
            verify::verify(self.mux, self.side.server.as_ref(), asked, report);
        }
    }

    fn one_session(&self, rows: &[&PaneRow], asked: &mut Vec<Asked>, report: &mut Report) {
        let mut left = Vec::new();
        let mut took = 0;
        for row in rows {
            match self.owner_to_end(row) {
                Ok(owner) => {
                    took += 1;
                    self.end(row, owner, asked, report);
                }
                Err(reason) => left.push((row, reason)),
            }
        }
        if left.is_empty() || self.what.only.is_some() {
            return;
        }
        let (run, mut reason) = self.why_kept(rows[0], &left);
        if took > 0 {
            reason = format!("something else is in it: {reason}");
        }
        let session = rows[0].session_name.clone();
        report.kept.push(Kept { session, socket: self.socket.to_owned(), run, reason });
    }

    /// The run that a pane is of, where that run has ended and the pane is on the server that it was made on.
    fn owner_to_end(&self, row: &PaneRow) -> Result<&Owner, Option<(String, String)>> {
        let Some(tags) = row.tags(TagScope::Pane) else { return Err(None) };
        let whose = self.owners.of_tags(tags).map_err(Some)?;
        let run = || whose.run.clone();
        if let Err(why) = &whose.ended {
            return Err(Some((run(), why.clone())));
        }
        match (&whose.server, &self.side.server) {
            (Some(then), Some(now)) if then != now => {
                Err(Some((run(), "it is not on the server that it was made on".to_owned())))
            }
            (_, None) => Err(Some((run(), "the server's process cannot be identified".to_owned()))),
            (Some(_) | None, Some(_)) => Ok(whose),
        }
    }

    fn end(&self, row: &PaneRow, owner: &Owner, asked: &mut Vec<Asked>, report: &mut Report) {
        let window = Window {
            session: row.session_name.clone(),
            pane: row.pane.to_string(),
            socket: self.socket.to_owned(),
            run: owner.run.clone(),
            why: owner.what.clone(),
        };
        if self.what.dry_run {
            report.would_end.push(window);
            return;
        }
        if asked.iter().any(|a| a.pane == row.pane) {
            // A window that is linked into two sessions is listed twice.
            return;
        }
        let owned = self.side.answer().and_then(|answered| {
            let all: Vec<Owned> = answered.owned(&owner.tags, TagScope::Pane);
            all.into_iter().find(|o| *o.pane() == row.pane)
        });
        let Some(owned) = owned else { return };
        let reply = fault::around("cleanup.kill", || self.mux.kill(&owned, KillScope::Pane));
        tracing::debug!("conditional kill of {}: {reply:?}", row.pane);
        asked.push(Asked { window, pane: row.pane.clone(), tags: owner.tags.clone() });
    }

    /// Why a session stays: by its own tags, else by what is in it, else by its name.
    fn why_kept(
        &self,
        first: &PaneRow,
        left: &[(&&PaneRow, Option<(String, String)>)],
    ) -> (Option<String>, String) {
        if let Some((run, reason)) = left.iter().find_map(|(_, reason)| reason.clone()) {
            return (Some(run).filter(|r| !r.is_empty()), reason);
        }
        let Some(tags) = first.tags(TagScope::Session) else {
            return match self.owners.namesake(&first.session_name) {
                Some(run) => {
                    let reason = format!(
                        "it carries no tag, so it is not known to be run {run}'s, whose name it bears"
                    );
                    (Some(run), reason)
                }
                None => (None, "it carries no tag, so it is not ours".to_owned()),
            };
        };
        match self.owners.of_session(tags) {
            Ok(run) => (Some(run), "what is in it carries no tag, so it is not ours".to_owned()),
            Err((run, reason)) => (Some(run).filter(|r| !r.is_empty()), reason),
        }
    }
}

/// Whether a server's process is proven gone.
fn is_gone(server: Option<&Identity>) -> bool {
    server.is_some_and(|id| process::life(id) == Life::Gone)
}
