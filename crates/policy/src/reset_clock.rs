//! Parses the time at which a limit resets from the client's message. This is the last resort if the client reports no
//! number. Only a time directly after `reset` or `resets` counts, because the rest of the message may contain any text.

use chrono::{Month, NaiveDate};

/// The time of a reset, as precisely as the message states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetTime {
    /// Seconds since 1970.
    UnixSeconds(u64),
    /// A time of day.
    ClockTime {
        /// 0 to 23.
        hour: u32,
        /// 0 to 59.
        minute: u32,
        /// Month (1 to 12) and day; the client leaves them out if the time is less than a day away.
        month_day: Option<(u32, u32)>,
        /// True for UTC. Otherwise the machine's own time zone: the client prints its local time, on this machine.
        is_utc: bool,
    },
}

/// Returns the first reset time in a message.
pub fn parse_reset_time(text: &str) -> Option<ResetTime> {
    let lowercase = text.to_ascii_lowercase();
    parse_unix_seconds(&lowercase)
        .or_else(|| texts_after_reset(&lowercase).find_map(parse_clock_time))
        .or_else(|| parse_day_of_spend_limit(&lowercase))
}

/// Parses `spend limit reached · resets Jan 1`, as a gateway writes it: its periods end at midnight UTC. The client
/// (2.1.329) replaces the day by a time, unless the response has no header with it.
fn parse_day_of_spend_limit(text: &str) -> Option<ResetTime> {
    let (_, after_marker) = text.split_once("spend limit reached · resets ")?;
    let day_text = after_marker.split(" · ").next()?;
    let day_and_separator = format!("{day_text} ");
    let (month_day, remaining) = parse_month_and_day(&day_and_separator)?;
    remaining.is_empty().then_some(ResetTime::ClockTime {
        hour: 0,
        minute: 0,
        month_day: Some(month_day),
        is_utc: true,
    })
}

/// Parses `Claude AI usage limit reached|1795270982`, the form of clients of 2025.
fn parse_unix_seconds(text: &str) -> Option<ResetTime> {
    let (_, after_marker) = text.split_once("limit reached|")?;
    let (number_text, _) = split_leading_digits(after_marker);
    // Ten digits are seconds from 2001 to 2286; a number of any other length is not a plausible time.
    if number_text.len() == 10 { number_text.parse().ok().map(ResetTime::UnixSeconds) } else { None }
}

/// Returns the text after each `reset`, `resets`, `reset at`, `resets on`.
fn texts_after_reset(text: &str) -> impl Iterator<Item = &str> {
    let starts_word = move |index: usize| !text[..index].ends_with(char::is_alphanumeric);
    text.match_indices("reset").filter(move |(index, _)| starts_word(*index)).filter_map(
        |(index, keyword)| {
            let after_keyword = &text[index + keyword.len()..];
            let remaining = skip_required_space(after_keyword.strip_prefix('s').unwrap_or(after_keyword))?;
            Some(skip_one_word_of(remaining, &["at", "on"]))
        },
    )
}

/// Parses `nov 28, 3pm (europe/berlin)`, with or without the day and the zone.
fn parse_clock_time(text: &str) -> Option<ResetTime> {
    let (month_day, remaining) =
        parse_month_and_day(text).map_or((None, text), |(date, remaining)| (Some(date), remaining));
    let ((hour, minute), zone_text) = parse_time_of_day(remaining)?;
    Some(ResetTime::ClockTime { hour, minute, month_day, is_utc: starts_with_utc(zone_text) })
}

/// A leap year, so that February 29 is a valid day.
const LEAP_YEAR: i32 = 2028;

/// Parses `nov 28, `, `jan 2 at `, `jan 2, 2027, `. The year is skipped; the caller takes the next such day.
fn parse_month_and_day(text: &str) -> Option<((u32, u32), &str)> {
    let (month_name, remaining) = split_at_first(text, |character| !character.is_ascii_alphabetic());
    let month_name = if month_name == "sept" { "sep" } else { month_name };
    let month = month_name.parse::<Month>().ok()?.number_from_month();
    let (day, remaining) = parse_short_number(skip_required_space(remaining)?)?;
    let remaining = skip_year(skip_separator(remaining)?);
    NaiveDate::from_ymd_opt(LEAP_YEAR, month, day).map(|_| ((month, day), remaining))
}

fn skip_year(text: &str) -> &str {
    match split_leading_digits(text) {
        (year, remaining) if year.len() == 4 => skip_separator(remaining).unwrap_or(text),
        _ => text,
    }
}

/// Returns the text after a comma, white space or `at`; `None` if the word continues.
fn skip_separator(text: &str) -> Option<&str> {
    let remaining = text.strip_prefix(',').unwrap_or(text);
    skip_required_space(remaining).map(|remaining| skip_one_word_of(remaining, &["at"]))
}

/// Parses `3pm`, `2:23 pm` or `15:00`. A bare number is rejected, because it may be a count.
fn parse_time_of_day(text: &str) -> Option<((u32, u32), &str)> {
    let (hour, remaining) = parse_short_number(text)?;
    let (minute, remaining) = match remaining.strip_prefix(':') {
        Some(after_colon) => {
            parse_two_digits(after_colon).map(|(minute, remaining)| (Some(minute), remaining))?
        }
        None => (None, remaining),
    };
    let (half_day_start_hour, remaining) = parse_am_pm_to_start_hour(remaining);
    let hour = match half_day_start_hour {
        // 12 am is midnight, 12 pm is noon.
        Some(half_day_start_hour) if (1..=12).contains(&hour) => half_day_start_hour + hour % 12,
        None if minute.is_some() && hour < 24 => hour,
        _ => return None,
    };
    let minute = minute.unwrap_or(0);
    let is_followed_by_more =
        remaining.starts_with(|character: char| character.is_alphanumeric() || character == ':');
    (minute < 60 && !is_followed_by_more).then_some(((hour, minute), remaining))
}

/// Parses `am` or `pm` into the first hour of that half of the day.
fn parse_am_pm_to_start_hour(text: &str) -> (Option<u32>, &str) {
    let trimmed = text.trim_start();
    match (trimmed.strip_prefix("am"), trimmed.strip_prefix("pm")) {
        (Some(remaining), _) => (Some(0), remaining),
        (_, Some(remaining)) => (Some(12), remaining),
        _ => (None, text),
    }
}

/// Returns true if the text begins with `(utc)` or an equivalent. (`etc/gmt+5` is another zone.)
fn starts_with_utc(text: &str) -> bool {
    let zone = text.trim_start().trim_start_matches('(');
    let (zone, _) =
        split_at_first(zone, |character| !(character.is_ascii_alphanumeric() || "/+-_".contains(character)));
    matches!(zone, "utc" | "gmt" | "etc/utc" | "etc/gmt")
}

fn parse_short_number(text: &str) -> Option<(u32, &str)> {
    let (number_text, remaining) = split_leading_digits(text);
    if number_text.len() <= 2 { Some((number_text.parse().ok()?, remaining)) } else { None }
}

fn parse_two_digits(text: &str) -> Option<(u32, &str)> {
    parse_short_number(text).filter(|(_, remaining)| text.len() - remaining.len() == 2)
}

fn split_leading_digits(text: &str) -> (&str, &str) {
    split_at_first(text, |character| !character.is_ascii_digit())
}

fn split_at_first(text: &str, is_delimiter: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_delimiter).unwrap_or(text.len()))
}

/// Returns the text after white space; `None` if there is none. (The client may print a narrow space.)
fn skip_required_space(text: &str) -> Option<&str> {
    let remaining = text.trim_start();
    (remaining.len() < text.len()).then_some(remaining)
}

fn skip_one_word_of<'a>(text: &'a str, skipped_words: &[&str]) -> &'a str {
    skipped_words.iter().find_map(|word| skip_required_space(text.strip_prefix(word)?)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local_time(hour: u32, minute: u32) -> Option<ResetTime> {
        Some(ResetTime::ClockTime { hour, minute, month_day: None, is_utc: false })
    }

    fn utc_time(hour: u32, minute: u32) -> Option<ResetTime> {
        Some(ResetTime::ClockTime { hour, minute, month_day: None, is_utc: true })
    }

    fn dated_time(month: u32, day: u32, hour: u32, minute: u32) -> Option<ResetTime> {
        Some(ResetTime::ClockTime { hour, minute, month_day: Some((month, day)), is_utc: false })
    }

    #[test]
    fn reset_times_in_messages_of_all_clients_are_parsed() {
        for (words, expected) in [
            ("You've hit your 5-hour limit · resets 2:23pm (UTC)", utc_time(14, 23)),
            ("You've hit your session limit · resets 12:50am (America/Los_Angeles)", local_time(0, 50)),
            ("You've hit your weekly limit · resets Nov 28, 3pm (Europe/Berlin)", dated_time(11, 28, 15, 0)),
            (
                "You've hit your weekly limit · resets Jan 2, 2027, 3:05pm (Europe/Berlin)",
                dated_time(1, 2, 15, 5),
            ),
            ("Claude AI usage limit reached|1795270982", Some(ResetTime::UnixSeconds(1_795_270_982))),
            ("5-hour limit reached ∙ resets 3am", local_time(3, 0)),
            ("Session limit reached ∙ resets 5:00 PM\nUpgrade", local_time(17, 0)),
            ("Session limit reached ∙ resets 5:00\u{202f}PM", local_time(17, 0)),
            ("Your limit will reset at 11pm (America/New_York).", local_time(23, 0)),
            ("Claude usage limit reached. Your limit will reset at 1pm (Etc/GMT+5).", local_time(13, 0)),
            ("Approaching usage limit · resets at 12pm", local_time(12, 0)),
            ("resets 12am", local_time(0, 0)),
            ("resets 6am tomorrow", local_time(6, 0)),
            ("resets Jan 2 at 12:30am", dated_time(1, 2, 0, 30)),
            ("resets on February 29 at 9:00", dated_time(2, 29, 9, 0)),
            ("resets Sept 3, 4pm", dated_time(9, 3, 16, 0)),
            ("resets 15:00", local_time(15, 0)),
            ("resets 15:00 GMT.", utc_time(15, 0)),
            ("resets 3pm (Etc/UTC) · progress saved", utc_time(15, 0)),
            ("the limit resets soon: it resets 3pm", local_time(15, 0)),
            (
                "spend limit reached · resets Dec 19, 12:37pm (UTC)",
                Some(ResetTime::ClockTime { hour: 12, minute: 37, month_day: Some((12, 19)), is_utc: true }),
            ),
            (
                "API Error: 429 · spend limit reached · resets Jan 1",
                Some(ResetTime::ClockTime { hour: 0, minute: 0, month_day: Some((1, 1)), is_utc: true }),
            ),
            (
                "spend limit reached · resets Jan 1 · ask Kim",
                Some(ResetTime::ClockTime { hour: 0, minute: 0, month_day: Some((1, 1)), is_utc: true }),
            ),
            ("limit · resets 3pm (UTC) · your weekly limit resets Nov 28, 4pm (UTC)", utc_time(15, 0)),
        ] {
            assert_eq!(parse_reset_time(words), expected, "{words}");
        }
    }

    #[test]
    fn messages_without_a_reset_time_give_none() {
        for words in [
            "",
            "API Error: 429 rate limited",
            "retry later",
            "line 3 resets the counter 5pm",
            "resets",
            "resets at",
            "resets 3",
            "resets 3 times",
            "reset 5 minutes ago",
            "presets 3pm",
            "resetting 3pm",
            "reset3pm",
            "limit resets soon, at 3pm",
            "resets 25:99pm",
            "resets 13pm",
            "resets 0am",
            "resets 24:00",
            "resets 15:60",
            "resets 3:5pm",
            "resets 3:005pm",
            "resets 3pmx",
            "resets 15:00:00",
            "resets 99999999999999999999pm",
            "resets Nov 31, 3pm",
            "resets Nov 0, 3pm",
            "resets Nov 28",
            "resets Nov28, 3pm",
            "resets Nox 28, 3pm",
            "resets Nov 28, 2026",
            "spend limit reached",
            "spend limit reached · resets soon",
            "spend limit reached · resets Nov 31",
            "spend limit reached · resets Nov 28 or later",
            "Claude AI usage limit reached|",
            "Claude AI usage limit reached|17",
            "Claude AI usage limit reached|99999999999999999999",
            "a|1795270982",
            "resets é",
            "İresets 3\u{202f}",
        ] {
            assert_eq!(parse_reset_time(words), None, "{words}");
        }
    }
}
