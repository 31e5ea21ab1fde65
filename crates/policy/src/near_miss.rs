//! Finds lines that look like a failed attempt at the promise. A near miss is never accepted: it is reported, so that the
//! next session knows what was wrong with it.

use plimsoll_domain::promise::{
    BLOCKED_WORD, CLOSE_TAG, OPEN_TAG, PromiseClaim, PromiseCode, PromiseWord, parse_claim_on_last_line,
};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};

/// A failed attempt at the promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearMiss {
    /// The line, shortened.
    pub quoted_line: String,
    /// True if the line claims that the agent is blocked.
    pub claims_blocked: bool,
}

/// Characters that format a line in Markdown, or end a sentence.
const MARKUP_CHARS: &str = "*_`>#~-.!:;,\"'";
/// Maximum length of the quoted line.
const MAX_QUOTED_CHARS: usize = 100;
/// Maximum number of lines above a closing tag that are searched for its opening tag.
const MAX_PROMISE_LINES: usize = 3;

/// Returns the last line of a message that is a failed attempt at the promise. Returns `None` if the message makes a
/// valid promise, or only mentions or quotes the promise and ends with something else.
pub fn find_near_miss(
    message: &str,
    promise_word: &PromiseWord,
    promise_code: &PromiseCode,
) -> Option<NearMiss> {
    if promise_code.is_empty()
        || parse_claim_on_last_line(message, promise_word, promise_code) != PromiseClaim::None
    {
        return None;
    }
    let lines = parse_lines_and_join_promises(message);
    let last_index = lines.len().checked_sub(1)?;
    let near_miss_at = |index: usize| {
        near_miss_in_line_unless_mentioned(&lines[index], index == last_index, promise_word, promise_code)
    };
    (0..lines.len()).rev().find_map(near_miss_at)
}

/// A line, and whether it is in a code block. Code fences and empty lines are omitted.
#[derive(Debug)]
struct MessageLine {
    text: String,
    is_fenced: bool,
}

fn parse_lines_and_join_promises(message: &str) -> Vec<MessageLine> {
    let mut is_fenced = false;
    let mut lines: Vec<MessageLine> = Vec::new();
    for text in message.lines().map(str::trim_end).filter(|text| !text.is_empty()) {
        if ["```", "~~~"].iter().any(|fence| text.trim_start().starts_with(fence)) {
            is_fenced = !is_fenced;
        } else {
            lines.push(MessageLine { text: text.to_owned(), is_fenced });
        }
    }
    join_multiline_promises(lines)
}

/// Joins `<promise>`, its content and `</promise>` if they are on separate lines.
fn join_multiline_promises(lines: Vec<MessageLine>) -> Vec<MessageLine> {
    let mut joined: Vec<MessageLine> = Vec::new();
    for line in lines {
        let is_closing_line = contains_tag(&line.text, CLOSE_TAG) && !contains_tag(&line.text, OPEN_TAG);
        let search_start = joined.len().saturating_sub(MAX_PROMISE_LINES);
        let opening_offset = joined[search_start..].iter().position(|earlier_line| {
            contains_tag(&earlier_line.text, OPEN_TAG) && !contains_tag(&earlier_line.text, CLOSE_TAG)
        });
        match opening_offset {
            Some(offset) if is_closing_line => {
                let parts: Vec<String> =
                    joined.drain(search_start + offset..).map(|earlier_line| earlier_line.text).collect();
                let text = format!("{} {}", parts.join(" "), line.text);
                joined.push(MessageLine { text, ..line });
            }
            _ => joined.push(line),
        }
    }
    joined
}

fn contains_tag(text: &str, tag: &str) -> bool {
    text.to_ascii_lowercase().contains(tag)
}

/// A line, split into the text before the promise, the promise, and the text after it.
#[derive(Debug)]
struct PromiseParts<'a> {
    before: &'a str,
    promise: &'a str,
    after: &'a str,
}

fn near_miss_in_line_unless_mentioned(
    line: &MessageLine,
    is_last_line: bool,
    promise_word: &str,
    promise_code: &str,
) -> Option<NearMiss> {
    let parts = split_at_last_promise_even_if_unclosed(&line.text)
        .or_else(|| split_at_untagged_promise(&line.text, is_last_line, promise_word, promise_code))?;
    let is_only_markup = |text: &str| trim_markup(text).is_empty();
    let is_quoted = line.is_fenced || parts.before.contains(['>', '`', '"', '\'']);
    let is_attempt = if is_last_line {
        // Text on both sides makes it a sentence about the promise.
        is_only_markup(parts.before) || is_only_markup(parts.after)
    } else {
        is_only_markup(parts.before) && is_only_markup(parts.after) && !is_quoted
    };
    if !is_attempt {
        return None;
    }
    let is_blocked_claim = parts
        .promise
        .split_whitespace()
        .next()
        .is_some_and(|first_word| first_word.eq_ignore_ascii_case(BLOCKED_WORD));
    Some(NearMiss {
        quoted_line: truncate_end(&to_safe_single_line(&line.text), MAX_QUOTED_CHARS),
        claims_blocked: is_blocked_claim,
    })
}

fn split_at_last_promise_even_if_unclosed(text: &str) -> Option<PromiseParts<'_>> {
    let lower = text.to_ascii_lowercase();
    let start = lower.rfind(OPEN_TAG)?;
    let (before, after_open_tag) = (&text[..start], &text[start + OPEN_TAG.len()..]);
    match lower[start + OPEN_TAG.len()..].find(CLOSE_TAG) {
        Some(end) => Some(PromiseParts {
            before,
            promise: &after_open_tag[..end],
            after: &after_open_tag[end + CLOSE_TAG.len()..],
        }),
        // An opening tag without its closing tag inside a sentence is only a mention.
        None if trim_markup(before).is_empty()
            && !trim_markup(after_open_tag).is_empty()
            && !before.contains('`') =>
        {
            Some(PromiseParts { before, promise: after_open_tag, after: "" })
        }
        None => None,
    }
}

/// Splits a line that contains a promise without tags: the promise word or BLOCKED with the code, or the bare promise
/// word on the last line.
fn split_at_untagged_promise<'a>(
    text: &'a str,
    is_last_line: bool,
    promise_word: &str,
    promise_code: &str,
) -> Option<PromiseParts<'a>> {
    let promise = trim_markup(text);
    let words: Vec<&str> = promise.split_whitespace().collect();
    let has_required_words = match words.as_slice() {
        [first, second] => first.eq_ignore_ascii_case(promise_word) && *second == promise_code,
        [first, second, ..] => *first == BLOCKED_WORD && *second == promise_code,
        _ => false,
    };
    let start = text.find(promise)?;
    (has_required_words || is_last_line && promise == promise_word).then(|| PromiseParts {
        before: &text[..start],
        promise,
        after: &text[start + promise.len()..],
    })
}

fn trim_markup(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_whitespace() || MARKUP_CHARS.contains(character))
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
    fn near_misses_are_found_and_never_accepted() {
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
            assert_eq!(
                parse_claim_on_last_line(message, &word(), &code()),
                PromiseClaim::None,
                "{message:?} is not believed"
            );
        }
    }

    #[test]
    fn a_valid_promise_or_a_mention_of_it_is_no_near_miss() {
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
    fn a_blocked_line_can_be_a_near_miss_too() {
        for message in [
            "**<promise>BLOCKED 7f3a no key</promise>**",
            "<promise>blocked no key</promise>",
            "BLOCKED 7f3a no key",
        ] {
            let near_miss = find_near_miss(message, &word(), &code()).expect(message);
            assert!(near_miss.claims_blocked, "{message}");
        }
        let near_miss = find_near_miss("<promise>COMPLETE</promise>", &word(), &code()).expect("one");
        assert!(!near_miss.claims_blocked);
    }

    #[test]
    fn the_given_line_is_quoted_on_one_short_line() {
        let message = format!("<promise>COMPLETE {}</promise>", "x".repeat(500));
        let near_miss = find_near_miss(&message, &word(), &code()).expect("one");
        assert_eq!(near_miss.quoted_line.chars().count(), MAX_QUOTED_CHARS);
    }
}
