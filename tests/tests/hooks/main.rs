//! Tests of the hook programs by themselves, and of the files that they leave on disk.

mod bad_input;
mod codex_sessions;
mod compaction_window;
mod concurrent_hooks;
mod crash_points;
mod erase_secrets;
mod git_traps;
mod hidden_from_git;
mod item_costs;
mod measure_usage;
mod monitor_beside_memory;
mod moved_records;
mod notes_survive_sessions;
mod offer_handoff;
mod project_root;
mod prune;
mod room_for_largest_step;
mod session_in_other_folder;
mod statusline;
mod symlinked_project;
mod turn_log;
mod turn_log_memory_use;
mod turns_command;
mod untrusted_paths;
mod untrusted_records;
mod usage_matches_client;
