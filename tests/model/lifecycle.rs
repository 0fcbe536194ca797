//! The lifecycle of a run, in every order of its atomic steps.
//!
//! One run with its engine, its keepers and their program, two commands that may die at any step, an observer, a
//! multiplexer that kills, omits, hangs, ignores a kill and carries out what a dead client asked for, and a world that
//! kills, reuses names, ids and pids, and restarts. Each read, lock, rename, write, spawn and unlink is a step of its
//! own ([`state`], [`actors`]); the explorer ([`explore`]) takes them in every order that could matter ([`alone`]). What
//! is decided on the way is decided by the program itself ([`tables`]): `decide`, `derive_status`, `permit`,
//! `Record::after`, `Record::resumed`.
//!
//! The rules of `docs/rules.md` are properties of a state ([`rules`]). The system as it is keeps them
//! ([`properties`]); without a guard one breaks, or an ability is lost, or another guard is shown to stand behind it
//! ([`mutants`]). A failure prints its shortest steps in words. How a run comes into being is a small model of its own
//! ([`birth`]).
//!
//! Held elsewhere, because a model of one run cannot hold them or would only repeat them: L21 (the seam has no such
//! act), the other half of L9 (observers hold a type that cannot write), the unpacking of an archive, and everything
//! that a file system, a kernel or a real multiplexer must do: the tests of the real program. Where the text of L23
//! leaves to a person what cannot be read, the model has a torn receipt.
//!
//! What the steps stand for is listed with its hash ([`drift`]), and every act of the program that takes something away
//! with the rule that permits it ([`acts`]).
//!
//! `cargo test -p loopmux-model -- --ignored` lets two and three faults happen.

mod actors;
mod acts;
mod alone;
mod birth;
mod cleanup;
mod drift;
mod engine;
mod explore;
mod keeper;
mod look;
mod model;
mod mutants;
mod mutator;
mod mux;
mod observer;
mod properties;
mod reach;
mod remove;
mod resume;
mod rules;
mod scenarios;
// The repository's own look at sources.
#[allow(dead_code)]
#[path = "../house/source.rs"]
mod source;
mod state;
mod stop;
mod tables;
mod words;
mod world;
