//! The tables of rules: a kind, its keywords, and a pattern that is compiled when a keyword has been seen.

use crate::looks;
use regex_lite::Regex;
use std::sync::OnceLock;

/// A rule of a table.
#[derive(Default)]
pub(crate) struct Rule {
    pub(crate) kind: &'static str,
    pub(crate) keywords: Vec<&'static str>,
    /// True if a match begins with the keyword: then nothing else has to be tried.
    pub(crate) is_start: bool,
    /// True if no word may continue before the match.
    is_word: bool,
    /// How far behind a keyword a match can end, in bytes.
    pub(crate) reach: usize,
    /// How far before a keyword a match can begin.
    pub(crate) before: usize,
    /// The part of the pattern that is the secret.
    group: usize,
    /// The secret's entropy must be higher.
    entropy: f64,
    check: Option<fn(&str) -> bool>,
    pattern: &'static str,
    except: Option<&'static str>,
    needed: Option<&'static str>,
    compiled: OnceLock<Option<Compiled>>,
}

/// The patterns of a rule, once they are needed.
pub(crate) struct Compiled {
    /// The match begins where the text begins.
    pub(crate) here: Regex,
    /// The match begins anywhere.
    pub(crate) anywhere: Regex,
    except: Option<Regex>,
    needed: Option<Regex>,
}

/// A name or operator between a provider's name and a value, and what ends a value: `scripts/secret-rules.py` writes them
/// so. A value ends where Betterleaks says, and before what closes a list, a tag or a part of a URL.
const MACROS: [(&str, &str); 3] = [
    ("{assigned-}", r#"(?:[ \t\w.-]{0,20})[\s'"\\]{0,3})(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=\\]{0,5}"#),
    ("{assigned}", r#"(?:[ \t\w.-]{0,20})[\s'"\\]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=\\]{0,5}"#),
    ("{ended}", r#"(?:\\?['"\x60]|[\s;,&@<>()\[\]{}|]|\\[nrt]|$)"#),
];

/// What is between these marks: as `split`, but the tables are long, and a checkpoint waits for them.
pub(crate) fn parts(text: &'static str, mark: u8) -> impl Iterator<Item = &'static str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some(end) = memchr::memchr(mark, text.as_bytes()) else { return Some(text) };
        rest = text.get(end + 1..);
        text.get(..end)
    })
}

impl Rule {
    /// A line of a table; none for a remark.
    pub(crate) fn parse(line: &'static str) -> Option<Rule> {
        let mut fields = parts(line, b'\t');
        let kind = fields.next().filter(|kind| !kind.starts_with('#'))?;
        let keywords = parts(fields.next()?, b',').collect();
        let flags = fields.next()?;
        let pattern = fields.next()?;
        let mut optional = fields.map(|field| Some(field).filter(|field| !field.is_empty()));
        let (except, needed) = (optional.next().flatten(), optional.next().flatten());
        let mut rule = Rule { kind, keywords, pattern, except, needed, ..Rule::default() };
        parts(flags, b' ').for_each(|flag| rule.flag(flag));
        if !rule.is_start && rule.before == 0 {
            rule.before = rule.reach;
        }
        Some(rule)
    }

    fn flag(&mut self, flag: &str) {
        let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
        match name {
            "start" => self.is_start = true,
            "word" => self.is_word = true,
            "reach" => self.reach = value.parse().unwrap_or_default(),
            "before" => self.before = value.parse().unwrap_or_default(),
            "group" => self.group = value.parse().unwrap_or_default(),
            "entropy" => self.entropy = value.parse().unwrap_or_default(),
            _ => {
                self.check = match value {
                    "lot" => Some(looks::is_drawn_by_lot),
                    "credential" => Some(looks::is_credential),
                    "url" => Some(looks::is_url_password),
                    // A password may be any word.
                    _ => Some(|_| true),
                }
            }
        }
    }

    /// The compiled patterns. None can fail; the tests compile each.
    pub(crate) fn compiled(&self) -> Option<&Compiled> {
        let compile = |pattern: &str| {
            let whole = |text: String, (word, meaning): &(&str, &str)| text.replace(word, meaning);
            Regex::new(&MACROS.iter().fold(pattern.to_owned(), whole)).ok()
        };
        let optional =
            |pattern: Option<&str>| pattern.map_or(Some(None), |pattern| compile(pattern).map(Some));
        let all = || {
            Some(Compiled {
                here: compile(&format!(r"\A(?:{})", self.pattern))?,
                anywhere: compile(self.pattern)?,
                except: optional(self.except)?,
                needed: optional(self.needed)?,
            })
        };
        self.compiled.get_or_init(all).as_ref()
    }

    /// True once a keyword has been seen.
    #[cfg(test)]
    pub(crate) fn is_compiled(&self) -> bool {
        self.compiled.get().is_some()
    }

    /// The part of a match that is the secret: the group, or, of several, the one that took part.
    pub(crate) fn secret_of<'a>(&self, found: &regex_lite::Captures<'a>) -> Option<regex_lite::Match<'a>> {
        let others = || (1..found.len()).find_map(|group| found.get(group));
        found.get(self.group).or_else(others).or_else(|| found.get(0))
    }

    /// True if the match is a word of its own and the secret does not merely look like one.
    pub(crate) fn takes(&self, compiled: &Compiled, before: &[u8], secret: &str) -> bool {
        let is_free = !self.is_word || !continues(before);
        is_free
            && !looks::is_placeholder(secret)
            && (self.entropy <= 0.0 || looks::entropy(secret) > self.entropy)
            && self.check.map_or_else(|| looks::has_random_piece(secret), |check| check(secret))
            && compiled.except.as_ref().is_none_or(|except| !except.is_match(secret))
            && compiled.needed.as_ref().is_none_or(|needed| needed.is_match(secret))
    }
}

/// Does a word continue behind this? A `\n` in quoted text ends one.
fn continues(before: &[u8]) -> bool {
    let is_escape = matches!(before, [.., b'\\', b'n' | b'r' | b't']);
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    before.last().is_some_and(is_word) && !is_escape
}
