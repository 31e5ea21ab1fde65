//! Link reference definitions: `[spec]: docs/spec.md "Title"`. A paragraph of nothing else has no text, so the line below it is
//! no underline of a heading.

/// CommonMark takes no label that is as long as this.
const MAX_LABEL_LENGTH: usize = 1000;

/// True if a paragraph has nothing but link reference definitions in it.
pub(super) fn are_link_definitions(paragraph: &str) -> bool {
    let mut rest = Some(paragraph);
    while let Some(text) = rest.filter(|text| !text.is_empty()) {
        rest = strip_definition(text);
    }
    rest.is_some()
}

/// The text behind the definition that it begins with.
fn strip_definition(text: &str) -> Option<&str> {
    let behind_label = strip_label(text)?.strip_prefix(':')?.trim_ascii_start();
    let behind_destination = strip_destination(behind_label)?;
    let title = behind_destination.trim_ascii_start();
    let has_space = title.len() < behind_destination.len();
    let behind_title = strip_title(title).filter(|_| has_space).and_then(strip_line_end);
    behind_title.or_else(|| strip_line_end(behind_destination))
}

/// The text behind `[label]`.
fn strip_label(text: &str) -> Option<&str> {
    let label = text.strip_prefix('[')?;
    let end = find_unescaped(label, |byte| matches!(byte, b'[' | b']'))?;
    let is_label = label.as_bytes()[end] == b']' && end < MAX_LABEL_LENGTH && !label[..end].trim().is_empty();
    is_label.then(|| &label[end + 1..])
}

/// The text behind `docs/spec.md` or `<docs/the spec.md>`.
fn strip_destination(text: &str) -> Option<&str> {
    if let Some(bracketed) = text.strip_prefix('<') {
        let end = find_unescaped(bracketed, |byte| matches!(byte, b'<' | b'>' | b'\n'))?;
        return (bracketed.as_bytes()[end] == b'>').then(|| &bracketed[end + 1..]);
    }
    let end = text.find(|letter: char| letter == ' ' || letter.is_ascii_control()).unwrap_or(text.len());
    let mut rest = &text[..end];
    let mut depth = 0_u32;
    while let Some(place) = find_unescaped(rest, |byte| matches!(byte, b'(' | b')')) {
        depth = if rest.as_bytes()[place] == b'(' { depth + 1 } else { depth.checked_sub(1)? };
        rest = &rest[place + 1..];
    }
    (end > 0 && depth == 0).then(|| &text[end..])
}

/// The text behind `"Title"`, `'Title'` or `(Title)`.
fn strip_title(text: &str) -> Option<&str> {
    let close = match text.as_bytes().first()? {
        b'(' => b')',
        quote @ (b'"' | b'\'') => *quote,
        _ => return None,
    };
    let title = &text[1..];
    let end = find_unescaped(title, |byte| byte == close || (close == b')' && byte == b'('))?;
    (title.as_bytes()[end] == close).then(|| &title[end + 1..])
}

/// The text behind the end of a line on which nothing but blanks follow.
fn strip_line_end(text: &str) -> Option<&str> {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    line.trim_ascii().is_empty().then_some(rest)
}

/// The place of the first such byte that has no backslash before it.
fn find_unescaped(text: &str, is_found: impl Fn(u8) -> bool) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let found = !is_escaped && is_found(byte);
        is_escaped = byte == b'\\' && !is_escaped;
        found
    })
}
