//! Waiting without polling: a datagram socket that others poke after they wrote a file, and descriptors that
//! become readable when a process ends.
//!
//! The file is the truth and the poke only saves waiting: one that is lost costs a second, never an answer.

mod inbox;
mod waiter;

pub use inbox::{Inbox, poke, poke_named};
pub use waiter::{SAFETY, Woke, wait};
