//! Whose something is: a session's id and a run's. Types of their own, for one in the other's place would let a hook act
//! on a session that is not its own.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;

/// The id that Claude Code gives a session: a UUID as far as it was observed. It comes from the client, so it is checked
/// where it becomes the name of a file (`plimsoll_store::layout`).
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

/// The id that Plimsoll gives a run: a UUID.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

macro_rules! as_text {
    ($($id:ident),*) => {$(
        impl $id {
            /// As it is written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Deref for $id {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $id {
            fn from(id: String) -> $id {
                $id(id)
            }
        }

        impl From<&str> for $id {
            fn from(id: &str) -> $id {
                $id(id.to_owned())
            }
        }

        impl PartialEq<str> for $id {
            fn eq(&self, id: &str) -> bool {
                self.0 == id
            }
        }

        impl PartialEq<&str> for $id {
            fn eq(&self, id: &&str) -> bool {
                self.0 == *id
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    )*};
}

as_text!(SessionId, RunId);
