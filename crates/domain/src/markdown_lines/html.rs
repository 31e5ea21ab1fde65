//! HTML blocks of Markdown: what begins one, and what ends it.

use super::LineKind;

/// What ends an HTML block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HtmlEnd {
    /// The closing tag of an element whose contents are no Markdown.
    ClosingTag,
    /// `-->`
    Comment,
    /// `?>`
    Instruction,
    /// `>`
    Declaration,
    /// `]]>`
    CharacterData,
    /// A blank line, which does not belong to the block.
    BlankLine,
}

/// Elements whose contents are no Markdown.
const RAW_ELEMENTS: [&str; 4] = ["pre", "script", "style", "textarea"];

/// Elements that begin a block also where their tag is not alone on its line.
const BLOCK_ELEMENTS: [&str; 62] = [
    "address",
    "article",
    "aside",
    "base",
    "basefont",
    "blockquote",
    "body",
    "caption",
    "center",
    "col",
    "colgroup",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "iframe",
    "legend",
    "li",
    "link",
    "main",
    "menu",
    "menuitem",
    "nav",
    "noframes",
    "ol",
    "optgroup",
    "option",
    "p",
    "param",
    "search",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "track",
    "ul",
];

impl HtmlEnd {
    /// True if the block ends on this line.
    pub(super) fn is_in(self, line: &[u8]) -> bool {
        let has = |end: &[u8]| line.windows(end.len()).any(|part| part == end);
        match self {
            HtmlEnd::ClosingTag => {
                let is_end = |place: usize| {
                    let tag = &line[place + 2..];
                    RAW_ELEMENTS.iter().any(|name| {
                        tag.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
                            && tag.get(name.len()) == Some(&b'>')
                    })
                };
                let mut places = line.windows(2).enumerate().filter(|(_, pair)| *pair == b"</");
                places.any(|(place, _)| is_end(place))
            }
            HtmlEnd::Comment => has(b"-->"),
            HtmlEnd::Instruction => has(b"?>"),
            HtmlEnd::Declaration => has(b">"),
            HtmlEnd::CharacterData => has(b"]]>"),
            HtmlEnd::BlankLine => false,
        }
    }

    pub(super) fn line_kind(self) -> LineKind {
        if self == HtmlEnd::BlankLine { LineKind::Html } else { LineKind::RawHtml }
    }
}

/// What ends the HTML block that begins with this text; none if none begins there. In a paragraph, a tag that is not one of a
/// block is part of the text.
pub(super) fn block_end(text: &[u8], is_after_paragraph: bool) -> Option<HtmlEnd> {
    let rest = text.strip_prefix(b"<")?;
    match rest {
        [b'!', b'-', b'-', ..] => return Some(HtmlEnd::Comment),
        [b'?', ..] => return Some(HtmlEnd::Instruction),
        [b'!', letter, ..] if letter.is_ascii_alphabetic() => return Some(HtmlEnd::Declaration),
        _ if rest.starts_with(b"![CDATA[") => return Some(HtmlEnd::CharacterData),
        _ => {}
    }
    let (is_closing, rest) = match rest.strip_prefix(b"/") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let name = &rest[..name_length(rest)?];
    let behind = &rest[name.len()..];
    let is_one_of = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    let is_name_over = behind.first().is_none_or(|byte| is_gap(*byte) || *byte == b'>');
    if !is_closing && is_name_over && is_one_of(&RAW_ELEMENTS) {
        return Some(HtmlEnd::ClosingTag);
    }
    if (is_name_over || behind.starts_with(b"/>")) && is_one_of(&BLOCK_ELEMENTS) {
        return Some(HtmlEnd::BlankLine);
    }
    let tag_end = if is_closing { closing_tag_end(behind) } else { opening_tag_end(behind) }?;
    let is_alone = behind[tag_end..].iter().all(|byte| is_gap(*byte));
    (is_alone && !is_after_paragraph).then_some(HtmlEnd::BlankLine)
}

/// What separates the parts of a tag.
fn is_gap(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

fn name_length(text: &[u8]) -> Option<usize> {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'-';
    text.first()?.is_ascii_alphabetic().then(|| text.iter().take_while(is_part).count())
}

fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_gap(**byte)).count()
}

/// Where a closing tag ends, behind its name.
fn closing_tag_end(text: &[u8]) -> Option<usize> {
    let end = blanks(text);
    (text.get(end) == Some(&b'>')).then_some(end + 1)
}

/// Where an opening tag with its attributes ends, behind its name.
fn opening_tag_end(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let gap = blanks(&text[at..]);
        at += gap;
        match text.get(at)? {
            b'>' => return Some(at + 1),
            b'/' => return (text.get(at + 1) == Some(&b'>')).then_some(at + 2),
            byte if gap > 0 && (byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':')) => {
                at += attribute_length(&text[at..])?;
            }
            _ => return None,
        }
    }
}

/// The length of an attribute with its value.
fn attribute_length(text: &[u8]) -> Option<usize> {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'_' | b'.' | b':' | b'-');
    let name = text.iter().take_while(is_part).count();
    let equals = name + blanks(&text[name..]);
    if text.get(equals) != Some(&b'=') {
        return Some(name);
    }
    let value = equals + 1 + blanks(&text[equals + 1..]);
    match text.get(value)? {
        quote @ (b'"' | b'\'') => {
            let length = text[value + 1..].iter().position(|byte| byte == quote)?;
            Some(value + length + 2)
        }
        _ => {
            let is_part = |byte: &&u8| !is_gap(**byte) && !b"\"'=<>`".contains(*byte);
            let length = text[value..].iter().take_while(is_part).count();
            (length > 0).then_some(value + length)
        }
    }
}
