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
type VariableToSetOrRemove = (&'static str, Option<String>);

/// Measures the session that a hook's payload identifies. Returns the variables with its context usage.
pub fn measure_context_variables_for_hook(payload: &[u8]) -> Vec<VariableToSetOrRemove> {
    let reading = HookInvocation::parse_input_and_load_project(payload).ok().and_then(|invocation| {
        let record = sessions::load_session_record(&invocation.project, &invocation.session_id);
        measure::measure_hook_session_waiting_near_threshold(&invocation, &record).reading
    });
    variables_unless_reading_is_from_environment(reading.as_ref())
}

/// Waits until the calling tool's response is in the transcript, then measures the session. Returns the
/// variables with its context usage.
pub fn wait_and_measure_context_variables_for_tool(
    project: &Project,
    record: &SessionRecord,
) -> Vec<VariableToSetOrRemove> {
    let (settings, _) = config::load_settings(project);
    let transcript = record.start.transcript_path.as_ref().map(Path::new);
    let input = MeasureInput {
        project,
        settings: &settings,
        record,
        transcript_path: transcript,
        pending_calls: &[],
    };
    variables_unless_reading_is_from_environment(
        measure::wait_for_tool_call_and_measure_usage(&input).reading.as_ref(),
    )
}

fn variables_unless_reading_is_from_environment(
    reading: Option<&UsageReading>,
) -> Vec<VariableToSetOrRemove> {
    if reading.is_some_and(|reading| reading.usage_source == UsageSource::Environment) {
        // Another program has already set the variables for this session.
        return Vec::new();
    }
    let to_text = |value: Option<u64>| value.map(|value| value.to_string());
    vec![
        ("CLAUDE_CONTEXT_PERCENT", to_text(reading.and_then(UsageReading::percent_shown_by_client))),
        ("CLAUDE_CONTEXT_TOKENS_USED", to_text(reading.map(|reading| reading.used_tokens))),
        (
            "CLAUDE_CONTEXT_TOKENS_MAX",
            to_text(reading.and_then(|reading| Some(reading.window.as_ref()?.tokens))),
        ),
    ]
}
