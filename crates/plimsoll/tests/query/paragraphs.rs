//! Parses the tables: paragraphs of a query and its expected results.

use std::fmt;

/// A query and its expected results.
#[derive(Debug)]
pub(crate) struct Paragraph {
    /// Options and the name of the document.
    pub(crate) options: &'static str,
    pub(crate) filter: &'static str,
    /// The expected results.
    pub(crate) expected_lines: Vec<&'static str>,
}

/// Parses the paragraphs of a table. Lines with `#` are comments.
pub(crate) fn parse_paragraphs(table: &'static str) -> Vec<Paragraph> {
    let parse_paragraph = |text: &'static str| {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let (options, filter) = lines.next()?.split_once(": ")?;
        Some(Paragraph { options, filter, expected_lines: lines.collect() })
    };
    table.split("\n\n").filter_map(parse_paragraph).collect()
}

impl fmt::Display for Paragraph {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}\n{}", self.options, self.filter, self.expected_lines.join("\n"))
    }
}
