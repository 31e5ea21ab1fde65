//! RULE: verbs. Total functions of their arguments: no disk, no clock, no environment. Every tunable number is
//! defined here, or in the settings' defaults, with its reason.
//!
//! The caller gathers facts (`store`, `launcher`), asks for a decision, and acts on it; a decision is a value with
//! its reason, such as [`monitor::MonitorAction`] or a `Verdict`. Six functions and modules change their arguments, because
//! a decision and its counters belong together: [`gate::judge_session_and_apply_verdict`], [`breaker`], [`ticks`] and
//! [`resume::store_half_done_and_take_next_checkpoint`] change the run's state, [`monitor::decide_action`] a session's
//! record, [`workers`] the board of a parallel run. The caller passes a copy, or the value that it read under the file's
//! lock, and writes it; nothing here writes.
//! `foreign::note_…` changes another program's document in the same way.
//!
//! `Result` is used in three places: [`frames::check_memory_access`], why a conversation may not change a frame, which the model
//! reads; [`statusline`], why a segment is hidden, which is no error; and [`workers`], that another machine has taken
//! over meanwhile.
//!
//! Limits: a decision is as good as the facts. Estimates ([`forecast`], [`step`]) are medians of measurements and
//! never end a session. Nothing here knows whether a decision was carried out.
//!
//! ```
//! use plimsoll_domain::{Level, Settings};
//! use plimsoll_policy::thresholds::{
//!     CompactionConfig, compute_auto_compact_threshold_and_action, compute_thresholds,
//! };
//!
//! let settings = Settings::default();
//! let compaction =
//!     compute_auto_compact_threshold_and_action(200_000, None, &CompactionConfig::default());
//! let thresholds = compute_thresholds(200_000, compaction, &settings.levels, &settings.margins, 0);
//! assert!(thresholds.l1 < thresholds.l2 && thresholds.l2 < thresholds.l3);
//! assert!(thresholds.l3 < compaction.tokens, "we end a session before the client compacts it");
//! assert_eq!(thresholds.level_at(thresholds.l2), Level::L2);
//! ```

pub mod attribution;
pub mod bounds;
pub mod breaker;
pub mod check_files;
pub mod checks;
pub mod client;
pub mod client_modules;
pub mod completion;
pub mod current_item;
pub mod doctor;
pub mod draft;
pub mod error_fingerprint;
mod evidence;
pub mod explain;
pub mod forecast;
pub mod frames;
pub mod gate;
pub mod gate_input_wait;
pub mod handoff_choice;
pub mod item_growth;
pub mod last_exchanges;
pub mod linear;
pub mod messages;
pub mod model_switch;
pub mod models;
pub mod module_answer;
pub mod monitor;
pub mod near_miss;
pub mod pack;
pub mod pause;
pub mod plan;
pub mod plan_ticks;
pub mod prices;
pub mod protected;
pub mod prune;
pub mod questions;
pub mod read_only;
pub mod records_location;
pub mod remaining_work;
pub mod reset_clock;
pub mod resume;
pub mod resume_cost;
pub mod review;
pub mod run_activity;
pub mod run_figures;
pub mod sandbox;
pub mod session_ending;
pub mod session_usage;
pub mod shell_loop;
pub mod silence;
pub mod statusline;
pub mod step;
pub mod subagent_event;
pub mod telemetry;
pub mod thresholds;
pub mod ticks;
pub mod todo_list;
pub mod tool_permissions;
pub mod turns;
pub mod unresolved_failures;
pub mod usage;
pub mod window;
pub mod workers;
