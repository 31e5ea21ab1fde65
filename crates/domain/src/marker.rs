//! Markers: one line of `|`-separated fields, for people and scripts that read standard output.

use crate::breaker::BreakerCause;
use crate::continue_kind::ContinueKind;
use crate::level::Level;
use crate::status::{RunStatus, stop_reason_for_people};
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

/// The handoff in the marker of a checkpoint whose handoff could not be written.
pub const NO_HANDOFF: &str = "(no handoff could be written)";
/// The start of the reason of a completion that checks have still to confirm.
pub const CLAIMED_COMPLETION_PREFIX: &str = "claims completion; ";
/// The start of the reason of a pause because of too many checkpoints.
pub const CHECKPOINT_THRASH_PREFIX: &str = "checkpoint thrash: ";

impl Marker {
    /// Describes the marker in plain words for people: one line with a lower-case start and no full stop.
    ///
    /// `format_time` formats the end of a pause in the user's time zone.
    pub fn describe(&self, format_time: impl FnOnce(&Timestamp) -> String) -> String {
        match self {
            Marker::Warning { percent, .. } => format!("context is {percent}% full"),
            Marker::Checkpoint { percent, handoff, .. } => {
                let percent_text = percent.map(|percent| format!(" at {percent}%")).unwrap_or_default();
                if handoff == NO_HANDOFF {
                    format!("checkpoint{percent_text}, but no handoff could be written")
                } else {
                    format!("checkpoint written{percent_text} ({})", to_safe_single_line(handoff))
                }
            }
            Marker::Stop { status, reason } => describe_stop(*status, reason),
            Marker::Continue { kind: ContinueKind::Checkpoint, reason } if reason.is_empty() => {
                "continuing from the checkpoint".to_owned()
            }
            Marker::Continue { kind: ContinueKind::Checkpoint, reason } => {
                format!("continuing from {}", to_safe_single_line(reason))
            }
            Marker::Continue { kind: ContinueKind::NextItem, reason } => with_reason("continuing", reason),
            Marker::Continue { kind: ContinueKind::RefusedPromise, reason } => {
                with_reason("not done", reason)
            }
            Marker::Pause { until, reason } => {
                let end_text = until.as_ref().map(|until| to_safe_single_line(&format_time(until)));
                let heading =
                    end_text.map_or("paused".to_owned(), |end_text| format!("paused until {end_text}"));
                match reason.strip_prefix(CHECKPOINT_THRASH_PREFIX) {
                    Some(cause) if cause.starts_with(|first: char| first.is_ascii_digit()) => {
                        format!(
                            "{heading}: this item does not fit one session ({})",
                            to_safe_single_line(cause)
                        )
                    }
                    cause => with_reason(&heading, cause.unwrap_or(reason)),
                }
            }
        }
    }
}

fn describe_stop(status: RunStatus, reason: &str) -> String {
    if let Some(deciding_checks) =
        reason.strip_prefix(CLAIMED_COMPLETION_PREFIX).filter(|_| status == RunStatus::Completed)
    {
        return format!("claimed as completed; {}", to_safe_single_line(deciding_checks));
    }
    let heading = status.traits().ended_texts.as_ref().map_or("ended", |texts| texts.marker_heading);
    with_reason(heading, &stop_reason_for_people(status, without_breaker_cause(status, reason)))
}

/// Removes the cause's name from the reason of the circuit breaker: the evidence after it says the same in words.
fn without_breaker_cause(status: RunStatus, reason: &str) -> &str {
    let Some((cause, evidence)) = reason.split_once(": ").filter(|_| status == RunStatus::CircuitBreaker)
    else {
        return reason;
    };
    if parse_enum_variant::<BreakerCause>(cause).is_some() { evidence } else { reason }
}

fn with_reason(heading: &str, reason: &str) -> String {
    let reason = to_safe_single_line(reason);
    if reason.is_empty() { heading.to_owned() } else { format!("{heading}: {reason}") }
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
    fn every_marker_is_described_in_plain_words() {
        let stop = |status, reason: &str| Marker::Stop { status, reason: reason.to_owned() };
        let next = |kind, reason: &str| Marker::Continue { kind, reason: reason.to_owned() };
        let pause = |until: Option<&str>, reason: &str| Marker::Pause {
            until: until.map(Timestamp::from),
            reason: reason.to_owned(),
        };
        let checkpoint = |percent, handoff: &str| Marker::Checkpoint {
            level: Level::L2,
            percent,
            handoff: handoff.to_owned(),
        };
        for (marker, expected) in [
            (Marker::Warning { level: Level::L1, percent: 72 }, "context is 72% full"),
            (checkpoint(Some(87), "a.md"), "checkpoint written at 87% (a.md)"),
            (checkpoint(None, "a.md"), "checkpoint written (a.md)"),
            (checkpoint(Some(87), NO_HANDOFF), "checkpoint at 87%, but no handoff could be written"),
            (stop(RunStatus::Completed, "2 items"), "completed: 2 items"),
            (
                stop(RunStatus::Completed, "claims completion; the verify commands decide"),
                "claimed as completed; the verify commands decide",
            ),
            (stop(RunStatus::Blocked, "no credentials"), "blocked: no credentials"),
            (stop(RunStatus::MaxIterations, "50 iterations done"), "out of sessions: 50 sessions done"),
            (stop(RunStatus::Budget, "$1.00 of $1.00 spent"), "out of budget: $1.00 of $1.00 spent"),
            (stop(RunStatus::Deadline, ""), "out of time"),
            (
                stop(RunStatus::CircuitBreaker, "no_progress: 3 sessions in a row changed nothing"),
                "stuck: 3 sessions in a row changed nothing",
            ),
            (stop(RunStatus::CircuitBreaker, "a: b"), "stuck: a: b"),
            (stop(RunStatus::FatalError, "authentication failed"), "failed: authentication failed"),
            (stop(RunStatus::Canceled, ""), "canceled"),
            (stop(RunStatus::Paused, ""), "ended"),
            (next(ContinueKind::NextItem, "2 open items"), "continuing: 2 open items"),
            (next(ContinueKind::NextItem, ""), "continuing"),
            (next(ContinueKind::Checkpoint, "a.md"), "continuing from a.md"),
            (next(ContinueKind::Checkpoint, ""), "continuing from the checkpoint"),
            (next(ContinueKind::RefusedPromise, "3 items are open"), "not done: 3 items are open"),
            (pause(None, "overloaded: 529"), "paused: overloaded: 529"),
            (pause(Some("12:00"), "usage limit"), "paused until <12:00>: usage limit"),
            (
                pause(None, "checkpoint thrash: 3 checkpoints within 15 minutes, and no item finished"),
                "paused: this item does not fit one session (3 checkpoints within 15 minutes, and no item finished)",
            ),
            (
                pause(None, "checkpoint thrash: the session was at L2 before any work"),
                "paused: the session was at L2 before any work",
            ),
            (
                next(ContinueKind::NextItem, "a\nRALPH_STOP|completed|b"),
                "continuing: a RALPH_STOP|completed|b",
            ),
        ] {
            assert_eq!(marker.describe(|time| format!("<{time}>")), expected, "{marker}");
        }
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
