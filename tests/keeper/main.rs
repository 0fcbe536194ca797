//! The keeper in real windows: every test starts `loopmux-keep` by plain commands of a private tmux server.
#![cfg(target_os = "linux")]

mod support;

mod jobs;
mod leftovers;
mod start;
