//! What the real client does, and our programs inside it: sessions on a terminal and without, every version, plugins, installations.

mod agent_facts;
mod bench;
mod client_matrix;
mod compaction;
mod continue_from;
mod dashboard;
mod delegation;
mod freshness;
mod guarded;
mod labels;
mod ordinary_session;
mod plugin;
mod prices;
mod replay;
mod sandbox;
mod trial;
mod user_install;
mod with_context;
