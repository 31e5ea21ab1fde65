//! The client's custom agent in which frames run.

use serde_json::{Value, json};

/// The agent's file for `.claude/agents/`.
pub const FRAME_AGENT_FILE: &str = include_str!("../../../../hooks-config/agents/frame.md");
/// The agent's name, used as `subagent_type` of the Agent tool.
pub const FRAME_AGENT_NAME: &str = "frame";

/// Returns the agent's description, by which the model chooses it.
pub fn description() -> &'static str {
    let line = split_front_matter().0.lines().find_map(|line| line.strip_prefix("description: "));
    line.unwrap_or_default().trim_matches('"')
}

/// Returns the agent's system prompt.
pub fn system_prompt() -> &'static str {
    split_front_matter().1.trim()
}

/// Returns the value of the client's `--agents` option, for a session without the file.
pub fn agents_flag_value() -> Value {
    json!({ FRAME_AGENT_NAME: { "description": description(), "prompt": system_prompt(), "model": "inherit" } })
}

/// Splits the file into the front matter between the two lines of dashes and the text after it.
fn split_front_matter() -> (&'static str, &'static str) {
    FRAME_AGENT_FILE.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")).unwrap_or_default()
}
