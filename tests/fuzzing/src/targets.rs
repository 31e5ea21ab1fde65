//! One fuzz target for each format that is parsed.

mod authority;
mod claims;
mod client_files;
mod handoff;
mod hook_event;
mod memory;
mod plan_boxes;
mod plimsoll_settings;
mod project_files;
mod prompt;
mod recording;
mod server_file;
mod settings_file;
mod state;
mod status_line;
mod status_payload;
mod stream;
mod todo_list;
mod transcript_tail;
mod turn_log;
mod words;

/// A parser and the invariants that its results must satisfy.
#[derive(Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    /// Panics if an invariant is broken.
    pub check_input: fn(&[u8]),
    /// Returns the inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// How many mutated inputs `cargo test` tries. All targets together take a few seconds.
    pub mutated_input_count: usize,
}

pub const TARGETS: [Target; 21] = [
    authority::TARGET,
    claims::TARGET,
    client_files::TARGET,
    handoff::TARGET,
    hook_event::TARGET,
    memory::TARGET,
    plan_boxes::TARGET,
    plimsoll_settings::TARGET,
    project_files::TARGET,
    prompt::TARGET,
    recording::TARGET,
    server_file::TARGET,
    settings_file::TARGET,
    state::TARGET,
    status_line::TARGET,
    status_payload::TARGET,
    stream::TARGET,
    todo_list::TARGET,
    transcript_tail::TARGET,
    turn_log::TARGET,
    words::TARGET,
];

/// Returns the target of this name.
pub fn target_by_name(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
