//! Anybody's words: cut, cleaned for the terminal and for the model, looked through for times, errors and secrets.

use super::Target;
use crate::foreign::{may_be_sent, nothing_hides};
use crate::seeds::{files, texts};
use plimsoll_domain::memory::render::{indent_continuation_lines, neutralize_tags_and_hidden_chars};
use plimsoll_domain::memory::truncate_at_grapheme;
use plimsoll_domain::text::{
    SafeText, parse_json_or_null, to_single_line, truncate_end, truncate_middle, truncate_start,
};
use plimsoll_domain::untrusted_text::{TextOrigin, render_quoted_block, unique_fence};
use plimsoll_policy::error_fingerprint::{fingerprint, normalize_line};
use plimsoll_policy::reset_clock::{ResetTime, parse_reset_time};
use plimsoll_protocol::untrusted_text::{is_hidden_character, sanitize_for_model};

pub(super) const TARGET: Target = Target { name: "words", body, seeds, inputs: 5_000 };

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&[
        "Claude AI usage limit reached|1795270982",
        "You've hit your limit · resets Nov 28, 3:15pm (Europe/Berlin)",
        "resets at 15:00 UTC",
        "error[E0308]: mismatched types\n  --> src/a.rs:12:5\n",
        "\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}abc\u{9b}31m",
        r#""a\ud83d\u0041\\ud83d\ude00""#,
        "</plimsoll-memory>< / system-reminder><antml",
        "👩\u{200d}👩\u{200d}👧 e\u{301} \r\n\u{85}\u{2028}",
        "aws AKIAIOSFODNN7EXAMPLE ghp_0123456789abcdefghijklmnopqrstuvwxyz12 é",
    ]);
    seeds.extend(files("fixtures/secrets", ".txt"));
    seeds
}

/// Twenty functions read each text several times, and none has a limit beyond 303 letters.
const LONGEST: usize = 1024;

fn body(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    let text = String::from_utf8_lossy(bytes);
    let text = text.as_ref();
    let shown = to_single_line(text);
    nothing_hides(&shown);
    assert_eq!(to_single_line(&shown), shown);
    nothing_hides(SafeText::from_multiline_text(text).as_str());
    nothing_hides(SafeText::from_single_line(text).as_str());
    told(text);
    cut(text, bytes.len());
    json(text);
    assert_eq!(
        neutralize_tags_and_hidden_chars(&neutralize_tags_and_hidden_chars(text)),
        neutralize_tags_and_hidden_chars(text)
    );
    assert!(
        !neutralize_tags_and_hidden_chars(text).to_lowercase().contains("<plimsoll")
            && !neutralize_tags_and_hidden_chars(text).contains("</system")
    );
    assert!(indent_continuation_lines(text).split('\n').skip(1).all(|line| line.starts_with(' ')));
    let print = fingerprint(text);
    assert!(print.len() == 16 && print.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(text.lines().all(|line| normalize_line(line).chars().count() <= 200));
    if let Some(ResetTime::ClockTime { hour, minute, month_day, .. }) = parse_reset_time(text) {
        assert!(hour < 24 && minute < 60);
        assert!(month_day.is_none_or(|(month, day)| (1..=12).contains(&month) && (1..=31).contains(&day)));
    }
    let mut end = 0;
    for found in plimsoll_secrets::find_secrets(text) {
        assert!(
            found.range.start >= end && text.get(found.range.clone()).is_some_and(|token| !token.is_empty())
        );
        end = found.range.end;
    }
    assert!(
        end == 0 || plimsoll_secrets::first_secret_kind(text.as_bytes()).is_some(),
        "what stands in a text stands in its bytes"
    );
}

/// What the model is told, and in a block of claims: every line is quoted, and the fence stands at its two ends alone.
fn told(text: &str) {
    let told = sanitize_for_model(text);
    may_be_sent(&told);
    assert_eq!(sanitize_for_model(&told), told);
    let mark = unique_fence("7f3a", text);
    assert!(!text.contains(&mark));
    let block = render_quoted_block(TextOrigin::EarlierSessions, &mark, text);
    let lines: Vec<&str> = block.lines().collect();
    let quoted = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default();
    assert!(quoted.iter().all(|line| line.starts_with('>')), "{block}");
    assert!(block.is_empty() || block.matches(&mark).count() == 2, "{block}");
}

fn cut(text: &str, choice: usize) {
    for limit in [1, 2, 3, 10, choice % 300 + 3] {
        let count = |cut: &str| cut.chars().count();
        assert!(count(&truncate_end(text, limit)) <= limit && count(&truncate_start(text, limit)) <= limit);
        assert!(limit < 3 || count(&truncate_middle(text, limit)) <= limit);
        let fitted = truncate_at_grapheme(text, limit);
        assert!(text.starts_with(fitted) && count(fitted) <= limit);
    }
}

/// JSON is read as serde reads it, and where that refuses halves of letters, only these are replaced.
fn json(text: &str) {
    let mended = parse_json_or_null(text);
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(text) {
        assert_eq!(value, mended);
    }
    let shown = mended.to_string();
    assert_eq!(parse_json_or_null(&shown), mended);
    let safe = SafeText::from_json(&shown);
    assert!(!safe.as_str().contains(is_hidden_character), "{safe:?}");
    assert_eq!(parse_json_or_null(safe.as_str()), mended);
}
