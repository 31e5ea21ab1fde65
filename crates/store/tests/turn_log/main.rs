//! The turn log against everything that may happen to its files: kills, cuts, changes by hand, full disks, crowds.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests spoil files by hand and start processes"
)]

mod common;
mod crowd;
mod damage;
mod erasing;
mod noted_memory;
mod packed;
mod places;
mod power_cut;
mod waiting;
