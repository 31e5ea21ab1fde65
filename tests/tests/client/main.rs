//! How the real client behaves with Plimsoll: sessions on a terminal and headless, every version, plugins, installations.

mod bench_script;
mod client_matrix;
mod compaction;
mod continue_from_handoff;
mod delegate_to_subagents;
mod first_use;
mod grafana_dashboard;
mod guarded_entries;
mod model_switch;
mod module;
mod ordinary_session;
mod plugin;
mod price_table;
mod replay;
mod resume_cost;
mod sandboxed_agent;
mod subagent_behavior;
mod telemetry_labels;
mod transcript_lag;
mod usage;
mod user_installation;
mod with_context;
