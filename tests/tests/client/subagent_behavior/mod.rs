//! What the real client does with subagents: the facts that the frames of the working memory stand on.
//!
//! The hooks here are tiny shell scripts that note what they are given and print a fixed answer; none of our own.

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
