//! Tests the rules of the board on a board in memory.

#![expect(clippy::expect_used, clippy::panic, reason = "the model of a test fails the test")]

#[path = "interleavings/suite.rs"]
mod suite;
