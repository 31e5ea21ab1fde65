//! What other hooks and scripts are told of the context window.

use crate::call::Call;
use crate::measure;
use session::Reading;
use session::reading::UsedSource;
use store::sessions;

/// The variables that users of the client ask for, each with its value; none where it is not known: an inherited
/// value may be another session's, and is then taken away.
pub fn variables(payload: &[u8]) -> Vec<(&'static str, Option<String>)> {
    let reading = Call::read(payload).ok().and_then(|call| {
        let record = sessions::load(&call.project, &call.session_id);
        measure::of_call(&call, &record).reading
    });
    if reading.as_ref().is_some_and(|reading| reading.source == UsedSource::Environment) {
        // Somebody else has set them for this very session.
        return Vec::new();
    }
    let told = |value: Option<u64>| value.map(|value| value.to_string());
    let reading = reading.as_ref();
    vec![
        ("CLAUDE_CONTEXT_PERCENT", told(reading.and_then(Reading::percent_used))),
        ("CLAUDE_CONTEXT_TOKENS_USED", told(reading.map(|reading| reading.used))),
        (
            "CLAUDE_CONTEXT_TOKENS_MAX",
            told(reading.and_then(|reading| Some(reading.window.as_ref()?.tokens))),
        ),
    ]
}
