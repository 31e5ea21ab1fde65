//! How people write amounts on a command line: money, tokens, durations, moments, commands.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Utc};
use plimsoll_domain::Timestamp;
use plimsoll_domain::memory::Register;
use plimsoll_domain::promise::PromiseWord;
use plimsoll_store::clock;
use std::time::Duration;
use thiserror::Error;

/// What was expected; clap says for which option, and what came instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueError {
    /// It is no amount of money.
    #[error("US dollars, more than 0, such as 12.50")]
    Dollars,
    /// It is no number of tokens.
    #[error("a number of tokens, such as 500000, 500k or 5M")]
    Tokens,
    /// It is no share.
    #[error("a percentage from 1 to 100")]
    Percent,
    /// It is no duration.
    #[error("a duration such as 30m or 90s (a bare number is minutes, 0 is never)")]
    Duration,
    /// It is no duration with a unit.
    #[error("a duration such as 30d or 12h")]
    Age,
    /// It is no size with a unit.
    #[error("a size such as 500M or 2G")]
    Bytes,
    /// It is no moment.
    #[error("a time such as 07:00 or \"2026-01-07 07:00\", or a duration such as 8h or 90m")]
    Deadline,
    /// It is a moment that has been.
    #[error("{0} is in the past")]
    InThePast(String),
    /// It is no moment that has been.
    #[error("a time such as 07:00, 2026-01-07 or \"2026-01-07 07:00\", or a duration ago such as 12h")]
    Past,
    /// It is no list of words for a program.
    #[error("a program with its arguments; a quote is open")]
    Program,
    /// It cannot be the word of a run's promise.
    #[error("one word of at most 64 letters, digits, `_` and `-`, other than BLOCKED")]
    PromiseWord,
    /// It says no interval between reviews.
    #[error("`item`, a number of items, or `off`")]
    Review,
    /// It is no whole number.
    #[error("a whole number, such as 20")]
    WholeNumber,
    /// It is no whole number, or 0.
    #[error("a whole number from 1 on, such as 20")]
    AtLeastOne,
    /// It is no number of workers that one machine can have.
    #[error("a number of workers from 1 to {MOST_WORKERS}")]
    Workers,
    /// No register has this name.
    #[error("one of {}", Register::ALL.map(Register::key).join(", "))]
    Register,
}

/// More clients on one machine are no faster.
const MOST_WORKERS: usize = 64;

/// A number of workers.
pub fn workers(text: &str) -> Result<usize, ValueError> {
    text.parse().ok().filter(|count| (1..=MOST_WORKERS).contains(count)).ok_or(ValueError::Workers)
}

/// A whole number.
pub fn whole_number<T: std::str::FromStr>(text: &str) -> Result<T, ValueError> {
    text.parse().map_err(|_| ValueError::WholeNumber)
}

/// A whole number of 1 or more.
pub fn at_least_one(text: &str) -> Result<u32, ValueError> {
    text.parse().ok().filter(|number| *number > 0).ok_or(ValueError::AtLeastOne)
}

/// US dollars: `12.50`, `$12.50`.
pub fn dollars(text: &str) -> Result<f64, ValueError> {
    let amount = text.trim_start_matches('$').parse::<f64>().ok();
    amount.filter(|amount| amount.is_finite() && *amount > 0.0).ok_or(ValueError::Dollars)
}

/// Tokens: `500000`, `500k`, `5M`.
pub fn tokens(text: &str) -> Result<u64, ValueError> {
    let (number, unit) = match text.char_indices().find(|(_, letter)| letter.is_ascii_alphabetic()) {
        Some((place, _)) => text.split_at(place),
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
        .ok_or(ValueError::Tokens)
}

/// A share: `80`, `80%`.
pub fn percent(text: &str) -> Result<u8, ValueError> {
    let number = text.trim_end_matches('%').parse::<u8>().ok();
    number.filter(|number| (1..=100).contains(number)).ok_or(ValueError::Percent)
}

/// After how many items a review comes: `item` is 1, `off` is 0.
pub fn review(text: &str) -> Result<u32, ValueError> {
    match text {
        "item" => Ok(1),
        "off" => Ok(0),
        number => number.parse().ok().filter(|number| *number > 0).ok_or(ValueError::Review),
    }
}

/// Whole seconds: `30m`, `90s`, `1h 30m`; a bare number is minutes; `0` switches off.
pub fn seconds(text: &str) -> Result<u64, ValueError> {
    if let Ok(minutes) = text.parse::<u64>() {
        return Ok(minutes.saturating_mul(60));
    }
    humantime::parse_duration(text).map(|duration| duration.as_secs()).map_err(|_| ValueError::Duration)
}

/// How long ago, in whole seconds: `30d`, `12h`. A bare number says no unit, and what is asked for cannot be undone.
pub fn age(text: &str) -> Result<u64, ValueError> {
    humantime::parse_duration(text).map(|duration| duration.as_secs()).map_err(|_| ValueError::Age)
}

/// Bytes: `500M`, `2G`, `1.5GB`; a thousand of each make the next.
pub fn bytes(text: &str) -> Result<u64, ValueError> {
    let (number, unit) = match text.char_indices().find(|(_, letter)| letter.is_ascii_alphabetic()) {
        Some((place, _)) => text.split_at(place),
        None => return Err(ValueError::Bytes),
    };
    let factor = match unit.trim_end_matches(['B', 'b']).to_ascii_uppercase().as_str() {
        "K" => Some(1e3),
        "M" => Some(1e6),
        "G" => Some(1e9),
        "T" => Some(1e12),
        _ => None,
    };
    let amount = number.trim().parse::<f64>().ok().zip(factor).map(|(number, factor)| number * factor);
    amount.filter(|amount| (0.0..1e18).contains(amount)).map(|amount| amount as u64).ok_or(ValueError::Bytes)
}

/// A moment to come, as it stands in the state: `07:00`, `2026-01-07 07:00`, RFC 3339, or so long from now (`8h`).
pub fn deadline(text: &str) -> Result<Timestamp, ValueError> {
    let now = clock::now();
    let moment = moment(text, now).ok_or(ValueError::Deadline)?;
    if moment <= now {
        return Err(ValueError::InThePast(text.to_owned()));
    }
    Ok(clock::stamp(moment))
}

/// A moment that has been, as written in the turn log: `07:00` (the last one), `2026-01-07`, RFC 3339, or so long
/// ago (`12h`).
pub fn past(text: &str) -> Result<Timestamp, ValueError> {
    let now = clock::now();
    let ago = humantime::parse_duration(text).ok().map(|duration| now - duration);
    let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0);
    let moment = ago.or_else(|| day().and_then(clock::of_wall_clock)).or_else(|| moment(text, now));
    let last = moment.map(|moment| if moment > now { moment - chrono::Duration::days(1) } else { moment });
    last.map(clock::stamp).ok_or(ValueError::Past)
}

fn moment(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    if let Ok(duration) = humantime::parse_duration(text) {
        return Some(now + duration.max(Duration::from_secs(1)));
    }
    if let Ok(time) = NaiveTime::parse_from_str(text, "%H:%M") {
        return clock::next_wall_clock(now, (time.hour(), time.minute()), None, false);
    }
    let local = ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"];
    let named = local.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    named.and_then(clock::of_wall_clock).or_else(|| clock::parse(text))
}

/// A program with its arguments, split into words as a shell would, and never given to one.
pub fn words(text: &str) -> Result<Vec<String>, ValueError> {
    let words = shlex::split(text).filter(|words| !words.is_empty());
    words.ok_or(ValueError::Program)
}

/// The word of a run's promise.
pub fn promise_word(word: &str) -> Result<PromiseWord, ValueError> {
    word.parse().map_err(|_| ValueError::PromiseWord)
}

/// A register of the working memory: `R4`, `R4_CONSTRAINTS`, `constraints`.
pub fn register(word: &str) -> Result<Register, ValueError> {
    Register::named(word).ok_or(ValueError::Register)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        assert_eq!((dollars("12.5"), dollars("$3")), (Ok(12.5), Ok(3.0)));
        assert_eq!(
            (bytes("2G"), bytes("1.5 MB"), age("30d")),
            (Ok(2_000_000_000), Ok(1_500_000), Ok(2_592_000))
        );
        for wrong in ["2", "", "G", "-1G", "2X", "NaNG"] {
            assert_eq!(bytes(wrong), Err(ValueError::Bytes), "{wrong}");
        }
        assert_eq!((age("30"), age("soon")), (Err(ValueError::Age), Err(ValueError::Age)));
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
            (seconds("30"), seconds("90s"), seconds("1h 30m"), seconds("0")),
            (Ok(1_800), Ok(90), Ok(5_400), Ok(0))
        );
        assert!(seconds("soon").is_err());
        assert_eq!(
            words("ntfy publish 'my topic'"),
            Ok(vec!["ntfy".into(), "publish".into(), "my topic".into()])
        );
        assert!(words("").is_err() && words("a 'b").is_err());
    }

    #[test]
    fn a_promise_is_one_plain_word() {
        for word in ["", "BLOCKED", "a b", "<x>", "a\nb"] {
            assert!(promise_word(word).is_err(), "{word:?}");
        }
        assert!(promise_word("ALL_DONE-2").is_ok());
    }

    #[test]
    fn a_time_that_has_been_is_never_one_to_come() {
        let age =
            |text: &str| (clock::now() - clock::parse(past(text).unwrap().as_str()).unwrap()).num_seconds();
        assert!((43_199..=43_201).contains(&age("12h")));
        for text in ["00:00", "23:59", "2026-01-07", "2026-01-07 07:00", "2026-01-07T07:00:00Z"] {
            assert!(age(text) >= 0, "{text}");
        }
        assert!((0..=86_400).contains(&age("23:59")));
        assert!(past("yesterday").is_err());
    }

    #[test]
    fn a_deadline_is_a_moment_to_come() {
        let in_eight_hours = clock::parse(deadline("8h").unwrap().as_str()).unwrap() - clock::now();
        assert!((28_798..=28_801).contains(&in_eight_hours.num_seconds()), "{in_eight_hours}");
        let at_seven = clock::parse(deadline("07:00").unwrap().as_str()).unwrap() - clock::now();
        assert!((0..=86_400).contains(&at_seven.num_seconds()), "{at_seven}");
        assert_eq!(deadline("2100-01-01T00:00:00Z"), Ok("2100-01-01T00:00:00Z".into()));
        assert!(deadline("2100-01-01 07:00").is_ok());
        assert!(deadline("2001-01-01 07:00").unwrap_err().to_string().contains("past"));
        assert!(deadline("25:00").is_err() && deadline("tomorrow").is_err());
    }
}
