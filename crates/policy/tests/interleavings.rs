//! The rules of the board, without a board.

#![expect(clippy::expect_used, clippy::panic, reason = "the model of a test fails the test")]

#[path = "interleavings/suite.rs"]
mod suite;
