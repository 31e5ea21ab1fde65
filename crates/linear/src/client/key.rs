//! The API key. It is sent only to Linear.

/// A Linear API key. It has no `Display`, and its `Debug` output does not contain it.
#[derive(Clone)]
pub(crate) struct ApiKey(String);

/// The reason why a text is not a key. It does not contain the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyFormatError {
    /// The text is empty or only white space.
    #[error("it is empty")]
    Empty,
    /// The text has this many lines.
    #[error("it is {0} lines of text instead of one")]
    MultipleLines(usize),
    /// The text contains blanks, control characters or non-ASCII characters.
    #[error("it contains characters that no key has")]
    InvalidCharacters,
}

/// Prefixes of a personal API key and of an application's access token.
const PERSONAL_PREFIX: &str = "lin_api_";
const ACCESS_TOKEN_PREFIX: &str = "lin_oauth_";
const BEARER_PREFIX: &str = "Bearer ";

impl ApiKey {
    /// Parses the value of a variable or the output of a command. An application's token gets the prefix `Bearer`.
    pub(crate) fn parse(text: &str) -> Result<ApiKey, KeyFormatError> {
        let text = text.trim();
        let bare_key = text.strip_prefix(BEARER_PREFIX).unwrap_or(text).trim_start();
        if bare_key.is_empty() || bare_key == BEARER_PREFIX.trim_end() {
            return Err(KeyFormatError::Empty);
        }
        let line_count = text.lines().count();
        if line_count > 1 {
            return Err(KeyFormatError::MultipleLines(line_count));
        }
        if !bare_key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyFormatError::InvalidCharacters);
        }
        let is_access_token = text.starts_with(BEARER_PREFIX) || bare_key.starts_with(ACCESS_TOKEN_PREFIX);
        Ok(ApiKey(if is_access_token { format!("{BEARER_PREFIX}{bare_key}") } else { bare_key.to_owned() }))
    }

    /// Describes the kind of key by its prefix. Returns `None` if it does not look like a Linear key.
    pub(crate) fn describe_kind(&self) -> Option<&'static str> {
        match self.without_bearer_prefix() {
            bare_key if bare_key.starts_with(PERSONAL_PREFIX) => Some("a personal API key"),
            _ if self.0.starts_with(BEARER_PREFIX) => Some("an application's access token"),
            _ => None,
        }
    }

    /// Returns the value of the `Authorization` header.
    pub(crate) fn authorization_header(&self) -> &str {
        &self.0
    }

    fn without_bearer_prefix(&self) -> &str {
        self.0.strip_prefix(BEARER_PREFIX).unwrap_or(&self.0)
    }

    /// Replaces the key in a text with `(key)`.
    pub(crate) fn redact_from(&self, text: &str) -> String {
        text.replace(self.without_bearer_prefix(), "(key)")
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_one_word_and_its_prefix_tells_its_kind() {
        let personal = ApiKey::parse(" lin_api_abc\n").unwrap();
        assert_eq!(
            (personal.authorization_header(), personal.describe_kind()),
            ("lin_api_abc", Some("a personal API key"))
        );
        for text in ["lin_oauth_abc", "Bearer lin_oauth_abc", "Bearer abc"] {
            let key = ApiKey::parse(text).unwrap();
            assert!(
                key.authorization_header().starts_with("Bearer ") && key.describe_kind().is_some(),
                "{text}"
            );
        }
        assert_eq!(ApiKey::parse("abc").unwrap().describe_kind(), None);
        for (text, problem) in [
            (" \n", KeyFormatError::Empty),
            ("Bearer ", KeyFormatError::Empty),
            ("a\nb", KeyFormatError::MultipleLines(2)),
            ("a b", KeyFormatError::InvalidCharacters),
            ("schlüssel", KeyFormatError::InvalidCharacters),
        ] {
            assert_eq!(ApiKey::parse(text).unwrap_err(), problem, "{text:?}");
        }
    }

    #[test]
    fn key_is_not_in_debug_output_and_is_redacted_from_text() {
        let key = ApiKey::parse("Bearer abc123").unwrap();
        assert_eq!(format!("{key:?}"), "Key(…)");
        assert_eq!(key.redact_from("your key abc123 is wrong"), "your key (key) is wrong");
    }
}
