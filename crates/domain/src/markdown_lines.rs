//! Classifies the lines of a Markdown file as CommonMark does: text, code, comments. One pass takes linear time
//! for any content.
//!
//! Only blocks are parsed, because they alone decide about checkboxes: containers (block quotes and list
//! items), fences, indented code, comments, headings, and paragraphs with lazy continuation lines. Other HTML
//! counts as text, because models write tags such as `<tasks>` directly above their items, which must stay
//! items. The tests compare each checkbox with pulldown-cmark, which the programs do not link.

use link_definition::contains_only_link_definitions;

/// Tab stops are at multiples of this column.
const TAB_WIDTH: usize = 4;
/// A line that is indented this much more than its container can start only indented code.
const CODE_INDENT: usize = 4;
/// The maximum number of digits in a list marker, as in CommonMark.
const MAX_NUMBER_DIGITS: usize = 9;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// Only white space after the markers of its containers.
    Blank,
    /// The first line of a paragraph.
    ParagraphStart,
    /// A further line of a paragraph.
    ParagraphContinuation,
    /// A heading that begins with `#`.
    Heading,
    /// A thematic break, or the underline that makes a heading of the paragraph above it.
    Rule,
    /// The first or last line of a code fence, or a line between them.
    Fence,
    /// Code, because of its indentation.
    IndentedCode,
    /// A line of an HTML comment.
    Comment,
    /// A line of the front matter (metadata) at the beginning of the file.
    FrontMatter,
}

/// A line of a Markdown file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkdownLine<'a> {
    /// The line's index in the file, from 0.
    pub(crate) line_index: usize,
    /// The line without its line break.
    pub(crate) text: &'a str,
    pub(crate) kind: LineKind,
    /// The offset of the text, after the markers of containers and the indentation.
    pub(crate) text_start: usize,
    /// The offset of the first list marker that opens an item on this line.
    pub(crate) list_marker_start: Option<usize>,
    /// True if the text is the first block of a list item that this line opens.
    pub(crate) is_first_of_list_item: bool,
    /// True if the line continues a paragraph although it is indented like code.
    pub(crate) is_overindented_continuation: bool,
    /// The end of the block quote markers, in bytes.
    pub(crate) quote_end: usize,
    /// The columns between `quote_end` and the contents of the enclosing list item.
    pub(crate) item_indent: usize,
}

/// A block that contains other blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Quote,
    /// A list item. Its contents are indented by at least `width` columns.
    Item {
        width: usize,
        has_content: bool,
    },
}

/// The innermost open block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeafBlock {
    None,
    Paragraph,
    Fence { character: u8, length: usize },
    IndentedCode,
    Comment,
}

/// An iterator over the classified lines of a text.
pub(crate) struct MarkdownLines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    containers: Vec<Container>,
    /// The indices of the block quotes among the containers. With them, a blank line skips all list items between
    /// two quotes at once.
    quote_indices: Vec<usize>,
    open_leaf: LeafBlock,
    /// The lines of the last paragraph, while it may consist only of link reference definitions.
    definition_lines: Vec<&'a str>,
    /// The line on which the last fence or comment began.
    block_start: usize,
    /// The number of lines of front matter at the beginning of the file.
    front_matter_line_count: usize,
}

impl<'a> MarkdownLines<'a> {
    pub(crate) fn new(markdown: &'a str) -> MarkdownLines<'a> {
        MarkdownLines {
            lines: markdown.lines().enumerate(),
            containers: Vec::new(),
            quote_indices: Vec::new(),
            open_leaf: LeafBlock::None,
            definition_lines: Vec::new(),
            block_start: 0,
            front_matter_line_count: count_front_matter_lines(markdown),
        }
    }

    /// Returns the first line of the fence or comment that is still open. At the end of the file, that block is
    /// unclosed.
    pub(crate) fn unclosed_block_start(&self) -> Option<usize> {
        matches!(self.open_leaf, LeafBlock::Fence { .. } | LeafBlock::Comment).then_some(self.block_start)
    }

    /// Closes all containers from this index on, and the leaf block in them.
    fn close_containers_from(&mut self, index: usize) {
        self.open_leaf = LeafBlock::None;
        self.containers.truncate(index);
        while self.quote_indices.last().is_some_and(|quote_index| *quote_index >= index) {
            self.quote_indices.pop();
        }
    }

    fn push_container(&mut self, container: Container) {
        if container == Container::Quote {
            self.quote_indices.push(self.containers.len());
        }
        self.containers.push(container);
    }

    /// Skips the markers and the indentation of the containers that the line continues. Returns the number of
    /// these containers.
    fn skip_continued_containers(&self, cursor: &mut LineCursor<'_>, line_info: &mut LineInfo) -> usize {
        let mut continued_quote_count = 0;
        let mut continued_count = 0;
        let mut next_text = cursor.find_next_text();
        while let Some(container) = self.containers.get(continued_count) {
            match *container {
                Container::Quote
                    if cursor.indent_before(next_text) < CODE_INDENT
                        && cursor.byte_at(next_text.byte_index) == Some(b'>') =>
                {
                    cursor.skip_quote_marker(next_text);
                    line_info.record_quote_marker(cursor);
                    continued_quote_count += 1;
                    next_text = cursor.find_next_text();
                }
                Container::Quote => break,
                Container::Item { .. } if next_text.is_blank => {
                    continued_count = self
                        .quote_indices
                        .get(continued_quote_count)
                        .copied()
                        .unwrap_or(self.containers.len());
                    // A list item that begins with a blank line ends at a second one.
                    let ends_with_empty_item =
                        matches!(self.containers.last(), Some(Container::Item { has_content: false, .. }));
                    return if continued_count == self.containers.len() && ends_with_empty_item {
                        continued_count - 1
                    } else {
                        continued_count
                    };
                }
                Container::Item { width, .. } if cursor.indent_before(next_text) >= width => {
                    cursor.skip_columns(width);
                    line_info.item_indent = cursor.column - line_info.quote_column;
                }
                Container::Item { .. } => break,
            }
            continued_count += 1;
        }
        continued_count
    }

    /// Records a line of a paragraph that begins like a link reference definition, and not with a checkbox.
    fn record_line_of_possible_link_definition(&mut self, kind: LineKind, text: &'a str) {
        match kind {
            LineKind::ParagraphStart => {
                self.definition_lines.clear();
                if let [b'[', _, third, fourth, ..] = text.as_bytes()
                    && (*third != b']' || *fourth == b':')
                {
                    self.definition_lines.push(text);
                }
            }
            LineKind::ParagraphContinuation if !self.definition_lines.is_empty() => {
                self.definition_lines.push(text);
            }
            _ => {}
        }
    }

    /// Returns true if the last paragraph consists only of link definitions, so it has no text for a heading.
    fn is_paragraph_only_link_definitions(&self) -> bool {
        !self.definition_lines.is_empty() && contains_only_link_definitions(&self.definition_lines.join("\n"))
    }

    fn classify_line_and_update_blocks(&mut self, line_index: usize, text: &str) -> LineInfo {
        if let Some(line_info) = self.start_list_item_if_unindented_checkbox(text) {
            return line_info;
        }
        let mut cursor = LineCursor::new(text.as_bytes());
        let mut line_info = LineInfo::default();
        let continued_count = self.skip_continued_containers(&mut cursor, &mut line_info);
        let next_text = cursor.find_next_text();
        line_info.text_start = next_text.byte_index;
        let continues_all_containers = continued_count == self.containers.len();
        if continues_all_containers
            && !next_text.is_blank
            && let Some(Container::Item { has_content, .. }) = self.containers.last_mut()
        {
            *has_content = true;
        }
        if continues_all_containers && let Some(kind) = self.continue_or_end_leaf(&cursor, next_text) {
            return LineInfo { kind, ..line_info };
        }
        // Only a paragraph continues without the markers of its containers (lazy continuation), and not with
        // a blank line.
        if next_text.is_blank || !(continues_all_containers || self.open_leaf == LeafBlock::Paragraph) {
            self.close_containers_from(continued_count);
        }
        let kind = if next_text.is_blank {
            LineKind::Blank
        } else {
            self.start_blocks_and_classify_line(line_index, &mut cursor, continued_count, &mut line_info)
        };
        LineInfo { kind, ..line_info }
    }

    /// Classifies an unindented list marker with one space and a box: the fast path for nearly all items. Such a
    /// line belongs to no earlier item, and ends all open blocks except fences and comments.
    fn start_list_item_if_unindented_checkbox(&mut self, text: &str) -> Option<LineInfo> {
        let [b'-' | b'*' | b'+', b' ', b'[', ..] = text.as_bytes() else { return None };
        if !matches!(self.open_leaf, LeafBlock::None | LeafBlock::Paragraph | LeafBlock::IndentedCode) {
            return None;
        }
        self.containers.clear();
        self.quote_indices.clear();
        self.containers.push(Container::Item { width: 2, has_content: true });
        self.open_leaf = LeafBlock::Paragraph;
        let kind = LineKind::ParagraphStart;
        Some(LineInfo {
            kind,
            text_start: 2,
            list_marker_start: Some(0),
            is_first_of_list_item: true,
            item_indent: 2,
            ..LineInfo::default()
        })
    }

    /// Starts the blocks in the remaining part of a line that continues the first `continued_count` containers.
    /// Returns the line's kind.
    fn start_blocks_and_classify_line(
        &mut self,
        line_index: usize,
        cursor: &mut LineCursor<'_>,
        mut continued_count: usize,
        line_info: &mut LineInfo,
    ) -> LineKind {
        let mut has_opened_container = false;
        loop {
            let next_text = cursor.find_next_text();
            line_info.text_start = next_text.byte_index;
            if next_text.is_blank {
                return LineKind::Blank;
            }
            let is_after_paragraph = self.open_leaf == LeafBlock::Paragraph;
            if cursor.indent_before(next_text) >= CODE_INDENT {
                line_info.is_overindented_continuation = is_after_paragraph;
                if is_after_paragraph {
                    break;
                }
                self.open_leaf = LeafBlock::IndentedCode;
                return LineKind::IndentedCode;
            }
            // True only if the line continues the paragraph's own container, not if it leaves that container.
            let is_in_paragraph = is_after_paragraph && continued_count == self.containers.len();
            let remaining_bytes = &cursor.bytes[next_text.byte_index..];
            if remaining_bytes.starts_with(b">") {
                self.close_containers_from(continued_count);
                self.push_container(Container::Quote);
                cursor.skip_quote_marker(next_text);
                line_info.record_quote_marker(cursor);
                line_info.is_first_of_list_item = false;
            } else if let Some((leaf, kind)) =
                self.parse_leaf_start(remaining_bytes, cursor, next_text, is_in_paragraph)
            {
                self.close_containers_from(continued_count);
                self.open_leaf = leaf;
                self.block_start = line_index;
                line_info.is_first_of_list_item = false;
                return kind;
            } else if let Some(marker_length) = parse_list_marker_length(remaining_bytes, is_in_paragraph) {
                self.close_containers_from(continued_count);
                line_info.list_marker_start = line_info.list_marker_start.or(Some(next_text.byte_index));
                let container = cursor.skip_list_marker(next_text, marker_length);
                self.push_container(container);
                line_info.item_indent = cursor.column - line_info.quote_column;
                line_info.is_first_of_list_item = true;
            } else {
                break;
            }
            continued_count = self.containers.len();
            has_opened_container = true;
        }
        if self.open_leaf == LeafBlock::Paragraph && !has_opened_container {
            return LineKind::ParagraphContinuation;
        }
        self.open_leaf = LeafBlock::Paragraph;
        LineKind::ParagraphStart
    }

    /// Returns the line's kind if it continues or ends the innermost block; `None` if it may start another
    /// block.
    fn continue_or_end_leaf(&mut self, cursor: &LineCursor<'_>, next_text: NextText) -> Option<LineKind> {
        match self.open_leaf {
            LeafBlock::Fence { character, length } => {
                let remaining_bytes = &cursor.bytes[next_text.byte_index..];
                if cursor.indent_before(next_text) < CODE_INDENT
                    && is_closing_fence(remaining_bytes, character, length)
                {
                    self.open_leaf = LeafBlock::None;
                }
                Some(LineKind::Fence)
            }
            LeafBlock::Comment => {
                if contains_comment_end(&cursor.bytes[cursor.byte_index..]) {
                    self.open_leaf = LeafBlock::None;
                }
                Some(LineKind::Comment)
            }
            LeafBlock::IndentedCode if next_text.is_blank => Some(LineKind::Blank),
            LeafBlock::IndentedCode if cursor.indent_before(next_text) >= CODE_INDENT => {
                Some(LineKind::IndentedCode)
            }
            LeafBlock::IndentedCode => {
                self.open_leaf = LeafBlock::None;
                None
            }
            LeafBlock::None | LeafBlock::Paragraph => None,
        }
    }

    /// Returns the leaf block that the line starts, and the line's kind; `None` for a paragraph or a container.
    fn parse_leaf_start(
        &self,
        remaining_bytes: &[u8],
        cursor: &mut LineCursor<'_>,
        next_text: NextText,
        is_in_paragraph: bool,
    ) -> Option<(LeafBlock, LineKind)> {
        match remaining_bytes.first()? {
            b'#' => is_atx_heading(remaining_bytes).then_some((LeafBlock::None, LineKind::Heading)),
            b'`' | b'~' => {
                let (character, length) = parse_opening_fence(remaining_bytes)?;
                Some((LeafBlock::Fence { character, length }, LineKind::Fence))
            }
            b'<' => {
                let leaf =
                    if contains_comment_end(remaining_bytes) { LeafBlock::None } else { LeafBlock::Comment };
                remaining_bytes.starts_with(b"<!--").then_some((leaf, LineKind::Comment))
            }
            b'=' | b'-'
                if is_in_paragraph
                    && is_setext_underline(remaining_bytes)
                    && !self.is_paragraph_only_link_definitions() =>
            {
                Some((LeafBlock::None, LineKind::Rule))
            }
            b'-' | b'*' | b'_' => {
                cursor.starts_thematic_break(next_text).then_some((LeafBlock::None, LineKind::Rule))
            }
            _ => None,
        }
    }
}

impl<'a> Iterator for MarkdownLines<'a> {
    type Item = MarkdownLine<'a>;

    fn next(&mut self) -> Option<MarkdownLine<'a>> {
        let (line_index, text) = self.lines.next()?;
        let line_info = if line_index < self.front_matter_line_count {
            LineInfo { kind: LineKind::FrontMatter, ..LineInfo::default() }
        } else {
            self.classify_line_and_update_blocks(line_index, text)
        };
        self.record_line_of_possible_link_definition(line_info.kind, &text[line_info.text_start..]);
        let LineInfo {
            kind,
            text_start,
            list_marker_start,
            is_first_of_list_item,
            is_overindented_continuation,
            quote_end,
            item_indent,
            ..
        } = line_info;
        Some(MarkdownLine {
            line_index,
            text,
            kind,
            text_start,
            list_marker_start,
            is_first_of_list_item,
            is_overindented_continuation,
            quote_end,
            item_indent,
        })
    }
}

/// The properties of a line that have been determined so far.
#[derive(Debug, Clone, Copy)]
struct LineInfo {
    kind: LineKind,
    text_start: usize,
    list_marker_start: Option<usize>,
    is_first_of_list_item: bool,
    is_overindented_continuation: bool,
    quote_end: usize,
    quote_column: usize,
    item_indent: usize,
}

impl Default for LineInfo {
    fn default() -> LineInfo {
        LineInfo {
            kind: LineKind::Blank,
            text_start: 0,
            list_marker_start: None,
            is_first_of_list_item: false,
            is_overindented_continuation: false,
            quote_end: 0,
            quote_column: 0,
            item_indent: 0,
        }
    }
}

impl LineInfo {
    fn record_quote_marker(&mut self, cursor: &LineCursor<'_>) {
        (self.quote_end, self.quote_column, self.item_indent) = (cursor.byte_index, cursor.column, 0);
    }
}

/// The next byte of a line that is not a space or a tab.
#[derive(Debug, Clone, Copy)]
struct NextText {
    byte_index: usize,
    column: usize,
    /// True if only white space remains.
    is_blank: bool,
}

/// A position in a line. If only some columns of a tab are skipped, the cursor stays on the tab, and `column`
/// is the position within it.
struct LineCursor<'a> {
    bytes: &'a [u8],
    byte_index: usize,
    column: usize,
    /// No thematic break begins before this index. Remembering it keeps the scan linear.
    no_thematic_break_before_index: usize,
}

impl<'a> LineCursor<'a> {
    fn new(bytes: &'a [u8]) -> LineCursor<'a> {
        // Some editors begin a file with an invisible byte order mark.
        let byte_index = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        LineCursor { bytes, byte_index, column: 0, no_thematic_break_before_index: 0 }
    }

    fn byte_at(&self, index: usize) -> Option<u8> {
        self.bytes.get(index).copied()
    }

    fn find_next_text(&self) -> NextText {
        let (mut byte_index, mut column) = (self.byte_index, self.column);
        loop {
            match self.byte_at(byte_index) {
                Some(b' ') => column += 1,
                Some(b'\t') => column = next_tab_stop(column),
                _ => break,
            }
            byte_index += 1;
        }
        let is_blank = match self.byte_at(byte_index) {
            Some(first) if is_white_space(first) => {
                self.bytes[byte_index..].iter().all(|byte| is_white_space(*byte))
            }
            first => first.is_none(),
        };
        NextText { byte_index, column, is_blank }
    }

    /// Returns the columns between the cursor and the text.
    fn indent_before(&self, next_text: NextText) -> usize {
        next_text.column - self.column
    }

    /// Skips this many columns of spaces and tabs, or fewer if other text begins.
    fn skip_columns(&mut self, count: usize) {
        let end = self.column + count;
        while self.column < end {
            match self.byte_at(self.byte_index) {
                Some(b' ') => self.column += 1,
                Some(b'\t') if next_tab_stop(self.column) > end => {
                    self.column = end;
                    return;
                }
                Some(b'\t') => self.column = next_tab_stop(self.column),
                _ => return,
            }
            self.byte_index += 1;
        }
    }

    fn skip_marker(&mut self, next_text: NextText, marker_length: usize) {
        self.byte_index = next_text.byte_index + marker_length;
        self.column = next_text.column + marker_length;
    }

    /// Skips `>` and the space after it.
    fn skip_quote_marker(&mut self, next_text: NextText) {
        self.skip_marker(next_text, 1);
        self.skip_columns(1);
    }

    /// Skips a list marker of this length and the spaces after it. Returns the list item.
    fn skip_list_marker(&mut self, next_text: NextText, marker_length: usize) -> Container {
        let indent = self.indent_before(next_text);
        self.skip_marker(next_text, marker_length);
        let text_after_marker = self.find_next_text();
        // More spaces begin indented code; an item without text on this line may have it on the next line.
        let has_single_column_padding =
            text_after_marker.is_blank || self.indent_before(text_after_marker) > CODE_INDENT;
        let padding = if has_single_column_padding { 1 } else { self.indent_before(text_after_marker) };
        self.skip_columns(padding);
        Container::Item { width: indent + marker_length + padding, has_content: !text_after_marker.is_blank }
    }

    /// Returns true for a thematic break: `* * *`, `---` or `_ _ _`.
    fn starts_thematic_break(&mut self, next_text: NextText) -> bool {
        if next_text.byte_index < self.no_thematic_break_before_index {
            return false;
        }
        let break_character = self.bytes[next_text.byte_index];
        let mut character_count = 0;
        for (index, byte) in self.bytes.iter().enumerate().skip(next_text.byte_index) {
            if *byte == break_character {
                character_count += 1;
            } else if !is_white_space(*byte) {
                // All bytes before this one are spaces or the same character, so no thematic break begins at
                // any of them.
                self.no_thematic_break_before_index = index;
                return false;
            }
        }
        character_count >= 3
    }
}

fn next_tab_stop(column: usize) -> usize {
    (column / TAB_WIDTH + 1) * TAB_WIDTH
}

fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

/// Returns the length of the list marker at the beginning of a text; `None` if it has none, or if a list cannot
/// interrupt the paragraph here.
fn parse_list_marker_length(text: &[u8], is_in_paragraph: bool) -> Option<usize> {
    let length = match text.first()? {
        b'-' | b'*' | b'+' => 1,
        b'0'..=b'9' => {
            let digit_count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let is_marker =
                digit_count <= MAX_NUMBER_DIGITS && matches!(text.get(digit_count), Some(b'.' | b')'));
            // A list that interrupts a paragraph must start with 1, so `1986. A good year` is not a list.
            let is_number_one = || {
                text[..digit_count].iter().rev().skip(1).all(|byte| *byte == b'0')
                    && text[digit_count - 1] == b'1'
            };
            if !is_marker || (is_in_paragraph && !is_number_one()) {
                return None;
            }
            digit_count + 1
        }
        _ => return None,
    };
    let after_marker = &text[length..];
    let is_blank = || after_marker.iter().all(|byte| is_white_space(*byte));
    match after_marker.first() {
        Some(b' ' | b'\t') => (!is_in_paragraph || !is_blank()).then_some(length),
        None => (!is_in_paragraph).then_some(length),
        Some(_) => (!is_in_paragraph && is_blank()).then_some(length),
    }
}

/// Returns true for `# Title`, with up to six `#`.
fn is_atx_heading(text: &[u8]) -> bool {
    let level = text.iter().take_while(|byte| **byte == b'#').count();
    level <= 6 && text.get(level).is_none_or(|byte| is_white_space(*byte))
}

/// Returns the character and the length of the fence at the beginning of a text. A backtick fence has no further
/// backticks on its line; with them it is a code span in a paragraph.
fn parse_opening_fence(text: &[u8]) -> Option<(u8, usize)> {
    let character = *text.first()?;
    let length = text.iter().take_while(|byte| **byte == character).count();
    let is_fence = length >= 3 && !(character == b'`' && text[length..].contains(&b'`'));
    is_fence.then_some((character, length))
}

/// Returns true for a closing fence: the same character, at least as long, with nothing after it.
fn is_closing_fence(text: &[u8], character: u8, opening_length: usize) -> bool {
    let fence_length = text.iter().take_while(|byte| **byte == character).count();
    fence_length >= opening_length && text[fence_length..].iter().all(|byte| is_white_space(*byte))
}

/// Returns true if a comment ends on this line.
fn contains_comment_end(text: &[u8]) -> bool {
    text.windows(3).any(|part| part == b"-->")
}

/// Returns true for the underline that makes a heading of the paragraph above it.
fn is_setext_underline(text: &[u8]) -> bool {
    let character = text[0];
    let underline_end = text.iter().position(|byte| *byte != character).unwrap_or(text.len());
    text[underline_end..].iter().all(|byte| is_white_space(*byte))
}

/// Returns the number of front matter lines at the beginning of a file: `---`, keys with values, and `---` or
/// `...`. Lines with a checkbox are not front matter but a plan between two thematic breaks.
fn count_front_matter_lines(markdown: &str) -> usize {
    let mut lines = markdown.trim_start_matches('\u{feff}').lines().map(str::trim_end);
    if lines.next() != Some("---") {
        return 0;
    }
    for (index, line) in lines.enumerate() {
        if matches!(line, "---" | "...") {
            return if index == 0 { 0 } else { index + 2 };
        }
        let is_key_line =
            || line.starts_with(|character: char| character.is_alphabetic()) && line.contains(':');
        let has_checkbox = line.as_bytes().windows(3).any(|part| part[0] == b'[' && part[2] == b']');
        if has_checkbox || (index == 0 && !is_key_line()) {
            return 0;
        }
    }
    0
}

mod link_definition;
#[cfg(test)]
mod tests;
