//! What is in the working memory stands in every request.
//!
//! The promise: in every request of the session and of its frames' subagents, whoever reads that request alone knows
//! each register of that conversation's frame and each chunk of the heap as they stood when the last hook event before
//! the request ended, which is its start, its compaction, its prompt or its batch of tools. What another writer
//! changes while the model answers a request is therefore in the next one.
//!
//! Not promised: what is written between that event and the request (it takes milliseconds); a request that no such
//! event precedes (the client's own second try, or a turn that the gate refuses to end); what others change in one step
//! beyond the 9,900 UTF-16 units of one hook's text (a returning frame has two), which comes in whole pieces with the
//! next events and is announced; a subagent that has returned from its frame, or that never had one; a conversation
//! that a person at a screen takes back to an earlier message.

mod concurrent_sessions;
pub(crate) mod harness;
mod hostile_values;
mod independent_reader;
mod long_session;
mod reply_sizes;
mod resumed_sessions;
mod token_budget;
