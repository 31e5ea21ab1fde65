//! Checks of what a value looks like: random, a placeholder, a label, a port. Rules refer to them by name.

/// Returns true for text that stands in place of a secret in documentation and scripts: a variable, a blank
/// to be filled in, a hidden value.
pub(crate) fn is_placeholder(value: &str) -> bool {
    const PREFIXES: [&str; 10] = ["$", "<", "{", "%", "*", "[", "…", "...", "(", "`"];
    const WORDS: [&str; 12] = [
        "example",
        "placeholder",
        "changeme",
        "change_me",
        "change-me",
        "redacted",
        "dummy",
        "insert_",
        "replace_",
        "abcdefghijklmnop",
        "0123456789abcdef",
        "xxxxxx",
    ];
    let lower = value.to_ascii_lowercase();
    PREFIXES.iter().any(|prefix| value.starts_with(prefix))
        || value.ends_with("...")
        || value.ends_with('…')
        || value.contains("${")
        || value.contains("{{")
        || lower.starts_with("your")
        || WORDS.iter().any(|word| lower.contains(word))
        || is_filler_only(value)
}

/// Returns true for fillers such as `xxxxxxxx`, `****`, `0000-0000`.
fn is_filler_only(value: &str) -> bool {
    let is_filler_letter =
        |letter: char| matches!(letter, 'x' | 'X' | '*' | ':' | '.' | '-' | '_' | '#' | '0' | '•');
    let mut letters = value.chars().filter(|letter| !matches!(letter, '-' | '_' | '.'));
    let first = letters.next();
    value.chars().all(is_filler_letter) || first.is_some() && letters.all(|letter| Some(letter) == first)
}

/// Returns true if a piece of at least 8 characters mixes letters and digits, and the value is no
/// placeholder.
pub(crate) fn looks_random(value: &str) -> bool {
    let is_mixed = |piece: &str| piece.len() >= 8 && has_digits_and_letters(piece.as_bytes());
    !is_placeholder(value) && value.split(|letter: char| !letter.is_ascii_alphanumeric()).any(is_mixed)
}

/// Returns true if both digits and letters occur. Words have no digits, and neither does a row of `x`.
pub(crate) fn has_digits_and_letters(piece: &[u8]) -> bool {
    piece.iter().any(u8::is_ascii_digit) && piece.iter().any(u8::is_ascii_alphabetic)
}

/// Returns true if pieces of the value cannot be words or names with a number: letters and digits mixed, or
/// many letters of both cases.
pub(crate) fn has_random_piece(value: &str) -> bool {
    let any_byte = |piece: &str, predicate: fn(&u8) -> bool| piece.bytes().any(|byte| predicate(&byte));
    let is_random = |piece: &str| {
        piece.len() >= 8 && has_digits_and_letters(piece.as_bytes())
            || piece.len() >= 16
                && any_byte(piece, u8::is_ascii_uppercase)
                && any_byte(piece, u8::is_ascii_lowercase)
    };
    let pieces = || value.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_short_mixed_piece = |piece: &&str| piece.len() >= 5 && has_digits_and_letters(piece.as_bytes());
    pieces().any(is_random) || pieces().filter(is_short_mixed_piece).count() >= 3
}

/// Returns true for a value that can follow `Authorization: Basic`: letters of both cases, or digits.
pub(crate) fn is_authorization_credential(value: &str) -> bool {
    let tail = value.get(1..).unwrap_or_default();
    let has_upper = tail.bytes().any(|byte| byte.is_ascii_uppercase());
    let has_lower = value.bytes().any(|byte| byte.is_ascii_lowercase());
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    value.len() >= 6 && !is_placeholder(value) && (has_upper && has_lower || has_digit)
}

/// Returns true if this can be the password of a URL: no variable, and no port as in
/// `http://here:3000,me@there`.
pub(crate) fn is_url_password(value: &str) -> bool {
    let is_port = value
        .split_once(',')
        .is_some_and(|(port, _)| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()));
    !is_placeholder(value) && !is_port
}

/// Returns the entropy in bits per byte: 0 for one letter repeated, 4 for long random hexadecimal digits.
pub(crate) fn bits_per_byte(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let total = value.len() as f64;
    let share = |count: &u32| f64::from(*count) / total;
    counts.iter().filter(|count| **count > 0).map(share).map(|share| -share * share.log2()).sum()
}

/// Returns true for words that labels, types and messages have where a password could be, and for paths.
pub(crate) fn is_label_or_path(value: &str) -> bool {
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
    // The variable `PWD` holds a folder.
    let is_path = ["/", "./", "../", "~"].iter().any(|start| value.starts_with(start));
    // Forms show one capitalized word.
    let is_title = value.starts_with(char::is_uppercase) && value.chars().skip(1).all(char::is_lowercase);
    WORDS.contains(&lower.as_str()) || is_title || is_path
}
