//! Environment variables that give the context window's figures to other hooks and scripts.

pub mod forecast;
pub mod item_cost;
pub mod measure;
pub(crate) mod running_sessions;
pub mod session_usage;
pub(crate) mod subagent_usage;

use crate::context::measure::MeasureInput;
use crate::hook_invocation::HookInvocation;
use plimsoll_domain::reading::UsageSource;
use plimsoll_domain::{SessionRecord, UsageReading};
use plimsoll_store::{Project, config, sessions};
use std::path::Path;

/// A variable with its value. `None` means unknown: the variable is then removed, because an inherited value
/// may be another session's.
type ContextVariable = (&'static str, Option<String>);

/// Returns the variables for the session that a hook's payload names.
pub fn variables_for_hook(payload: &[u8]) -> Vec<ContextVariable> {
    let reading = HookInvocation::from_input(payload).ok().and_then(|invocation| {
        let record = sessions::load_session_record(&invocation.project, &invocation.session_id);
        measure::measure_hook_session(&invocation, &record).reading
    });
    variables_unless_set_in_environment(reading.as_ref())
}

/// Returns the variables for a session that asks from one of its tools.
pub fn variables_for_tool(project: &Project, record: &SessionRecord) -> Vec<ContextVariable> {
    let (settings, _) = config::load_settings(project);
    let transcript = record.start.transcript_path.as_ref().map(Path::new);
    let input = MeasureInput {
        project,
        settings: &settings,
        record,
        transcript_path: transcript,
        pending_calls: &[],
    };
    variables_unless_set_in_environment(measure::measure_usage_from_tool(&input).reading.as_ref())
}

fn variables_unless_set_in_environment(reading: Option<&UsageReading>) -> Vec<ContextVariable> {
    if reading.is_some_and(|reading| reading.usage_source == UsageSource::Environment) {
        // Another program has set the variables for this very session.
        return Vec::new();
    }
    let to_text = |value: Option<u64>| value.map(|value| value.to_string());
    vec![
        ("CLAUDE_CONTEXT_PERCENT", to_text(reading.and_then(UsageReading::percent_used_by_client))),
        ("CLAUDE_CONTEXT_TOKENS_USED", to_text(reading.map(|reading| reading.used_tokens))),
        (
            "CLAUDE_CONTEXT_TOKENS_MAX",
            to_text(reading.and_then(|reading| Some(reading.window.as_ref()?.tokens))),
        ),
    ]
}
