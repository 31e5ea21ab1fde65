//! The ids of sessions and runs. They are separate types because a hook that confused them would act on a
//! session other than its own.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;

/// The id that Claude Code gives a session; in practice a UUID. It comes from the client, so it is validated
/// before it is used as a file name (`plimsoll_store::layout`).
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

/// The id that Plimsoll gives a run: a UUID.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

macro_rules! impl_string_id {
    ($($id:ident),*) => {$(
        impl $id {
            /// Returns the id as text.
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

impl_string_id!(SessionId, RunId);
