//! A run, end to end, on a real tmux.

#[path = "../harness/mod.rs"]
mod harness;

mod ends;
mod lost;
mod resume;
