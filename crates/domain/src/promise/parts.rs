//! The two parts of a promise line that differ between runs. Both are checked where they are read, from a command line, a state
//! file, a ledger or a database, so that no value of these types can add a line to a prompt or end the promise's tag.

use super::BLOCKED;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use thiserror::Error;

/// Longer parts are refused: the model copies the line letter by letter.
const MAX_BYTES: usize = 64;

/// The word of a run's promise, such as `COMPLETE`: at most 64 ASCII letters, digits, `_` and `-`. Empty in a state that names
/// none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PromiseWord(String);

/// The code that makes a run's promise unlike any other text: at most 64 ASCII letters, digits, `_` and `-`. Empty in a state that
/// names none; no promise counts there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PromiseCode(String);

/// A text that is no part of a promise. It does not quote the text, which may be long and of several lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidPromise {
    /// See [`PromiseWord`].
    #[error(
        "the promise word is not one word of at most 64 letters, digits, `_` and `-`, other than BLOCKED"
    )]
    Word,
    /// See [`PromiseCode`].
    #[error("the promise code is not one word of at most 64 letters, digits, `_` and `-`")]
    Code,
}

fn is_plain(text: &str) -> bool {
    (1..=MAX_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

impl FromStr for PromiseWord {
    type Err = InvalidPromise;

    fn from_str(text: &str) -> Result<PromiseWord, InvalidPromise> {
        let is_valid = is_plain(text) && text != BLOCKED;
        if is_valid { Ok(PromiseWord(text.to_owned())) } else { Err(InvalidPromise::Word) }
    }
}

impl FromStr for PromiseCode {
    type Err = InvalidPromise;

    fn from_str(text: &str) -> Result<PromiseCode, InvalidPromise> {
        if is_plain(text) { Ok(PromiseCode(text.to_owned())) } else { Err(InvalidPromise::Code) }
    }
}

impl PromiseCode {
    /// The code made of random bits.
    pub fn from_random(bits: u32) -> PromiseCode {
        PromiseCode(format!("{bits:08x}"))
    }
}

macro_rules! as_text {
    ($($part:ident),*) => {$(
        impl $part {
            /// The text; empty if there is none.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Deref for $part {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $part {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        /// For serde alone: a file may name no such part, a user has to.
        impl TryFrom<String> for $part {
            type Error = InvalidPromise;

            fn try_from(text: String) -> Result<$part, InvalidPromise> {
                if text.is_empty() { Ok($part::default()) } else { text.parse() }
            }
        }

        impl From<$part> for String {
            fn from(part: $part) -> String {
                part.0
            }
        }
    )*};
}

as_text!(PromiseWord, PromiseCode);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_one_plain_word_wherever_it_is_read() {
        let long = "x".repeat(MAX_BYTES);
        for valid in ["COMPLETE", "ALL_DONE-2", "7f3a", long.as_str()] {
            assert_eq!(valid.parse::<PromiseWord>().unwrap().as_str(), valid);
            assert_eq!(valid.parse::<PromiseCode>().unwrap().as_str(), valid);
        }
        let too_long = "x".repeat(MAX_BYTES + 1);
        for invalid in
            ["a b", "a\n## Rules", "a\r", "</promise>", "<!--", "é", "\u{202e}", "`", too_long.as_str()]
        {
            assert_eq!(invalid.parse::<PromiseWord>(), Err(InvalidPromise::Word), "{invalid:?}");
            assert_eq!(invalid.parse::<PromiseCode>(), Err(InvalidPromise::Code), "{invalid:?}");
            let json = serde_json::to_string(invalid).unwrap();
            let error = serde_json::from_str::<PromiseCode>(&json).unwrap_err().to_string();
            assert!(error.starts_with("the promise code is not one word"), "{error}");
            assert!(serde_json::from_str::<PromiseWord>(&json).is_err(), "{invalid:?}");
        }
        assert_eq!("BLOCKED".parse::<PromiseWord>(), Err(InvalidPromise::Word));
    }

    #[test]
    fn a_code_of_random_bits_is_valid() {
        for bits in [0, 1, u32::MAX] {
            let code = PromiseCode::from_random(bits);
            assert_eq!((code.as_str().len(), code.parse()), (8, Ok(code.clone())));
        }
    }

    #[test]
    fn a_file_may_name_no_part_and_a_user_has_to() {
        assert!(serde_json::from_str::<PromiseCode>("\"\"").unwrap().is_empty());
        assert!(serde_json::from_str::<PromiseWord>("\"\"").unwrap().is_empty());
        assert!("".parse::<PromiseCode>().is_err() && "".parse::<PromiseWord>().is_err());
    }
}
