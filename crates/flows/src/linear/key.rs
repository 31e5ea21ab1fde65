//! Where the key for Linear comes from: a variable, or a command that prints it. It stays in memory.

use plimsoll_domain::Settings;
use plimsoll_store::{Project, environment};
use std::time::Duration;

/// The variable that holds the key, also for `plimsoll-linear` when `plimsoll run` starts it.
pub const VARIABLE: &str = "LINEAR_API_KEY";
/// A password manager may ask its owner first.
const DEADLINE: Duration = Duration::from_secs(20);

/// Where a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// `LINEAR_API_KEY`.
    Variable,
    /// What `linear.key_command` prints.
    Command,
}

impl KeySource {
    /// The variable or the setting, as the user knows it.
    pub fn name(self) -> &'static str {
        match self {
            KeySource::Variable => VARIABLE,
            KeySource::Command => "linear.key_command",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<KeySource> {
        [KeySource::Variable, KeySource::Command].into_iter().find(|source| source.name() == name)
    }
}

/// The text of a key, not checked yet. It has no `Display`, and its `Debug` says nothing.
#[derive(Clone)]
pub struct KeyText(String);

impl KeyText {
    /// The text, for an environment or a header.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Words of another program, without the key.
    pub(super) fn taken_out_of(&self, words: &str) -> String {
        match self.0.trim() {
            "" => words.to_owned(),
            key => words.replace(key, "(key)"),
        }
    }
}

impl std::fmt::Debug for KeyText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("KeyText(…)")
    }
}

/// Why there is no key. What the command printed is not shown: it may be a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoKey {
    /// Nobody says where it is.
    #[error("there is no key for Linear: neither LINEAR_API_KEY nor linear.key_command is set")]
    Missing,
    /// The command failed.
    #[error("linear.key_command {0}")]
    Command(String),
}

impl NoKey {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            NoKey::Missing => {
                "make a key in Linear (Settings, Security & access, Personal API keys) and export LINEAR_API_KEY"
            }
            NoKey::Command(_) => "run the command yourself in the project, and fix it",
        }
    }
}

/// The key's text, and where it comes from.
pub fn find(project: &Project, settings: &Settings) -> Result<(KeyText, KeySource), NoKey> {
    if let Some(text) = environment::variable(VARIABLE) {
        return Ok((KeyText(text), KeySource::Variable));
    }
    let command = settings.linear.key_command.as_deref().ok_or(NoKey::Missing)?;
    let outcome = plimsoll_launcher::shell(command, project.root(), DEADLINE);
    let failure = match (&outcome.trouble, outcome.timed_out, outcome.code) {
        (None, false, Some(0)) => None,
        (Some(trouble), ..) => Some(format!("could not be started: {trouble}")),
        (None, true, _) => Some(format!("took longer than {} s", DEADLINE.as_secs())),
        (None, false, Some(code)) => Some(format!("exited with {code}")),
        (None, false, None) => Some("was ended by a signal".to_owned()),
    };
    match failure {
        Some(failure) => Err(NoKey::Command(failure)),
        // No environment holds a NUL. What contains one is no key in this form either.
        None => Ok((
            KeyText(String::from_utf8_lossy(&outcome.stdout).replace('\0', "\u{fffd}")),
            KeySource::Command,
        )),
    }
}

#[cfg(test)]
pub(super) fn text_of(text: &str) -> KeyText {
    KeyText(text.to_owned())
}
