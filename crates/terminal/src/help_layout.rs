//! Layout of the text below the options of a `--help`: prose is wrapped once, at the terminal's width, and examples are not wrapped.
//!
//! clap wraps that text line by line. A line break of the source would survive inside a sentence, and a long example would be broken.

use crate::console;
use clap::Command;
use clap::builder::StyledStr;
use std::borrow::Cow;
use textwrap::{Options, WordSplitter};

/// Longer lines are hard to read.
const MAX_HELP_WIDTH: usize = 100;
/// Stands for a space at which clap must not wrap. [`restore_spaces`] turns it into a space.
const NO_BREAK_SPACE: &str = "\u{a0}";
/// A section whose heading starts so is for copying.
const VERBATIM_HEADINGS: [&str; 3] = ["Example", "First steps", "In "];

/// Returns the width of the help on this terminal.
pub fn help_width() -> usize {
    console::line_width_from_columns_or_terminal().min(MAX_HELP_WIDTH)
}

/// Lays out the help of a command and of all its subcommands for this width.
pub fn with_help_width(command: Command, width: usize) -> Command {
    let lay_out = |text: &StyledStr| wrap_after_help(&text.to_string(), width).replace(' ', NO_BREAK_SPACE);
    let after_help = command.get_after_help().map(lay_out);
    let after_long_help = command.get_after_long_help().map(lay_out);
    let mut command = command.term_width(width);
    if let Some(text) = after_help {
        command = command.after_help(text);
    }
    if let Some(text) = after_long_help {
        command = command.after_long_help(text);
    }
    command.mut_subcommands(|subcommand| with_help_width(subcommand, width))
}

/// Turns the placeholders of [`with_help_width`] into spaces.
pub fn restore_spaces(rendered_help: &str) -> String {
    rendered_help.replace(NO_BREAK_SPACE, " ")
}

/// Wraps the paragraphs and lists of a text at this width. Lines below the heading of an example stay as they are.
fn wrap_after_help(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut paragraph = String::new();
    let mut is_verbatim = false;
    for line in text.lines() {
        if line.is_empty() || line.starts_with(' ') {
            flush_paragraph(&mut paragraph, width, &mut lines);
            if is_verbatim || line.is_empty() {
                lines.push(line.to_owned());
            } else {
                lines.extend(wrap_row(line, width));
            }
            continue;
        }
        if !paragraph.is_empty() {
            paragraph.push(' ');
        }
        paragraph.push_str(line);
        is_verbatim =
            paragraph.ends_with(':') && VERBATIM_HEADINGS.iter().any(|start| paragraph.starts_with(start));
    }
    flush_paragraph(&mut paragraph, width, &mut lines);
    lines.join("\n")
}

fn flush_paragraph(paragraph: &mut String, width: usize, lines: &mut Vec<String>) {
    if !paragraph.is_empty() {
        lines.extend(wrap_with_indent(&std::mem::take(paragraph), width, ""));
    }
}

/// Wraps a row of a list: a name, at least two spaces, and its description, below which the row continues.
pub fn wrap_row(row: &str, width: usize) -> Vec<String> {
    let name_start = row.len() - row.trim_start().len();
    let description_start = row[name_start..].find("  ").map_or(name_start, |gap| {
        let gap = name_start + gap;
        row.len() - row[gap..].trim_start().len()
    });
    let (name, description) = row.split_at(description_start);
    // The name is not part of the wrapped text, because its spaces stay as they are.
    let indent = " ".repeat(name.chars().count());
    let mut lines = wrap_with_indent(description, width, &indent);
    if let Some(first) = lines.first_mut() {
        first.replace_range(..indent.len(), name);
    }
    lines
}

fn wrap_with_indent(text: &str, width: usize, indent: &str) -> Vec<String> {
    let options = Options::new(width)
        .break_words(false)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit)
        .initial_indent(indent)
        .subsequent_indent(indent);
    textwrap::wrap(text, options).into_iter().map(Cow::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_and_lists_are_wrapped_and_examples_are_not() {
        let text = "\
A sentence that the source breaks here
and that goes on.

Examples:
  plimsoll fleet create night --verify 'npm test'    a long description

Exit codes:
  0    completed
  130  ended by you, and resumable later";
        let wrapped = "\
A sentence that the source
breaks here and that goes
on.

Examples:
  plimsoll fleet create night --verify 'npm test'    a long description

Exit codes:
  0    completed
  130  ended by you, and
       resumable later";
        assert_eq!(wrap_after_help(text, 27), wrapped);
        assert_eq!(
            wrap_row("  init          Set up the hooks", 26),
            ["  init          Set up the", "                hooks"]
        );
        let command = Command::new("x").after_help("a b\nc").subcommand(Command::new("y").after_help("d e"));
        let command = with_help_width(command, 80);
        assert_eq!(command.get_after_help().map(ToString::to_string).as_deref(), Some("a\u{a0}b\u{a0}c"));
        let subcommand = command.find_subcommand("y").and_then(Command::get_after_help);
        assert_eq!(subcommand.map(|text| restore_spaces(&text.to_string())).as_deref(), Some("d e"));
    }
}
