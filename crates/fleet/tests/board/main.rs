//! Tests of the board in PostgreSQL, with a real server from Debian's packages.
#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    reason = "tests of real servers, which make their files and sockets"
)]

mod budget;
mod concurrent_workers;
mod conformance;
mod connection;
mod dashboard_views;
mod database_faults;
mod harness;
mod hostile_attacks;
mod hostile_member;
mod hostile_servers;
mod scale;
mod test_fleet;

/// The suite of `policy::workers`. Both boards run the same file, so the same rules apply to both.
#[path = "../../../policy/tests/interleavings/suite.rs"]
mod interleavings;
