//! RULE: each parser of foreign bytes keeps its invariants for every input.
//!
//! A target is a plain function that panics if an invariant is broken. libFuzzer calls it (`fuzz/`, `scripts/fuzz.sh`), and so does
//! an ordinary `cargo test`, with the seeds and with reproducible mutations of them.

mod draw;
mod foreign;
mod in_memory;
pub mod markdown;
pub mod mutation;
pub mod seeds;
mod spoil;
mod targets;

pub use targets::{TARGETS, Target, target_by_name};
