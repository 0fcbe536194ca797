//! Acts on the world, one file each. Each is a short protocol: it rests on a verdict, does one thing, and looks
//! again before it reports.

pub mod archive;
pub mod clean;
pub mod cleanup;
pub mod control;
pub mod delete;
pub mod end;
pub mod engine_windows;
pub mod environment;
pub mod give_up;
pub mod inside;
pub mod launch;
pub mod look;
pub mod names;
pub mod programs;
pub mod quarantine;
pub mod recover;
pub mod refusal;
pub mod remove;
pub mod restore;
pub mod stop;
pub mod tidy;
pub mod veto;
