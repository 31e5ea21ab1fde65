//! `password=…`, `api_key: "…"`: known by the name before them. A name alone proves little in code, so the value
//! must look like one too.

use super::{Found, is_drawn_by_lot, is_placeholder};
use regex::{Captures, Regex};

/// How names and values stand together.
pub(super) struct Assignments {
    pattern: Regex,
    /// `--password word`.
    option: Regex,
    /// `<password>word</password>`.
    element: Regex,
    name: Regex,
}

const NAMES: &str = r"(?:(?P<pass>pass(?:word|wd|phrase)|pwd|[_-]pass)|(?:api|access|secret|private|signing|encryption|auth|account)[_-]?key|apikey|secret|(?:auth|access|refresh|bearer|session|api|id|bot|deploy)?[_-]?token|credentials?)";

impl Assignments {
    pub(super) fn new() -> Result<Assignments, regex::Error> {
        let value = r#""(?P<double>(?:[^"\\\n]|\\.){4,})"|'(?P<single>(?:[^'\\\n]|\\.){4,})'|\\"(?P<escaped>[^"\\\n]{4,})\\"|(?P<bare>[^\s"'`,;&)}\]<>|\\]{4,})"#;
        let between = r#"\\?["']?[ \t]*(?P<sign>=>|:=|=|:)[ \t]*"#;
        Ok(Assignments {
            pattern: Regex::new(&format!(
                r"(?i)(?P<before>[?&]|--)?(?P<name>[A-Za-z0-9_.-]*{NAMES}){between}(?:{value})"
            ))?,
            option: Regex::new(&format!(
                r#"(?i)(?:^|\s)--(?:[A-Za-z0-9-]*-)?{NAMES} ["']?(?P<value>[^\s"'`<>|;&]{{5,}})"#
            ))?,
            element: Regex::new(&format!(r"(?i)<[A-Za-z0-9_.:-]*{NAMES}>(?P<value>[^<>\s]{{5,}})</"))?,
            name: Regex::new(&format!(r"(?i)^[A-Za-z0-9_.-]*{NAMES}$"))?,
        })
    }

    pub(super) fn find(&self, text: &str) -> Vec<Found> {
        let one = |found: Captures<'_>| {
            let quoted = ["double", "single", "escaped"].iter().find_map(|name| found.name(name));
            let value = quoted.or_else(|| found.name("bare"))?;
            let is_pass = found.name("pass").is_some();
            let is_secret = match quoted {
                Some(value) => is_quoted_secret(is_pass, value.as_str()),
                None => is_bare_secret(is_pass, &found, value.as_str(), text),
            };
            is_secret.then(|| Found { kind: kind(is_pass), range: value.range() })
        };
        let other = |found: Captures<'_>, is_secret: fn(bool, &str) -> bool| {
            let (value, is_pass) = (found.name("value")?, found.name("pass").is_some());
            is_secret(is_pass, value.as_str()).then(|| Found { kind: kind(is_pass), range: value.range() })
        };
        let assigned = self.pattern.captures_iter(text).filter_map(one);
        let options = self.option.captures_iter(text).filter_map(|found| other(found, is_option_secret));
        let elements = self.element.captures_iter(text).filter_map(|found| other(found, is_quoted_secret));
        assigned.chain(options).chain(elements).collect()
    }

    /// The same for a key and its value in JSON.
    pub(super) fn keyed(&self, key: &str, value: &str) -> Option<Found> {
        let is_pass = self.name.captures(key)?.name("pass").is_some();
        is_quoted_secret(is_pass, value).then(|| Found { kind: kind(is_pass), range: 0..value.len() })
    }
}

fn kind(is_pass: bool) -> &'static str {
    if is_pass { "password" } else { "assignment" }
}

/// A password may be any word; whatever else has a name must look drawn by lot. White space is in sentences.
fn is_quoted_secret(is_pass: bool, value: &str) -> bool {
    if value.chars().any(char::is_whitespace) || is_placeholder(value) {
        return false;
    }
    if is_pass { value.chars().count() >= 5 && !is_label(value) } else { is_drawn_by_lot(value) }
}

/// Without quotes it may as well be code: a variable, a call, a type.
fn is_bare_secret(is_pass: bool, found: &Captures<'_>, value: &str, text: &str) -> bool {
    let (before, after) = found.get(0).map_or(("", ""), |all| (&text[..all.start()], &text[all.end()..]));
    let value = value.trim_end_matches(['.', ':', '!', '?']);
    // A call, an index, a generic, a path.
    let is_code = value.starts_with('=')
        || after.starts_with('<')
        || value.contains(['(', '[', '{'])
        || value.contains("::")
        || value.contains("->");
    if is_code || is_placeholder(value) || is_attribute(value) {
        return false;
    }
    if !is_pass {
        return is_drawn_by_lot(value);
    }
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let is_word = value.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let name = found.name("name").map_or("", |name| name.as_str());
    let is_equals = found.name("sign").is_some_and(|sign| sign.as_str() == "=");
    let is_shell =
        is_equals && (found.name("before").is_some() || !name.bytes().any(|byte| byte.is_ascii_lowercase()));
    // A line of a settings file, and nothing else on it.
    let is_tight = found.get(0).is_some_and(|all| all.as_str().len() == name.len() + 1 + value.len());
    let is_line = is_equals
        && is_tight
        && (before.is_empty() || before.ends_with('\n'))
        && (after.is_empty() || after.starts_with(['\n', '\r']));
    let is_shell = is_shell || is_line;
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    value.len() >= 5
        && (!is_number || is_equals && value.len() >= 6)
        && (is_shell || has_digit || !is_word)
        && !is_label(value)
        && (is_shell || !is_variable(value))
}

/// After an option comes its value, or, in prose, any word.
fn is_option_secret(is_pass: bool, value: &str) -> bool {
    let is_word =
        value.chars().all(|letter| letter.is_alphabetic() || matches!(letter, '.' | ',' | '-' | '_'));
    !value.starts_with('-') && !is_word && is_quoted_secret(is_pass, value)
}

/// `config.password`, `self.token`.
fn is_attribute(value: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'?')
    };
    let is_digitless = |part: &str| !part.bytes().any(|byte| byte.is_ascii_digit());
    value.contains('.') && value.split('.').all(|part| is_name(part) && is_digitless(part))
}

/// `password1`, `pass_2`: a name with a number.
fn is_variable(value: &str) -> bool {
    let stem = value.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '_');
    let lower = stem.to_ascii_lowercase();
    ["password", "passwd", "pass", "pwd", "passphrase", "hash"].iter().any(|name| lower.ends_with(name))
}

/// What labels, types and messages say where a password could stand.
fn is_label(value: &str) -> bool {
    const WORDS: [&str; 34] = [
        "password",
        "passwd",
        "passwort",
        "passphrase",
        "contraseña",
        "wachtwoord",
        "string",
        "str",
        "text",
        "number",
        "boolean",
        "required",
        "optional",
        "hidden",
        "secret",
        "token",
        "none",
        "null",
        "nil",
        "true",
        "false",
        "undefined",
        "default",
        "disabled",
        "enabled",
        "invalid",
        "incorrect",
        "missing",
        "empty",
        "unknown",
        "field",
        "input",
        "option",
        "prompt",
    ];
    let lower = value.to_lowercase();
    // `PWD` is a folder.
    let is_path = ["/", "./", "../", "~"].iter().any(|start| value.starts_with(start));
    let first_is_capital = value.starts_with(char::is_uppercase);
    // One capitalised word is what a form shows.
    let is_title = first_is_capital && value.chars().skip(1).all(char::is_lowercase);
    WORDS.contains(&lower.as_str()) || is_title || is_path
}
