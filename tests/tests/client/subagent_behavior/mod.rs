//! Behavior of the real client's subagents on which the frames of the working memory rely.
//!
//! The hooks here are small shell scripts that record their payload and print a fixed response; none of them is
//! Plimsoll's.

mod agent_call;
mod agent_definitions;
mod agent_result;
mod compaction;
mod failed_subagents;
mod harness;
mod interrupted_subagents;
mod nested_subagents;
mod parallel_calls;
mod permissions;
mod start_stop;
