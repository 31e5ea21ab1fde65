//! clap value parsers: money, tokens, durations, times, commands.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike, Utc};
use plimsoll_domain::Timestamp;
use plimsoll_domain::memory::Register;
use plimsoll_domain::promise::PromiseWord;
use plimsoll_store::clock;
use thiserror::Error;

/// The expected value. clap adds the option and the invalid value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueError {
    #[error("US dollars, more than 0, such as 12.50")]
    InvalidDollars,
    #[error("a number of tokens, such as 500000, 500k or 5M")]
    InvalidTokenCount,
    #[error("a percentage from 1 to 100")]
    InvalidPercent,
    #[error("a duration such as 30m or 90s (a bare number is minutes, 0 is never)")]
    InvalidDuration,
    #[error("a duration such as 30d or 12h")]
    InvalidAge,
    #[error("a size such as 500M or 2G")]
    InvalidByteSize,
    #[error("a time such as 07:00 or \"2026-01-07 07:00\", or a duration such as 8h or 90m")]
    InvalidDeadline,
    #[error("{0} is in the past")]
    DeadlineInPast(String),
    #[error("a time such as 07:00, 2026-01-07 or \"2026-01-07 07:00\", or a duration ago such as 12h")]
    InvalidPastTime,
    #[error("a day such as 2026-01-07, or a duration ago such as 7d")]
    InvalidDay,
    #[error("{0} is in the future")]
    TimeInFuture(String),
    #[error("a program with its arguments; a quote is open")]
    InvalidCommand,
    #[error("a command, such as 'npm test'")]
    EmptyVerifyCommand,
    #[error("one word of at most 64 letters, digits, `_` and `-`, other than BLOCKED")]
    InvalidPromiseWord,
    #[error("`item`, a number of items, or `off`")]
    InvalidReviewInterval,
    #[error("a whole number, such as 20")]
    NotWholeNumber,
    #[error("a whole number from 1 on, such as 20")]
    NotPositiveNumber,
    #[error("a number of workers from 1 to {MAX_WORKERS}")]
    InvalidWorkerCount,
    #[error("one of {}", Register::ALL.map(Register::key).join(", "))]
    UnknownRegister,
}

/// Limit of workers on one machine; more are not faster.
const MAX_WORKERS: usize = 64;

/// Parses a number of workers from 1 to `MAX_WORKERS`.
pub fn workers(text: &str) -> Result<usize, ValueError> {
    text.parse().ok().filter(|count| (1..=MAX_WORKERS).contains(count)).ok_or(ValueError::InvalidWorkerCount)
}

/// Parses a whole number.
pub fn whole_number<T: std::str::FromStr>(text: &str) -> Result<T, ValueError> {
    text.parse().map_err(|_| ValueError::NotWholeNumber)
}

/// Parses a whole number of at least 1.
pub fn at_least_one(text: &str) -> Result<u32, ValueError> {
    text.parse().ok().filter(|number| *number > 0).ok_or(ValueError::NotPositiveNumber)
}

/// Parses US dollars, more than 0: `12.50`, `$12.50`.
pub fn dollars(text: &str) -> Result<f64, ValueError> {
    let amount = text.trim_start_matches('$').parse::<f64>().ok();
    amount.filter(|amount| amount.is_finite() && *amount > 0.0).ok_or(ValueError::InvalidDollars)
}

/// Parses a number of tokens: `500000`, `500k`, `5M`.
pub fn tokens(text: &str) -> Result<u64, ValueError> {
    let (number, unit) = match text.char_indices().find(|(_, character)| character.is_ascii_alphabetic()) {
        Some((unit_start, _)) => text.split_at(unit_start),
        None => (text, ""),
    };
    let factor = match unit {
        "" => Some(1.0),
        "k" | "K" => Some(1e3),
        "m" | "M" => Some(1e6),
        _ => None,
    };
    let amount =
        number.replace('_', "").parse::<f64>().ok().zip(factor).map(|(number, factor)| number * factor);
    amount
        .filter(|amount| (1.0..1e15).contains(amount))
        .map(|amount| amount.round() as u64)
        .ok_or(ValueError::InvalidTokenCount)
}

/// Parses a percentage from 1 to 100: `80`, `80%`.
pub fn percent(text: &str) -> Result<u8, ValueError> {
    let number = text.trim_end_matches('%').parse::<u8>().ok();
    number.filter(|number| (1..=100).contains(number)).ok_or(ValueError::InvalidPercent)
}

/// Parses the number of items between reviews: `item` is 1, `off` is 0.
pub fn review_interval_from_item_off_or_number(text: &str) -> Result<u32, ValueError> {
    match text {
        "item" => Ok(1),
        "off" => Ok(0),
        number => number.parse().ok().filter(|number| *number > 0).ok_or(ValueError::InvalidReviewInterval),
    }
}

/// Parses a duration into seconds: `30m`, `90s`, `1h 30m`. A bare number is minutes, and `0` means off.
pub fn seconds_from_minutes_or_duration(text: &str) -> Result<u64, ValueError> {
    if let Ok(minutes) = text.parse::<u64>() {
        return Ok(minutes.saturating_mul(60));
    }
    humantime::parse_duration(text)
        .map(|duration| duration.as_secs())
        .map_err(|_| ValueError::InvalidDuration)
}

/// Parses an age into seconds: `30d`, `12h`. A number without a unit is an error, because the command cannot be undone.
pub fn age_seconds(text: &str) -> Result<u64, ValueError> {
    humantime::parse_duration(text).map(|duration| duration.as_secs()).map_err(|_| ValueError::InvalidAge)
}

/// Parses a size into bytes: `500M`, `2G`, `1.5GB`. Units are powers of 1000.
pub fn bytes_from_size_with_unit(text: &str) -> Result<u64, ValueError> {
    let (number, unit) = match text.char_indices().find(|(_, character)| character.is_ascii_alphabetic()) {
        Some((unit_start, _)) => text.split_at(unit_start),
        None => return Err(ValueError::InvalidByteSize),
    };
    let factor = match unit.trim_end_matches(['B', 'b']).to_ascii_uppercase().as_str() {
        "K" => Some(1e3),
        "M" => Some(1e6),
        "G" => Some(1e9),
        "T" => Some(1e12),
        _ => None,
    };
    let amount = number.trim().parse::<f64>().ok().zip(factor).map(|(number, factor)| number * factor);
    amount
        .filter(|amount| (0.0..1e18).contains(amount))
        .map(|amount| amount as u64)
        .ok_or(ValueError::InvalidByteSize)
}

/// Parses a future time: `07:00`, `2026-01-07 07:00`, RFC 3339, or a duration from now (`8h`).
pub fn deadline(text: &str) -> Result<Timestamp, ValueError> {
    let now = clock::now();
    let time = parse_time_or_duration_from_now(text, now).ok_or(ValueError::InvalidDeadline)?;
    if time <= now {
        return Err(ValueError::DeadlineInPast(text.to_owned()));
    }
    Ok(clock::to_timestamp(time))
}

/// Parses a past time: `07:00` (its last occurrence), `2026-01-07`, RFC 3339, or a duration ago (`12h`). Returns it in
/// the turn log's format.
pub fn timestamp_moved_back_a_day_if_in_future(text: &str) -> Result<Timestamp, ValueError> {
    let now = clock::now();
    let time_ago = parse_duration(text).and_then(|duration| now.checked_sub_signed(duration));
    let start_of_day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0);
    let time = time_ago
        .or_else(|| start_of_day().and_then(clock::from_local_date_time))
        .or_else(|| parse_time_or_duration_from_now(text, now));
    // Only a time of day may mean yesterday.
    let is_time_of_day = NaiveTime::parse_from_str(text, "%H:%M").is_ok();
    match time {
        None => Err(ValueError::InvalidPastTime),
        Some(time) if time <= now => Ok(clock::to_timestamp(time)),
        Some(time) if is_time_of_day => Ok(clock::to_timestamp(time - chrono::Duration::days(1))),
        Some(_) => Err(ValueError::TimeInFuture(text.to_owned())),
    }
}

/// Parses a day in this machine's time zone: `2026-01-07`, `20260107`, `today`, `yesterday`, or the first of the last days (`7d`).
pub fn day(text: &str) -> Result<NaiveDate, ValueError> {
    let day_ago = |duration: TimeDelta| {
        let time = clock::now().checked_sub_signed(duration)?;
        Some(clock::local_day_from_unix_seconds(time.timestamp()))
    };
    let day = match text {
        "today" => day_ago(TimeDelta::zero()),
        "yesterday" => day_ago(TimeDelta::days(1)),
        _ => ["%Y-%m-%d", "%Y%m%d"].iter().find_map(|format| NaiveDate::parse_from_str(text, format).ok()),
    };
    // The last seven days include today.
    let first_of_last_days =
        || day_ago(parse_duration(text)?.checked_sub(&TimeDelta::days(1))?.max(TimeDelta::zero()));
    let is_plausible = |day: &NaiveDate| (1970..=9999).contains(&day.year());
    day.or_else(first_of_last_days).filter(is_plausible).ok_or(ValueError::InvalidDay)
}

fn parse_duration(text: &str) -> Option<TimeDelta> {
    TimeDelta::from_std(humantime::parse_duration(text).ok()?).ok()
}

fn parse_time_or_duration_from_now(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    if let Some(duration) = parse_duration(text) {
        return now.checked_add_signed(duration.max(TimeDelta::seconds(1)));
    }
    if let Ok(time) = NaiveTime::parse_from_str(text, "%H:%M") {
        return clock::next_time_of_day(now, (time.hour(), time.minute()), None, false);
    }
    let local_formats = ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"];
    let local_time = local_formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    local_time.and_then(clock::from_local_date_time).or_else(|| clock::parse_rfc3339(text))
}

/// Splits a command into program and arguments with a shell's quoting rules. No shell runs it.
pub fn split_command_into_words(text: &str) -> Result<Vec<String>, ValueError> {
    let program_and_arguments = shlex::split(text).filter(|arguments| !arguments.is_empty());
    program_and_arguments.ok_or(ValueError::InvalidCommand)
}

/// Parses a verify command, which the shell runs as it is.
pub fn verify_command(text: &str) -> Result<String, ValueError> {
    if text.trim().is_empty() { Err(ValueError::EmptyVerifyCommand) } else { Ok(text.to_owned()) }
}

/// Parses the word of a run's promise.
pub fn promise_word(text: &str) -> Result<PromiseWord, ValueError> {
    text.parse().map_err(|_| ValueError::InvalidPromiseWord)
}

/// Parses a register of the working memory: `R4`, `R4_CONSTRAINTS`, `constraints`.
pub fn register(text: &str) -> Result<Register, ValueError> {
    Register::parse_key_number_or_name(text).ok_or(ValueError::UnknownRegister)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_parsed_as_people_write_them() {
        assert_eq!((dollars("12.5"), dollars("$3")), (Ok(12.5), Ok(3.0)));
        assert_eq!(
            (bytes_from_size_with_unit("2G"), bytes_from_size_with_unit("1.5 MB"), age_seconds("30d")),
            (Ok(2_000_000_000), Ok(1_500_000), Ok(2_592_000))
        );
        for wrong in ["2", "", "G", "-1G", "2X", "NaNG"] {
            assert_eq!(bytes_from_size_with_unit(wrong), Err(ValueError::InvalidByteSize), "{wrong}");
        }
        assert_eq!(
            (age_seconds("30"), age_seconds("soon")),
            (Err(ValueError::InvalidAge), Err(ValueError::InvalidAge))
        );
        for wrong in ["", "0", "-1", "NaN", "inf", "12 EUR"] {
            assert!(dollars(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            (tokens("500k"), tokens("5M"), tokens("1.5M"), tokens("1_000")),
            (Ok(500_000), Ok(5_000_000), Ok(1_500_000), Ok(1_000))
        );
        for wrong in ["", "k", "0", "5G", "-5k", "1e99"] {
            assert!(tokens(wrong).is_err(), "{wrong}");
        }
        assert_eq!((percent("80%"), percent("100")), (Ok(80), Ok(100)));
        assert!(percent("0").is_err() && percent("101").is_err() && percent("x").is_err());
        assert_eq!(
            (
                seconds_from_minutes_or_duration("30"),
                seconds_from_minutes_or_duration("90s"),
                seconds_from_minutes_or_duration("1h 30m"),
                seconds_from_minutes_or_duration("0")
            ),
            (Ok(1_800), Ok(90), Ok(5_400), Ok(0))
        );
        assert!(seconds_from_minutes_or_duration("soon").is_err());
        assert_eq!(
            split_command_into_words("ntfy publish 'my topic'"),
            Ok(vec!["ntfy".into(), "publish".into(), "my topic".into()])
        );
        assert!(split_command_into_words("").is_err() && split_command_into_words("a 'b").is_err());
    }

    #[test]
    fn a_promise_is_one_plain_word() {
        for word in ["", "BLOCKED", "a b", "<x>", "a\nb"] {
            assert!(promise_word(word).is_err(), "{word:?}");
        }
        assert!(promise_word("ALL_DONE-2").is_ok());
    }

    #[test]
    fn a_past_time_is_never_in_the_future() {
        let age_of_text_seconds = |text: &str| {
            (clock::now()
                - clock::parse_rfc3339(timestamp_moved_back_a_day_if_in_future(text).unwrap().as_str())
                    .unwrap())
            .num_seconds()
        };
        assert!((43_199..=43_201).contains(&age_of_text_seconds("12h")));
        for text in ["00:00", "23:59", "2026-01-07", "2026-01-07 07:00", "2026-01-07T07:00:00Z"] {
            assert!(age_of_text_seconds(text) >= 0, "{text}");
        }
        assert!((0..=86_400).contains(&age_of_text_seconds("23:59")));
        assert!(timestamp_moved_back_a_day_if_in_future("yesterday").is_err());
        for text in ["2100-01-01", "2100-01-01 07:00", "2100-01-01T07:00:00Z"] {
            let error = timestamp_moved_back_a_day_if_in_future(text).unwrap_err();
            assert_eq!(error.to_string(), format!("{text} is in the future"));
        }
    }

    #[test]
    fn a_deadline_is_in_the_future() {
        let in_eight_hours = clock::parse_rfc3339(deadline("8h").unwrap().as_str()).unwrap() - clock::now();
        assert!((28_798..=28_801).contains(&in_eight_hours.num_seconds()), "{in_eight_hours}");
        let at_seven = clock::parse_rfc3339(deadline("07:00").unwrap().as_str()).unwrap() - clock::now();
        assert!((0..=86_400).contains(&at_seven.num_seconds()), "{at_seven}");
        assert_eq!(deadline("2100-01-01T00:00:00Z"), Ok("2100-01-01T00:00:00Z".into()));
        assert!(deadline("2100-01-01 07:00").is_ok());
        assert!(deadline("2001-01-01 07:00").unwrap_err().to_string().contains("past"));
        assert!(deadline("25:00").is_err() && deadline("tomorrow").is_err());
    }
}
