//! Link reference definitions: `[spec]: docs/spec.md "Title"`. A paragraph that consists only of definitions
//! has no text, so the line below it is not the underline of a heading.

/// The length that a label must not reach, as in CommonMark.
const MAX_LABEL_LENGTH: usize = 1000;

/// Returns true if a paragraph consists only of link reference definitions.
pub(super) fn contains_only_link_definitions(paragraph: &str) -> bool {
    let mut remaining_text = Some(paragraph);
    while let Some(text) = remaining_text.filter(|text| !text.is_empty()) {
        remaining_text = strip_link_definition(text);
    }
    remaining_text.is_some()
}

/// Returns the text after the definition at its beginning; `None` if it does not begin with one.
fn strip_link_definition(text: &str) -> Option<&str> {
    let after_label = strip_label(text)?.strip_prefix(':')?.trim_ascii_start();
    let after_destination = strip_destination(after_label)?;
    let title = after_destination.trim_ascii_start();
    let has_space_before_title = title.len() < after_destination.len();
    let after_title = strip_title(title).filter(|_| has_space_before_title).and_then(strip_line_end);
    after_title.or_else(|| strip_line_end(after_destination))
}

/// Returns the text after `[label]`.
fn strip_label(text: &str) -> Option<&str> {
    let label = text.strip_prefix('[')?;
    let end = find_unescaped_byte(label, |byte| matches!(byte, b'[' | b']'))?;
    let is_label = label.as_bytes()[end] == b']' && end < MAX_LABEL_LENGTH && !label[..end].trim().is_empty();
    is_label.then(|| &label[end + 1..])
}

/// Returns the text after `docs/spec.md` or `<docs/the spec.md>`.
fn strip_destination(text: &str) -> Option<&str> {
    if let Some(bracketed) = text.strip_prefix('<') {
        let end = find_unescaped_byte(bracketed, |byte| matches!(byte, b'<' | b'>' | b'\n'))?;
        return (bracketed.as_bytes()[end] == b'>').then(|| &bracketed[end + 1..]);
    }
    let end =
        text.find(|character: char| character == ' ' || character.is_ascii_control()).unwrap_or(text.len());
    let mut remaining_text = &text[..end];
    let mut depth = 0_u32;
    while let Some(parenthesis_index) =
        find_unescaped_byte(remaining_text, |byte| matches!(byte, b'(' | b')'))
    {
        depth = if remaining_text.as_bytes()[parenthesis_index] == b'(' {
            depth + 1
        } else {
            depth.checked_sub(1)?
        };
        remaining_text = &remaining_text[parenthesis_index + 1..];
    }
    (end > 0 && depth == 0).then(|| &text[end..])
}

/// Returns the text after `"Title"`, `'Title'` or `(Title)`.
fn strip_title(text: &str) -> Option<&str> {
    let closing_byte = match text.as_bytes().first()? {
        b'(' => b')',
        quote @ (b'"' | b'\'') => *quote,
        _ => return None,
    };
    let title = &text[1..];
    let end =
        find_unescaped_byte(title, |byte| byte == closing_byte || (closing_byte == b')' && byte == b'('))?;
    (title.as_bytes()[end] == closing_byte).then(|| &title[end + 1..])
}

/// Returns the text after the line break; `None` if anything but white space precedes it.
fn strip_line_end(text: &str) -> Option<&str> {
    let (line, following_lines) = text.split_once('\n').unwrap_or((text, ""));
    line.trim_ascii().is_empty().then_some(following_lines)
}

/// Returns the index of the first matching byte that no backslash escapes.
fn find_unescaped_byte(text: &str, is_wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_match = !is_escaped && is_wanted(byte);
        is_escaped = byte == b'\\' && !is_escaped;
        is_match
    })
}
