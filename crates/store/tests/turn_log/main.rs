//! Tests the turn log against everything that may happen to its files: kills, truncation, manual changes,
//! full disks, many writers.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests spoil files by hand and start processes"
)]

mod compressed_log;
mod concurrent_writers;
mod damaged_log;
mod erased_turns;
mod harness;
mod memory_snapshot;
mod pending_turns;
mod power_cut;
// It mounts a small disk and takes permissions away.
#[cfg(unix)]
mod unusable_folders;
