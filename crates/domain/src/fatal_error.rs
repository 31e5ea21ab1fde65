//! Errors that make every session of a run fail. The advice to the user depends on their kind.

use serde::{Deserialize, Serialize};

/// What the user has to fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FatalErrorKind {
    /// The client could not log in.
    Credentials,
    /// The account has no credit or no valid billing.
    Billing,
    /// A spend limit is reached, and nothing says when it resets.
    SpendLimit,
    /// The model does not exist.
    Model,
    /// Plimsoll's hooks did not run.
    Hooks,
    Other,
}

/// An error that makes every session fail.
///
/// Only the message is stored in files. It begins with a prefix for its kind, so the kind is restored on
/// reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct FatalError {
    kind: FatalErrorKind,
    message: String,
}

impl FatalErrorKind {
    /// The kinds whose messages begin with a prefix.
    const KINDS_WITH_PREFIX: [FatalErrorKind; 5] = [
        FatalErrorKind::Credentials,
        FatalErrorKind::Billing,
        FatalErrorKind::SpendLimit,
        FatalErrorKind::Model,
        FatalErrorKind::Hooks,
    ];

    fn message_prefix(self) -> &'static str {
        match self {
            FatalErrorKind::Credentials => "authentication failed: ",
            FatalErrorKind::Billing => "billing: ",
            FatalErrorKind::SpendLimit => "spend limit without a reset time: ",
            FatalErrorKind::Model => "model not found: ",
            FatalErrorKind::Hooks => "our hooks did not run in this session",
            FatalErrorKind::Other => "",
        }
    }

    /// Determines the kind from the message of a [`FatalError`], which may be truncated. A message without a known
    /// prefix comes from the client (an error before the session began) or from an older version.
    pub fn from_message(message: &str) -> FatalErrorKind {
        let kind_by_prefix = FatalErrorKind::KINDS_WITH_PREFIX
            .into_iter()
            .find(|kind| message.starts_with(kind.message_prefix()));
        kind_by_prefix.unwrap_or_else(|| FatalErrorKind::guess_from_client_message(message))
    }

    /// Guesses the kind from keywords, because the client has no error codes for failures before a session
    /// begins.
    fn guess_from_client_message(message: &str) -> FatalErrorKind {
        const KEYWORDS: [(FatalErrorKind, &[&str]); 4] = [
            (FatalErrorKind::Hooks, &["hook", "guard"]),
            (FatalErrorKind::Billing, &["billing", "credit", "balance"]),
            (FatalErrorKind::Credentials, &["log", "auth", "key", "401", "403", "credential", "token"]),
            (FatalErrorKind::Model, &["model"]),
        ];
        let message = message.to_lowercase();
        let matching_kind =
            KEYWORDS.iter().find(|(_, keywords)| keywords.iter().any(|keyword| message.contains(keyword)));
        matching_kind.map_or(FatalErrorKind::Other, |(kind, _)| *kind)
    }
}

impl FatalError {
    /// Creates an error of a kind, with details.
    pub fn new(kind: FatalErrorKind, details: &str) -> FatalError {
        FatalError { kind, message: format!("{}{details}", kind.message_prefix()) }
    }

    pub fn kind(&self) -> FatalErrorKind {
        self.kind
    }

    /// Returns the complete message, including the prefix of its kind.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl From<String> for FatalError {
    fn from(message: String) -> FatalError {
        FatalError { kind: FatalErrorKind::from_message(&message), message }
    }
}

impl From<FatalError> for String {
    fn from(error: FatalError) -> String {
        error.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_restored_whatever_the_client_said() {
        for kind in FatalErrorKind::KINDS_WITH_PREFIX {
            let error = FatalError::new(kind, "the key of a hook has no credit for the model");
            let written = serde_json::to_string(&error).unwrap();
            assert_eq!(serde_json::from_str::<FatalError>(&written).unwrap(), error, "{written}");
        }
    }

    #[test]
    fn a_message_without_a_known_prefix_is_classified_by_keywords() {
        for (message, kind) in [
            ("Invalid API key · Please run /login", FatalErrorKind::Credentials),
            ("Credit balance is too low", FatalErrorKind::Billing),
            ("there is no such model", FatalErrorKind::Model),
            ("settings.json: hooks: expected an object", FatalErrorKind::Hooks),
            ("it is so", FatalErrorKind::Other),
        ] {
            assert_eq!(FatalError::from(message.to_owned()).kind(), kind, "{message}");
        }
    }
}
