//! Read-only sessions of the client, which draft a plan or review changes.

use plimsoll_domain::SessionEnding;
use plimsoll_protocol::settings::{UnprivilegedSettings, drop_permissions_and_extract_environment};
use plimsoll_store::{disk, environment};

/// The arguments that make a session read-only (2.1.329). `--tools` lists the only built-in tools that are
/// available, and `--strict-mcp-config` without a configuration disables all MCP servers. `--restricted`
/// confines both the tools and the `@path` mentions of the prompt to the folder in which the client is
/// started, even through links that lead out of it. It ignores settings files, but the client refuses to start
/// if `--settings` or the environment sets a permission mode that bypasses permissions, so the mode is set
/// explicitly.
const READ_ONLY_ARGUMENTS: [&str; 6] =
    ["--strict-mcp-config", "--tools", "Read,Grep,Glob", "--restricted", "--permission-mode", "default"];

/// The additional arguments and environment of a session that can only read.
pub(crate) struct ReadOnlySession {
    /// Arguments to append after all others: if an option is repeated, the client uses the last one.
    pub(crate) arguments: Vec<String>,
    /// Variables of the user's own settings, which the client does not read in such a session.
    pub(crate) environment: Vec<(String, String)>,
}

impl ReadOnlySession {
    /// Builds the arguments from the user's settings of the client, because the client may need them to log in.
    /// The project's settings are not used, because anyone may have written them.
    pub(crate) fn from_user_settings_without_permissions() -> ReadOnlySession {
        let settings_path = environment::client_config_folder().map(|folder| folder.join("settings.json"));
        let settings_text =
            settings_path.and_then(|file| disk::read_text(&file).ok().flatten()).unwrap_or_default();
        let UnprivilegedSettings { settings, environment } =
            drop_permissions_and_extract_environment(&settings_text);
        let settings_arguments =
            settings.into_iter().flat_map(|settings| ["--settings".to_owned(), settings]);
        ReadOnlySession {
            arguments: READ_ONLY_ARGUMENTS.map(str::to_owned).into_iter().chain(settings_arguments).collect(),
            environment,
        }
    }
}

/// Describes why a read-only session produced no answer: the client's own message, or how the session ended.
pub(crate) fn describe_missing_answer(ending: &SessionEnding) -> String {
    match ending {
        SessionEnding::Limit(message) => format!("a usage limit: {message}"),
        SessionEnding::Overloaded(message) => format!("the service is not available: {message}"),
        SessionEnding::Fatal(fatal) => fatal.message().to_owned(),
        SessionEnding::Failed(message)
        | SessionEnding::Crashed(message)
        | SessionEnding::IdleTimeout(message) => message.clone(),
        SessionEnding::WindowFull(_) => "its prompt and what it read fill the context window".to_owned(),
        SessionEnding::ClientLimit(option) => format!("its limit was reached ({option})"),
        SessionEnding::Completed => "its answer is empty".to_owned(),
        SessionEnding::HookStopped => "a hook ended its session".to_owned(),
        SessionEnding::Interrupted | SessionEnding::DeadlineReached | SessionEnding::Canceled => {
            "its session was ended".to_owned()
        }
        SessionEnding::Unknown => "its session ended for an unknown reason".to_owned(),
    }
}
