//! Delivery of notes to Linear. Nothing here opens a connection: `plimsoll-linear` does, one of the optional
//! programs that link a network client. This module starts it and handles the result.

pub mod command;
pub mod delivery;
pub mod failure;
pub mod key;
pub(crate) mod notes;
