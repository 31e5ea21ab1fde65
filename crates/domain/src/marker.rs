//! Markers: one line of `|`-separated fields, for people and scripts that read standard output.

use crate::continue_kind::ContinueKind;
use crate::level::Level;
use crate::status::RunStatus;
use crate::text::to_safe_single_line;
use crate::time::Timestamp;
use serde::de::value::{Error as WordError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Serialize};

/// A marker line. In JSON it is a string.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Marker {
    /// `CCS_WARNING|L1|72|Context at 72%`
    Warning {
        level: Level,
        /// The usage that determined the level.
        percent: u64,
    },
    /// `CCS_CHECKPOINT_TRIGGERED|L2|87|.claude/handoffs/2026-01-07-1145.md`
    Checkpoint {
        level: Level,
        /// The usage that determined the level. `None` if it is unknown (a checkpoint on demand); written as `-`.
        percent: Option<u64>,
        /// The handoff, relative to the project.
        handoff: String,
    },
    /// `RALPH_STOP|completed|…`: the loop ends.
    Stop { status: RunStatus, reason: String },
    /// `RALPH_CONTINUE|next|…`: the loop continues with a fresh session.
    Continue {
        /// Why the next session starts.
        kind: ContinueKind,
        reason: String,
    },
    /// `RALPH_PAUSE|2026-01-07T12:00:00Z|reason`
    Pause {
        /// When the loop continues, if that is known.
        until: Option<Timestamp>,
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
                write!(formatter, "CCS_CHECKPOINT_TRIGGERED|{level}|{percent}|{}", escape_field(handoff))
            }
            Marker::Checkpoint { level, percent: None, handoff } => {
                write!(formatter, "CCS_CHECKPOINT_TRIGGERED|{level}|-|{}", escape_field(handoff))
            }
            Marker::Stop { status, reason } => {
                write!(formatter, "RALPH_STOP|{status}|{}", escape_field(reason))
            }
            Marker::Continue { kind, reason } => {
                write!(formatter, "RALPH_CONTINUE|{}|{}", kind.as_str(), escape_field(reason))
            }
            Marker::Pause { until, reason } => {
                let resume_time_text = until.as_ref().map_or("-", Timestamp::as_str);
                write!(formatter, "RALPH_PAUSE|{}|{}", escape_field(resume_time_text), escape_field(reason))
            }
        }
    }
}

/// An error: the text is not a marker, or is a marker of another version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a marker: {0}")]
pub struct InvalidMarker(String);

impl std::str::FromStr for Marker {
    type Err = InvalidMarker;

    fn from_str(text: &str) -> Result<Marker, InvalidMarker> {
        parse_marker(text).ok_or_else(|| InvalidMarker(to_safe_single_line(text)))
    }
}

impl TryFrom<String> for Marker {
    type Error = InvalidMarker;

    fn try_from(text: String) -> Result<Marker, InvalidMarker> {
        text.parse()
    }
}

impl From<Marker> for String {
    fn from(marker: Marker) -> String {
        marker.to_string()
    }
}

fn parse_marker(text: &str) -> Option<Marker> {
    let mut fields = text.splitn(4, '|');
    let marker_name = fields.next()?;
    let (first, second, third) = (fields.next()?, fields.next()?, fields.next());
    let unless_dash = |field: &str| (field != "-").then(|| field.to_owned());
    // Reasons written by Plimsoll have no separator. If another program's line has one, the text after it is
    // kept.
    let reason = || third.map_or(second.to_owned(), |third| format!("{second}|{third}"));
    Some(match marker_name {
        "CCS_WARNING" => Marker::Warning { level: parse_enum_variant(first)?, percent: second.parse().ok()? },
        "CCS_CHECKPOINT_TRIGGERED" => Marker::Checkpoint {
            level: parse_enum_variant(first)?,
            percent: unless_dash(second).map(|percent| percent.parse()).transpose().ok()?,
            handoff: third?.to_owned(),
        },
        "RALPH_STOP" => Marker::Stop { status: parse_enum_variant(first)?, reason: reason() },
        "RALPH_CONTINUE" => Marker::Continue { kind: parse_enum_variant(first)?, reason: reason() },
        "RALPH_PAUSE" => Marker::Pause { until: unless_dash(first).map(Timestamp::from), reason: reason() },
        _ => return None,
    })
}

/// Parses a field that is the serialized name of an enum variant.
fn parse_enum_variant<T: DeserializeOwned>(field: &str) -> Option<T> {
    let deserializer: StrDeserializer<'_, WordError> = field.into_deserializer();
    T::deserialize(deserializer).ok()
}

/// Replaces the characters that separate fields or lines.
fn escape_field(text: &str) -> String {
    to_safe_single_line(&text.replace('|', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_one_line_whatever_its_fields_contain() {
        let marker = Marker::Continue { kind: ContinueKind::NextItem, reason: "a|b\nc\r\n d".to_owned() };
        assert_eq!(marker.to_string(), "RALPH_CONTINUE|next|a b c d");
    }

    #[test]
    fn markers_are_written_as_documented() {
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
    fn a_marker_is_parsed_back_as_it_was_written() {
        let reason = || "no_progress: HEAD is as it was".to_owned();
        let handoff = || ".claude/handoffs/a.md".to_owned();
        for marker in [
            Marker::Warning { level: Level::L1, percent: 72 },
            Marker::Checkpoint { level: Level::L2, percent: Some(87), handoff: handoff() },
            Marker::Checkpoint { level: Level::L1, percent: None, handoff: handoff() },
            Marker::Stop { status: RunStatus::CircuitBreaker, reason: reason() },
            Marker::Stop { status: RunStatus::Canceled, reason: String::new() },
            Marker::Pause { until: None, reason: reason() },
            Marker::Pause { until: Some(Timestamp::from("2026-01-07T12:00:00Z")), reason: reason() },
            Marker::Continue { kind: ContinueKind::Checkpoint, reason: handoff() },
            Marker::Continue { kind: ContinueKind::NextItem, reason: reason() },
            Marker::Continue { kind: ContinueKind::RefusedPromise, reason: reason() },
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
