//! Anybody's words: cut, cleaned for the terminal and for the model, looked through for times, errors and secrets.

use super::Target;
use crate::foreign::{may_be_sent, nothing_hides};
use crate::seeds::{files, texts};
use plimsoll_domain::claims::{Source, block, fence};
use plimsoll_domain::memory::fit;
use plimsoll_domain::memory::render::{indented, safe};
use plimsoll_domain::text::{SafeText, clip, clip_middle, clip_start, json_value, one_line};
use plimsoll_policy::error_fingerprint::{fingerprint, skeleton};
use plimsoll_policy::reset_clock::{ResetClock, find};
use plimsoll_protocol::foreign_words::{for_model, is_hidden};

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
    let shown = one_line(text);
    nothing_hides(&shown);
    assert_eq!(one_line(&shown), shown);
    nothing_hides(SafeText::page(text).as_str());
    nothing_hides(SafeText::line(text).as_str());
    told(text);
    cut(text, bytes.len());
    json(text);
    assert_eq!(safe(&safe(text)), safe(text));
    assert!(!safe(text).to_lowercase().contains("<plimsoll") && !safe(text).contains("</system"));
    assert!(indented(text).split('\n').skip(1).all(|line| line.starts_with(' ')));
    let print = fingerprint(text);
    assert!(print.len() == 16 && print.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(text.lines().all(|line| skeleton(line).chars().count() <= 200));
    if let Some(ResetClock::Time { hour, minute, month_day, .. }) = find(text) {
        assert!(hour < 24 && minute < 60);
        assert!(month_day.is_none_or(|(month, day)| (1..=12).contains(&month) && (1..=31).contains(&day)));
    }
    let mut end = 0;
    for found in plimsoll_secrets::find(text) {
        assert!(
            found.range.start >= end && text.get(found.range.clone()).is_some_and(|token| !token.is_empty())
        );
        end = found.range.end;
    }
    assert!(
        end == 0 || plimsoll_secrets::kind_in(text.as_bytes()).is_some(),
        "what stands in a text stands in its bytes"
    );
}

/// What the model is told, and in a block of claims: every line is quoted, and the fence stands at its two ends alone.
fn told(text: &str) {
    let told = for_model(text);
    may_be_sent(&told);
    assert_eq!(for_model(&told), told);
    let mark = fence("7f3a", text);
    assert!(!text.contains(&mark));
    let block = block(Source::Sessions, &mark, text);
    let lines: Vec<&str> = block.lines().collect();
    let quoted = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default();
    assert!(quoted.iter().all(|line| line.starts_with('>')), "{block}");
    assert!(block.is_empty() || block.matches(&mark).count() == 2, "{block}");
}

fn cut(text: &str, choice: usize) {
    for limit in [1, 2, 3, 10, choice % 300 + 3] {
        let count = |cut: &str| cut.chars().count();
        assert!(count(&clip(text, limit)) <= limit && count(&clip_start(text, limit)) <= limit);
        assert!(limit < 3 || count(&clip_middle(text, limit)) <= limit);
        let fitted = fit(text, limit);
        assert!(text.starts_with(fitted) && count(fitted) <= limit);
    }
}

/// JSON is read as serde reads it, and where that refuses halves of letters, only these are replaced.
fn json(text: &str) {
    let mended = json_value(text);
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(text) {
        assert_eq!(value, mended);
    }
    let shown = mended.to_string();
    assert_eq!(json_value(&shown), mended);
    let safe = SafeText::json(&shown);
    assert!(!safe.as_str().contains(is_hidden), "{safe:?}");
    assert_eq!(json_value(safe.as_str()), mended);
}
