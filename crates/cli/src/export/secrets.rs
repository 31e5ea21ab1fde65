//! Which pieces of a text look like secrets. The well-known tokens are those that are never committed by us
//! (`launcher::secrets`); here come those that are known by what stands around them.

mod assignment;
mod pem;

use launcher::secrets::{Found, tokens_in, without};
use regex::Regex;
use std::ops::Range;

/// Everything that finds secrets, made once.
pub(crate) struct Secrets {
    jwt: Regex,
    header: Regex,
    bearer: Regex,
    url: Regex,
    webhook: Regex,
    curl: Regex,
    test_key: Regex,
    assignment: assignment::Assignments,
    pem: pem::Keys,
}

impl Secrets {
    /// None of the patterns can fail; if one did, nothing would be exported.
    pub(crate) fn new() -> Result<Secrets, regex::Error> {
        Ok(Secrets {
            jwt: Regex::new(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{10,}")?,
            header: Regex::new(
                r#"(?i)\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:bearer|basic|token|apikey)\s+([A-Za-z0-9._~+/=:-]{6,})"#,
            )?,
            bearer: Regex::new(r"(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{16,})")?,
            url: Regex::new(r#"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>\\]*:([^\s/?#"'<>\\]+)@"#)?,
            webhook: Regex::new(
                r"\bhooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9]+/[A-Za-z0-9/]{8,})",
            )?,
            curl: Regex::new(r#"\bcurl\s(?:[^\n|;]*\s)?(?:-u|--user)[ =]?["']?[^\s:"'/]+:([^\s"']{4,})"#)?,
            test_key: Regex::new(
                r"\b(?:[sr]k_test_[A-Za-z0-9]{16,}|ya29\.[A-Za-z0-9_-]{20,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})",
            )?,
            assignment: assignment::Assignments::new()?,
            pem: pem::Keys::new()?,
        })
    }

    /// The secrets of a text, in order; none lies over another.
    pub(crate) fn find(&self, text: &str) -> Vec<Found> {
        // Nothing that is known is shorter.
        if text.len() < 8 {
            return Vec::new();
        }
        // The surer kinds come first: where two lie over each other, the first names it.
        let mut found: Vec<Found> = tokens_in(text).collect();
        found.extend(self.pem.find(text));
        found.extend(whole(&self.jwt, "jwt", text));
        found.extend(whole(&self.test_key, "token", text));
        found.extend(inner(&self.webhook, "webhook", text, is_drawn_by_lot));
        found.extend(inner(&self.url, "url-password", text, |value| {
            !is_placeholder(value) && !is_port(value)
        }));
        found.extend(inner(&self.curl, "password", text, |value| !is_placeholder(value)));
        found.extend(inner(&self.header, "authorization", text, is_credential));
        found.extend(inner(&self.bearer, "authorization", text, is_drawn_by_lot));
        found.extend(self.assignment.find(text));
        merged(found)
    }

    /// The text with each secret replaced by its kind.
    pub(crate) fn without(&self, text: &str) -> String {
        without(text, &self.find(text))
    }

    /// The whole of a value, if its key says that it is a secret.
    pub(crate) fn keyed(&self, key: &str, value: &str) -> Option<Found> {
        if key.eq_ignore_ascii_case("authorization") {
            let value_of = value.split_once(' ').map_or(value, |(_, credential)| credential);
            return is_credential(value_of).then_some(Found { kind: "authorization", range: 0..value.len() });
        }
        self.assignment.keyed(key, value)
    }
}

fn whole<'a>(pattern: &'a Regex, kind: &'static str, text: &'a str) -> impl Iterator<Item = Found> + 'a {
    pattern.find_iter(text).map(move |found| Found { kind, range: found.range() })
}

fn inner<'a>(
    pattern: &'a Regex,
    kind: &'static str,
    text: &'a str,
    is_secret: impl Fn(&str) -> bool + 'a,
) -> impl Iterator<Item = Found> + 'a {
    pattern.captures_iter(text).filter_map(move |found| {
        let value = found.get(1)?;
        is_secret(value.as_str()).then(|| Found { kind, range: value.range() })
    })
}

/// Pieces that lie over each other become one, under the name of the one that was found first.
fn merged(found: Vec<Found>) -> Vec<Found> {
    let mut ranked: Vec<(usize, Found)> = found.into_iter().enumerate().collect();
    ranked.sort_by_key(|(rank, found)| (found.range.start, *rank));
    let mut merged: Vec<(usize, Found)> = Vec::new();
    for (rank, next) in ranked {
        match merged.last_mut() {
            Some((best, last)) if next.range.start < last.range.end => {
                let Range { start, end } = last.range.clone();
                last.range = start..end.max(next.range.end);
                if rank < *best {
                    (*best, last.kind) = (rank, next.kind);
                }
            }
            _ => merged.push((rank, next)),
        }
    }
    merged.into_iter().map(|(_, found)| found).collect()
}

/// What stands for a secret in documentation and scripts: a variable, a blank to be filled in, something hidden.
fn is_placeholder(value: &str) -> bool {
    const STARTS: [&str; 10] = ["$", "<", "{", "%", "*", "[", "…", "...", "(", "`"];
    let lower = value.to_ascii_lowercase();
    STARTS.iter().any(|start| value.starts_with(start))
        || value.ends_with("...")
        || value.ends_with('…')
        || value.contains("${")
        || value.contains("{{")
        || lower.starts_with("your")
        || lower.contains("example")
        || lower.contains("placeholder")
        || lower.contains("changeme")
        || lower.contains("redacted")
        || value
            .chars()
            .all(|letter| matches!(letter, 'x' | 'X' | '*' | ':' | '.' | '-' | '_' | '#' | '0' | '•'))
}

/// Digits and letters both, in one piece that is no word with a number.
fn is_drawn_by_lot(value: &str) -> bool {
    let is_mixed = |piece: &str| {
        piece.len() >= 8
            && piece.bytes().any(|byte| byte.is_ascii_digit())
            && piece.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    !is_placeholder(value) && value.split(|letter: char| !letter.is_ascii_alphanumeric()).any(is_mixed)
}

/// `http://here:3000,me@there`: a port, and behind the comma something else.
fn is_port(value: &str) -> bool {
    value
        .split_once(',')
        .is_some_and(|(port, _)| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What follows `Authorization: Basic`: letters of both cases, or digits.
fn is_credential(value: &str) -> bool {
    let inside = value.get(1..).unwrap_or_default();
    let has_upper = inside.bytes().any(|byte| byte.is_ascii_uppercase());
    let has_lower = value.bytes().any(|byte| byte.is_ascii_lowercase());
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    value.len() >= 6 && !is_placeholder(value) && (has_upper && has_lower || has_digit)
}

#[cfg(test)]
mod tests;
