//! Searches a text once for the keywords of all rules, then runs each rule where its keywords occur.

use crate::keywords::KeywordIndex;
use crate::rules::{CompiledPatterns, Rule, split_at_byte};
use crate::tokens::TokenRule;
use crate::{SecretMatch, assignment, private_keys};
use std::sync::OnceLock;

const TOKEN_TABLE: &str = include_str!("../rules/tokens.tsv");
const OUR_RULES: &str = include_str!("../rules/ours.tsv");
const BETTERLEAKS_RULES: &str = match std::str::from_utf8(&BETTERLEAKS_FILE) {
    Ok(text) => text,
    Err(_) => "",
};
/// A named static, so that the linker does not place it among the constants that every hook reads. It is most of a
/// hook's constant data, and few hooks search for secrets.
static BETTERLEAKS_FILE: [u8; include_bytes!("../rules/betterleaks.tsv").len()] =
    *include_bytes!("../rules/betterleaks.tsv");

/// The rule that a keyword belongs to. More reliable kinds come first: if two matches overlap, the merged match has the
/// kind of the first one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum KeywordOwner {
    Token(usize),
    PrivateKey,
    Rule(usize),
    Assignment,
}

/// An occurrence of a keyword in a text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct KeywordHit {
    owner: KeywordOwner,
    start: usize,
    end: usize,
}

/// All rules and their keywords, built when the first text is searched.
struct Detector {
    keywords: KeywordIndex<KeywordOwner>,
    token_rules: Vec<TokenRule>,
    rules: Vec<Rule>,
}

fn detector() -> &'static Detector {
    static DETECTOR: OnceLock<Detector> = OnceLock::new();
    DETECTOR.get_or_init(Detector::new)
}

/// Returns the matches in a text, ordered by rule. They may overlap.
pub(crate) fn find_all_matches(text: &str) -> Vec<SecretMatch> {
    let detector = detector();
    let mut hits = detector.find_keywords(text.as_bytes());
    hits.sort_unstable();
    let mut matches = Vec::new();
    for hits_of_owner in hits.chunk_by(|left, right| left.owner == right.owner) {
        detector.collect_matches_of_one_owner(text, hits_of_owner, &mut matches);
    }
    matches
}

/// Returns true if the text contains any keyword.
pub(crate) fn contains_keyword(text: &str) -> bool {
    !detector().find_keywords(text.as_bytes()).is_empty()
}

impl Detector {
    fn new() -> Detector {
        let token_rules: Vec<TokenRule> = TOKEN_TABLE.lines().filter_map(TokenRule::parse).collect();
        let rules: Vec<Rule> = split_at_byte(OUR_RULES, b'\n')
            .chain(split_at_byte(BETTERLEAKS_RULES, b'\n'))
            .filter_map(Rule::parse)
            .collect();
        let mut keywords: Vec<(&'static str, KeywordOwner)> = Vec::new();
        keywords.extend(
            token_rules.iter().enumerate().map(|(index, token)| (token.prefix, KeywordOwner::Token(index))),
        );
        keywords.extend(private_keys::KEYWORDS.map(|keyword| (keyword, KeywordOwner::PrivateKey)));
        for (index, rule) in rules.iter().enumerate() {
            keywords.extend(rule.keywords.iter().map(|keyword| (*keyword, KeywordOwner::Rule(index))));
        }
        keywords.extend(assignment::SECRET_NAME_ENDINGS.map(|keyword| (keyword, KeywordOwner::Assignment)));
        Detector { keywords: KeywordIndex::new(keywords), token_rules, rules }
    }

    fn find_keywords(&self, text: &[u8]) -> Vec<KeywordHit> {
        let mut hits = Vec::new();
        self.keywords.find_all_ignoring_case(text, &mut |owner, start, end| {
            hits.push(KeywordHit { owner, start, end });
        });
        hits
    }

    fn collect_matches_of_one_owner(&self, text: &str, hits: &[KeywordHit], matches: &mut Vec<SecretMatch>) {
        let Some(first_hit) = hits.first() else { return };
        match first_hit.owner {
            KeywordOwner::Token(index) => {
                let token = &self.token_rules[index];
                matches.extend(hits.iter().filter_map(|hit| {
                    let end = token.end_of_valid_token_at(text.as_bytes(), hit.start)?;
                    Some(SecretMatch { kind: token.kind, range: hit.start..end })
                }));
            }
            KeywordOwner::PrivateKey => {
                private_keys::find_private_keys(text, &mut hits.iter().map(|hit| hit.start), matches);
            }
            KeywordOwner::Rule(index) => self.rules[index].find_matches(text, hits, matches),
            KeywordOwner::Assignment => {
                assignment::find_assigned_secrets(
                    text,
                    &mut hits.iter().map(|hit| hit.start..hit.end),
                    matches,
                );
            }
        }
    }
}

/// If checking a rule at each keyword would read more than this many times the length of the text, the rule searches
/// the text around the keywords once instead.
const MAX_TEXT_LENGTHS_READ_AT_KEYWORDS: usize = 8;

impl Rule {
    fn find_matches(&self, text: &str, hits: &[KeywordHit], matches: &mut Vec<SecretMatch>) {
        let Some(patterns) = self.compiled_patterns() else { return };
        if self.starts_with_keyword
            && hits.len().saturating_mul(self.max_bytes_after)
                <= MAX_TEXT_LENGTHS_READ_AT_KEYWORDS * text.len() + 4096
        {
            self.find_at_keywords(patterns, text, hits, matches);
        } else {
            self.find_around_keywords(patterns, text, hits, matches);
        }
    }

    /// Appends the matches that start exactly at a keyword.
    fn find_at_keywords(
        &self,
        patterns: &CompiledPatterns,
        text: &str,
        hits: &[KeywordHit],
        matches: &mut Vec<SecretMatch>,
    ) {
        let mut next_start = 0;
        for hit in hits.iter() {
            if hit.start < next_start {
                continue;
            }
            let end = next_char_boundary(text, hit.start + self.max_bytes_after);
            let Some(captures) = patterns.anchored.captures(&text[hit.start..end]) else { continue };
            let Some(secret) = self.secret_of_match(&captures) else { continue };
            if self.accepts_secret(patterns, &text.as_bytes()[..hit.start], secret.as_str()) {
                let range = hit.start + secret.start()..hit.start + secret.end();
                next_start = range.end;
                matches.push(SecretMatch { kind: self.kind, range });
            }
        }
    }

    /// Appends the matches near the keywords. Overlapping ranges around keywords are merged and searched once.
    fn find_around_keywords(
        &self,
        patterns: &CompiledPatterns,
        text: &str,
        hits: &[KeywordHit],
        matches: &mut Vec<SecretMatch>,
    ) {
        let mut next_start = 0;
        let mut hits = hits.iter().peekable();
        while let Some(hit) = hits.next() {
            let start =
                next_char_boundary(text, hit.start.saturating_sub(self.max_bytes_before)).max(next_start);
            let mut end = hit.end + self.max_bytes_after;
            while let Some(next) = hits.next_if(|next| next.start <= end + self.max_bytes_before) {
                end = end.max(next.end + self.max_bytes_after);
            }
            let end = next_char_boundary(text, end);
            next_start = start;
            while next_start < end
                && let Some(captures) = patterns.anywhere.captures_at(&text[..end], next_start)
            {
                let matched_range = captures.get(0).map_or(next_start..end, |full_match| full_match.range());
                if let Some(secret) = self.secret_of_match(&captures)
                    && self.accepts_secret(patterns, &text.as_bytes()[..matched_range.start], secret.as_str())
                {
                    matches.push(SecretMatch { kind: self.kind, range: secret.range() });
                }
                next_start = next_char_boundary(text, matched_range.end.max(next_start + 1));
            }
        }
    }
}

/// Returns the first character boundary at or after this byte.
fn next_char_boundary(text: &str, position: usize) -> usize {
    let end = text.len();
    (position.min(end)..end).find(|index| text.is_char_boundary(*index)).unwrap_or(end)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns how many rules have been compiled, and how many there are.
    pub(crate) fn count_compiled_rules() -> (usize, usize) {
        let rules = &detector().rules;
        (rules.iter().filter(|rule| rule.is_compiled()).count(), rules.len())
    }

    pub(crate) fn all_rules() -> &'static [Rule] {
        &detector().rules
    }
}
