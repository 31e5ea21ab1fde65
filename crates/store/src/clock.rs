//! The time.
#![expect(clippy::disallowed_methods, reason = "this is the one place that tells the time")]

use chrono::{DateTime, Local, SecondsFormat, Utc};

/// Now.
pub fn now() -> DateTime<Utc> {
    Utc::now()
}

/// A moment as it stands in our files: RFC 3339 UTC, whole seconds.
pub fn stamp(moment: DateTime<Utc>) -> String {
    moment.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The same with milliseconds, for the journal and for ages.
pub fn fine_stamp(moment: DateTime<Utc>) -> String {
    moment.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// A moment read back.
pub fn parse(stamp: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(stamp).ok().map(|moment| moment.to_utc())
}

/// The moment on this machine's wall clock, as a handoff is named: `2026-01-07-1145`.
pub fn wall_clock(moment: DateTime<Utc>) -> String {
    moment.with_timezone(&Local).format("%Y-%m-%d-%H%M").to_string()
}
