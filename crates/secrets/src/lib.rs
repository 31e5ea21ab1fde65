//! RULE: pure. Text, bytes and paths in, findings out; what it finds is never printed whole.
//!
//! The one detector for everything that leaves a session: work-in-progress commits, handoffs, exports, reports, notes
//! for Linear and `--notify`. Its rules are data (`rules/`): those of Betterleaks, and ours for what they lack. One
//! pass over a text looks for the keywords of all of them; a rule's pattern is compiled and run only where one of its
//! keywords stands, so that a hook that finds nothing compiles nothing. Patterns take linear time.
//!
//! Limits: it finds what looks like a secret. One that looks like an ordinary word passes, and so does one that is split over
//! two texts; what only looks like a secret is marked, too. It does not ask any provider whether a key is valid.
//!
//! ```
//! let text = format!("export GITHUB_TOKEN=ghp_{}", "1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV2wX");
//! let found = &plimsoll_secrets::find(&text)[0];
//! assert!(text[found.range.clone()].starts_with("ghp_"));
//! assert_eq!(plimsoll_secrets::without("cargo build --release"), "cargo build --release");
//! assert!(!plimsoll_secrets::without(&text).contains("ghp_"));
//! ```

mod assignment;
mod detector;
mod keys;
mod keywords;
mod looks;
mod names;
mod rules;
mod search;
mod tokens;
mod wide;

pub use names::is_secret_name;
pub use search::Search;

use std::ops::Range;

/// A piece of a text that looks like a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What it looks like, such as `github-token`.
    pub kind: &'static str,
    /// Its bytes.
    pub range: Range<usize>,
}

/// The secrets of a text, in order; none overlaps another.
pub fn find(text: &str) -> Vec<Found> {
    // Nothing that is known is shorter.
    if text.len() < 8 { Vec::new() } else { merged(detector::find(text)) }
}

/// The value of a key, as in JSON, where key and value together look like a secret; its range is of the value.
pub fn keyed(key: &str, value: &str) -> Option<Found> {
    let all = |kind| Found { kind, range: 0..value.len() };
    if key.eq_ignore_ascii_case("authorization") {
        let credential = value.split_once(' ').map_or(value, |(_, credential)| credential);
        return looks::is_credential(credential).then(|| all("authorization"));
    }
    if let Some(kind) = assignment::keyed(key, value) {
        return Some(all(kind));
    }
    // The rules for one provider know the key by the provider's name.
    if value.len() < 8 || value.contains(char::is_whitespace) || !detector::speaks_of_something(key) {
        return None;
    }
    let joined = format!("{key}={value}");
    let in_value = find(&joined).into_iter().find(|found| found.range.start > key.len());
    in_value.map(|found| Found { kind: found.kind, range: 0..value.len() })
}

/// The text with a mark in the place of each secret.
pub fn without(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut from = 0;
    for found in find(text) {
        cleaned.push_str(&text[from..found.range.start]);
        cleaned.push_str(&mark(found.kind));
        from = found.range.end;
    }
    cleaned + &text[from..]
}

/// What is in the place of a secret.
pub fn mark(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

/// The kind of the first secret in some bytes, also where they are UTF-16; none if nothing looks like one.
pub fn kind_in(bytes: &[u8]) -> Option<&'static str> {
    let mut search = Search::default();
    search.read(bytes).or_else(|| search.end())
}

/// Pieces that overlap become one, under the name of the one that was found first.
fn merged(found: Vec<Found>) -> Vec<Found> {
    let mut ranked: Vec<(usize, Found)> = found.into_iter().enumerate().collect();
    ranked.sort_by_key(|(rank, found)| (found.range.start, *rank));
    let mut merged: Vec<(usize, Found)> = Vec::new();
    for (rank, next) in ranked {
        match merged.last_mut() {
            Some((best, last)) if next.range.start < last.range.end => {
                last.range.end = last.range.end.max(next.range.end);
                if rank < *best {
                    (*best, last.kind) = (rank, next.kind);
                }
            }
            _ => merged.push((rank, next)),
        }
    }
    merged.into_iter().map(|(_, found)| found).collect()
}

#[cfg(test)]
mod tests;
