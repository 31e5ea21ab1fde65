//! The API key: it is sent only to Linear.

/// What opens Linear's door. It has no `Display`, and its `Debug` says nothing.
#[derive(Clone)]
pub(crate) struct Key(String);

/// Why something is no key. What it was is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyProblem {
    /// Nothing, or white space.
    #[error("it is empty")]
    Empty,
    /// Several lines.
    #[error("it is {0} lines of text instead of one")]
    Lines(usize),
    /// Blanks, control characters, letters that no key has.
    #[error("it contains characters that no key has")]
    Characters,
}

/// What a personal key begins with, and the token of an application.
const PERSONAL: &str = "lin_api_";
const APPLICATION: &str = "lin_oauth_";
const BEARER: &str = "Bearer ";

impl Key {
    /// Takes what a variable holds or a command has printed.
    pub(crate) fn new(text: &str) -> Result<Key, KeyProblem> {
        let text = text.trim();
        let bare = text.strip_prefix(BEARER).unwrap_or(text).trim_start();
        if bare.is_empty() || bare == BEARER.trim_end() {
            return Err(KeyProblem::Empty);
        }
        let lines = text.lines().count();
        if lines > 1 {
            return Err(KeyProblem::Lines(lines));
        }
        if !bare.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyProblem::Characters);
        }
        let is_application = text.starts_with(BEARER) || bare.starts_with(APPLICATION);
        Ok(Key(if is_application { format!("{BEARER}{bare}") } else { bare.to_owned() }))
    }

    /// What kind it looks like; none for one that does not look like Linear's.
    pub(crate) fn kind(&self) -> Option<&'static str> {
        match self.bare() {
            bare if bare.starts_with(PERSONAL) => Some("a personal API key"),
            _ if self.0.starts_with(BEARER) => Some("an application's access token"),
            _ => None,
        }
    }

    /// What goes into the header `Authorization`.
    pub(crate) fn authorization(&self) -> &str {
        &self.0
    }

    fn bare(&self) -> &str {
        self.0.strip_prefix(BEARER).unwrap_or(&self.0)
    }

    /// Words that may have come from outside, without the key.
    pub(crate) fn taken_out_of(&self, words: &str) -> String {
        words.replace(self.bare(), "(key)")
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_word_and_tells_its_kind() {
        let personal = Key::new(" lin_api_abc\n").unwrap();
        assert_eq!((personal.authorization(), personal.kind()), ("lin_api_abc", Some("a personal API key")));
        for text in ["lin_oauth_abc", "Bearer lin_oauth_abc", "Bearer abc"] {
            let key = Key::new(text).unwrap();
            assert!(key.authorization().starts_with("Bearer ") && key.kind().is_some(), "{text}");
        }
        assert_eq!(Key::new("abc").unwrap().kind(), None);
        for (text, problem) in [
            (" \n", KeyProblem::Empty),
            ("Bearer ", KeyProblem::Empty),
            ("a\nb", KeyProblem::Lines(2)),
            ("a b", KeyProblem::Characters),
            ("schlüssel", KeyProblem::Characters),
        ] {
            assert_eq!(Key::new(text).unwrap_err(), problem, "{text:?}");
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        let key = Key::new("Bearer abc123").unwrap();
        assert_eq!(format!("{key:?}"), "Key(…)");
        assert_eq!(key.taken_out_of("your key abc123 is wrong"), "your key (key) is wrong");
    }
}
