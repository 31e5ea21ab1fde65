//! Lines that were meant as the promise and do not count. A near miss is never believed: it is reported, so that
//! the next session knows what was wrong with it.

use plimsoll_domain::promise::{BLOCKED, CLOSE, Claim, OPEN, PromiseCode, PromiseWord, claim};
use plimsoll_domain::text::{clip, one_line};

/// A line that was meant as the promise and does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearMiss {
    /// The line as it was given, shortened.
    pub given: String,
    /// True if it was meant to say that the agent cannot continue.
    pub is_blocked: bool,
}

/// Characters that decorate a line in Markdown, or end a sentence.
const DECORATION: &str = "*_`>#~-.!:;,\"'";
/// How much of the given line is quoted.
const QUOTED: usize = 100;
/// A promise that is spread over more lines than this is not recognized.
const SPREAD: usize = 3;

/// Finds the last line of a message that was meant as the promise. None if the message makes a valid promise, or
/// none at all: one that only talks about it, or quotes it and ends with something else.
pub fn find_near_miss(message: &str, word: &PromiseWord, code: &PromiseCode) -> Option<NearMiss> {
    if code.is_empty() || claim(message, word, code) != Claim::None {
        return None;
    }
    let lines = lines_of(message);
    let last = lines.len().checked_sub(1)?;
    let found = |place: usize| attempt(&lines[place], place == last, word, code);
    (0..lines.len()).rev().find_map(found)
}

/// A line with what is known of its surroundings; fence marks and empty lines are left out.
#[derive(Debug)]
struct Line {
    text: String,
    is_fenced: bool,
}

fn lines_of(message: &str) -> Vec<Line> {
    let mut is_fenced = false;
    let mut lines: Vec<Line> = Vec::new();
    for text in message.lines().map(str::trim_end).filter(|text| !text.is_empty()) {
        if ["```", "~~~"].iter().any(|mark| text.trim_start().starts_with(mark)) {
            is_fenced = !is_fenced;
        } else {
            lines.push(Line { text: text.to_owned(), is_fenced });
        }
    }
    join_spread(lines)
}

/// Joins `<promise>`, its words and `</promise>` if they are on lines of their own.
fn join_spread(lines: Vec<Line>) -> Vec<Line> {
    let mut joined: Vec<Line> = Vec::new();
    for line in lines {
        let closes = has(&line.text, CLOSE) && !has(&line.text, OPEN);
        let from = joined.len().saturating_sub(SPREAD);
        let opening =
            joined[from..].iter().position(|above| has(&above.text, OPEN) && !has(&above.text, CLOSE));
        match opening {
            Some(place) if closes => {
                let parts: Vec<String> = joined.drain(from + place..).map(|above| above.text).collect();
                let text = format!("{} {}", parts.join(" "), line.text);
                joined.push(Line { text, ..line });
            }
            _ => joined.push(line),
        }
    }
    joined
}

fn has(text: &str, tag: &str) -> bool {
    text.to_ascii_lowercase().contains(tag)
}

/// What is on a line: before the promise, in it, behind it.
#[derive(Debug)]
struct Parts<'a> {
    before: &'a str,
    inner: &'a str,
    after: &'a str,
}

fn attempt(line: &Line, is_last: bool, word: &str, code: &str) -> Option<NearMiss> {
    let parts = tagged(&line.text).or_else(|| untagged(&line.text, is_last, word, code))?;
    let is_alone = |text: &str| bare(text).is_empty();
    let is_quoted = line.is_fenced || parts.before.contains(['>', '`', '"', '\'']);
    let is_meant = if is_last {
        // Words on both sides make it a sentence about the promise.
        is_alone(parts.before) || is_alone(parts.after)
    } else {
        is_alone(parts.before) && is_alone(parts.after) && !is_quoted
    };
    if !is_meant {
        return None;
    }
    let is_blocked =
        parts.inner.split_whitespace().next().is_some_and(|first| first.eq_ignore_ascii_case(BLOCKED));
    Some(NearMiss { given: clip(&one_line(&line.text), QUOTED), is_blocked })
}

fn tagged(text: &str) -> Option<Parts<'_>> {
    let lower = text.to_ascii_lowercase();
    let begin = lower.rfind(OPEN)?;
    let (before, rest) = (&text[..begin], &text[begin + OPEN.len()..]);
    match lower[begin + OPEN.len()..].find(CLOSE) {
        Some(end) => Some(Parts { before, inner: &rest[..end], after: &rest[end + CLOSE.len()..] }),
        // In a sentence it is only the tag that is named.
        None if bare(before).is_empty() && !bare(rest).is_empty() && !before.contains('`') => {
            Some(Parts { before, inner: rest, after: "" })
        }
        None => None,
    }
}

/// The words without their tags: with the code anywhere, alone only at the very end.
fn untagged<'a>(text: &'a str, is_last: bool, word: &str, code: &str) -> Option<Parts<'a>> {
    let inner = bare(text);
    let words: Vec<&str> = inner.split_whitespace().collect();
    let has_code = match words.as_slice() {
        [first, second] => first.eq_ignore_ascii_case(word) && *second == code,
        [first, second, ..] => *first == BLOCKED && *second == code,
        _ => false,
    };
    let begin = text.find(inner)?;
    (has_code || is_last && inner == word).then(|| Parts {
        before: &text[..begin],
        inner,
        after: &text[begin + inner.len()..],
    })
}

fn bare(text: &str) -> &str {
    text.trim_matches(|letter: char| letter.is_whitespace() || DECORATION.contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word() -> PromiseWord {
        "COMPLETE".parse().unwrap()
    }

    fn code() -> PromiseCode {
        "7f3a".parse().unwrap()
    }

    #[test]
    fn a_near_miss_is_found_and_not_believed() {
        const EXACT: &str = "<promise>COMPLETE 7f3a</promise>";
        for message in [
            "**<promise>COMPLETE 7f3a</promise>**",
            "_<promise>COMPLETE 7f3a</promise>_\n",
            "Done.\n\n`<promise>COMPLETE 7f3a</promise>`",
            "```\n<promise>COMPLETE 7f3a</promise>\n```",
            "```text\n<promise>COMPLETE 7f3a</promise>\n```\n\n",
            "> <promise>COMPLETE 7f3a</promise>",
            "    <promise>COMPLETE 7f3a</promise>",
            "- <promise>COMPLETE 7f3a</promise>",
            "<promise>COMPLETE 7f3a</promise>.",
            "The line is <promise>COMPLETE 7f3a</promise>",
            "<promise>COMPLETE 7f3a</promise> All done!",
            &format!("{EXACT}\n\nBut first one more thing."),
            &format!("**{EXACT}**\nBye."),
            "<promise>\nCOMPLETE 7f3a\n</promise>",
            "<promise>COMPLETE 7f3a",
            "**COMPLETE 7f3a**",
            "All done.\n\nCOMPLETE",
            "<promise>COMPLETE</promise>",
            "<promise>DONE</promise>",
            "<promise>complete 7f3a</promise>",
            "<Promise>COMPLETE 7f3a</Promise>",
            "<promise> COMPLETE 7f3a </promise>",
            "<promise>COMPLETE 00</promise>",
            "<promise>COMPLETE 7f3a now</promise>",
            "<promise>7f3a</promise>",
            "<promise></promise>",
        ] {
            assert!(find_near_miss(message, &word(), &code()).is_some(), "{message:?}");
            assert_eq!(claim(message, &word(), &code()), Claim::None, "{message:?} is not believed");
        }
    }

    #[test]
    fn what_talks_about_the_promise_or_is_one_is_no_near_miss() {
        for message in [
            "",
            "All done.",
            "<promise>COMPLETE 7f3a</promise>",
            "Done.\n\n<promise>COMPLETE 7f3a</promise>  \n\n",
            "<promise>BLOCKED 7f3a no key</promise>",
            "I promise to complete the rest tomorrow.",
            "The work is complete.",
            "The item is COMPLETE, two are left.",
            "**Status: COMPLETE**",
            "COMPLETE\n\nItem two is next.",
            "I leave out the `<promise>` tag, because items are open.",
            "I do not write <promise>COMPLETE 7f3a</promise> yet, for two items are open.",
            "The prompt asks for this line:\n\n> <promise>COMPLETE 7f3a</promise>\n\nTwo items are open, so I stop here.",
            "At the end:\n```\n<promise>COMPLETE 7f3a</promise>\n```\nItem two is open.",
            "Later `<promise>COMPLETE 7f3a</promise>` is due.\nItem two is open.",
            "`<promise>COMPLETE 7f3a</promise>`\nis what the last session will write. Item two is open.",
        ] {
            assert_eq!(find_near_miss(message, &word(), &code()), None, "{message:?}");
        }
        assert_eq!(
            find_near_miss("<promise>COMPLETE</promise>", &word(), &PromiseCode::default()),
            None,
            "a run without a code"
        );
    }

    #[test]
    fn the_line_for_a_blocked_session_can_be_missed_too() {
        for message in [
            "**<promise>BLOCKED 7f3a no key</promise>**",
            "<promise>blocked no key</promise>",
            "BLOCKED 7f3a no key",
        ] {
            let miss = find_near_miss(message, &word(), &code()).expect(message);
            assert!(miss.is_blocked, "{message}");
        }
        let miss = find_near_miss("<promise>COMPLETE</promise>", &word(), &code()).expect("one");
        assert!(!miss.is_blocked);
    }

    #[test]
    fn what_was_given_is_quoted_on_one_short_line() {
        let message = format!("<promise>COMPLETE {}</promise>", "x".repeat(500));
        let miss = find_near_miss(&message, &word(), &code()).expect("one");
        assert_eq!(miss.given.chars().count(), QUOTED);
    }
}
