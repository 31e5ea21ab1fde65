//! The turn log of sessions of the real client: what the model said and what came of it, compared with the client's
//! own transcripts and with what the scripted model sent.

mod common;
mod durable;
mod endings;
mod failures;
mod locked;
mod reading;
mod recorded;
mod refused;
mod streams;
