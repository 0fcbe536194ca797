//! What a person and a program see: the commands that read, over run directories of every state, and the
//! commands that only need a multiplexer to look at.

#[path = "../harness/mod.rs"]
mod harness;

mod attach;
mod doctor;
mod errors;
mod json;
mod logs;
mod mux;
mod pipes;
mod readonly;
mod references;
mod samples;
mod schema;
mod text;
