//! Timestamps in Plimsoll's files.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// A time in UTC in RFC 3339 form: `2026-01-07T11:45:00Z` in the state and in records, with milliseconds in the journal and
/// where ages matter. Only `plimsoll_store::clock` creates new ones. A text in a file is kept unchanged, so that a time that
/// another program wrote is never lost, even if it is not a valid date.
///
/// An earlier time is less than a later one, even if only one of them has milliseconds. An empty text means that the time is
/// unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(String);

impl Timestamp {
    /// An unknown time.
    pub const UNKNOWN: Timestamp = Timestamp(String::new());

    /// Returns the time as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns false for an unknown time.
    pub fn is_known(&self) -> bool {
        !self.0.is_empty()
    }
}

impl From<String> for Timestamp {
    fn from(text: String) -> Timestamp {
        Timestamp(text)
    }
}

impl From<&str> for Timestamp {
    fn from(text: &str) -> Timestamp {
        Timestamp(text.to_owned())
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Timestamp) -> Ordering {
        // Times of one form sort as text, but "…:05.120Z" sorts after "…:05Z" only without the final Z.
        fn without_utc_suffix(timestamp: &Timestamp) -> &str {
            timestamp.0.trim_end_matches('Z')
        }
        without_utc_suffix(self).cmp(without_utc_suffix(other)).then_with(|| self.0.cmp(&other.0))
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
    fn an_earlier_time_is_less_with_or_without_milliseconds() {
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
        for (index, first) in in_order.iter().enumerate() {
            for (other_index, second) in in_order.iter().enumerate() {
                assert_eq!(first.cmp(second), index.cmp(&other_index), "{first} {second}");
            }
        }
    }

    #[test]
    fn the_text_of_a_timestamp_is_written_back_unchanged() {
        for json in ["\"2026-01-07T11:45:00+01:00\"", "\"yesterday\"", "\"\""] {
            let moment: Timestamp = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&moment).unwrap(), json);
        }
    }
}
