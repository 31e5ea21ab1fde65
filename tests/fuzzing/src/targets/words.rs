//! Foreign text: clipped, cleaned for the terminal and for the model, and searched for times, errors and secrets.

use super::Target;
use crate::foreign::{assert_no_hidden_characters, assert_safe_for_model};
use crate::seeds::{read_files, text_seeds};
use plimsoll_domain::memory::render::{indent_continuation_lines, neutralize_tags_and_hidden_chars};
use plimsoll_domain::memory::truncate_at_grapheme;
use plimsoll_domain::text::{
    SafeText, parse_json_or_null, to_safe_single_line, truncate_end, truncate_middle, truncate_start,
};
use plimsoll_domain::untrusted_text::{TextOrigin, render_quoted_block_or_empty_if_blank, unique_fence};
use plimsoll_policy::error_fingerprint::{fingerprint_error, normalize_line};
use plimsoll_policy::reset_clock::{ResetTime, parse_reset_time};
use plimsoll_protocol::untrusted_text::{is_hidden_or_control_character, sanitize_for_model};

pub(super) const TARGET: Target = Target { name: "words", check_input, seeds, mutated_input_count: 5_000 };

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = text_seeds(&[
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
    seeds.extend(read_files("fixtures/secrets", ".txt"));
    seeds
}

/// Twenty functions read each text several times, and none of them has a limit above 303 characters.
const MAX_INPUT_BYTES: usize = 1024;

fn check_input(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(MAX_INPUT_BYTES)];
    let text = String::from_utf8_lossy(bytes);
    let text = text.as_ref();
    let cleaned = to_safe_single_line(text);
    assert_no_hidden_characters(&cleaned);
    assert_eq!(to_safe_single_line(&cleaned), cleaned);
    assert_no_hidden_characters(SafeText::from_multiline_text(text).as_str());
    assert_no_hidden_characters(SafeText::from_single_line(text).as_str());
    check_model_text(text);
    check_clipping(text, bytes.len());
    check_json(text);
    assert_eq!(
        neutralize_tags_and_hidden_chars(&neutralize_tags_and_hidden_chars(text)),
        neutralize_tags_and_hidden_chars(text)
    );
    assert!(
        !neutralize_tags_and_hidden_chars(text).to_lowercase().contains("<plimsoll")
            && !neutralize_tags_and_hidden_chars(text).contains("</system")
    );
    assert!(indent_continuation_lines(text).split('\n').skip(1).all(|line| line.starts_with(' ')));
    let hash = fingerprint_error(text);
    assert!(hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(text.lines().all(|line| normalize_line(line).chars().count() <= 200));
    if let Some(ResetTime::ClockTime { hour, minute, month_day, .. }) = parse_reset_time(text) {
        assert!(hour < 24 && minute < 60);
        assert!(month_day.is_none_or(|(month, day)| (1..=12).contains(&month) && (1..=31).contains(&day)));
    }
    let mut end = 0;
    for secret in plimsoll_secrets::find_secrets(text) {
        assert!(
            secret.range.start >= end
                && text.get(secret.range.clone()).is_some_and(|token| !token.is_empty())
        );
        end = secret.range.end;
    }
    assert!(
        end == 0 || plimsoll_secrets::first_secret_kind(text.as_bytes()).is_some(),
        "what stands in a text stands in its bytes"
    );
}

/// Asserts that text for the model is safe, and that in a block of claims every line is quoted and the fence occurs only
/// at both ends.
fn check_model_text(text: &str) {
    let model_text = sanitize_for_model(text);
    assert_safe_for_model(&model_text);
    assert_eq!(sanitize_for_model(&model_text), model_text);
    let fence_text = unique_fence("7f3a", text);
    assert!(!text.contains(&fence_text));
    let block = render_quoted_block_or_empty_if_blank(TextOrigin::EarlierSessions, &fence_text, text);
    let lines: Vec<&str> = block.lines().collect();
    let quoted = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default();
    assert!(quoted.iter().all(|line| line.starts_with('>')), "{block}");
    assert!(block.is_empty() || block.matches(&fence_text).count() == 2, "{block}");
}

fn check_clipping(text: &str, length: usize) {
    for limit in [1, 2, 3, 10, length % 300 + 3] {
        let char_count = |clipped: &str| clipped.chars().count();
        assert!(
            char_count(&truncate_end(text, limit)) <= limit
                && char_count(&truncate_start(text, limit)) <= limit
        );
        assert!(limit < 3 || char_count(&truncate_middle(text, limit)) <= limit);
        let fitted = truncate_at_grapheme(text, limit);
        assert!(text.starts_with(fitted) && char_count(fitted) <= limit);
    }
}

/// Asserts that JSON is parsed as serde does it, and that where serde refuses unpaired surrogates, only these are replaced.
fn check_json(text: &str) {
    let parsed = parse_json_or_null(text);
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(text) {
        assert_eq!(value, parsed);
    }
    let encoded = parsed.to_string();
    assert_eq!(parse_json_or_null(&encoded), parsed);
    let safe_text = SafeText::from_json(&encoded);
    assert!(!safe_text.as_str().contains(is_hidden_or_control_character), "{safe_text:?}");
    assert_eq!(parse_json_or_null(safe_text.as_str()), parsed);
}
