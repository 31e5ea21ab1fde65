//! Finds private keys, from the first line to the last. Lines may have a number or a mark before them, and
//! the end may be missing.

use crate::SecretMatch;
use regex_lite::Regex;
use std::ops::Range;
use std::sync::OnceLock;

/// How private keys begin, in lower case.
pub(crate) const KEYWORDS: [&str; 3] = ["-----begin ", "---- begin ssh2", "putty-user-key-file-"];

/// The maximum length of a key, including numbers and marks before its lines.
const MAX_KEY_BYTES: usize = 32 * 1024;
/// The maximum length of a key's first or last line.
const MAX_HEADER_BYTES: usize = 64;
/// In two pieces, so that this file is not reported as a key itself.
const PRIVATE_KEY_WORDS: [&str; 2] = ["PRIVATE", " KEY"];

/// Finds the private keys that begin at these positions.
pub(crate) fn find_private_keys(
    text: &str,
    positions: &mut dyn Iterator<Item = usize>,
    matches: &mut Vec<SecretMatch>,
) {
    let headers: Vec<Range<usize>> =
        positions.filter_map(|position| Some(position..header_end(text, position)?)).collect();
    let mut next_start = 0;
    for (number, header) in headers.iter().enumerate() {
        let next_start_of_key = headers.get(number + 1).map_or(text.len(), |header| header.start);
        if header.start >= next_start
            && let Some(key_end) = key_end(text, header, next_start_of_key)
        {
            matches.push(SecretMatch { kind: "private-key", range: header.start..key_end });
            next_start = key_end;
        }
    }
}

/// Returns where the first line of a private key ends. Returns `None` for a certificate, a public key or a
/// mere word.
fn header_end(text: &str, start: usize) -> Option<usize> {
    let line = &text.as_bytes()[start..];
    let line = &line[..line.len().min(MAX_HEADER_BYTES)];
    if line[..1] != *b"-" {
        // PuTTY's format: the first line has the format version and the key type.
        let is_line_start = start == 0 || text.as_bytes()[start - 1] == b'\n';
        let end = line.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(line.len());
        return (is_line_start && line[..end].contains(&b':')).then_some(start + end);
    }
    let closing_dashes =
        line.windows(4).skip(6).position(|dashes| dashes == b"----").map(|position| position + 6)?;
    let words = std::str::from_utf8(&line[4..closing_dashes]).ok()?.trim_matches(['-', ' ']);
    let words = words.strip_prefix("BEGIN ")?;
    let is_plain = words.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ');
    let is_private = words.contains(&PRIVATE_KEY_WORDS.concat()) || words.starts_with("OpenVPN Static key");
    let dashes = line[closing_dashes..].iter().take(5).take_while(|byte| **byte == b'-').count();
    (is_plain && is_private).then_some(start + closing_dashes + dashes)
}

/// Returns where a key ends: after its last line, or after everything that can be part of a key. Returns
/// `None` if there is only the header text, as in a search for it or a sentence about it.
fn key_end(text: &str, header: &Range<usize>, next_header: usize) -> Option<usize> {
    // The next key may begin within this one's first line.
    let rest = text.get(header.end..next_header).unwrap_or_default();
    let is_header_line = rest.is_empty()
        || rest.starts_with(['\n', '\r'])
        || rest.starts_with("\\n")
        || rest.starts_with("\\r");
    let footer_start = rest
        .find("---- END ")
        .or_else(|| rest.find("-----END "))
        .filter(|position| *position <= MAX_KEY_BYTES);
    let (body_text, length) =
        match footer_start.and_then(|start| Some((start, footer_length(&rest[start..])?))) {
            Some((start, length)) => (&rest[..start], start + length),
            None => {
                let body_text = leading_key_body(rest);
                (body_text, body_text.len())
            }
        };
    let has_line_breaks = body_text.contains('\n') || body_text.contains("\\n");
    let is_key = is_header_line || length > 16 && (has_line_breaks || !body_text.trim().contains(' '));
    is_key.then_some(header.end + length)
}

/// Returns the length of a key's last line.
fn footer_length(line: &str) -> Option<usize> {
    let rest = line.get(9..)?;
    let dashes_start = rest.find("----").filter(|position| *position < MAX_HEADER_BYTES)?;
    Some(9 + dashes_start + rest[dashes_start..].bytes().take(5).take_while(|byte| *byte == b'-').count())
}

/// Returns the leading part of a text that can be part of a key: base 64, line breaks (also escaped), and
/// marks before lines.
fn leading_key_body(rest: &str) -> &str {
    static BODY: OnceLock<Option<Regex>> = OnceLock::new();
    let pattern = r#"\A(?:[\s"',+>|→:-]|\\[nrt]|[0-9]{1,6}[\t→|:]|(?:Proc-Type|DEK-Info|Version|Comment|Encryption|Public-Lines|Private-Lines|Private-MAC|Key-Derivation|Argon2-[A-Za-z]+): [^\n\\]*|[A-Za-z0-9/=+]{16,}|[A-Za-z0-9/+]{2,}={1,2})*"#;
    let end = (MAX_KEY_BYTES.min(rest.len())..rest.len())
        .find(|end| rest.is_char_boundary(*end))
        .unwrap_or(rest.len());
    let body_match =
        BODY.get_or_init(|| Regex::new(pattern).ok()).as_ref().and_then(|regex| regex.find(&rest[..end]));
    body_match.map_or("", |matched| matched.as_str()).trim_end()
}
