//! The keeper in real windows: every test starts `loopmux-keep` by plain commands of a private tmux server.
#![cfg(target_os = "linux")]

mod support;

mod disk;
mod engine;
mod hangup;
mod jobs;
mod leftovers;
mod output;
mod park;
mod start;
