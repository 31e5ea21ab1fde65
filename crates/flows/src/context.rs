//! Environment variables that give other hooks and scripts the context window's figures.

pub mod forecast;
pub mod item_cost;
pub mod measure;
pub(crate) mod running_sessions;
pub mod session_usage;
pub(crate) mod subagent_usage;

use crate::context::measure::Question;
use crate::hook_invocation::HookInvocation;
use plimsoll_domain::reading::UsedSource;
use plimsoll_domain::{Reading, SessionRecord};
use plimsoll_store::{Project, config, sessions};
use std::path::Path;

/// A variable with its value; none if it is not known: an inherited value may be another session's, and is then taken
/// away.
type Variable = (&'static str, Option<String>);

/// The variables that users of the client ask for, of the session that a hook's payload names.
pub fn variables(payload: &[u8]) -> Vec<Variable> {
    let reading = HookInvocation::read(payload).ok().and_then(|call| {
        let record = sessions::load(&call.project, &call.session_id);
        measure::of_call(&call, &record).reading
    });
    of_reading(reading.as_ref())
}

/// The same of a session that asks from one of its tools.
pub fn variables_of(project: &Project, record: &SessionRecord) -> Vec<Variable> {
    let (settings, _) = config::load(project);
    let transcript = record.start.transcript_path.as_ref().map(Path::new);
    let question = Question { project, settings: &settings, record, transcript, calls: &[] };
    of_reading(measure::measure_once_written(&question).reading.as_ref())
}

fn of_reading(reading: Option<&Reading>) -> Vec<Variable> {
    if reading.is_some_and(|reading| reading.source == UsedSource::Environment) {
        // Another program has set them for this very session.
        return Vec::new();
    }
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    vec![
        ("CLAUDE_CONTEXT_PERCENT", number(reading.and_then(Reading::percent_used))),
        ("CLAUDE_CONTEXT_TOKENS_USED", number(reading.map(|reading| reading.used))),
        (
            "CLAUDE_CONTEXT_TOKENS_MAX",
            number(reading.and_then(|reading| Some(reading.window.as_ref()?.tokens))),
        ),
    ]
}
