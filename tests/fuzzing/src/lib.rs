//! RULE: what must hold of each parser of foreign bytes, whatever bytes it reads.
//!
//! A target is a plain function that panics where something does not hold. libFuzzer calls it (`fuzz/`,
//! `scripts/fuzz.sh`), and so does an ordinary `cargo test`, with the seeds and with seeded changes of them.

mod draw;
mod foreign;
mod in_memory;
pub mod markdown;
pub mod mutation;
pub mod seeds;
mod spoil;
mod targets;

pub use targets::{TARGETS, Target, named};
