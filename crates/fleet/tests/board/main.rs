//! The board in PostgreSQL, against a real one of Debian's.
#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    reason = "tests of real servers, which make their files and sockets"
)]

mod bench;
mod conformance;
mod faults;
mod reached;
mod rogue;
mod scale;
mod together;
mod views;

/// The suite of `policy::workers`: the same file, so that both boards are held to the same.
#[path = "../../../policy/tests/interleavings/suite.rs"]
mod interleavings;
