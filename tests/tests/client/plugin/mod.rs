//! The Claude Code plugin: its files, and what the real client makes of them.

mod entries;
mod evals;
mod files;
mod frames;
mod market;
mod missing;
mod released;
mod session;
pub(crate) mod stage;
mod twice;
