//! What still runs after the program's end: the keeper adopted it, and its list is the only complete one.

use super::super::receipts::Receipts;
use super::terminal::Terminal;
use crate::process::{self, Identity, Note};
use crate::run::files::{HandoverFile, LeftoversFile, ProcessNote, SCHEMA, name, now_ms};
use crate::verdict::Observation;
use rustix::process::Pid;
use std::time::{Duration, Instant};

/// What dies with its program is given this long before it is called a leftover.
const SETTLE: Duration = Duration::from_millis(50);
/// The list on disk is renewed at most so often.
const RENEW: Duration = Duration::from_secs(1);
/// How many are listed; a program that left more is described well enough by these.
const LISTED: usize = 100;

/// The published list.
#[derive(Debug)]
pub(super) struct Leftovers {
    published: Option<Vec<Identity>>,
    due: Option<Instant>,
    last: Option<Instant>,
}

impl Leftovers {
    /// At the program's end.
    pub(super) fn new() -> Self {
        Self { published: None, due: Some(Instant::now() + SETTLE), last: None }
    }

    /// When the list must be looked at, whether or not anything happens before.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Some child ended: the list may have changed.
    pub(super) fn touch(&mut self) {
        let soonest = self.last.map_or_else(|| Instant::now() + SETTLE, |last| last + RENEW);
        self.due.get_or_insert(soonest);
    }

    /// Looks at the list if it is due, publishes it if it changed, and says it when it is new.
    pub(super) fn publish(&mut self, receipts: &Receipts<'_>, terminal: &Terminal, own: &Own) {
        if self.due.is_none_or(|due| Instant::now() < due) {
            return;
        }
        self.due = None;
        let notes = own.others();
        let ids: Vec<Identity> = notes.iter().map(|n| n.id.clone()).collect();
        if ids.is_empty() && self.published.is_none() || self.published.as_ref() == Some(&ids) {
            return;
        }
        if self.published.is_none() {
            terminal.take_back();
            terminal.say_line(&in_words(&notes));
        }
        self.write(receipts, notes);
        self.published = Some(ids);
        self.last = Some(Instant::now());
    }

    /// Nobody is left: a list that was published says so.
    pub(super) fn finish(&mut self, receipts: &Receipts<'_>) {
        if self.published.as_ref().is_some_and(|list| !list.is_empty()) {
            self.write(receipts, Vec::new());
        }
    }

    fn write(&self, receipts: &Receipts<'_>, notes: Vec<Note>) {
        let processes = notes.into_iter().map(ProcessNote::from).collect();
        let file = LeftoversFile { schema: SCHEMA, processes, at_ms: now_ms() };
        // The list helps people and a stop after this keeper's death. The lease is what forbids a removal.
        if receipts.dir.replace(name::LEFTOVERS, &file).is_ok() {
            receipts.poke();
        }
    }
}

/// Children that are no leftovers: the one that explains a hang-up, and a registered stopper, which waits for this
/// keeper as this keeper would wait for it.
#[derive(Debug, Default)]
pub(super) struct Own {
    pub(super) explainer: Option<Pid>,
    pub(super) stopper: Option<Identity>,
}

impl Own {
    /// Reads whether a stop from inside has registered.
    pub(super) fn look_for_stopper(&mut self, receipts: &Receipts<'_>) {
        // A later stopper takes the place of one that gave up.
        if let Observation::Known(file) = receipts.dir.read_json::<HandoverFile>(name::HANDOVER) {
            self.stopper = Some(file.stopper);
        }
    }

    /// Whether nobody but these is left. What cannot be told is no.
    pub(super) fn alone(&self) -> bool {
        if self.explainer.is_none() && self.stopper.is_none() {
            // Then `wait` is the better witness, and it says that there are children.
            return false;
        }
        let children = process::children(std::process::id());
        children.refused.is_empty() && children.found.iter().all(|note| self.is_own(note))
    }

    /// All descendants but these and theirs.
    fn others(&self) -> Vec<Note> {
        let mut all = Vec::new();
        for child in process::children(std::process::id()).found {
            if self.is_own(&child) {
                continue;
            }
            let below = process::descendants(child.id.pid).found;
            all.push(child);
            all.extend(below);
        }
        all.sort_by_key(|note| (note.id.start, note.id.pid));
        all.truncate(LISTED);
        all
    }

    fn is_own(&self, note: &Note) -> bool {
        let explainer = self.explainer.and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok());
        explainer == Some(note.id.pid) || self.stopper.as_ref() == Some(&note.id)
    }
}

fn in_words(notes: &[Note]) -> String {
    let named: Vec<String> = notes
        .iter()
        .take(3)
        .map(|n| format!("{} `{}`", n.id.pid, super::super::words::clean(&n.command)))
        .collect();
    let more = notes.len().saturating_sub(named.len());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("the program has ended; still running: {}{more}", named.join(", "))
}
