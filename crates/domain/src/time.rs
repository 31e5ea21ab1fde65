//! A moment as it stands in our files.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// A moment in UTC, as RFC 3339 writes it: `2026-01-07T11:45:00Z` in the state and in records, with milliseconds in the
/// journal and where ages matter. Made by `plimsoll_store::clock` only; what a file says is taken as it stands, so that
/// a moment that another program wrote is never lost, and has no date if it cannot be read.
///
/// An earlier moment is less than a later one, also where one has milliseconds and the other has none. Empty means that
/// nobody knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(String);

impl Timestamp {
    /// The moment that nobody knows.
    pub const UNKNOWN: Timestamp = Timestamp(String::new());

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// False where nobody knows it.
    pub fn is_known(&self) -> bool {
        !self.0.is_empty()
    }
}

impl From<String> for Timestamp {
    fn from(written: String) -> Timestamp {
        Timestamp(written)
    }
}

impl From<&str> for Timestamp {
    fn from(written: &str) -> Timestamp {
        Timestamp(written.to_owned())
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Timestamp) -> Ordering {
        // Of one form, moments sort as text; "…:05.120Z" sorts behind "…:05Z" only without the letter for UTC.
        fn digits(moment: &Timestamp) -> &str {
            moment.0.trim_end_matches('Z')
        }
        digits(self).cmp(digits(other)).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Timestamp) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_moment_is_less_whether_it_has_milliseconds_or_not() {
        let in_order = [
            "",
            "2026-01-07T11:45:00Z",
            "2026-01-07T11:45:00.000Z",
            "2026-01-07T11:45:00.120Z",
            "2026-01-07T11:45:01Z",
            "2026-01-07T12:00:00Z",
            "2027-01-01T00:00:00.001Z",
        ]
        .map(Timestamp::from);
        for (place, one) in in_order.iter().enumerate() {
            for (other_place, other) in in_order.iter().enumerate() {
                assert_eq!(one.cmp(other), place.cmp(&other_place), "{one} {other}");
            }
        }
    }

    #[test]
    fn what_a_file_says_is_written_back_as_it_stands() {
        for written in ["\"2026-01-07T11:45:00+01:00\"", "\"yesterday\"", "\"\""] {
            let moment: Timestamp = serde_json::from_str(written).unwrap();
            assert_eq!(serde_json::to_string(&moment).unwrap(), written);
        }
    }
}
