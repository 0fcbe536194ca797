//! loopmux launches agent CLIs in windows of a terminal multiplexer and always knows what became of them.
//!
//! The library is the program without its `main`; its modules are described in `docs/architecture.md`. Proof
//! that something ended comes from the kernel (a lock that the agent inherits) and from write-once receipts of
//! the keeper in its window. The multiplexer's word can only veto, and name a cause.

pub mod at;
pub mod backends;
pub mod cli;
pub mod config;
pub mod engine;
pub mod fault;
pub mod keeper;
pub mod observe;
pub mod ops;
pub mod process;
pub mod run;
pub mod verdict;
pub mod wake;
