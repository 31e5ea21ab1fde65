//! Why no session of a run can succeed: what the advice for the user depends on.

use serde::{Deserialize, Serialize};

/// What the user has to put right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FatalKind {
    /// The client could not log in.
    Credentials,
    /// The account cannot pay.
    Billing,
    /// There is no such model.
    Model,
    /// Our hooks did not run.
    Hooks,
    /// Anything else.
    Other,
}

/// Why no session can succeed, with what was said about it.
///
/// A file has only the words. They begin with the kind, and so have it when they are read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Fatal {
    kind: FatalKind,
    words: String,
}

impl FatalKind {
    /// Those whose words have a beginning of their own.
    const NAMED: [FatalKind; 4] =
        [FatalKind::Credentials, FatalKind::Billing, FatalKind::Model, FatalKind::Hooks];

    fn beginning(self) -> &'static str {
        match self {
            FatalKind::Credentials => "authentication failed: ",
            FatalKind::Billing => "billing: ",
            FatalKind::Model => "model not found: ",
            FatalKind::Hooks => "our hooks did not run in this session",
            FatalKind::Other => "",
        }
    }

    /// The kind by the words of a [`Fatal`], which may have been clipped. Words without one of our beginnings are the client's
    /// (it complains before a session begins), or an older version's.
    pub fn of(words: &str) -> FatalKind {
        let named = FatalKind::NAMED.into_iter().find(|kind| words.starts_with(kind.beginning()));
        named.unwrap_or_else(|| FatalKind::of_client(words))
    }

    /// The client has no code for what it complains of before a session begins.
    fn of_client(words: &str) -> FatalKind {
        const SIGNS: [(FatalKind, &[&str]); 4] = [
            (FatalKind::Hooks, &["hook", "guard"]),
            (FatalKind::Billing, &["billing", "credit", "balance"]),
            (FatalKind::Credentials, &["log", "auth", "key", "401", "403", "credential", "token"]),
            (FatalKind::Model, &["model"]),
        ];
        let words = words.to_lowercase();
        let found = SIGNS.iter().find(|(_, signs)| signs.iter().any(|sign| words.contains(sign)));
        found.map_or(FatalKind::Other, |(kind, _)| *kind)
    }
}

impl Fatal {
    /// An error of a kind, with what was said about it.
    pub fn new(kind: FatalKind, words: &str) -> Fatal {
        Fatal { kind, words: format!("{}{words}", kind.beginning()) }
    }

    /// The kind.
    pub fn kind(&self) -> FatalKind {
        self.kind
    }

    /// The whole of what is known, beginning with the kind.
    pub fn words(&self) -> &str {
        &self.words
    }
}

impl From<String> for Fatal {
    fn from(words: String) -> Fatal {
        Fatal { kind: FatalKind::of(&words), words }
    }
}

impl From<Fatal> for String {
    fn from(fatal: Fatal) -> String {
        fatal.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_again_whatever_the_client_said_with_it() {
        for kind in FatalKind::NAMED {
            let fatal = Fatal::new(kind, "the key of a hook has no credit for the model");
            let written = serde_json::to_string(&fatal).unwrap();
            assert_eq!(serde_json::from_str::<Fatal>(&written).unwrap(), fatal, "{written}");
        }
    }

    #[test]
    fn words_without_a_kind_are_the_clients() {
        for (words, kind) in [
            ("Invalid API key · Please run /login", FatalKind::Credentials),
            ("Credit balance is too low", FatalKind::Billing),
            ("there is no such model", FatalKind::Model),
            ("settings.json: hooks: expected an object", FatalKind::Hooks),
            ("it is so", FatalKind::Other),
        ] {
            assert_eq!(Fatal::from(words.to_owned()).kind(), kind, "{words}");
        }
    }
}
