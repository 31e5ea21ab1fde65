//! Sets up the Linear client: finds the address and the key.

use crate::client::{ApiKey, Endpoint, KeyFormatError, LinearClient, LinearError};
use plimsoll_domain::Settings;
use plimsoll_flows::linear::key::{self, KeyError, KeySource};
use plimsoll_store::{Project, environment};

/// An error while the client is set up, before anything is sent. It never contains the text of an invalid key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientSetupError {
    #[error(transparent)]
    KeyLookup(#[from] KeyError),
    #[error("LINEAR_API_KEY has no valid key: {0}")]
    InvalidKeyVariable(KeyFormatError),
    #[error("linear.key_command printed no key: {0}")]
    InvalidCommandOutput(KeyFormatError),
    #[error(transparent)]
    Linear(#[from] LinearError),
}

impl ClientSetupError {
    /// Returns advice for the user.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            ClientSetupError::KeyLookup(error) => error.hint(),
            ClientSetupError::InvalidKeyVariable(_) => {
                "export LINEAR_API_KEY with the key alone, such as lin_api_…"
            }
            ClientSetupError::InvalidCommandOutput(_) => "let the command print the key alone, on one line",
            ClientSetupError::Linear(error) => error.hint(),
        }
    }
}

/// Creates a client for a user, with the key from `LINEAR_API_KEY` or the configured key command.
pub(crate) fn client_for_user(
    project: &Project,
    settings: &Settings,
) -> Result<LinearClient, ClientSetupError> {
    let endpoint = endpoint_from_environment()?;
    let (key, _) = parse_key_from_variable_or_command(project, settings)?;
    Ok(LinearClient::new(endpoint, key)?)
}

/// Creates a client for `plimsoll run`, which has put the key into this process's environment. `original_source` is where the
/// run found the key; it determines which error an invalid key causes.
pub(crate) fn client_for_run(original_source: KeySource) -> Result<LinearClient, ClientSetupError> {
    let endpoint = endpoint_from_environment()?;
    let text = environment::variable(key::KEY_VARIABLE).unwrap_or_default();
    Ok(LinearClient::new(endpoint, parse_key(&text, original_source)?)?)
}

/// Finds the key in `LINEAR_API_KEY` or in the output of the configured key command. Returns the key and its source.
pub(crate) fn parse_key_from_variable_or_command(
    project: &Project,
    settings: &Settings,
) -> Result<(ApiKey, KeySource), ClientSetupError> {
    let (text, source) = key::key_from_variable_or_command(project, settings)?;
    Ok((parse_key(text.as_str(), source)?, source))
}

fn parse_key(text: &str, source: KeySource) -> Result<ApiKey, ClientSetupError> {
    ApiKey::parse(text).map_err(match source {
        KeySource::Variable => ClientSetupError::InvalidKeyVariable,
        KeySource::Command => ClientSetupError::InvalidCommandOutput,
    })
}

/// Returns the address in `LINEAR_API_URL`, or Linear's public address if the variable is not set.
pub(crate) fn endpoint_from_environment() -> Result<Endpoint, LinearError> {
    Endpoint::from_url_or_default(environment::variable("LINEAR_API_URL").as_deref())
}
