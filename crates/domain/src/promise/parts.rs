//! The two parts of a promise line that differ between runs. Both are validated wherever they are read (a
//! command line, a state file, a ledger, a database), so that no value of these types can add a line to a
//! prompt or close the promise's tag.

use super::BLOCKED_WORD;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use thiserror::Error;

/// Longer parts are refused, because the model has to copy the line exactly.
const MAX_PART_BYTES: usize = 64;

/// The word of a run's promise, such as `COMPLETE`: at most 64 ASCII letters, digits, `_` and `-`. Empty in a
/// state without one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PromiseWord(String);

/// The code that makes a run's promise unique: at most 64 ASCII letters, digits, `_` and `-`. Empty in a
/// state without one, where no promise counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PromiseCode(String);

/// The error for a text that is not a valid part of a promise. It does not quote the text, which may be long
/// and have several lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidPromise {
    /// The text is not a valid [`PromiseWord`].
    #[error(
        "the promise word is not one word of at most 64 letters, digits, `_` and `-`, other than BLOCKED"
    )]
    Word,
    /// The text is not a valid [`PromiseCode`].
    #[error("the promise code is not one word of at most 64 letters, digits, `_` and `-`")]
    Code,
}

fn is_valid_promise_part(text: &str) -> bool {
    (1..=MAX_PART_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

impl FromStr for PromiseWord {
    type Err = InvalidPromise;

    fn from_str(text: &str) -> Result<PromiseWord, InvalidPromise> {
        let is_valid = is_valid_promise_part(text) && text != BLOCKED_WORD;
        if is_valid { Ok(PromiseWord(text.to_owned())) } else { Err(InvalidPromise::Word) }
    }
}

impl FromStr for PromiseCode {
    type Err = InvalidPromise;

    fn from_str(text: &str) -> Result<PromiseCode, InvalidPromise> {
        if is_valid_promise_part(text) { Ok(PromiseCode(text.to_owned())) } else { Err(InvalidPromise::Code) }
    }
}

impl PromiseCode {
    /// Returns the code for these random bits, in hexadecimal.
    pub fn from_random_bits(bits: u32) -> PromiseCode {
        PromiseCode(format!("{bits:08x}"))
    }
}

macro_rules! impl_text_conversions {
    ($($part:ident),*) => {$(
        impl $part {
            /// Returns the text, which may be empty.
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

        /// Used only by serde. A file may leave a part empty; a user may not.
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

impl_text_conversions!(PromiseWord, PromiseCode);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_one_plain_word_on_every_way_of_parsing() {
        let long = "x".repeat(MAX_PART_BYTES);
        for valid in ["COMPLETE", "ALL_DONE-2", "7f3a", long.as_str()] {
            assert_eq!(valid.parse::<PromiseWord>().unwrap().as_str(), valid);
            assert_eq!(valid.parse::<PromiseCode>().unwrap().as_str(), valid);
        }
        let too_long = "x".repeat(MAX_PART_BYTES + 1);
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
            let code = PromiseCode::from_random_bits(bits);
            assert_eq!((code.as_str().len(), code.parse()), (8, Ok(code.clone())));
        }
    }

    #[test]
    fn a_part_may_be_empty_in_a_file_but_not_from_a_user() {
        assert!(serde_json::from_str::<PromiseCode>("\"\"").unwrap().is_empty());
        assert!(serde_json::from_str::<PromiseWord>("\"\"").unwrap().is_empty());
        assert!("".parse::<PromiseCode>().is_err() && "".parse::<PromiseWord>().is_err());
    }
}
