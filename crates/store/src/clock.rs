//! The time.
#![expect(clippy::disallowed_methods, reason = "this is the one place that tells the time")]

use chrono::{DateTime, Datelike, Duration, Local, NaiveDate, NaiveDateTime, SecondsFormat, TimeZone, Utc};
use plimsoll_domain::Timestamp;

/// A time that was named without seconds or day has just passed if it is this little in the past: it cannot mean
/// tomorrow by it.
const JUST_PASSED: Duration = Duration::minutes(15);

/// Now.
pub fn now() -> DateTime<Utc> {
    Utc::now()
}

/// A moment as written in our files: RFC 3339 UTC, whole seconds.
pub fn stamp(moment: DateTime<Utc>) -> Timestamp {
    moment.to_rfc3339_opts(SecondsFormat::Secs, true).into()
}

/// The same with milliseconds, for the journal and for ages.
pub fn fine_stamp(moment: DateTime<Utc>) -> Timestamp {
    moment.to_rfc3339_opts(SecondsFormat::Millis, true).into()
}

/// The date and time of a moment in our files; none if it cannot be read.
pub fn moment(stamp: &Timestamp) -> Option<DateTime<Utc>> {
    parse(stamp.as_str())
}

/// A moment that another program wrote as RFC 3339.
pub fn parse(stamp: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(stamp).ok().map(|moment| moment.to_utc())
}

/// The moment on this machine's wall clock, as a handoff is named: `2026-01-07-1145`.
pub fn wall_clock(moment: DateTime<Utc>) -> String {
    moment.with_timezone(&Local).format("%Y-%m-%d-%H%M").to_string()
}

/// The moment this many seconds after the beginning of 1970.
pub fn at(seconds: u64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)
}

/// The next moment with this wall-clock time on this machine (or in UTC), and on this day if one is named.
pub fn next_wall_clock(
    now: DateTime<Utc>,
    time: (u32, u32),
    month_day: Option<(u32, u32)>,
    utc: bool,
) -> Option<DateTime<Utc>> {
    if utc { next_at(&now, time, month_day) } else { next_at(&now.with_timezone(&Local), time, month_day) }
}

/// The moment meant by this wall-clock time at that time: the next one, or one that has just passed.
pub fn named_wall_clock(
    then: DateTime<Utc>,
    time: (u32, u32),
    month_day: Option<(u32, u32)>,
    utc: bool,
) -> Option<DateTime<Utc>> {
    next_wall_clock(then - JUST_PASSED, time, month_day, utc)
}

/// The day of a moment on this machine's calendar: `2026-01-07`.
pub fn day(moment: DateTime<Utc>) -> String {
    moment.with_timezone(&Local).format("%Y-%m-%d").to_string()
}

/// When the day of a moment ends on this machine's calendar.
pub fn end_of_day(moment: DateTime<Utc>) -> DateTime<Utc> {
    // Where a day begins without a midnight, an hour later will do.
    let midnight = next_wall_clock(moment, (0, 0), None, false);
    midnight.or_else(|| next_wall_clock(moment, (1, 0), None, false)).unwrap_or(moment + Duration::hours(24))
}

/// The moment with this date and time on this machine's wall clock.
pub fn of_wall_clock(date_and_time: NaiveDateTime) -> Option<DateTime<Utc>> {
    date_and_time.and_local_timezone(Local).earliest().map(|moment| moment.to_utc())
}

/// A moment as shown to the user on this machine's wall clock: `07:00`, or `Sat 22 Nov 07:00` on another day.
pub fn for_people(moment: DateTime<Utc>) -> String {
    on_wall_clock(moment, "%H:%M:%S", "%a %e %b %H:%M:%S")
}

/// The same, as short as it gets: `07:00`, or `Sat 07:00` on another day.
pub fn in_short(moment: DateTime<Utc>) -> String {
    on_wall_clock(moment, "%H:%M", "%a %H:%M")
}

fn on_wall_clock(moment: DateTime<Utc>, today: &str, another_day: &str) -> String {
    let (moment, now) = (moment.with_timezone(&Local), now().with_timezone(&Local));
    let form = if moment.date_naive() == now.date_naive() { today } else { another_day };
    moment.format(form).to_string()
}

fn next_at<Zone: TimeZone>(
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
        // The third for a clock that skips the hour on the second.
        None => today.iter_days().take(3).collect(),
    };
    let moments = days
        .into_iter()
        // Where the clock is set back a time comes twice: the first is meant.
        .filter_map(|day| day.and_hms_opt(hour, minute, 0)?.and_local_timezone(zone.clone()).earliest());
    moments.map(|moment| moment.to_utc()).find(|moment| *moment > now.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_time_is_the_next_one_today_or_tomorrow_or_on_its_day() {
        let now = parse("2026-11-21T14:30:00Z").unwrap();
        for (time, day, expected) in [
            ((15, 0), None, "2026-11-21T15:00:00Z"),
            ((14, 30), None, "2026-11-22T14:30:00Z"),
            ((3, 0), None, "2026-11-22T03:00:00Z"),
            ((15, 0), Some((11, 28)), "2026-11-28T15:00:00Z"),
            ((0, 30), Some((1, 2)), "2027-01-02T00:30:00Z"),
        ] {
            let found = next_wall_clock(now, time, day, true).map(stamp);
            assert_eq!(found, Some(expected.into()), "{time:?} {day:?}");
        }
        assert_eq!(next_wall_clock(now, (15, 0), Some((2, 30)), true), None);
    }

    #[test]
    fn a_time_that_was_named_in_minutes_may_just_have_passed() {
        let then = parse("2026-11-21T16:16:31Z").unwrap();
        for (time, day, expected) in [
            ((16, 16), None, "2026-11-21T16:16:00Z"),
            ((16, 2), None, "2026-11-21T16:02:00Z"),
            ((16, 1), None, "2026-11-22T16:01:00Z"),
            ((16, 17), None, "2026-11-21T16:17:00Z"),
            ((16, 16), Some((11, 21)), "2026-11-21T16:16:00Z"),
            ((16, 16), Some((11, 20)), "2027-11-20T16:16:00Z"),
        ] {
            let found = named_wall_clock(then, time, day, true).map(stamp);
            assert_eq!(found, Some(expected.into()), "{time:?} {day:?}");
        }
        let midnight = parse("2026-11-21T00:00:20Z").unwrap();
        assert_eq!(named_wall_clock(midnight, (0, 0), None, true), parse("2026-11-21T00:00:00Z"));
        assert_eq!(named_wall_clock(midnight, (23, 59), None, true), parse("2026-11-20T23:59:00Z"));
    }
}
