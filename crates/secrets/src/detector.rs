//! One pass for the keywords of all rules, then each rule where its keywords occur.

use crate::keywords::Keywords;
use crate::rules::{Compiled, Rule, parts};
use crate::tokens::Token;
use crate::{Found, assignment, keys};
use std::sync::OnceLock;

const TOKENS: &str = include_str!("../rules/tokens.tsv");
const OURS: &str = include_str!("../rules/ours.tsv");
const BETTERLEAKS: &str = match std::str::from_utf8(&BETTERLEAKS_FILE) {
    Ok(text) => text,
    Err(_) => "",
};
/// Most of what is constant in a hook, and few of them search: it has a name, so that it is not linked in between what all of them read.
static BETTERLEAKS_FILE: [u8; include_bytes!("../rules/betterleaks.tsv").len()] =
    *include_bytes!("../rules/betterleaks.tsv");

/// Who waits for a keyword. The surer kinds come first: where two findings overlap, the first names them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reader {
    Token(usize),
    Key,
    Rule(usize),
    Assignment,
}

/// A keyword in a text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    reader: Reader,
    start: usize,
    end: usize,
}

/// The rules and their keywords, made when the first text is searched.
struct Detector {
    keywords: Keywords<Reader>,
    tokens: Vec<Token>,
    rules: Vec<Rule>,
}

fn detector() -> &'static Detector {
    static DETECTOR: OnceLock<Detector> = OnceLock::new();
    DETECTOR.get_or_init(Detector::new)
}

/// The findings in a text, rule after rule; they may overlap.
pub(crate) fn find(text: &str) -> Vec<Found> {
    let detector = detector();
    let mut hits = detector.hits(text.as_bytes());
    hits.sort_unstable();
    let mut found = Vec::new();
    for of_one in hits.chunk_by(|one, other| one.reader == other.reader) {
        detector.read(text, of_one, &mut found);
    }
    found
}

/// True if some bytes hold a keyword at all.
pub(crate) fn speaks_of_something(text: &str) -> bool {
    !detector().hits(text.as_bytes()).is_empty()
}

impl Detector {
    fn new() -> Detector {
        let tokens: Vec<Token> = TOKENS.lines().filter_map(Token::parse).collect();
        let rules: Vec<Rule> =
            parts(OURS, b'\n').chain(parts(BETTERLEAKS, b'\n')).filter_map(Rule::parse).collect();
        let mut wanted: Vec<(&'static str, Reader)> = Vec::new();
        wanted.extend(tokens.iter().enumerate().map(|(number, token)| (token.start, Reader::Token(number))));
        wanted.extend(keys::KEYWORDS.map(|word| (word, Reader::Key)));
        for (number, rule) in rules.iter().enumerate() {
            wanted.extend(rule.keywords.iter().map(|word| (*word, Reader::Rule(number))));
        }
        wanted.extend(assignment::NAMES.map(|word| (word, Reader::Assignment)));
        Detector { keywords: Keywords::new(wanted), tokens, rules }
    }

    fn hits(&self, text: &[u8]) -> Vec<Hit> {
        let mut hits = Vec::new();
        self.keywords.find(text, &mut |reader, start, end| hits.push(Hit { reader, start, end }));
        hits
    }

    fn read(&self, text: &str, hits: &[Hit], found: &mut Vec<Found>) {
        let Some(first) = hits.first() else { return };
        match first.reader {
            Reader::Token(number) => {
                let token = &self.tokens[number];
                found.extend(hits.iter().filter_map(|hit| {
                    let end = token.end(text.as_bytes(), hit.start)?;
                    Some(Found { kind: token.kind, range: hit.start..end })
                }));
            }
            Reader::Key => keys::find(text, &mut hits.iter().map(|hit| hit.start), found),
            Reader::Rule(number) => self.rules[number].find(text, hits, found),
            Reader::Assignment => {
                assignment::find(text, &mut hits.iter().map(|hit| hit.start..hit.end), found);
            }
        }
    }
}

/// If a rule is tried at so many keywords that it would read the text more often than this, it reads it once.
const MOST_READINGS: usize = 8;

impl Rule {
    fn find(&self, text: &str, hits: &[Hit], found: &mut Vec<Found>) {
        let Some(compiled) = self.compiled() else { return };
        if self.is_start && hits.len().saturating_mul(self.reach) <= MOST_READINGS * text.len() + 4096 {
            self.find_here(compiled, text, hits, found);
        } else {
            self.find_around(compiled, text, hits, found);
        }
    }

    /// At each keyword, and nowhere else.
    fn find_here(&self, compiled: &Compiled, text: &str, hits: &[Hit], found: &mut Vec<Found>) {
        let mut from = 0;
        for hit in hits.iter() {
            if hit.start < from {
                continue;
            }
            let end = boundary(text, hit.start + self.reach);
            let Some(captures) = compiled.here.captures(&text[hit.start..end]) else { continue };
            let Some(secret) = self.secret_of(&captures) else { continue };
            if self.takes(compiled, &text.as_bytes()[..hit.start], secret.as_str()) {
                let range = hit.start + secret.start()..hit.start + secret.end();
                from = range.end;
                found.push(Found { kind: self.kind, range });
            }
        }
    }

    /// In the surroundings of the keywords, each place once.
    fn find_around(&self, compiled: &Compiled, text: &str, hits: &[Hit], found: &mut Vec<Found>) {
        let mut from = 0;
        let mut hits = hits.iter().peekable();
        while let Some(hit) = hits.next() {
            let start = boundary(text, hit.start.saturating_sub(self.before)).max(from);
            let mut end = hit.end + self.reach;
            while let Some(next) = hits.next_if(|next| next.start <= end + self.before) {
                end = end.max(next.end + self.reach);
            }
            let end = boundary(text, end);
            from = start;
            while from < end
                && let Some(captures) = compiled.anywhere.captures_at(&text[..end], from)
            {
                let whole = captures.get(0).map_or(from..end, |whole| whole.range());
                if let Some(secret) = self.secret_of(&captures)
                    && self.takes(compiled, &text.as_bytes()[..whole.start], secret.as_str())
                {
                    found.push(Found { kind: self.kind, range: secret.range() });
                }
                from = boundary(text, whole.end.max(from + 1));
            }
        }
    }
}

/// The end of a letter at this byte or behind it.
fn boundary(text: &str, place: usize) -> usize {
    let end = text.len();
    (place.min(end)..end).find(|place| text.is_char_boundary(*place)).unwrap_or(end)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// How many patterns have been compiled, and how many there are.
    pub(crate) fn compiled() -> (usize, usize) {
        let rules = &detector().rules;
        (rules.iter().filter(|rule| rule.is_compiled()).count(), rules.len())
    }

    pub(crate) fn rules() -> &'static [Rule] {
        &detector().rules
    }
}
