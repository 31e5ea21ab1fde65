//! Tests of the working memory: its commands, its server, its frames, and what the model sees of it.

mod frames;
mod hook_processes;
mod mcp;
mod memory_command;
mod memory_in_requests;
mod run_memory;
