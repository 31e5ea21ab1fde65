//! Sessions of the client that can only read: those that draft a plan, and those that review.

use plimsoll_domain::Ending;
use plimsoll_protocol::settings::{UnprivilegedSettings, without_permissions};
use plimsoll_store::{disk, environment};

/// What makes it one (2.1.329). `--tools` names the only built-in tools that there are, and `--strict-mcp-config` without a
/// configuration leaves out every MCP server. `--restricted` confines both the tools and the `@path` mentions of the prompt to
/// the folder in which the client is started, also where links lead out of it. It ignores settings files, but it refuses to
/// start where a permission mode of `--settings` or of the environment bypasses permissions: the mode is named last.
const ONLY_READS: [&str; 6] =
    ["--strict-mcp-config", "--tools", "Read,Grep,Glob", "--restricted", "--permission-mode", "default"];

/// How a session that can only read is started.
pub(crate) struct ReadOnlySession {
    /// Arguments that come after all others: the client uses the last one of each.
    pub(crate) arguments: Vec<String>,
    /// Variables of the user's own settings, which the client does not read then.
    pub(crate) environment: Vec<(String, String)>,
}

impl ReadOnlySession {
    /// Reads the user's own settings of the client: without them it may not know how to log in. A project's settings are
    /// left out, because anybody may have written them.
    pub(crate) fn from_user_settings() -> ReadOnlySession {
        let file = environment::client_folder().map(|folder| folder.join("settings.json"));
        let text = file.and_then(|file| disk::read_text(&file).ok().flatten()).unwrap_or_default();
        let UnprivilegedSettings { settings, environment } = without_permissions(&text);
        let settings = settings.into_iter().flat_map(|settings| ["--settings".to_owned(), settings]);
        ReadOnlySession {
            arguments: ONLY_READS.map(str::to_owned).into_iter().chain(settings).collect(),
            environment,
        }
    }
}

/// Why such a session gave no answer: the client's own words, else how it ended.
pub(crate) fn failure(ending: &Ending) -> String {
    match ending {
        Ending::Limit(words) => format!("a usage limit: {words}"),
        Ending::Overloaded(words) => format!("the service is not available: {words}"),
        Ending::Fatal(fatal) => fatal.words().to_owned(),
        Ending::Failed(words) | Ending::Crashed(words) | Ending::Silent(words) => words.clone(),
        Ending::WindowFull(_) => "its prompt and what it read fill the context window".to_owned(),
        Ending::ClientLimit(option) => format!("its limit was reached ({option})"),
        Ending::Completed => "its answer is empty".to_owned(),
        Ending::HookStopped => "a hook ended its session".to_owned(),
        Ending::Interrupted | Ending::OutOfTime | Ending::Cancelled => "its session was ended".to_owned(),
        Ending::Unknown => "its session ended for an unknown reason".to_owned(),
    }
}
