//! What each hook program does, one file per program: read the event, decide, write, respond.
//!
//! `subagent` is what several of them do when a frame of the working memory is pushed or popped around a subagent;
//! `pack` is the Stop hook's question whether the session has room for the next item.

pub mod faults;
pub(crate) mod pack;
pub mod post_tool;
pub mod pre_compact;
pub mod session_end;
pub mod session_start;
pub mod statusline;
pub mod stop;
pub mod subagent;
