//! The current time, and conversions between timestamps and the local time of this machine.
#![expect(clippy::disallowed_methods, reason = "this is the one place that tells the time")]

use chrono::{DateTime, Datelike, Duration, Local, NaiveDate, NaiveDateTime, SecondsFormat, TimeZone, Utc};
use plimsoll_domain::Timestamp;

/// A time of day in whole minutes counts as just passed if it is at most this far in the past. An older one
/// means tomorrow.
const RECENT_PAST_TOLERANCE: Duration = Duration::minutes(15);

/// Returns the current time.
pub fn now() -> DateTime<Utc> {
    Utc::now()
}

/// Formats a time for our files: RFC 3339 UTC, whole seconds.
pub fn to_timestamp(moment: DateTime<Utc>) -> Timestamp {
    moment.to_rfc3339_opts(SecondsFormat::Secs, true).into()
}

/// Formats a time with milliseconds (RFC 3339 UTC), for the journal and wherever ages are computed.
pub fn to_millis_timestamp(moment: DateTime<Utc>) -> Timestamp {
    moment.to_rfc3339_opts(SecondsFormat::Millis, true).into()
}

/// Parses a timestamp of our files; `None` if it cannot be read.
pub fn parse_timestamp(timestamp: &Timestamp) -> Option<DateTime<Utc>> {
    parse_rfc3339(timestamp.as_str())
}

/// Parses an RFC 3339 time that another program wrote.
pub fn parse_rfc3339(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|moment| moment.to_utc())
}

/// Formats a time in this machine's time zone the way handoffs are named: `2026-01-07-1145`.
pub fn format_local_date_and_minute(moment: DateTime<Utc>) -> String {
    moment.with_timezone(&Local).format("%Y-%m-%d-%H%M").to_string()
}

/// Returns the time this many seconds after the Unix epoch; `None` if it is out of range.
pub fn from_unix_seconds(seconds: u64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)
}

/// Returns the next time after `now` with this hour and minute, in this machine's time zone or in UTC. If
/// `month_day` is set, the time is on that month and day.
pub fn next_time_of_day(
    now: DateTime<Utc>,
    hour_and_minute: (u32, u32),
    month_day: Option<(u32, u32)>,
    is_utc: bool,
) -> Option<DateTime<Utc>> {
    if is_utc {
        next_time_of_day_in_zone(&now, hour_and_minute, month_day)
    } else {
        next_time_of_day_in_zone(&now.with_timezone(&Local), hour_and_minute, month_day)
    }
}

/// Resolves an hour and minute that a message named at `reference_time`: returns the next such time, or one
/// that had just passed.
pub fn just_passed_or_next_time_of_day(
    reference_time: DateTime<Utc>,
    hour_and_minute: (u32, u32),
    month_day: Option<(u32, u32)>,
    is_utc: bool,
) -> Option<DateTime<Utc>> {
    next_time_of_day(reference_time - RECENT_PAST_TOLERANCE, hour_and_minute, month_day, is_utc)
}

/// Formats the local date of a time: `2026-01-07`.
pub fn format_local_date(moment: DateTime<Utc>) -> String {
    moment.with_timezone(&Local).format("%Y-%m-%d").to_string()
}

/// Returns the local time of this machine at a Unix time in seconds.
pub fn local_time_from_unix_seconds(seconds: i64) -> NaiveDateTime {
    DateTime::from_timestamp(seconds, 0).unwrap_or_default().with_timezone(&Local).naive_local()
}

/// Returns the day of a Unix time in seconds in this machine's time zone.
pub fn local_day_from_unix_seconds(seconds: i64) -> NaiveDate {
    local_time_from_unix_seconds(seconds).date()
}

/// Formats a Unix time in seconds for our files.
pub fn timestamp_from_unix_seconds(seconds: i64) -> Timestamp {
    to_timestamp(DateTime::from_timestamp(seconds, 0).unwrap_or_default())
}

/// Returns when the local day of a time ends.
pub fn end_of_local_day(moment: DateTime<Utc>) -> DateTime<Utc> {
    // In time zones where a day can begin without a midnight, one hour later is close enough.
    let next_midnight = next_time_of_day(moment, (0, 0), None, false);
    next_midnight
        .or_else(|| next_time_of_day(moment, (1, 0), None, false))
        .unwrap_or(moment + Duration::hours(24))
}

/// Converts a local date and time of this machine to UTC. If the clock is set back and the time occurs twice,
/// the first one is used.
pub fn from_local_date_time(local_time: NaiveDateTime) -> Option<DateTime<Utc>> {
    local_time.and_local_timezone(Local).earliest().map(|moment| moment.to_utc())
}

/// Formats a time for the user in this machine's time zone: `07:00:00`, or `Sat 22 Nov 07:00:00` on another
/// day.
pub fn format_local_time_with_seconds(moment: DateTime<Utc>) -> String {
    format_local(moment, "%H:%M:%S", "%a %e %b %H:%M:%S")
}

/// Formats a time for the user as short as possible: `07:00`, or `Sat 07:00` on another day.
pub fn format_short_local_time(moment: DateTime<Utc>) -> String {
    format_local(moment, "%H:%M", "%a %H:%M")
}

fn format_local(moment: DateTime<Utc>, today_format: &str, other_day_format: &str) -> String {
    let (moment, now) = (moment.with_timezone(&Local), now().with_timezone(&Local));
    let format = if moment.date_naive() == now.date_naive() { today_format } else { other_day_format };
    moment.format(format).to_string()
}

fn next_time_of_day_in_zone<Zone: TimeZone>(
    now: &DateTime<Zone>,
    (hour, minute): (u32, u32),
    month_day: Option<(u32, u32)>,
) -> Option<DateTime<Utc>> {
    let zone = now.timezone();
    let today = now.date_naive();
    let days: Vec<NaiveDate> = match month_day {
        Some((month, day)) => {
            let years = [today.year(), today.year() + 1];
            years.iter().filter_map(|year| NaiveDate::from_ymd_opt(*year, month, day)).collect()
        }
        // Three days: if the clock skips this hour on the second day, the third day has it.
        None => today.iter_days().take(3).collect(),
    };
    let candidates = days
        .into_iter()
        // When the clock is set back, a time occurs twice; the first one is used.
        .filter_map(|day| day.and_hms_opt(hour, minute, 0)?.and_local_timezone(zone.clone()).earliest());
    candidates.map(|moment| moment.to_utc()).find(|moment| *moment > now.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_the_next_one_today_or_tomorrow_or_on_its_day() {
        let now = parse_rfc3339("2026-11-21T14:30:00Z").unwrap();
        for (time, day, expected) in [
            ((15, 0), None, "2026-11-21T15:00:00Z"),
            ((14, 30), None, "2026-11-22T14:30:00Z"),
            ((3, 0), None, "2026-11-22T03:00:00Z"),
            ((15, 0), Some((11, 28)), "2026-11-28T15:00:00Z"),
            ((0, 30), Some((1, 2)), "2027-01-02T00:30:00Z"),
        ] {
            let next_time = next_time_of_day(now, time, day, true).map(to_timestamp);
            assert_eq!(next_time, Some(expected.into()), "{time:?} {day:?}");
        }
        assert_eq!(next_time_of_day(now, (15, 0), Some((2, 30)), true), None);
    }

    #[test]
    fn a_time_given_in_minutes_may_have_just_passed() {
        let named_at = parse_rfc3339("2026-11-21T16:16:31Z").unwrap();
        for (time, day, expected) in [
            ((16, 16), None, "2026-11-21T16:16:00Z"),
            ((16, 2), None, "2026-11-21T16:02:00Z"),
            ((16, 1), None, "2026-11-22T16:01:00Z"),
            ((16, 17), None, "2026-11-21T16:17:00Z"),
            ((16, 16), Some((11, 21)), "2026-11-21T16:16:00Z"),
            ((16, 16), Some((11, 20)), "2027-11-20T16:16:00Z"),
        ] {
            let named_time = just_passed_or_next_time_of_day(named_at, time, day, true).map(to_timestamp);
            assert_eq!(named_time, Some(expected.into()), "{time:?} {day:?}");
        }
        let midnight = parse_rfc3339("2026-11-21T00:00:20Z").unwrap();
        assert_eq!(
            just_passed_or_next_time_of_day(midnight, (0, 0), None, true),
            parse_rfc3339("2026-11-21T00:00:00Z")
        );
        assert_eq!(
            just_passed_or_next_time_of_day(midnight, (23, 59), None, true),
            parse_rfc3339("2026-11-20T23:59:00Z")
        );
    }
}
