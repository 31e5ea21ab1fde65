//! RULE: pure. Text, bytes and paths in, matches out; a secret that was found is never printed in full.
//!
//! The only secret detector, used for everything that leaves a session: work-in-progress commits, handoffs,
//! exports, reports, notes for Linear and `--notify`. Its rules are data (`rules/`): those of Betterleaks,
//! and ours for what they lack. One pass over a text searches for the keywords of all rules; a rule's pattern
//! is compiled and run only where one of its keywords occurs, so a hook that finds nothing compiles nothing.
//! Matching takes linear time.
//!
//! Limits: the detector finds what looks like a secret. It misses a secret that looks like an ordinary word, or that
//! is split over two texts, and it reports other values that look like a secret. It never asks a provider whether a
//! key is valid.
//!
//! ```
//! let text = format!("export GITHUB_TOKEN=ghp_{}", "1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV2wX");
//! let secret_match = &plimsoll_secrets::find_secrets(&text)[0];
//! assert!(text[secret_match.range.clone()].starts_with("ghp_"));
//! assert_eq!(plimsoll_secrets::redact("cargo build --release"), "cargo build --release");
//! assert!(!plimsoll_secrets::redact(&text).contains("ghp_"));
//! ```

mod assignment;
mod detector;
mod file_names;
mod keywords;
mod private_keys;
mod rules;
mod search;
mod tokens;
mod utf16;
mod value_checks;

pub use file_names::is_secret_file_name;
pub use search::SecretSearch;

use std::ops::Range;

/// A part of a text that looks like a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretMatch {
    /// The kind of secret, such as `github-token`.
    pub kind: &'static str,
    /// Its byte range in the text.
    pub range: Range<usize>,
}

/// Returns the secrets in a text, in order and without overlaps.
pub fn find_secrets(text: &str) -> Vec<SecretMatch> {
    // No rule matches a shorter secret.
    if text.len() < 8 { Vec::new() } else { merge_overlapping(detector::find_all_matches(text)) }
}

/// Returns a match if the value of this JSON key looks like a secret. The range of the match is the whole value.
pub fn match_whole_value_if_key_value_is_secret(key: &str, value: &str) -> Option<SecretMatch> {
    let match_whole_value = |kind| SecretMatch { kind, range: 0..value.len() };
    if key.eq_ignore_ascii_case("authorization") {
        let credential = value.split_once(' ').map_or(value, |(_, credential)| credential);
        return value_checks::looks_like_authorization_credential(credential)
            .then(|| match_whole_value("authorization"));
    }
    if let Some(kind) = assignment::secret_kind_of_key_value(key, value) {
        return Some(match_whole_value(kind));
    }
    // Rules for a single provider recognize the key by the provider's name.
    if value.len() < 8 || value.contains(char::is_whitespace) || !detector::contains_keyword(key) {
        return None;
    }
    let assignment = format!("{key}={value}");
    let match_in_value = find_secrets(&assignment).into_iter().find(|secret| secret.range.start > key.len());
    match_in_value.map(|secret| SecretMatch { kind: secret.kind, range: 0..value.len() })
}

/// Returns the text with a marker in place of each secret.
pub fn redact(text: &str) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut copied_end = 0;
    for secret in find_secrets(text) {
        redacted.push_str(&text[copied_end..secret.range.start]);
        redacted.push_str(&redaction_marker(secret.kind));
        copied_end = secret.range.end;
    }
    redacted + &text[copied_end..]
}

/// Returns the marker that replaces a secret of this kind.
pub fn redaction_marker(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

/// Returns the kind of the first secret in some bytes, which may also be UTF-16, or `None` if nothing looks
/// like a secret.
pub fn first_secret_kind(bytes: &[u8]) -> Option<&'static str> {
    let mut search = SecretSearch::default();
    search.push_and_search_full_windows(bytes).or_else(|| search.search_remaining_bytes())
}

/// Merges overlapping matches and sorts them by position. A merged match has the kind of the one that comes first in
/// `matches`.
fn merge_overlapping(matches: Vec<SecretMatch>) -> Vec<SecretMatch> {
    let mut ranked_matches: Vec<(usize, SecretMatch)> = matches.into_iter().enumerate().collect();
    ranked_matches.sort_by_key(|(rank, secret_match)| (secret_match.range.start, *rank));
    let mut merged: Vec<(usize, SecretMatch)> = Vec::new();
    for (rank, next_match) in ranked_matches {
        match merged.last_mut() {
            Some((best_rank, last_match)) if next_match.range.start < last_match.range.end => {
                last_match.range.end = last_match.range.end.max(next_match.range.end);
                if rank < *best_rank {
                    (*best_rank, last_match.kind) = (rank, next_match.kind);
                }
            }
            _ => merged.push((rank, next_match)),
        }
    }
    merged.into_iter().map(|(_, secret)| secret).collect()
}

#[cfg(test)]
mod tests;
