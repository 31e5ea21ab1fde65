//! The lines of a Markdown file with what CommonMark makes of each: text, code, comments. One pass over the file, in time that
//! grows with its length whatever is in it.
//!
//! Only blocks are read, because a checkbox is decided by them alone: containers (block quotes and list items), fences, indented
//! code, comments, headings and paragraphs with their lazy continuation. Other HTML is text: models write `<tasks>` right above
//! their items, which are items all the same. The tests compare each checkbox with pulldown-cmark, which the programs do not link.

use link_definition::are_link_definitions;

/// A tab reaches to the next multiple of this column.
const TAB_WIDTH: usize = 4;
/// A line that is indented by this much more than its container starts no block but code.
const CODE_INDENT: usize = 4;
/// CommonMark takes no longer number for a list marker.
const MAX_NUMBER_DIGITS: usize = 9;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// Nothing but white space behind the markers of its containers.
    Blank,
    /// The first line of a paragraph.
    ParagraphStart,
    /// A further line of a paragraph.
    ParagraphContinuation,
    /// A heading that begins with `#`.
    Heading,
    /// A line across the page, or the underline that makes a heading of the paragraph above it.
    Rule,
    /// The first or last line of a code fence, or a line between them.
    Fence,
    /// Code because of its indentation.
    IndentedCode,
    /// A line of an HTML comment.
    Comment,
    /// A line of the metadata that the file begins with.
    FrontMatter,
}

/// A line of a Markdown file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkdownLine<'a> {
    /// Its number in the file, from 0.
    pub(crate) number: usize,
    /// The line without its line end.
    pub(crate) text: &'a str,
    /// What it is.
    pub(crate) kind: LineKind,
    /// Where the text begins, behind the markers of containers and the indentation.
    pub(crate) content: usize,
    /// Where the first list marker begins that opens an item on this line.
    pub(crate) marker: Option<usize>,
    /// True if the text is the first block of a list item that this line opens.
    pub(crate) begins_item: bool,
    /// True if the line continues a paragraph although it is indented like code.
    pub(crate) is_too_deep: bool,
    /// The bytes before this are the markers of block quotes.
    pub(crate) quote_end: usize,
    /// The columns between `quote_end` and the contents of the list item that the line is in.
    pub(crate) item_column: usize,
}

/// What contains other blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Quote,
    /// A list item: its contents are indented by at least this much.
    Item {
        width: usize,
        has_content: bool,
    },
}

/// The innermost block that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaf {
    None,
    Paragraph,
    Fence { letter: u8, length: usize },
    IndentedCode,
    Comment,
}

/// The lines of a text, one after the other.
pub(crate) struct MarkdownLines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    containers: Vec<Container>,
    /// The places of block quotes among the containers: a blank line passes all list items between them at once.
    quotes: Vec<usize>,
    leaf: Leaf,
    /// The lines of the last paragraph, if it may be nothing but link reference definitions.
    definitions: Vec<&'a str>,
    /// The line on which the last fence or comment began.
    block_start: usize,
    /// As many lines are left of the metadata that the file begins with.
    front_matter: usize,
}

impl<'a> MarkdownLines<'a> {
    pub(crate) fn new(markdown: &'a str) -> MarkdownLines<'a> {
        MarkdownLines {
            lines: markdown.lines().enumerate(),
            containers: Vec::new(),
            quotes: Vec::new(),
            leaf: Leaf::None,
            definitions: Vec::new(),
            block_start: 0,
            front_matter: count_front_matter_lines(markdown),
        }
    }

    /// The line on which a fence or a comment began that is still open. At the end of the file nothing has closed it.
    pub(crate) fn unclosed_block(&self) -> Option<usize> {
        matches!(self.leaf, Leaf::Fence { .. } | Leaf::Comment).then_some(self.block_start)
    }

    /// Closes all containers from this place on, and the block in them.
    fn close_from(&mut self, place: usize) {
        self.leaf = Leaf::None;
        self.containers.truncate(place);
        while self.quotes.last().is_some_and(|quote| *quote >= place) {
            self.quotes.pop();
        }
    }

    fn open(&mut self, container: Container) {
        if container == Container::Quote {
            self.quotes.push(self.containers.len());
        }
        self.containers.push(container);
    }

    /// Passes the markers and the indentation of the containers that the line continues. Returns how many these are.
    fn pass_containers(&self, cursor: &mut Cursor<'_>, found: &mut Found) -> usize {
        let mut passed_quotes = 0;
        let mut passed = 0;
        let mut next = cursor.next_text();
        while let Some(container) = self.containers.get(passed) {
            match *container {
                Container::Quote
                    if cursor.indent_of(next) < CODE_INDENT && cursor.byte(next.at) == Some(b'>') =>
                {
                    cursor.pass_quote_marker(next);
                    found.enter_quote(cursor);
                    passed_quotes += 1;
                    next = cursor.next_text();
                }
                Container::Quote => break,
                Container::Item { .. } if next.is_blank => {
                    passed = self.quotes.get(passed_quotes).copied().unwrap_or(self.containers.len());
                    // An item that begins with a blank line ends with a second one.
                    let is_empty =
                        matches!(self.containers.last(), Some(Container::Item { has_content: false, .. }));
                    return if passed == self.containers.len() && is_empty { passed - 1 } else { passed };
                }
                Container::Item { width, .. } if cursor.indent_of(next) >= width => {
                    cursor.pass_columns(width);
                    found.item_column = cursor.column - found.quote_column;
                }
                Container::Item { .. } => break,
            }
            passed += 1;
        }
        passed
    }

    /// Keeps the lines of a paragraph that begins like a link reference definition. A checkbox is none.
    fn keep_definition(&mut self, kind: LineKind, text: &'a str) {
        match kind {
            LineKind::ParagraphStart => {
                self.definitions.clear();
                if let [b'[', _, third, fourth, ..] = text.as_bytes()
                    && (*third != b']' || *fourth == b':')
                {
                    self.definitions.push(text);
                }
            }
            LineKind::ParagraphContinuation if !self.definitions.is_empty() => self.definitions.push(text),
            _ => {}
        }
    }

    /// True if the paragraph has no text to make a heading of.
    fn has_only_definitions(&self) -> bool {
        !self.definitions.is_empty() && are_link_definitions(&self.definitions.join("\n"))
    }

    fn classify(&mut self, number: usize, text: &str) -> Found {
        if let Some(found) = self.classify_plain_item(text) {
            return found;
        }
        let mut cursor = Cursor::new(text.as_bytes());
        let mut found = Found::default();
        let passed = self.pass_containers(&mut cursor, &mut found);
        let next = cursor.next_text();
        found.content = next.at;
        let is_in_all = passed == self.containers.len();
        if is_in_all
            && !next.is_blank
            && let Some(Container::Item { has_content, .. }) = self.containers.last_mut()
        {
            *has_content = true;
        }
        if is_in_all && let Some(kind) = self.continue_leaf(&cursor, next) {
            return Found { kind, ..found };
        }
        // Only a paragraph continues without the markers of its containers, and not with a blank line.
        if next.is_blank || !(is_in_all || self.leaf == Leaf::Paragraph) {
            self.close_from(passed);
        }
        let kind = if next.is_blank {
            LineKind::Blank
        } else {
            self.start_blocks(number, &mut cursor, passed, &mut found)
        };
        Found { kind, ..found }
    }

    /// Nearly all items are so: a list marker that is not indented, one blank, and a box. Such a line is in no item before it, and
    /// ends all blocks that are open but for code and comments.
    fn classify_plain_item(&mut self, text: &str) -> Option<Found> {
        let [b'-' | b'*' | b'+', b' ', b'[', ..] = text.as_bytes() else { return None };
        if !matches!(self.leaf, Leaf::None | Leaf::Paragraph | Leaf::IndentedCode) {
            return None;
        }
        self.containers.clear();
        self.quotes.clear();
        self.containers.push(Container::Item { width: 2, has_content: true });
        self.leaf = Leaf::Paragraph;
        let kind = LineKind::ParagraphStart;
        Some(Found {
            kind,
            content: 2,
            marker: Some(0),
            begins_item: true,
            item_column: 2,
            ..Found::default()
        })
    }

    /// Starts the blocks that the rest of a line starts, in so many containers that it continues. Returns what the line is.
    fn start_blocks(
        &mut self,
        number: usize,
        cursor: &mut Cursor<'_>,
        mut passed: usize,
        found: &mut Found,
    ) -> LineKind {
        let mut opens_container = false;
        loop {
            let next = cursor.next_text();
            found.content = next.at;
            if next.is_blank {
                return LineKind::Blank;
            }
            let is_after_paragraph = self.leaf == Leaf::Paragraph;
            if cursor.indent_of(next) >= CODE_INDENT {
                found.is_too_deep = is_after_paragraph;
                if is_after_paragraph {
                    break;
                }
                self.leaf = Leaf::IndentedCode;
                return LineKind::IndentedCode;
            }
            // The paragraph itself is continued, and not only one in a container that the line leaves.
            let is_in_paragraph = is_after_paragraph && passed == self.containers.len();
            let rest = &cursor.bytes[next.at..];
            if rest.starts_with(b">") {
                self.close_from(passed);
                self.open(Container::Quote);
                cursor.pass_quote_marker(next);
                found.enter_quote(cursor);
                found.begins_item = false;
            } else if let Some((leaf, kind)) = self.start_leaf(rest, cursor, next, is_in_paragraph) {
                self.close_from(passed);
                self.leaf = leaf;
                self.block_start = number;
                found.begins_item = false;
                return kind;
            } else if let Some(marker) = list_marker_length(rest, is_in_paragraph) {
                self.close_from(passed);
                found.marker = found.marker.or(Some(next.at));
                let container = cursor.pass_list_marker(next, marker);
                self.open(container);
                found.item_column = cursor.column - found.quote_column;
                found.begins_item = true;
            } else {
                break;
            }
            passed = self.containers.len();
            opens_container = true;
        }
        if self.leaf == Leaf::Paragraph && !opens_container {
            return LineKind::ParagraphContinuation;
        }
        self.leaf = Leaf::Paragraph;
        LineKind::ParagraphStart
    }

    /// What the line is in the innermost block, if it continues that or ends with it; none if it may start another.
    fn continue_leaf(&mut self, cursor: &Cursor<'_>, next: NextText) -> Option<LineKind> {
        match self.leaf {
            Leaf::Fence { letter, length } => {
                let rest = &cursor.bytes[next.at..];
                if cursor.indent_of(next) < CODE_INDENT && is_closing_fence(rest, letter, length) {
                    self.leaf = Leaf::None;
                }
                Some(LineKind::Fence)
            }
            Leaf::Comment => {
                if ends_comment(&cursor.bytes[cursor.at..]) {
                    self.leaf = Leaf::None;
                }
                Some(LineKind::Comment)
            }
            Leaf::IndentedCode if next.is_blank => Some(LineKind::Blank),
            Leaf::IndentedCode if cursor.indent_of(next) >= CODE_INDENT => Some(LineKind::IndentedCode),
            Leaf::IndentedCode => {
                self.leaf = Leaf::None;
                None
            }
            Leaf::None | Leaf::Paragraph => None,
        }
    }

    /// The block without other blocks in it that the line starts, if it starts one.
    fn start_leaf(
        &self,
        rest: &[u8],
        cursor: &mut Cursor<'_>,
        next: NextText,
        is_in_paragraph: bool,
    ) -> Option<(Leaf, LineKind)> {
        match rest.first()? {
            b'#' => is_heading(rest).then_some((Leaf::None, LineKind::Heading)),
            b'`' | b'~' => {
                let (letter, length) = opening_fence(rest)?;
                Some((Leaf::Fence { letter, length }, LineKind::Fence))
            }
            b'<' => {
                let leaf = if ends_comment(rest) { Leaf::None } else { Leaf::Comment };
                rest.starts_with(b"<!--").then_some((leaf, LineKind::Comment))
            }
            b'=' | b'-' if is_in_paragraph && is_underline(rest) && !self.has_only_definitions() => {
                Some((Leaf::None, LineKind::Rule))
            }
            b'-' | b'*' | b'_' => cursor.is_rule(next).then_some((Leaf::None, LineKind::Rule)),
            _ => None,
        }
    }
}

impl<'a> Iterator for MarkdownLines<'a> {
    type Item = MarkdownLine<'a>;

    fn next(&mut self) -> Option<MarkdownLine<'a>> {
        let (number, text) = self.lines.next()?;
        let found = if number < self.front_matter {
            Found { kind: LineKind::FrontMatter, ..Found::default() }
        } else {
            self.classify(number, text)
        };
        self.keep_definition(found.kind, &text[found.content..]);
        let Found { kind, content, marker, begins_item, is_too_deep, quote_end, item_column, .. } = found;
        Some(MarkdownLine {
            number,
            text,
            kind,
            content,
            marker,
            begins_item,
            is_too_deep,
            quote_end,
            item_column,
        })
    }
}

/// What has been found out about a line.
#[derive(Debug, Clone, Copy)]
struct Found {
    kind: LineKind,
    content: usize,
    marker: Option<usize>,
    begins_item: bool,
    is_too_deep: bool,
    quote_end: usize,
    quote_column: usize,
    item_column: usize,
}

impl Default for Found {
    fn default() -> Found {
        Found {
            kind: LineKind::Blank,
            content: 0,
            marker: None,
            begins_item: false,
            is_too_deep: false,
            quote_end: 0,
            quote_column: 0,
            item_column: 0,
        }
    }
}

impl Found {
    fn enter_quote(&mut self, cursor: &Cursor<'_>) {
        (self.quote_end, self.quote_column, self.item_column) = (cursor.at, cursor.column, 0);
    }
}

/// The next byte of a line that is neither blank nor tab.
#[derive(Debug, Clone, Copy)]
struct NextText {
    at: usize,
    column: usize,
    /// True if nothing follows.
    is_blank: bool,
}

/// A place in a line. A tab of which only some columns are passed is still ahead: the column says how much of it.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    column: usize,
    /// No line across the page begins before this place.
    no_rule_before: usize,
}

impl<'a> Cursor<'a> {
    fn new(bytes: &'a [u8]) -> Cursor<'a> {
        // Some editors begin a file with an invisible byte order mark.
        let at = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        Cursor { bytes, at, column: 0, no_rule_before: 0 }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn next_text(&self) -> NextText {
        let (mut at, mut column) = (self.at, self.column);
        loop {
            match self.byte(at) {
                Some(b' ') => column += 1,
                Some(b'\t') => column = next_tab_stop(column),
                _ => break,
            }
            at += 1;
        }
        let is_blank = match self.byte(at) {
            Some(first) if is_white_space(first) => self.bytes[at..].iter().all(|byte| is_white_space(*byte)),
            first => first.is_none(),
        };
        NextText { at, column, is_blank }
    }

    /// The columns between the cursor and the text.
    fn indent_of(&self, next: NextText) -> usize {
        next.column - self.column
    }

    /// Passes so many columns of blanks and tabs.
    fn pass_columns(&mut self, count: usize) {
        let end = self.column + count;
        while self.column < end {
            match self.byte(self.at) {
                Some(b' ') => self.column += 1,
                Some(b'\t') if next_tab_stop(self.column) > end => {
                    self.column = end;
                    return;
                }
                Some(b'\t') => self.column = next_tab_stop(self.column),
                _ => return,
            }
            self.at += 1;
        }
    }

    fn pass_to(&mut self, next: NextText, length: usize) {
        self.at = next.at + length;
        self.column = next.column + length;
    }

    /// Passes `>` and the blank behind it.
    fn pass_quote_marker(&mut self, next: NextText) {
        self.pass_to(next, 1);
        self.pass_columns(1);
    }

    /// Passes a list marker of this length and the blanks behind it. Returns the item.
    fn pass_list_marker(&mut self, next: NextText, length: usize) -> Container {
        let indent = self.indent_of(next);
        self.pass_to(next, length);
        let text = self.next_text();
        // More blanks begin indented code, and an item without text on this line may have it on the next.
        let is_one = text.is_blank || self.indent_of(text) > CODE_INDENT;
        let padding = if is_one { 1 } else { self.indent_of(text) };
        self.pass_columns(padding);
        Container::Item { width: indent + length + padding, has_content: !text.is_blank }
    }

    /// True for `* * *`, `---` and `_ _ _`, which draw a line across the page.
    fn is_rule(&mut self, next: NextText) -> bool {
        if next.at < self.no_rule_before {
            return false;
        }
        let letter = self.bytes[next.at];
        let mut count = 0;
        for (place, byte) in self.bytes.iter().enumerate().skip(next.at) {
            if *byte == letter {
                count += 1;
            } else if !is_white_space(*byte) {
                // All bytes before this one are blank or that letter, so no rule begins at one of them.
                self.no_rule_before = place;
                return false;
            }
        }
        count >= 3
    }
}

fn next_tab_stop(column: usize) -> usize {
    (column / TAB_WIDTH + 1) * TAB_WIDTH
}

fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

/// The length of the list marker that a text begins with.
fn list_marker_length(text: &[u8], is_in_paragraph: bool) -> Option<usize> {
    let length = match text.first()? {
        b'-' | b'*' | b'+' => 1,
        b'0'..=b'9' => {
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let is_marker = digits <= MAX_NUMBER_DIGITS && matches!(text.get(digits), Some(b'.' | b')'));
            // In a paragraph `1986. A good year` is no list.
            let is_one =
                || text[..digits].iter().rev().skip(1).all(|byte| *byte == b'0') && text[digits - 1] == b'1';
            if !is_marker || (is_in_paragraph && !is_one()) {
                return None;
            }
            digits + 1
        }
        _ => return None,
    };
    let behind = &text[length..];
    let is_blank = || behind.iter().all(|byte| is_white_space(*byte));
    match behind.first() {
        Some(b' ' | b'\t') => (!is_in_paragraph || !is_blank()).then_some(length),
        None => (!is_in_paragraph).then_some(length),
        Some(_) => (!is_in_paragraph && is_blank()).then_some(length),
    }
}

/// True for `# Title`, with up to six `#`.
fn is_heading(text: &[u8]) -> bool {
    let level = text.iter().take_while(|byte| **byte == b'#').count();
    level <= 6 && text.get(level).is_none_or(|byte| is_white_space(*byte))
}

/// The letter and the length of the fence that a text begins with. Behind backticks there is no further one: that is a code
/// span in a paragraph.
fn opening_fence(text: &[u8]) -> Option<(u8, usize)> {
    let letter = *text.first()?;
    let length = text.iter().take_while(|byte| **byte == letter).count();
    let is_fence = length >= 3 && !(letter == b'`' && text[length..].contains(&b'`'));
    is_fence.then_some((letter, length))
}

/// True for a fence of the same letter that is as long or longer, with nothing behind it.
fn is_closing_fence(text: &[u8], letter: u8, length: usize) -> bool {
    let found = text.iter().take_while(|byte| **byte == letter).count();
    found >= length && text[found..].iter().all(|byte| is_white_space(*byte))
}

/// True for a line of a comment that is its last one.
fn ends_comment(text: &[u8]) -> bool {
    text.windows(3).any(|part| part == b"-->")
}

/// True for the underline that makes a heading of the paragraph above it.
fn is_underline(text: &[u8]) -> bool {
    let letter = text[0];
    let rest = text.iter().position(|byte| *byte != letter).unwrap_or(text.len());
    text[rest..].iter().all(|byte| is_white_space(*byte))
}

/// How many lines of metadata a file begins with: `---`, keys with values, `---` or `...`. What has a box in it is no metadata
/// but a plan between two lines across the page.
fn count_front_matter_lines(markdown: &str) -> usize {
    let mut lines = markdown.trim_start_matches('\u{feff}').lines().map(str::trim_end);
    if lines.next() != Some("---") {
        return 0;
    }
    for (place, line) in lines.enumerate() {
        if matches!(line, "---" | "...") {
            return if place == 0 { 0 } else { place + 2 };
        }
        let is_key = || line.starts_with(|letter: char| letter.is_alphabetic()) && line.contains(':');
        let has_box = line.as_bytes().windows(3).any(|part| part[0] == b'[' && part[2] == b']');
        if has_box || (place == 0 && !is_key()) {
            return 0;
        }
    }
    0
}

mod link_definition;
#[cfg(test)]
mod tests;
