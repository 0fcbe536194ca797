//! The multiplexer's word on a removal (rules L11, L13): whatever it shows that may be the run's forbids it, and
//! whatever it does not show allows nothing.

use super::refusal::{Refusal, WayOut};
use super::{engine_windows, names};
use crate::observe::{Look, RunView, look};
use crate::run::files::{LaunchFile, MuxRef};
use crate::run::store::RunRead;
use loopmux_mux::{Answered, Multiplexer, PaneRow, SessionName, Snapshot, TagScope, Tags};
use std::path::PathBuf;

/// Makes the backend of a recorded multiplexer.
pub type OpenMux<'a> = &'a dyn Fn(&MuxRef) -> Result<Box<dyn Multiplexer>, String>;

/// What a session or window must carry or be called to be a run's.
pub struct Marks {
    key: String,
    state: String,
    run: String,
    /// Tokens of its attempts.
    attempts: Vec<String>,
    /// Tokens of its engines' windows.
    engines: Vec<String>,
    names: Vec<SessionName>,
}

impl Marks {
    /// The marks of a run of the project `key` in the state directory `state`.
    pub fn of(run: &RunRead, view: &RunView, key: &str, state: &str) -> Self {
        let attempts = view.attempts.known().map_or(&[][..], Vec::as_slice);
        let launches: Vec<&LaunchFile> = attempts.iter().filter_map(|a| a.launch.known()).collect();
        let mut names: Vec<SessionName> = launches.iter().map(|l| l.session.clone()).collect();
        if let Some(file) = view.file.known() {
            names.push(names::run_session(&PathBuf::from(file.project.as_os_str()), key, run.id().as_str()));
        }
        Self {
            key: key.to_owned(),
            state: state.to_owned(),
            run: run.id().to_string(),
            attempts: launches.iter().map(|l| l.tags.token.clone()).collect(),
            engines: engine_windows::launches(run).into_iter().map(|l| l.tags.token).collect(),
            names,
        }
    }

    /// Tags of this run: one of its attempts', or, where they name the run and no engine of it, of an attempt whose
    /// launch file cannot be read.
    fn claims(&self, tags: &Tags) -> bool {
        tags.state == self.state
            && tags.project == self.key
            && (self.attempts.contains(&tags.token)
                || (tags.run == self.run && !self.engines.contains(&tags.token)))
    }

    fn is_namesake(&self, row: &PaneRow) -> bool {
        row.session_tags.is_none() && self.names.iter().any(|n| n.as_str() == row.session_name)
    }
}

/// Every multiplexer that a run was launched on.
pub fn multiplexers(view: &RunView) -> Vec<MuxRef> {
    let mut all: Vec<MuxRef> = Vec::new();
    let attempts = view.attempts.known().map_or(&[][..], Vec::as_slice);
    let of_attempts = attempts.iter().filter_map(|a| a.launch.known()).map(|l| &l.mux);
    for mux in view.file.known().map(|f| &f.mux).into_iter().chain(of_attempts) {
        if !all.iter().any(|m| m.backend == mux.backend && m.socket == mux.socket) {
            all.push(mux.clone());
        }
    }
    all
}

/// Asks every multiplexer of the run, and gives what stands against its removal. That one cannot be asked, or answers
/// nonsense, changes nothing: its silence would not have allowed anything either.
pub fn veto(marks: &Marks, multiplexers: &[MuxRef], open: OpenMux<'_>) -> Refusal {
    let mut refusal = Refusal::new();
    for reference in multiplexers {
        let mux = match open(reference) {
            Ok(mux) => mux,
            Err(why) => {
                tracing::debug!("not asked about {}: {why}", marks.run);
                continue;
            }
        };
        let Look::Asked(side) = look(&*mux) else { continue };
        match &side.snapshot {
            Snapshot::Answered(answered) => suspects(marks, answered, &*mux, &mut refusal),
            Snapshot::NotServed(trouble) | Snapshot::Unknown(trouble) => {
                tracing::debug!("not answered about {}: {trouble}", marks.run);
            }
        }
    }
    refusal
}

fn suspects(marks: &Marks, answered: &Answered, mux: &dyn Multiplexer, refusal: &mut Refusal) {
    for row in &answered.panes {
        let at = |scope| row.tags(scope).is_some_and(|tags| marks.claims(tags));
        let socket = mux.socket().display();
        if at(TagScope::Pane) || at(TagScope::Window) {
            refusal.fact(
                true,
                format!(
                    "a window of it is open: {} in mux session {} on {socket}",
                    row.window, row.session_name
                ),
                None,
            );
            refusal.way_out(WayOut::Cleanup);
        } else if at(TagScope::Session) {
            let text = format!("its mux session {} is there on {socket}", row.session_name);
            refusal.fact(true, text, None);
            by_hand(row, mux, refusal);
        } else if marks.is_namesake(row) {
            let text = format!(
                "a mux session without a tag has its name and may be its: {} on {socket}",
                row.session_name
            );
            refusal.fact(false, text, None);
            by_hand(row, mux, refusal);
        }
    }
}

fn by_hand(row: &PaneRow, mux: &dyn Multiplexer, refusal: &mut Refusal) {
    if let Some(words) = SessionName::new(row.session_name.clone()).ok().and_then(|n| mux.by_hand(&n)) {
        refusal.way_out(WayOut::ByHand(words));
    }
}
