//! Every request shows the working memory.
//!
//! The promise: a reader who knows only one request of the session or of its frames' subagents knows each register of
//! that conversation's frame and each chunk of the heap. He knows them as of the end of the last hook event before
//! the request: the session's start, its compaction, its prompt or its batch of tools. A change that another writer
//! makes while the model responds is therefore in the next request.
//!
//! Not promised: what is written between that event and the request (a few milliseconds); a request without such an
//! event before it (the client's own retry, or a turn that the gate refuses to end); changes by others in one step
//! beyond the 9,900 UTF-16 units of one hook's text (a returning frame has two), which arrive in whole pieces with
//! the next events and are announced; a subagent that has returned from its frame or never had one; a conversation
//! that a person takes back to an earlier message.

mod concurrent_sessions;
pub(crate) mod harness;
mod hostile_values;
mod independent_reader;
mod long_session;
mod reply_sizes;
mod resumed_sessions;
mod token_budget;
