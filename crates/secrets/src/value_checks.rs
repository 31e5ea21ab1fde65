//! Checks whether a value looks random, or like a placeholder, a label or a port. Rules refer to these checks by name.

/// Returns true for text that takes the place of a secret in documentation and scripts: a variable, a field to fill
/// in, a hidden value.
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
        || is_filler_or_repeated_character(value)
}

/// Returns true for fillers such as `xxxxxxxx`, `****`, `0000-0000`, and for one repeated character.
fn is_filler_or_repeated_character(value: &str) -> bool {
    let is_filler_character =
        |character: char| matches!(character, 'x' | 'X' | '*' | ':' | '.' | '-' | '_' | '#' | '0' | '•');
    let mut significant_chars = value.chars().filter(|character| !matches!(character, '-' | '_' | '.'));
    let first_char = significant_chars.next();
    value.chars().all(is_filler_character)
        || first_char.is_some() && significant_chars.all(|character| Some(character) == first_char)
}

/// Returns true if an alphanumeric part of at least 8 characters has both letters and digits, and the value is not a
/// placeholder.
pub(crate) fn looks_random(value: &str) -> bool {
    let is_mixed = |part: &str| part.len() >= 8 && has_digits_and_letters(part.as_bytes());
    !is_placeholder(value) && value.split(|character: char| !character.is_ascii_alphanumeric()).any(is_mixed)
}

/// Returns true if the bytes contain both digits and letters. A word has no digits, and neither has a run of `x`.
pub(crate) fn has_digits_and_letters(bytes: &[u8]) -> bool {
    bytes.iter().any(u8::is_ascii_digit) && bytes.iter().any(u8::is_ascii_alphabetic)
}

/// Returns true if alphanumeric parts of the value look random and not like words or numbered names: a long part has
/// both letters and digits, a very long part has letters of both cases, or three short parts have letters and digits.
pub(crate) fn has_random_part(value: &str) -> bool {
    let any_byte = |part: &str, predicate: fn(&u8) -> bool| part.bytes().any(|byte| predicate(&byte));
    let is_random = |part: &str| {
        part.len() >= 8 && has_digits_and_letters(part.as_bytes())
            || part.len() >= 16
                && any_byte(part, u8::is_ascii_uppercase)
                && any_byte(part, u8::is_ascii_lowercase)
    };
    let parts = || value.split(|character: char| !character.is_ascii_alphanumeric());
    let is_short_mixed_part = |part: &&str| part.len() >= 5 && has_digits_and_letters(part.as_bytes());
    parts().any(is_random) || parts().filter(is_short_mixed_part).count() >= 3
}

/// Returns true for a value that can follow `Authorization: Basic`: at least 6 characters with letters of both cases or
/// with digits, and not a placeholder.
pub(crate) fn looks_like_authorization_credential(value: &str) -> bool {
    let tail = value.get(1..).unwrap_or_default();
    let has_upper = tail.bytes().any(|byte| byte.is_ascii_uppercase());
    let has_lower = value.bytes().any(|byte| byte.is_ascii_lowercase());
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    value.len() >= 6 && !is_placeholder(value) && (has_upper && has_lower || has_digit)
}

/// Returns true if the value can be the password in a URL: it is not a placeholder, and not a port as in
/// `http://here:3000,me@there`.
pub(crate) fn can_be_url_password(value: &str) -> bool {
    let is_port = value
        .split_once(',')
        .is_some_and(|(port, _)| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()));
    !is_placeholder(value) && !is_port
}

/// Returns the Shannon entropy in bits per byte: 0 for one repeated character, about 4 for long random hexadecimal
/// text.
pub(crate) fn entropy_bits_per_byte(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let total = value.len() as f64;
    let frequency = |count: &u32| f64::from(*count) / total;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(frequency)
        .map(|frequency| -frequency * frequency.log2())
        .sum()
}

/// Returns true for a word that labels, types and messages have in place of a password, for a single capitalized word,
/// and for a path.
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
    // The value of the variable `PWD` is a directory.
    let is_path = ["/", "./", "../", "~"].iter().any(|prefix| value.starts_with(prefix));
    // Forms show one capitalized word.
    let is_capitalized_word =
        value.starts_with(char::is_uppercase) && value.chars().skip(1).all(char::is_lowercase);
    WORDS.contains(&lower.as_str()) || is_capitalized_word || is_path
}
