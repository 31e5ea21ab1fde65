//! A field with a wrong type, or a missing field, loses no other field.

#![expect(clippy::expect_used, reason = "a recording that cannot be read is a failed test")]

#[path = "../recorded/mod.rs"]
mod recorded;

mod spoiled;
mod torn;
mod views;
