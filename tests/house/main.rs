//! Checks of the repository itself: its layers, its words, its habits, its documents.
//!
//! Every check is a function over texts. Each is shown a planted violation first, so that a check that finds
//! nothing is known to be able to find something.

mod collapse;
mod docs;
mod faults;
mod files;
mod layers;
mod source;
mod words;
