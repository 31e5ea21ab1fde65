//! Rules from tables: a kind, its keywords, and a pattern that is compiled when one of its keywords occurs for the
//! first time.

use crate::value_checks;
use regex_lite::Regex;
use std::sync::OnceLock;

/// One rule, from a line of a table.
#[derive(Default)]
pub(crate) struct Rule {
    pub(crate) kind: &'static str,
    pub(crate) keywords: Vec<&'static str>,
    /// True if a match begins with the keyword, so that no other position has to be tried.
    pub(crate) starts_with_keyword: bool,
    /// True if the match must not start in the middle of a word.
    must_start_word: bool,
    /// How far after a keyword a match can end, in bytes.
    pub(crate) max_bytes_after: usize,
    /// How far before a keyword a match can begin, in bytes.
    pub(crate) max_bytes_before: usize,
    /// The capture group that contains the secret; 0 for the whole match.
    secret_group: usize,
    /// The entropy that the secret must exceed, in bits per byte; 0 for no minimum.
    min_entropy: f64,
    value_check: Option<fn(&str) -> bool>,
    pattern: &'static str,
    excluded_pattern: Option<&'static str>,
    required_pattern: Option<&'static str>,
    compiled_patterns: OnceLock<Option<CompiledPatterns>>,
}

/// The compiled patterns of a rule.
pub(crate) struct CompiledPatterns {
    /// Matches only at the start of the text.
    pub(crate) anchored: Regex,
    /// Matches anywhere in the text.
    pub(crate) anywhere: Regex,
    excluded: Option<Regex>,
    required: Option<Regex>,
}

/// Abbreviations that `scripts/secret-rules.py` writes into patterns: a name or operator between a provider's name and
/// a value, and the end of a value. A value ends as Betterleaks defines it, and also before a character that closes a
/// list, a tag or a part of a URL.
const MACROS: [(&str, &str); 3] = [
    ("{assigned-}", r#"(?:[ \t\w.-]{0,20})[\s'"\\]{0,3})(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=\\]{0,5}"#),
    ("{assigned}", r#"(?:[ \t\w.-]{0,20})[\s'"\\]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=\\]{0,5}"#),
    ("{ended}", r#"(?:\\?['"\x60]|[\s;,&@<>()\[\]{}|]|\\[nrt]|$)"#),
];

/// Splits a text at a byte, like `str::split`. Uses `memchr` for speed, because the tables are long and a checkpoint
/// has to wait until they are parsed.
pub(crate) fn split_at_byte(text: &'static str, separator: u8) -> impl Iterator<Item = &'static str> {
    let mut remaining_text = Some(text);
    std::iter::from_fn(move || {
        let text = remaining_text.take()?;
        let Some(end) = memchr::memchr(separator, text.as_bytes()) else { return Some(text) };
        remaining_text = text.get(end + 1..);
        text.get(..end)
    })
}

impl Rule {
    /// Parses a line of a table. Returns `None` for a comment or an incomplete line.
    pub(crate) fn parse(line: &'static str) -> Option<Rule> {
        let mut fields = split_at_byte(line, b'\t');
        let kind = fields.next().filter(|kind| !kind.starts_with('#'))?;
        let keywords = split_at_byte(fields.next()?, b',').collect();
        let flags = fields.next()?;
        let pattern = fields.next()?;
        let mut optional_fields = fields.map(|field| Some(field).filter(|field| !field.is_empty()));
        let (excluded_pattern, required_pattern) =
            (optional_fields.next().flatten(), optional_fields.next().flatten());
        let mut rule =
            Rule { kind, keywords, pattern, excluded_pattern, required_pattern, ..Rule::default() };
        split_at_byte(flags, b' ').for_each(|flag| rule.apply_flag_or_set_value_check(flag));
        if !rule.starts_with_keyword && rule.max_bytes_before == 0 {
            rule.max_bytes_before = rule.max_bytes_after;
        }
        Some(rule)
    }

    fn apply_flag_or_set_value_check(&mut self, flag: &str) {
        let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
        match name {
            "start" => self.starts_with_keyword = true,
            "word" => self.must_start_word = true,
            "reach" => self.max_bytes_after = value.parse().unwrap_or_default(),
            "before" => self.max_bytes_before = value.parse().unwrap_or_default(),
            "group" => self.secret_group = value.parse().unwrap_or_default(),
            "entropy" => self.min_entropy = value.parse().unwrap_or_default(),
            _ => {
                self.value_check = match value {
                    "lot" => Some(value_checks::looks_random),
                    "credential" => Some(value_checks::looks_like_authorization_credential),
                    "url" => Some(value_checks::can_be_url_password),
                    // A password may be any word.
                    _ => Some(|_| true),
                }
            }
        }
    }

    /// Returns the compiled patterns, compiling them on first use. Returns `None` if one is invalid; the tests check that
    /// every pattern in the tables is valid.
    pub(crate) fn compiled_patterns(&self) -> Option<&CompiledPatterns> {
        let compile = |pattern: &str| {
            let expand_macro =
                |text: String, (macro_name, expansion): &(&str, &str)| text.replace(macro_name, expansion);
            Regex::new(&MACROS.iter().fold(pattern.to_owned(), expand_macro)).ok()
        };
        let compile_optional =
            |pattern: Option<&str>| pattern.map_or(Some(None), |pattern| compile(pattern).map(Some));
        let compile_all = || {
            Some(CompiledPatterns {
                anchored: compile(&format!(r"\A(?:{})", self.pattern))?,
                anywhere: compile(self.pattern)?,
                excluded: compile_optional(self.excluded_pattern)?,
                required: compile_optional(self.required_pattern)?,
            })
        };
        self.compiled_patterns.get_or_init(compile_all).as_ref()
    }

    /// Returns true once the patterns have been compiled.
    #[cfg(test)]
    pub(crate) fn is_compiled(&self) -> bool {
        self.compiled_patterns.get().is_some()
    }

    /// Returns the part of a match that is the secret: the rule's group, else the first group that matched, else the
    /// whole match.
    pub(crate) fn secret_of_match<'a>(
        &self,
        captures: &regex_lite::Captures<'a>,
    ) -> Option<regex_lite::Match<'a>> {
        let first_other_group = || (1..captures.len()).find_map(|group| captures.get(group));
        captures.get(self.secret_group).or_else(first_other_group).or_else(|| captures.get(0))
    }

    /// Returns true if the match is a secret: it starts a word if the rule requires that, it is not a placeholder, and
    /// it passes the checks of the rule.
    pub(crate) fn accepts_secret(&self, patterns: &CompiledPatterns, preceding: &[u8], secret: &str) -> bool {
        let is_at_allowed_start = !self.must_start_word || !ends_within_word(preceding);
        is_at_allowed_start
            && !value_checks::is_placeholder(secret)
            && (self.min_entropy <= 0.0 || value_checks::entropy_bits_per_byte(secret) > self.min_entropy)
            && self.value_check.map_or_else(|| value_checks::has_random_part(secret), |check| check(secret))
            && patterns.excluded.as_ref().is_none_or(|excluded_regex| !excluded_regex.is_match(secret))
            && patterns.required.as_ref().is_none_or(|required_regex| required_regex.is_match(secret))
    }
}

/// Returns true if the bytes end within a word. An escape such as `\n` in quoted text ends a word.
fn ends_within_word(preceding: &[u8]) -> bool {
    let is_escape = matches!(preceding, [.., b'\\', b'n' | b'r' | b't']);
    let is_word_byte = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    preceding.last().is_some_and(is_word_byte) && !is_escape
}
