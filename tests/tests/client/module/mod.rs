//! The module inside the real client: the handoff in place of a summary, the band and its key, and every fault, which ends in
//! what the client does by itself.

mod faults;
mod harness;
mod replaced_conversation;
mod surfaces;
mod terminal;
