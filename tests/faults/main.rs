//! Faults on purpose, on the real program and a real tmux: deaths at every durable step, steps that are held while others
//! run, a world that goes wrong at random, and surroundings that refuse.

#[path = "../harness/mod.rs"]
mod harness;

mod holds;
mod oracle;
mod points;
mod scene;
mod scenes;
mod soak;
mod states;
mod support;
mod surroundings;
