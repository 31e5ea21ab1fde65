//! Markers: one line of `|`-separated fields, for people and scripts that read standard output.

use crate::level::Level;
use crate::status::Status;
use crate::text::one_line;

/// A marker line.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// `RALPH_CONTINUE|next|…`: the loop goes on with a fresh session.
    Continue {
        /// `checkpoint`, `next` or `refused`.
        kind: &'static str,
        /// Why.
        reason: String,
    },
    /// `RALPH_PAUSE|2026-01-07T12:00:00Z|reason`
    Pause {
        /// When to go on, if that is known.
        until: Option<String>,
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
            Marker::Continue { kind, reason } => write!(formatter, "RALPH_CONTINUE|{kind}|{}", field(reason)),
            Marker::Pause { until, reason } => {
                let until = until.as_deref().unwrap_or("-");
                write!(formatter, "RALPH_PAUSE|{}|{}", field(until), field(reason))
            }
        }
    }
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
        let marker = Marker::Continue { kind: "next", reason: "a|b\nc\r\n d".to_owned() };
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
}
