//! Notes for Linear on their way out. Nothing here opens a connection: `plimsoll-linear` does, the one program that links a
//! network client. It is optional, and found, started and judged here.

pub mod command;
pub mod delivery;
pub mod failure;
pub mod key;
pub mod program;
