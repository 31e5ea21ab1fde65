//! The custom agent of the client that a frame runs in.

use serde_json::{Value, json};

/// The agent's file, as it is in `.claude/agents/`.
pub const FILE: &str = include_str!("../../../../hooks-config/agents/frame.md");
/// What the Agent tool's `subagent_type` says.
pub const NAME: &str = "frame";

/// The one line by which the model chooses the agent.
pub fn description() -> &'static str {
    let line = parts().0.lines().find_map(|line| line.strip_prefix("description: "));
    line.unwrap_or_default().trim_matches('"')
}

/// The agent's system prompt.
pub fn prompt() -> &'static str {
    parts().1.trim()
}

/// What the client's `--agents` takes, for a session without the file.
pub fn flag() -> Value {
    json!({ NAME: { "description": description(), "prompt": prompt(), "model": "inherit" } })
}

/// The head between the two lines of dashes, and what follows.
fn parts() -> (&'static str, &'static str) {
    FILE.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")).unwrap_or_default()
}
