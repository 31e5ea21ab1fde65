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

// What the suite below uses: in its own crate this is what stands above it.
use plimsoll_domain::board::{Aside, Board, BoardItem, Moment, Stage};
use plimsoll_domain::item_area::overlap;
use plimsoll_policy::plan;
use plimsoll_policy::workers::*;

/// The suite of `policy::workers`: the same file, so that both boards are held to the same.
#[path = "../../../policy/src/workers/interleavings.rs"]
mod interleavings;
