//! The Claude Code plugin: its files, and how the real client treats them.

mod evals;
mod frames;
pub(crate) mod harness;
mod hook_entries;
mod marketplace;
mod missing_programs;
mod no_double_hooks;
mod plugin_files;
mod release_plugin;
mod session;
