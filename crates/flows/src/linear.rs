//! Notes for Linear on their way out. Nothing here opens a connection: `plimsoll-linear` does, one of the optional programs that link
//! a network client. This module says what it is started for, and what became of it.

pub mod command;
pub mod delivery;
pub mod failure;
pub mod key;
pub(crate) mod notes;
