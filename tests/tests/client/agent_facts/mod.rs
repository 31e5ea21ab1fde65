//! What the real client does with subagents: the facts that the frames of the working memory stand on.
//!
//! The hooks here are tiny shell scripts that note what they are given and print a fixed answer; none of our own.

mod batches;
mod bench;
mod compaction;
mod deaths;
mod definitions;
mod depth;
mod interrupted;
mod permissions;
mod push;
mod result;
mod start_stop;
