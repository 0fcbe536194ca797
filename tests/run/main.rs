//! A run, end to end, on a real tmux.

#[path = "../harness/mod.rs"]
mod harness;

mod ends;
mod engine;
mod environment;
mod hup;
mod inside;
mod lost;
mod people;
mod resume;
mod signals;
