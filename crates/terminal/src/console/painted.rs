//! A line with colors. Escape sequences inside the text are not printed, because text is escaped before it is colored.

use crate::columns::wrap_line;
use plimsoll_domain::text::SafeText;

/// A line of colored text spans.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PaintedLine(Vec<PaintedSpan>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct PaintedSpan {
    /// Parameters of the color's escape sequence, or `None` for the default color.
    color_code: Option<String>,
    text: SafeText,
}

impl PaintedLine {
    /// Creates a line without colors.
    pub fn plain(text: &str) -> PaintedLine {
        PaintedLine::default().with_text(None, text)
    }

    /// Appends text in a color (`1;32`).
    pub fn with_text(mut self, color_code: Option<&'static str>, text: &str) -> PaintedLine {
        self.push_span_unless_empty(color_code.map(str::to_owned), text);
        self
    }

    /// Parses a rendered status line, in which every value was escaped before colors were added. Keeps color sequences;
    /// other escape sequences become text.
    pub fn from_line_with_ansi_colors(line: &str) -> PaintedLine {
        let mut painted_line = PaintedLine::default();
        let mut color_code = None;
        for (index, segment) in line.split("\u{1b}[").enumerate() {
            let parameters_end =
                segment.find(|character: char| !(character.is_ascii_digit() || character == ';'));
            let color_end = parameters_end.filter(|end| index > 0 && segment[*end..].starts_with('m'));
            match color_end {
                Some(end) => {
                    color_code = Some(segment[..end].to_owned());
                    painted_line.push_span_unless_empty(color_code.clone(), &segment[end + 1..]);
                }
                None if index > 0 => {
                    painted_line.push_span_unless_empty(color_code.clone(), &format!("\u{1b}[{segment}"));
                }
                None => painted_line.push_span_unless_empty(None, segment),
            }
        }
        painted_line
    }

    fn push_span_unless_empty(&mut self, color_code: Option<String>, text: &str) {
        if !text.is_empty() {
            self.0.push(PaintedSpan { color_code, text: SafeText::from_single_line(text) });
        }
    }

    /// Returns the color parameters (empty for the default color) and the text of each span.
    pub fn colors_and_texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|span| (span.color_code.as_deref().unwrap_or_default(), span.text.as_str()))
    }

    /// Wraps the line at spaces, and keeps its colors. Further lines are indented by `indent_columns`; see
    /// [`crate::columns::wrap_line`].
    pub fn wrap(&self, max_columns: usize, indent_columns: usize) -> Vec<PaintedLine> {
        let plain_text = self.to_plain();
        let wrapped_lines = wrap_line(&plain_text, max_columns, indent_columns);
        if wrapped_lines.len() == 1 {
            return vec![self.clone()];
        }
        let mut start = 0;
        let mut painted_lines = Vec::new();
        for (line_index, wrapped_line) in wrapped_lines.iter().enumerate() {
            let text =
                if line_index == 0 { wrapped_line.as_str() } else { wrapped_line.trim_start_matches(' ') };
            // The spaces at which the line was broken belong to no line.
            start += plain_text[start..].find(text).unwrap_or(0);
            let end = start + text.len();
            let indent = PaintedLine::plain(&wrapped_line[..wrapped_line.len() - text.len()]);
            painted_lines.push(self.spans_between(start, end).fold(indent, |mut line, span| {
                line.0.push(span);
                line
            }));
            start = end;
        }
        painted_lines
    }

    /// Returns the parts of the spans between two byte offsets of the plain text.
    fn spans_between(&self, start: usize, end: usize) -> impl Iterator<Item = PaintedSpan> {
        let mut span_start = 0;
        self.0.iter().filter_map(move |span| {
            let text = span.text.as_str();
            let (from, to) =
                (start.saturating_sub(span_start), end.saturating_sub(span_start).min(text.len()));
            span_start += text.len();
            let part = text.get(from..to).filter(|part| !part.is_empty())?;
            Some(PaintedSpan { color_code: span.color_code.clone(), text: SafeText::from_single_line(part) })
        })
    }

    /// Returns the text without colors.
    pub fn to_plain(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }

    /// Returns the text with ANSI color sequences.
    pub fn to_text_with_ansi_colors(&self) -> String {
        let render_span = |span: &PaintedSpan| match span.color_code.as_deref() {
            None | Some("" | "0") => span.text.as_str().to_owned(),
            Some(color_code) => format!("\u{1b}[{color_code}m{}\u{1b}[0m", span.text.as_str()),
        };
        self.0.iter().map(render_span).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_colors_are_kept() {
        let hostile = "a\u{1b}[31mb\u{1b}]0;x\u{7}\nc";
        let line = PaintedLine::plain("> ").with_text(Some("1;32"), hostile).to_text_with_ansi_colors();
        assert_eq!(line, "> \u{1b}[1;32ma\\u{1b}[31mb\\u{1b}]0;x\\u{7} c\u{1b}[0m");
    }

    #[test]
    fn a_wrapped_line_keeps_its_colors() {
        let line =
            PaintedLine::plain("12:00  ").with_text(Some("31"), "one two ").with_text(None, "three one");
        let lines: Vec<String> = line.wrap(12, 7).iter().map(PaintedLine::to_text_with_ansi_colors).collect();
        assert_eq!(
            lines,
            ["12:00  \u{1b}[31mone\u{1b}[0m", "      \u{1b}[31mtwo\u{1b}[0m", "      three", "      one"]
        );
        assert_eq!(line.wrap(80, 7), [line]);
    }

    #[test]
    fn a_status_line_keeps_its_colors_and_nothing_else() {
        for (line, expected) in [
            ("a \u{1b}[33mb\u{1b}[0m c", "a \u{1b}[33mb\u{1b}[0m c"),
            (
                "\u{1b}[37;44m x \u{1b}[34m\u{e0b0}\u{1b}[0m",
                "\u{1b}[37;44m x \u{1b}[0m\u{1b}[34m\u{e0b0}\u{1b}[0m",
            ),
            ("a\u{1b}[2Jb\u{1b}c\u{9b}d", "a\\u{1b}[2Jb\\u{1b}c\\u{9b}d"),
            ("\u{1b}[31", "\\u{1b}[31"),
        ] {
            assert_eq!(
                PaintedLine::from_line_with_ansi_colors(line).to_text_with_ansi_colors(),
                expected,
                "{line:?}"
            );
        }
    }
}
