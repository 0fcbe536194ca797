//! Gathering evidence, in the fixed order: start receipt, lease, exit receipt, record; then the multiplexer, to
//! explain. Nothing here writes.

mod attempt;
mod holders;
mod mux;
mod owner;
mod run;
mod sweep;

pub use attempt::{AttemptView, attempt_in_brief, attempt_on_disk};
pub use holders::holders;
pub use mux::{Look, Looks, MuxSide, ask, identify_server, look};
pub use owner::{Ownership, ownership};
pub use run::{EngineView, RunView, explain, run, run_in_brief, unreadable};
pub use sweep::{Sweep, belongs_here, sweep};
