//! Finds private keys, from the first line to the last. Each line may have a line number or a symbol such as `>` before
//! it, and the end may be missing.

use crate::SecretMatch;
use regex_lite::Regex;
use std::ops::Range;
use std::sync::OnceLock;

/// How private keys begin, in lower case.
pub(crate) const KEYWORDS: [&str; 3] = ["-----begin ", "---- begin ssh2", "putty-user-key-file-"];

/// The maximum length of a key, including line numbers and symbols before its lines.
const MAX_KEY_BYTES: usize = 32 * 1024;
/// The maximum length of a key's first or last line.
const MAX_HEADER_BYTES: usize = 64;
/// Split in two, so that this file is not reported as a key itself.
const PRIVATE_KEY_WORDS: [&str; 2] = ["PRIVATE", " KEY"];

/// Appends to `matches` the private keys whose first lines start at these positions.
pub(crate) fn find_private_keys(
    text: &str,
    keyword_starts: &mut dyn Iterator<Item = usize>,
    matches: &mut Vec<SecretMatch>,
) {
    let headers: Vec<Range<usize>> = keyword_starts
        .filter_map(|position| Some(position..private_key_header_end(text, position)?))
        .collect();
    let mut next_start = 0;
    for (index, header) in headers.iter().enumerate() {
        let next_header_start = headers.get(index + 1).map_or(text.len(), |header| header.start);
        if header.start >= next_start
            && let Some(key_end) = private_key_end(text, header, next_header_start)
        {
            matches.push(SecretMatch { kind: "private-key", range: header.start..key_end });
            next_start = key_end;
        }
    }
}

/// Returns the end of a private key's first line. Returns `None` for a certificate, a public key or any other text.
fn private_key_header_end(text: &str, start: usize) -> Option<usize> {
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
    let header_text = std::str::from_utf8(&line[4..closing_dashes]).ok()?.trim_matches(['-', ' ']);
    let header_text = header_text.strip_prefix("BEGIN ")?;
    let is_plain = header_text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ');
    let is_private =
        header_text.contains(&PRIVATE_KEY_WORDS.concat()) || header_text.starts_with("OpenVPN Static key");
    let trailing_dash_count = line[closing_dashes..].iter().take(5).take_while(|byte| **byte == b'-').count();
    (is_plain && is_private).then_some(start + closing_dashes + trailing_dash_count)
}

/// Returns the end of a private key: after its last line, or after everything that can be part of a key. Returns
/// `None` if there is only the header text, as in a sentence about it.
fn private_key_end(text: &str, header: &Range<usize>, next_header_start: usize) -> Option<usize> {
    // The next key may start within this key's first line.
    let text_after_header = text.get(header.end..next_header_start).unwrap_or_default();
    let is_header_line = text_after_header.is_empty()
        || text_after_header.starts_with(['\n', '\r'])
        || text_after_header.starts_with("\\n")
        || text_after_header.starts_with("\\r");
    let footer_start = text_after_header
        .find("---- END ")
        .or_else(|| text_after_header.find("-----END "))
        .filter(|position| *position <= MAX_KEY_BYTES);
    let (body_text, length) =
        match footer_start.and_then(|start| Some((start, footer_length(&text_after_header[start..])?))) {
            Some((start, length)) => (&text_after_header[..start], start + length),
            None => {
                let body_text = leading_key_body(text_after_header);
                (body_text, body_text.len())
            }
        };
    let has_line_breaks = body_text.contains('\n') || body_text.contains("\\n");
    let is_key = is_header_line || length > 16 && (has_line_breaks || !body_text.trim().contains(' '));
    is_key.then_some(header.end + length)
}

/// Returns the length of a key's last line, `-----END …-----`, or `None` if its dashes are missing.
fn footer_length(line: &str) -> Option<usize> {
    let text_after_end_prefix = line.get(9..)?;
    let dashes_start = text_after_end_prefix.find("----").filter(|position| *position < MAX_HEADER_BYTES)?;
    Some(
        9 + dashes_start
            + text_after_end_prefix[dashes_start..].bytes().take(5).take_while(|byte| *byte == b'-').count(),
    )
}

/// Returns the longest leading part of a text that can be part of a key: Base64, header fields, line breaks (also
/// escaped), and line numbers or symbols before lines.
fn leading_key_body(text_after_header: &str) -> &str {
    static BODY: OnceLock<Option<Regex>> = OnceLock::new();
    let pattern = r#"\A(?:[\s"',+>|→:-]|\\[nrt]|[0-9]{1,6}[\t→|:]|(?:Proc-Type|DEK-Info|Version|Comment|Encryption|Public-Lines|Private-Lines|Private-MAC|Key-Derivation|Argon2-[A-Za-z]+): [^\n\\]*|[A-Za-z0-9/=+]{16,}|[A-Za-z0-9/+]{2,}={1,2})*"#;
    let end = (MAX_KEY_BYTES.min(text_after_header.len())..text_after_header.len())
        .find(|end| text_after_header.is_char_boundary(*end))
        .unwrap_or(text_after_header.len());
    let body_match = BODY
        .get_or_init(|| Regex::new(pattern).ok())
        .as_ref()
        .and_then(|regex| regex.find(&text_after_header[..end]));
    body_match.map_or("", |key_body| key_body.as_str()).trim_end()
}
