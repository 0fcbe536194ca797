//! What became of an attempt and of a run: evidence in, verdict out.
//!
//! This module does nothing else. It reads no file, no clock and no environment, so that every combination of
//! evidence can be tried, and so that the lifecycle model runs the same decision as the program.
//!
//! Facts are of two kinds. Receipts, a lease that is free after its start receipt existed, and a terminal
//! record stay true once they are true: they alone decide. What a multiplexer says can flip: it names the
//! cause of an end that is already proven.

mod attempt;
mod evidence;
mod permit;
mod status;
#[cfg(test)]
mod tests;

pub use attempt::{Cause, Leftovers, Verdict, decide};
pub use evidence::{
    End, Evidence, ExitFact, HangupFact, Host, Lease, Life, MuxObject, Observation, ServerSeen, Why,
};
pub use permit::{Obstacle, Permit, Removable, Unheld, permit, prove_unheld};
pub use status::{
    Colour, EngineSeen, RecordSeen, Status, StatusRow, derive_status, exit_code, exit_code_of_all,
};
