//! One target for each thing that is read.

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

/// A parser and what must hold of it.
#[derive(Clone, Copy)]
pub struct Target {
    /// By what is read.
    pub name: &'static str,
    /// Panics where something does not hold.
    pub body: fn(&[u8]),
    /// What to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// So many changed inputs are tried by `cargo test`: a few seconds in all.
    pub inputs: usize,
}

/// All of them.
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

/// The target of a name.
pub fn named(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
