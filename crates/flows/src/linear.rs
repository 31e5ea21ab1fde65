//! Notes for Linear on their way out. Nothing here opens a connection: `plimsoll-linear` does, the one program that links a
//! network client. It is optional; what it is started for, and what became of it, is told here.

pub mod command;
pub mod delivery;
pub mod failure;
pub mod key;
pub(crate) mod notes;
