//! The psmux leaf: the only place that knows psmux's arguments, formats, wordings and versions.

mod classify;

pub use classify::classify;
