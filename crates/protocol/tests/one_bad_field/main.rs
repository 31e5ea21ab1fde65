//! One field of the wrong type, or none at all, costs that field and no other.

#![expect(clippy::expect_used, reason = "a recording that cannot be read is a failed test")]

#[path = "../recorded/mod.rs"]
mod recorded;

mod spoiled;
mod torn;
mod views;
