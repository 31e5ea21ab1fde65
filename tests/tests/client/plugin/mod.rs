//! The Claude Code plugin: its files, and what the real client makes of them.

mod entries;
mod files;
mod frames;
mod market;
mod missing;
mod session;
mod stage;
mod twice;
