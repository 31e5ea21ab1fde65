//! What the real client does with subagents: the facts that the frames of the working memory stand on.
//!
//! The hooks here are tiny shell scripts that note what they are given and print a fixed answer; none of our own.

mod bench;
mod compaction;
mod depth;
mod push;
mod start_stop;
mod deaths;
mod batches;
mod asking;
