//! The hook programs by themselves, and what lies on disk after them.

mod bad_input;
mod codex;
mod compaction_window;
mod contention;
mod crash_points;
mod door;
mod erase_secrets;
mod foreign_records;
mod git_traps;
mod hidden;
mod item_costs;
mod largest_step;
mod linked;
mod moved;
mod noted;
mod offer;
mod one_process;
mod other_folder;
mod project_root;
mod prune;
mod reading;
mod reading_pairs;
mod statusline;
mod turn_log;
mod turn_log_size;
mod turns;
