//! Markers: one line of `|`-separated fields, for people and scripts that read standard output.

use crate::continue_kind::ContinueKind;
use crate::level::Level;
use crate::status::Status;
use crate::text::one_line;
use crate::time::Timestamp;
use serde::de::value::{Error as WordError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Serialize};

/// A marker line. In JSON it is its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Marker {
    /// `CCS_WARNING|L1|72|Context at 72%`
    Warning {
        /// The level reached.
        level: Level,
        /// The deciding figure.
        percent: u64,
    },
    /// `CCS_CHECKPOINT_TRIGGERED|L2|87|.claude/handoffs/2026-01-07-1145.md`
    Checkpoint {
        /// The level reached.
        level: Level,
        /// The deciding figure; none when it is unknown (a checkpoint on demand): written `-`.
        percent: Option<u64>,
        /// The handoff, relative to the project.
        handoff: String,
    },
    /// `RALPH_STOP|completed|…`: the loop ends.
    Stop {
        /// How the run ended.
        status: Status,
        /// Why.
        reason: String,
    },
    /// `RALPH_CONTINUE|next|…`: the loop continues with a fresh session.
    Continue {
        /// What makes the next session.
        kind: ContinueKind,
        /// Why.
        reason: String,
    },
    /// `RALPH_PAUSE|2026-01-07T12:00:00Z|reason`
    Pause {
        /// When to continue, if that is known.
        until: Option<Timestamp>,
        /// Why.
        reason: String,
    },
}

impl std::fmt::Display for Marker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Marker::Warning { level, percent } => {
                write!(formatter, "CCS_WARNING|{level}|{percent}|Context at {percent}%")
            }
            Marker::Checkpoint { level, percent: Some(percent), handoff } => {
                write!(formatter, "CCS_CHECKPOINT_TRIGGERED|{level}|{percent}|{}", field(handoff))
            }
            Marker::Checkpoint { level, percent: None, handoff } => {
                write!(formatter, "CCS_CHECKPOINT_TRIGGERED|{level}|-|{}", field(handoff))
            }
            Marker::Stop { status, reason } => write!(formatter, "RALPH_STOP|{status}|{}", field(reason)),
            Marker::Continue { kind, reason } => {
                write!(formatter, "RALPH_CONTINUE|{}|{}", kind.word(), field(reason))
            }
            Marker::Pause { until, reason } => {
                let until = until.as_ref().map_or("-", Timestamp::as_str);
                write!(formatter, "RALPH_PAUSE|{}|{}", field(until), field(reason))
            }
        }
    }
}

/// What is no marker, or one of another version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a marker: {0}")]
pub struct UnknownMarker(String);

impl std::str::FromStr for Marker {
    type Err = UnknownMarker;

    fn from_str(text: &str) -> Result<Marker, UnknownMarker> {
        read(text).ok_or_else(|| UnknownMarker(one_line(text)))
    }
}

impl TryFrom<String> for Marker {
    type Error = UnknownMarker;

    fn try_from(text: String) -> Result<Marker, UnknownMarker> {
        text.parse()
    }
}

impl From<Marker> for String {
    fn from(marker: Marker) -> String {
        marker.to_string()
    }
}

fn read(text: &str) -> Option<Marker> {
    let mut fields = text.splitn(4, '|');
    let kind = fields.next()?;
    let (first, second, third) = (fields.next()?, fields.next()?, fields.next());
    let known = |field: &str| (field != "-").then(|| field.to_owned());
    // A reason holds no separator; of what is behind one in another's line, nothing is lost.
    let reason = || third.map_or(second.to_owned(), |third| format!("{second}|{third}"));
    Some(match kind {
        "CCS_WARNING" => Marker::Warning { level: word(first)?, percent: second.parse().ok()? },
        "CCS_CHECKPOINT_TRIGGERED" => Marker::Checkpoint {
            level: word(first)?,
            percent: known(second).map(|percent| percent.parse()).transpose().ok()?,
            handoff: third?.to_owned(),
        },
        "RALPH_STOP" => Marker::Stop { status: word(first)?, reason: reason() },
        "RALPH_CONTINUE" => Marker::Continue { kind: word(first)?, reason: reason() },
        "RALPH_PAUSE" => Marker::Pause { until: known(first).map(Timestamp::from), reason: reason() },
        _ => return None,
    })
}

/// A field that is one word of an enum, as the files have it.
fn word<T: DeserializeOwned>(field: &str) -> Option<T> {
    let deserializer: StrDeserializer<'_, WordError> = field.into_deserializer();
    T::deserialize(deserializer).ok()
}

/// A field cannot hold what separates fields or lines.
fn field(text: &str) -> String {
    one_line(&text.replace('|', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_one_line_whatever_its_fields_hold() {
        let marker = Marker::Continue { kind: ContinueKind::Next, reason: "a|b\nc\r\n d".to_owned() };
        assert_eq!(marker.to_string(), "RALPH_CONTINUE|next|a b c d");
    }

    #[test]
    fn markers_read_as_the_contract_says() {
        let handoff = ".claude/handoffs/2026-01-07-1145.md".to_owned();
        let checkpoint = Marker::Checkpoint { level: Level::L2, percent: Some(87), handoff };
        assert_eq!(
            checkpoint.to_string(),
            "CCS_CHECKPOINT_TRIGGERED|L2|87|.claude/handoffs/2026-01-07-1145.md"
        );
        let warning = Marker::Warning { level: Level::L1, percent: 72 };
        assert_eq!(warning.to_string(), "CCS_WARNING|L1|72|Context at 72%");
        let pause = Marker::Pause { until: None, reason: "overloaded".to_owned() };
        assert_eq!(pause.to_string(), "RALPH_PAUSE|-|overloaded");
    }

    #[test]
    fn a_marker_is_read_back_as_it_was_written() {
        let reason = || "no_progress: HEAD is as it was".to_owned();
        let handoff = || ".claude/handoffs/a.md".to_owned();
        for marker in [
            Marker::Warning { level: Level::L1, percent: 72 },
            Marker::Checkpoint { level: Level::L2, percent: Some(87), handoff: handoff() },
            Marker::Checkpoint { level: Level::L1, percent: None, handoff: handoff() },
            Marker::Stop { status: Status::CircuitBreaker, reason: reason() },
            Marker::Stop { status: Status::Cancelled, reason: String::new() },
            Marker::Pause { until: None, reason: reason() },
            Marker::Pause { until: Some(Timestamp::from("2026-01-07T12:00:00Z")), reason: reason() },
            Marker::Continue { kind: ContinueKind::Checkpoint, reason: handoff() },
            Marker::Continue { kind: ContinueKind::Next, reason: reason() },
            Marker::Continue { kind: ContinueKind::Refused, reason: reason() },
        ] {
            assert_eq!(marker.to_string().parse(), Ok(marker));
        }
        for text in [
            "",
            "RALPH_STOP",
            "RALPH_STOP|new_status|x",
            "RALPH_CONTINUE|other|x",
            "NEW|x|y",
            "CCS_WARNING|L9|72|x",
        ] {
            assert!(text.parse::<Marker>().is_err(), "{text}");
        }
    }
}
