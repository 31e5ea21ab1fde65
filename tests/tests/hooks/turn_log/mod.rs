//! The turn log of sessions of the real client: each response and its results, compared with the client's own
//! transcripts and with what the scripted model sent.

mod changing_transcripts;
mod failed_turns;
mod harness;
mod locked_log;
mod recorded_transcripts;
mod refused_calls;
mod session_endings;
mod several_streams;
mod sync_points;
