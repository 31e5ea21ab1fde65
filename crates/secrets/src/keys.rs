//! Private keys from their first line to their last, also where each line has a number or a mark before it, and where
//! the end has been cut off.

use crate::Found;
use regex_lite::Regex;
use std::ops::Range;
use std::sync::OnceLock;

/// How they begin.
pub(crate) const KEYWORDS: [&str; 3] = ["-----begin ", "---- begin ssh2", "putty-user-key-file-"];

/// A key is no longer than this, with numbers and marks before its lines.
const LONGEST: usize = 32 * 1024;
/// Words between `BEGIN` and the end of its line are no longer.
const LONGEST_LINE: usize = 64;
/// In two pieces, so that this file is not taken for a key itself.
const PRIVATE: [&str; 2] = ["PRIVATE", " KEY"];

/// The private keys that begin at these places.
pub(crate) fn find(text: &str, places: &mut dyn Iterator<Item = usize>, found: &mut Vec<Found>) {
    let begins: Vec<Range<usize>> = places.filter_map(|place| Some(place..begin(text, place)?)).collect();
    let mut from = 0;
    for (number, begin) in begins.iter().enumerate() {
        let next = begins.get(number + 1).map_or(text.len(), |next| next.start);
        if begin.start >= from
            && let Some(end) = end(text, begin, next)
        {
            found.push(Found { kind: "private-key", range: begin.start..end });
            from = end;
        }
    }
}

/// Where the line ends that begins a private key here; none for a certificate, a public key or a mere word.
fn begin(text: &str, place: usize) -> Option<usize> {
    let line = &text.as_bytes()[place..];
    let line = &line[..line.len().min(LONGEST_LINE)];
    if line[..1] != *b"-" {
        // PuTTY's own format: its first line names the format's number and the kind of key.
        let is_line = place == 0 || text.as_bytes()[place - 1] == b'\n';
        let end = line.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(line.len());
        return (is_line && line[..end].contains(&b':')).then_some(place + end);
    }
    let closing = line.windows(4).skip(6).position(|dashes| dashes == b"----").map(|place| place + 6)?;
    let words = std::str::from_utf8(&line[4..closing]).ok()?.trim_matches(['-', ' ']);
    let words = words.strip_prefix("BEGIN ")?;
    let is_plain = words.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ');
    let is_private = words.contains(&PRIVATE.concat()) || words.starts_with("OpenVPN Static key");
    let dashes = line[closing..].iter().take(5).take_while(|byte| **byte == b'-').count();
    (is_plain && is_private).then_some(place + closing + dashes)
}

/// Where a key ends: at its last line, or with what can be of a key. None if only the words stand, as in a search
/// for them or a sentence about them.
fn end(text: &str, begin: &Range<usize>, next: usize) -> Option<usize> {
    // The next key may begin within this one's first line.
    let rest = text.get(begin.end..next).unwrap_or_default();
    let is_line = rest.is_empty()
        || rest.starts_with(['\n', '\r'])
        || rest.starts_with("\\n")
        || rest.starts_with("\\r");
    let last = rest.find("---- END ").or_else(|| rest.find("-----END ")).filter(|last| *last <= LONGEST);
    let (body, end) = match last.and_then(|last| Some((last, closing(&rest[last..])?))) {
        Some((last, length)) => (&rest[..last], last + length),
        None => {
            let body = body(rest);
            (body, body.len())
        }
    };
    let is_broken = body.contains('\n') || body.contains("\\n");
    let is_key = is_line || end > 16 && (is_broken || !body.trim().contains(' '));
    is_key.then_some(begin.end + end)
}

/// How long the last line of a key is.
fn closing(line: &str) -> Option<usize> {
    let words = line.get(9..)?;
    let dashes = words.find("----").filter(|place| *place < LONGEST_LINE)?;
    Some(9 + dashes + words[dashes..].bytes().take(5).take_while(|byte| *byte == b'-').count())
}

/// What a key consists of: base 64, line breaks (also written ones), and what is before lines.
fn body(rest: &str) -> &str {
    static BODY: OnceLock<Option<Regex>> = OnceLock::new();
    let pattern = r#"\A(?:[\s"',+>|→:-]|\\[nrt]|[0-9]{1,6}[\t→|:]|(?:Proc-Type|DEK-Info|Version|Comment|Encryption|Public-Lines|Private-Lines|Private-MAC|Key-Derivation|Argon2-[A-Za-z]+): [^\n\\]*|[A-Za-z0-9/=+]{16,}|[A-Za-z0-9/+]{2,}={1,2})*"#;
    let end =
        (LONGEST.min(rest.len())..rest.len()).find(|end| rest.is_char_boundary(*end)).unwrap_or(rest.len());
    let found =
        BODY.get_or_init(|| Regex::new(pattern).ok()).as_ref().and_then(|body| body.find(&rest[..end]));
    found.map_or("", |body| body.as_str()).trim_end()
}
