//! Sessions of the client that can only read: those that draft a plan, and those that review.

use plimsoll_domain::Ending;

/// What makes it one (2.1.329: `--tools` names the only built-in tools that there are, `--strict-mcp-config` without a
/// configuration leaves out every MCP server). The permission mode stays the user's.
pub(crate) const ONLY_READS: [&str; 3] = ["--strict-mcp-config", "--tools", "Read,Grep,Glob"];

/// Why such a session gave no answer: the client's own words, else how it ended.
pub(crate) fn failure(ending: &Ending) -> String {
    match ending {
        Ending::Limit(words) => format!("a usage limit: {words}"),
        Ending::Overloaded(words) => format!("the service is not available: {words}"),
        Ending::Fatal(words) | Ending::Failed(words) | Ending::Crashed(words) | Ending::Silent(words) => {
            words.clone()
        }
        Ending::WindowFull(_) => "its prompt and what it read fill the context window".to_owned(),
        Ending::ClientLimit(option) => format!("its limit was reached ({option})"),
        Ending::Completed => "its answer is empty".to_owned(),
        Ending::HookStopped => "a hook ended its session".to_owned(),
        Ending::Interrupted | Ending::OutOfTime | Ending::Cancelled => "its session was ended".to_owned(),
        Ending::Unknown => "its session ended for an unknown reason".to_owned(),
    }
}
