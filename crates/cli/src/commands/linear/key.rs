//! Where the key comes from: a variable, or a command that prints it. It stays in memory.

use plimsoll_domain::Settings;
use plimsoll_linear_client::{Key, KeyProblem};
use plimsoll_store::{Project, environment};
use std::time::Duration;

const VARIABLE: &str = "LINEAR_API_KEY";
/// A password manager may ask its owner first.
const DEADLINE: Duration = Duration::from_secs(20);

/// Why there is no key. What the command printed is not shown: it may be a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("there is no key for Linear: neither LINEAR_API_KEY nor linear.key_command is set")]
    Missing,
    #[error("LINEAR_API_KEY holds no key: {0}")]
    Variable(KeyProblem),
    #[error("linear.key_command printed no key: {0}")]
    Printed(KeyProblem),
    #[error("linear.key_command {0}")]
    Command(String),
}

impl KeyError {
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            KeyError::Missing => {
                "make a key in Linear (Settings, Security & access, Personal API keys) and export LINEAR_API_KEY"
            }
            KeyError::Variable(_) => "export LINEAR_API_KEY with the key alone, such as lin_api_…",
            KeyError::Printed(_) => "let the command print the key alone, on one line",
            KeyError::Command(_) => "run the command yourself in the project, and fix it",
        }
    }
}

/// The key, and where it comes from.
pub(crate) fn find(project: &Project, settings: &Settings) -> Result<(Key, &'static str), KeyError> {
    if let Some(text) = environment::variable(VARIABLE) {
        return Key::new(&text).map(|key| (key, VARIABLE)).map_err(KeyError::Variable);
    }
    let command = settings.linear.key_command.as_deref().ok_or(KeyError::Missing)?;
    let outcome = plimsoll_launcher::shell(command, project.root(), DEADLINE);
    let failure = match (&outcome.trouble, outcome.timed_out, outcome.code) {
        (None, false, Some(0)) => None,
        (Some(trouble), ..) => Some(format!("could not be started: {trouble}")),
        (None, true, _) => Some(format!("took longer than {} s", DEADLINE.as_secs())),
        (None, false, Some(code)) => Some(format!("exited with {code}")),
        (None, false, None) => Some("was ended by a signal".to_owned()),
    };
    if let Some(failure) = failure {
        return Err(KeyError::Command(failure));
    }
    let printed = String::from_utf8_lossy(&outcome.stdout).into_owned();
    Key::new(&printed).map(|key| (key, "linear.key_command")).map_err(KeyError::Printed)
}
