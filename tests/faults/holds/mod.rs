//! One step is held while another command runs: the orders that break a rule where a guard is missing, each replayed on
//! the real program and seen to break nothing.

mod keepers;
mod launches;
mod records;

use crate::harness::{World, finish_child};
use crate::support::{Gate, start_with};
use std::process::Child;

/// A command that waits at a point.
struct Held {
    child: Child,
    gate: Gate,
}

impl Held {
    #[track_caller]
    fn at(world: &World, point: &str, args: &[&str]) -> Self {
        let gate = Gate::new(world, &point.replace(['.', '@', '~', '/'], "-"));
        let child = start_with(world, args, &gate.at(point));
        gate.reached();
        Self { child, gate }
    }

    #[track_caller]
    fn finish(self) -> crate::harness::Ran {
        self.gate.open();
        finish_child(self.child)
    }
}

/// How often the agent of a run was started: it adds a line to a file each time.
fn starts(world: &World) -> usize {
    std::fs::read_to_string(world.file("starts")).unwrap_or_default().lines().count()
}

/// An agent that notes that it was started, then waits.
fn counting(world: &World) -> [String; 3] {
    let script = format!("echo $LOOPMUX_ATTEMPT >> {}; exec sleep 600", world.file("starts").display());
    ["sh".to_owned(), "-c".to_owned(), script]
}

/// The same, and it exits.
fn counting_once(world: &World, code: u8) -> [String; 3] {
    let script = format!("echo $LOOPMUX_ATTEMPT >> {}; exit {code}", world.file("starts").display());
    ["sh".to_owned(), "-c".to_owned(), script]
}
