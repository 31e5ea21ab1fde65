//! What a value looks like: drawn by lot, a placeholder, a label, a port. The checks that rules name.

/// What is for a secret in documentation and scripts: a variable, a blank to be filled in, something hidden.
pub(crate) fn is_placeholder(value: &str) -> bool {
    const STARTS: [&str; 10] = ["$", "<", "{", "%", "*", "[", "…", "...", "(", "`"];
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
    STARTS.iter().any(|start| value.starts_with(start))
        || value.ends_with("...")
        || value.ends_with('…')
        || value.contains("${")
        || value.contains("{{")
        || lower.starts_with("your")
        || WORDS.iter().any(|word| lower.contains(word))
        || is_of_one_letter(value)
}

/// `xxxxxxxx`, `****`, `0000-0000`.
fn is_of_one_letter(value: &str) -> bool {
    let is_filler =
        |letter: char| matches!(letter, 'x' | 'X' | '*' | ':' | '.' | '-' | '_' | '#' | '0' | '•');
    let mut letters = value.chars().filter(|letter| !matches!(letter, '-' | '_' | '.'));
    let first = letters.next();
    value.chars().all(is_filler) || first.is_some() && letters.all(|letter| Some(letter) == first)
}

/// Digits and letters both, in one piece that is no word with a number.
pub(crate) fn is_drawn_by_lot(value: &str) -> bool {
    let is_mixed = |piece: &str| piece.len() >= 8 && has_both(piece.as_bytes());
    !is_placeholder(value) && value.split(|letter: char| !letter.is_ascii_alphanumeric()).any(is_mixed)
}

/// Words have no digits, and neither has a row of `x`.
pub(crate) fn has_both(piece: &[u8]) -> bool {
    piece.iter().any(u8::is_ascii_digit) && piece.iter().any(u8::is_ascii_alphabetic)
}

/// Pieces that no word and no name with a number is: letters and digits mixed, or many letters of both cases.
pub(crate) fn has_random_piece(value: &str) -> bool {
    let has = |piece: &str, is: fn(&u8) -> bool| piece.bytes().any(|byte| is(&byte));
    let is_random = |piece: &str| {
        piece.len() >= 8 && has_both(piece.as_bytes())
            || piece.len() >= 16 && has(piece, u8::is_ascii_uppercase) && has(piece, u8::is_ascii_lowercase)
    };
    let pieces = || value.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_short = |piece: &&str| piece.len() >= 5 && has_both(piece.as_bytes());
    pieces().any(is_random) || pieces().filter(is_short).count() >= 3
}

/// What follows `Authorization: Basic`: letters of both cases, or digits.
pub(crate) fn is_credential(value: &str) -> bool {
    let inside = value.get(1..).unwrap_or_default();
    let has_upper = inside.bytes().any(|byte| byte.is_ascii_uppercase());
    let has_lower = value.bytes().any(|byte| byte.is_ascii_lowercase());
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    value.len() >= 6 && !is_placeholder(value) && (has_upper && has_lower || has_digit)
}

/// The password of a URL: no variable, and no port as in `http://here:3000,me@there`.
pub(crate) fn is_url_password(value: &str) -> bool {
    let is_port = value
        .split_once(',')
        .is_some_and(|(port, _)| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()));
    !is_placeholder(value) && !is_port
}

/// Bits of information in a letter of it: 0 for one letter repeated, 4 for long random hexadecimal digits.
pub(crate) fn entropy(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let all = value.len() as f64;
    let share = |count: &u32| f64::from(*count) / all;
    counts.iter().filter(|count| **count > 0).map(share).map(|share| -share * share.log2()).sum()
}

/// What labels, types and messages say where a password could be.
pub(crate) fn is_label(value: &str) -> bool {
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
    // One capitalised word is what a form shows.
    let is_title = value.starts_with(char::is_uppercase) && value.chars().skip(1).all(char::is_lowercase);
    WORDS.contains(&lower.as_str()) || is_title || is_path
}
