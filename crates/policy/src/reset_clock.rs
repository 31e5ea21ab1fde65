//! When does a limit reset? The last resort, where the client gives no number: its own words. Only a time that
//! stands directly behind `reset` or `resets` counts, because the words around it may come from anywhere.

use chrono::{Month, NaiveDate};

/// The moment that the words name, as far as they name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetClock {
    /// Seconds since 1970.
    Epoch(u64),
    /// A time on the clock.
    Time {
        /// 0 to 23.
        hour: u32,
        /// 0 to 59.
        minute: u32,
        /// Month (1 to 12) and day; the client leaves them out where the time is less than a day away.
        month_day: Option<(u32, u32)>,
        /// True for UTC. Otherwise the machine's own zone: the client prints its local time, on this machine.
        utc: bool,
    },
}

/// The first reset time that the words name.
pub fn find(words: &str) -> Option<ResetClock> {
    let words = words.to_ascii_lowercase();
    epoch(&words).or_else(|| behind_each_reset(&words).find_map(clock))
}

/// `Claude AI usage limit reached|1795270982`, as clients of 2025 said it.
fn epoch(words: &str) -> Option<ResetClock> {
    let (_, behind) = words.split_once("limit reached|")?;
    let (digits, _) = digits(behind);
    // Ten digits are seconds from 2001 to 2286; anything else is no moment that we could wait for.
    if digits.len() == 10 { digits.parse().ok().map(ResetClock::Epoch) } else { None }
}

/// What is behind each `reset`, `resets`, `reset at`, `resets on`.
fn behind_each_reset(words: &str) -> impl Iterator<Item = &str> {
    let begins_a_word = move |at: usize| !words[..at].ends_with(char::is_alphanumeric);
    words.match_indices("reset").filter(move |(at, _)| begins_a_word(*at)).filter_map(|(at, reset)| {
        let behind = &words[at + reset.len()..];
        let behind = after_space(behind.strip_prefix('s').unwrap_or(behind))?;
        Some(without_word(behind, &["at", "on"]))
    })
}

/// `nov 28, 3pm (europe/berlin)`, with or without the day and the zone.
fn clock(words: &str) -> Option<ResetClock> {
    let (month_day, words) = month_and_day(words).map_or((None, words), |(day, rest)| (Some(day), rest));
    let ((hour, minute), words) = time(words)?;
    Some(ResetClock::Time { hour, minute, month_day, utc: is_utc(words) })
}

/// It has each day that any year has.
const LEAP_YEAR: i32 = 2028;

/// `nov 28, `, `jan 2 at `, `jan 2, 2027, `: the year is passed over, for the next such day is meant.
fn month_and_day(words: &str) -> Option<((u32, u32), &str)> {
    let (name, rest) = split_where(words, |letter| !letter.is_ascii_alphabetic());
    let name = if name == "sept" { "sep" } else { name };
    let month = name.parse::<Month>().ok()?.number_from_month();
    let (day, rest) = number(after_space(rest)?)?;
    let rest = without_year(separated(rest)?);
    NaiveDate::from_ymd_opt(LEAP_YEAR, month, day).map(|_| ((month, day), rest))
}

fn without_year(words: &str) -> &str {
    match digits(words) {
        (year, rest) if year.len() == 4 => separated(rest).unwrap_or(words),
        _ => words,
    }
}

/// What follows a comma, a space or `at`; none if the word continues.
fn separated(words: &str) -> Option<&str> {
    let rest = words.strip_prefix(',').unwrap_or(words);
    after_space(rest).map(|rest| without_word(rest, &["at"]))
}

/// `3pm`, `2:23 pm` or `15:00`. A number alone is none: it may count anything.
fn time(words: &str) -> Option<((u32, u32), &str)> {
    let (hour, rest) = number(words)?;
    let (minute, rest) = match rest.strip_prefix(':') {
        Some(rest) => two_digits(rest).map(|(minute, rest)| (Some(minute), rest))?,
        None => (None, rest),
    };
    let (half, rest) = half_of_the_day(rest);
    let hour = match half {
        // 12 am is midnight, 12 pm is noon.
        Some(begin) if (1..=12).contains(&hour) => begin + hour % 12,
        None if minute.is_some() && hour < 24 => hour,
        _ => return None,
    };
    let minute = minute.unwrap_or(0);
    let goes_on = rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == ':');
    (minute < 60 && !goes_on).then_some(((hour, minute), rest))
}

/// The hour with which the half of the day begins that is named.
fn half_of_the_day(words: &str) -> (Option<u32>, &str) {
    let near = words.trim_start();
    match (near.strip_prefix("am"), near.strip_prefix("pm")) {
        (Some(rest), _) => (Some(0), rest),
        (_, Some(rest)) => (Some(12), rest),
        _ => (None, words),
    }
}

/// Is `(utc)` or the like the next word? (`etc/gmt+5` is another zone.)
fn is_utc(words: &str) -> bool {
    let zone = words.trim_start().trim_start_matches('(');
    let (zone, _) = split_where(zone, |letter| !(letter.is_ascii_alphanumeric() || "/+-_".contains(letter)));
    matches!(zone, "utc" | "gmt" | "etc/utc" | "etc/gmt")
}

fn number(words: &str) -> Option<(u32, &str)> {
    let (digits, rest) = digits(words);
    if digits.len() <= 2 { Some((digits.parse().ok()?, rest)) } else { None }
}

fn two_digits(words: &str) -> Option<(u32, &str)> {
    number(words).filter(|(_, rest)| words.len() - rest.len() == 2)
}

fn digits(words: &str) -> (&str, &str) {
    split_where(words, |letter| !letter.is_ascii_digit())
}

fn split_where(words: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    words.split_at(words.find(ends).unwrap_or(words.len()))
}

/// What follows the white space; none if there is none. (The client's own may be a narrow one.)
fn after_space(words: &str) -> Option<&str> {
    let rest = words.trim_start();
    (rest.len() < words.len()).then_some(rest)
}

fn without_word<'a>(words: &'a str, passed_over: &[&str]) -> &'a str {
    passed_over.iter().find_map(|word| after_space(words.strip_prefix(word)?)).unwrap_or(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(hour: u32, minute: u32) -> Option<ResetClock> {
        Some(ResetClock::Time { hour, minute, month_day: None, utc: false })
    }

    fn utc(hour: u32, minute: u32) -> Option<ResetClock> {
        Some(ResetClock::Time { hour, minute, month_day: None, utc: true })
    }

    fn on(month: u32, day: u32, hour: u32, minute: u32) -> Option<ResetClock> {
        Some(ResetClock::Time { hour, minute, month_day: Some((month, day)), utc: false })
    }

    #[test]
    fn the_words_of_every_client_name_their_reset() {
        for (words, expected) in [
            ("You've hit your 5-hour limit · resets 2:23pm (UTC)", utc(14, 23)),
            ("You've hit your session limit · resets 12:50am (America/Los_Angeles)", time(0, 50)),
            ("You've hit your weekly limit · resets Nov 28, 3pm (Europe/Berlin)", on(11, 28, 15, 0)),
            ("You've hit your weekly limit · resets Jan 2, 2027, 3:05pm (Europe/Berlin)", on(1, 2, 15, 5)),
            ("Claude AI usage limit reached|1795270982", Some(ResetClock::Epoch(1_795_270_982))),
            ("5-hour limit reached ∙ resets 3am", time(3, 0)),
            ("Session limit reached ∙ resets 5:00 PM\nUpgrade", time(17, 0)),
            ("Session limit reached ∙ resets 5:00\u{202f}PM", time(17, 0)),
            ("Your limit will reset at 11pm (America/New_York).", time(23, 0)),
            ("Claude usage limit reached. Your limit will reset at 1pm (Etc/GMT+5).", time(13, 0)),
            ("Approaching usage limit · resets at 12pm", time(12, 0)),
            ("resets 12am", time(0, 0)),
            ("resets 6am tomorrow", time(6, 0)),
            ("resets Jan 2 at 12:30am", on(1, 2, 0, 30)),
            ("resets on February 29 at 9:00", on(2, 29, 9, 0)),
            ("resets Sept 3, 4pm", on(9, 3, 16, 0)),
            ("resets 15:00", time(15, 0)),
            ("resets 15:00 GMT.", utc(15, 0)),
            ("resets 3pm (Etc/UTC) · progress saved", utc(15, 0)),
            ("the limit resets soon: it resets 3pm", time(15, 0)),
            ("limit · resets 3pm (UTC) · your weekly limit resets Nov 28, 4pm (UTC)", utc(15, 0)),
        ] {
            assert_eq!(find(words), expected, "{words}");
        }
    }

    #[test]
    fn words_without_a_reset_time_name_none() {
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
            "Claude AI usage limit reached|",
            "Claude AI usage limit reached|17",
            "Claude AI usage limit reached|99999999999999999999",
            "a|1795270982",
            "resets é",
            "İresets 3\u{202f}",
        ] {
            assert_eq!(find(words), None, "{words}");
        }
    }
}
