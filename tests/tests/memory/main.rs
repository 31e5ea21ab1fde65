//! The working memory: its commands, its server, its frames, and that the model sees it.

mod frames;
mod mcp;
mod memory_command;
mod one_process;
mod run_memory;
mod visibility;
