//! Acts that remove runs or end what is left of them: nothing without proof.

#[path = "../harness/mod.rs"]
mod harness;

mod archive;
mod clean;
mod cleanup;
mod crash;
mod delete;
mod holds;
mod inside;
mod owners;
mod quarantine;
mod refusals;
mod support;
mod trees;
