//! Reads the API key for Linear from an environment variable or the output of a command. The key is never
//! written to disk.

use plimsoll_domain::Settings;
use plimsoll_store::{Project, environment};
use std::time::Duration;

/// The environment variable with the key. `plimsoll run` also passes the key to `plimsoll-linear` in it.
pub const KEY_VARIABLE: &str = "LINEAR_API_KEY";
/// Timeout of the command: long enough for a password manager that prompts the user.
const KEY_COMMAND_TIMEOUT: Duration = Duration::from_secs(20);

/// The source of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    Variable,
    /// The output of the command in `linear.key_command`.
    Command,
}

impl KeySource {
    /// Returns the name of the environment variable or of the setting.
    pub fn name(self) -> &'static str {
        match self {
            KeySource::Variable => KEY_VARIABLE,
            KeySource::Command => "linear.key_command",
        }
    }

    pub fn from_name(name: &str) -> Option<KeySource> {
        [KeySource::Variable, KeySource::Command].into_iter().find(|source| source.name() == name)
    }
}

/// The text of an API key, not yet validated. It has no `Display`, and its `Debug` output hides the key.
#[derive(Clone)]
pub struct KeyText(String);

impl KeyText {
    /// Returns the key, for an environment variable or a header.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Replaces the key in another program's output with `(key)`.
    pub(super) fn redact_in(&self, text: &str) -> String {
        match self.0.trim() {
            "" => text.to_owned(),
            key => text.replace(key, "(key)"),
        }
    }
}

impl std::fmt::Debug for KeyText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("KeyText(…)")
    }
}

/// An error that occurs while reading the key. The command's output is not included, because it may contain a
/// key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("there is no key for Linear: neither LINEAR_API_KEY nor linear.key_command is set")]
    Missing,
    /// The configured command failed; contains the reason.
    #[error("linear.key_command {0}")]
    Command(String),
}

impl KeyError {
    pub fn hint(&self) -> &'static str {
        match self {
            KeyError::Missing => {
                "make a key in Linear (Settings, Security & access, Personal API keys) and export LINEAR_API_KEY"
            }
            KeyError::Command(_) => "run the command yourself in the project, and fix it",
        }
    }
}

/// Returns the key from the environment variable; if it is not set, runs the configured command and returns
/// its output.
pub fn key_from_variable_or_command(
    project: &Project,
    settings: &Settings,
) -> Result<(KeyText, KeySource), KeyError> {
    if let Some(text) = environment::variable(KEY_VARIABLE) {
        return Ok((KeyText(text), KeySource::Variable));
    }
    let command = settings.linear.key_command.as_deref().ok_or(KeyError::Missing)?;
    let outcome = plimsoll_launcher::run_user_shell_command(command, project.root(), KEY_COMMAND_TIMEOUT);
    let failure_description = match (&outcome.start_error, outcome.timed_out, outcome.exit_code) {
        (None, false, Some(0)) => None,
        (Some(error), ..) => Some(format!("could not be started: {error}")),
        (None, true, _) => Some(format!("took longer than {} s", KEY_COMMAND_TIMEOUT.as_secs())),
        (None, false, Some(code)) => Some(format!("exited with {code}")),
        (None, false, None) => Some("was ended by a signal".to_owned()),
    };
    match failure_description {
        Some(failure_description) => Err(KeyError::Command(failure_description)),
        // The key is passed in an environment variable, which cannot contain NUL; no valid key contains it.
        None => Ok((
            KeyText(String::from_utf8_lossy(&outcome.stdout).replace('\0', "\u{fffd}")),
            KeySource::Command,
        )),
    }
}

#[cfg(unix)]
#[cfg(test)]
pub(super) fn key_with_text(text: &str) -> KeyText {
    KeyText(text.to_owned())
}
