//! Why a run is left where it is: what was seen, and the way out.

use crate::process::Note;
use crate::verdict::Obstacle;
use loopmux_mux::ByHand;

/// A guard that refuses an act on a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// What was seen.
    pub facts: Vec<Fact>,
    /// What a person can do about it, each once.
    pub ways_out: Vec<WayOut>,
}

/// One thing that stands against an act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// It is certain that something lives. Otherwise something may.
    pub certain: bool,
    /// What was seen, in words.
    pub text: String,
    /// The process that it is about, where one is.
    pub process: Option<Note>,
}

/// A way out of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WayOut {
    /// Stop the run.
    Stop,
    /// Look at the evidence.
    Status,
    /// End what is left in the multiplexer.
    Cleanup,
    /// Put the run aside without proof.
    Unproven,
    /// Delete the run, since it cannot be archived as it is.
    Delete,
    /// Look at a session, and end it by hand.
    ByHand(ByHand),
}

impl Refusal {
    /// Nothing stands against it yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing stands against it.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// It is certain that something lives.
    pub fn is_certain(&self) -> bool {
        self.facts.iter().any(|f| f.certain)
    }

    /// Adds a fact, once.
    pub fn fact(&mut self, certain: bool, text: impl Into<String>, process: Option<Note>) {
        let fact = Fact { certain, text: text.into(), process };
        if !self.facts.contains(&fact) {
            self.facts.push(fact);
        }
    }

    /// Adds a way out, once.
    pub fn way_out(&mut self, way: WayOut) {
        if !self.ways_out.contains(&way) {
            self.ways_out.push(way);
        }
    }

    /// Adds everything of another one.
    pub fn absorb(&mut self, other: Self) {
        for fact in other.facts {
            self.fact(fact.certain, fact.text, fact.process);
        }
        for way in other.ways_out {
            self.way_out(way);
        }
    }

    /// A refusal of one obstacle, in the obstacle's own words.
    pub fn obstacle(&mut self, obstacle: &Obstacle) {
        self.fact(obstacle.is_certain(), obstacle.to_string(), None);
    }
}

impl Fact {
    /// The fact in one line, with its process.
    pub fn line(&self) -> String {
        match &self.process {
            Some(p) => format!("{} pid {} `{}`", self.text, p.id.pid, p.command),
            None => self.text.clone(),
        }
    }
}
