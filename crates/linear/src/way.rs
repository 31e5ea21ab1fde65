//! The way to Linear: its address, the key, the certificates.

use crate::client::{Endpoint, Key, KeyProblem, Linear, LinearError};
use plimsoll_domain::Settings;
use plimsoll_flows::linear::key::{self, KeyError, KeySource};
use plimsoll_store::{Project, environment};

/// What is between us and Linear before anything is sent. What a key was that is none is not shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WayError {
    #[error(transparent)]
    NoKey(#[from] KeyError),
    #[error("LINEAR_API_KEY holds no key: {0}")]
    Variable(KeyProblem),
    #[error("linear.key_command printed no key: {0}")]
    Printed(KeyProblem),
    #[error(transparent)]
    Linear(#[from] LinearError),
}

impl WayError {
    /// What the user can do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            WayError::NoKey(error) => error.hint(),
            WayError::Variable(_) => "export LINEAR_API_KEY with the key alone, such as lin_api_…",
            WayError::Printed(_) => "let the command print the key alone, on one line",
            WayError::Linear(error) => error.hint(),
        }
    }
}

/// The way for a user: the key is where the settings say.
pub(crate) fn of_user(project: &Project, settings: &Settings) -> Result<Linear, WayError> {
    let endpoint = endpoint()?;
    let (key, _) = find_key(project, settings)?;
    Ok(Linear::new(endpoint, key)?)
}

/// The way for `plimsoll run`, which has found the key and put it into our environment.
pub(crate) fn of_run(source: KeySource) -> Result<Linear, WayError> {
    let endpoint = endpoint()?;
    let text = environment::variable(key::KEY_VARIABLE).unwrap_or_default();
    Ok(Linear::new(endpoint, checked(&text, source)?)?)
}

/// The key, and where it comes from.
pub(crate) fn find_key(project: &Project, settings: &Settings) -> Result<(Key, KeySource), WayError> {
    let (text, source) = key::find_key(project, settings)?;
    Ok((checked(text.as_str(), source)?, source))
}

fn checked(text: &str, source: KeySource) -> Result<Key, WayError> {
    Key::new(text).map_err(match source {
        KeySource::Variable => WayError::Variable,
        KeySource::Command => WayError::Printed,
    })
}

/// Where Linear is.
pub(crate) fn endpoint() -> Result<Endpoint, LinearError> {
    Endpoint::new(environment::variable("LINEAR_API_URL").as_deref())
}
