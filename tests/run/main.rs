//! A run, end to end, on a real tmux.

#[path = "../harness/mod.rs"]
mod harness;

mod blind;
mod brief;
mod disk;
mod ends;
mod engine;
mod environment;
mod hup;
mod inside;
mod kills;
mod lost;
mod names;
mod people;
mod reach;
mod readonly;
mod resume;
mod signals;
mod storm;
mod upgrade;
