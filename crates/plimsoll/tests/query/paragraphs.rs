//! The tables as text: paragraphs of a question and what is answered.

use std::fmt;

/// A question and its answers.
#[derive(Debug)]
pub(crate) struct Paragraph {
    /// Options and the document.
    pub(crate) given: &'static str,
    /// The filter.
    pub(crate) filter: &'static str,
    /// What is answered.
    pub(crate) lines: Vec<&'static str>,
}

/// The paragraphs of a table; lines with `#` are for people.
pub(crate) fn read(table: &'static str) -> Vec<Paragraph> {
    let paragraph = |text: &'static str| {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let (given, filter) = lines.next()?.split_once(": ")?;
        Some(Paragraph { given, filter, lines: lines.collect() })
    };
    table.split("\n\n").filter_map(paragraph).collect()
}

impl fmt::Display for Paragraph {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}\n{}", self.given, self.filter, self.lines.join("\n"))
    }
}
