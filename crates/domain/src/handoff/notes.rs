//! The notes of a handoff: the session's own claims, in a section that Plimsoll never overwrites with
//! generated text.

use crate::text::{to_safe_single_line, truncate_end};
use plimsoll_protocol::untrusted_text::sanitize_for_model;

/// The notes of a session, as it wrote them into the notes section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandoffNotes {
    /// A summary of the work.
    pub summary: String,
    /// The progress on the item.
    pub progress: String,
    /// The next step.
    pub next_step: String,
}

/// The heading at which the generated part ends. Everything below belongs to the session and is never
/// overwritten.
pub(super) const NOTES_HEADING: &str = "## Notes from the session";

pub(super) const EMPTY_NOTES_SECTION: &str = "## Notes from the session

<!-- The session's own claims, not verified. -->
- Summary:
- Progress on the item:
- Next step:
";

const NOTE_LABELS: [&str; 3] = ["Summary:", "Progress on the item:", "Next step:"];

/// Returns the byte offset of the notes section: the first line that is exactly its heading. Quoted text above
/// it may contain the heading within a line, and the session may write the heading a second time.
pub(super) fn find_notes_start(document: &str) -> Option<usize> {
    let mut line_start = 0;
    for line in document.split_inclusive('\n') {
        if line.trim_end() == NOTES_HEADING {
            return Some(line_start);
        }
        line_start += line.len();
    }
    // A person may have added text after the heading.
    document.rfind(&format!("\n{NOTES_HEADING}")).map(|line_break| line_break + 1)
}

impl HandoffNotes {
    /// Parses the notes section of a handoff. Text without a label becomes the summary.
    pub fn parse(document: &str) -> HandoffNotes {
        let section = find_notes_start(document)
            .map_or("", |notes_start| &document[notes_start + NOTES_HEADING.len()..]);
        let (notes, unlabeled_text) = HandoffNotes::parse_labeled_lines_and_text_before(section);
        HandoffNotes {
            summary: if notes.summary.is_empty() { unlabeled_text } else { notes.summary },
            ..notes
        }
    }

    /// Parses the notes in the session's last message. Text without a label is ignored.
    pub fn from_message(message: &str) -> HandoffNotes {
        HandoffNotes::parse_labeled_lines_and_text_before(message).0
    }

    /// Returns the document with these notes in its notes section. An empty note leaves the document's note
    /// unchanged.
    pub fn replace_nonempty_notes_in_document(&self, document: &str) -> String {
        let Some(notes_start) = find_notes_start(document) else { return document.to_owned() };
        let (text_above, mut section) = (&document[..notes_start], document[notes_start..].to_owned());
        for (label, note) in NOTE_LABELS.iter().zip([&self.summary, &self.progress, &self.next_step]) {
            if note.is_empty() {
                continue;
            }
            let label_line = format!("\n- {label}");
            let Some(start) = section.find(&label_line) else { continue };
            let text_start = start + label_line.len();
            let text_end =
                section[text_start..].find('\n').map_or(section.len(), |length| text_start + length);
            section.replace_range(
                text_start..text_end,
                &format!(" {}", sanitize_for_model(&to_safe_single_line(note))),
            );
        }
        format!("{text_above}{section}")
    }

    /// Parses the labeled lines, each with the lines that follow it, and the text before the first label.
    fn parse_labeled_lines_and_text_before(text: &str) -> (HandoffNotes, String) {
        let mut fields = [String::new(), String::new(), String::new(), String::new()];
        let mut current_field_index = 3;
        for line in remove_comments_and_escape_unclosed(text).lines() {
            let label = parse_label(line);
            let line_text = match label {
                Some((field_index, line_text)) => {
                    current_field_index = field_index;
                    line_text
                }
                None => line,
            };
            fields[current_field_index] =
                to_safe_single_line(&format!("{} {line_text}", fields[current_field_index]));
        }
        let [summary, progress, next_step, unlabeled_text] =
            fields.map(|text| truncate_end(&sanitize_for_model(&text), 1_000));
        (HandoffNotes { summary, progress, next_step }, unlabeled_text)
    }

    pub fn is_empty(&self) -> bool {
        self.summary.is_empty() && self.progress.is_empty() && self.next_step.is_empty()
    }
}

/// Parses the label at the beginning of a line. Returns its index in [`NOTE_LABELS`] and the text after it. Models
/// vary the requested labels: `progress — 70%`, `**Status:** 70 %`, `2. Next steps: …`.
fn parse_label(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_start_matches(LABEL_PREFIX_CHARACTERS);
    let (number, text_after_number) = line.split_at(line.find(|c: char| !c.is_ascii_digit())?);
    let line = if number.is_empty() {
        line
    } else {
        text_after_number.strip_prefix(['.', ')'])?.trim_start_matches(LABEL_PREFIX_CHARACTERS)
    };
    let (label, value) = split_at_first_separator(line)?;
    let value = value.trim_start_matches(EMPHASIS_CHARACTERS);
    Some((field_index_for_label(label.trim_end_matches(LABEL_PREFIX_CHARACTERS), value)?, value))
}

/// Characters that may precede a label: markers of lists, headings, quotations and emphasis.
const LABEL_PREFIX_CHARACTERS: [char; 7] = [' ', '\t', '-', '*', '_', '#', '>'];
const EMPHASIS_CHARACTERS: [char; 2] = ['*', '_'];
/// Separators between a label and its text. A hyphen counts only with a space on each side.
const LABEL_SEPARATORS: [&str; 5] = [":", "—", "–", "=", " - "];

/// Splits a line at its first separator.
fn split_at_first_separator(line: &str) -> Option<(&str, &str)> {
    let separators =
        LABEL_SEPARATORS.iter().filter_map(|separator| Some((line.find(separator)?, separator.len())));
    let (start, length) = separators.min()?;
    Some((&line[..start], &line[start + length..]))
}

/// Returns the index of a label in [`NOTE_LABELS`], ignoring case and accepting variants.
fn field_index_for_label(label: &str, value: &str) -> Option<usize> {
    if label.eq_ignore_ascii_case("summary") {
        return Some(0);
    }
    if ["next step", "next steps"].iter().any(|accepted_label| label.eq_ignore_ascii_case(accepted_label)) {
        return Some(2);
    }
    let label = ["current ", "overall "]
        .iter()
        .find_map(|qualifier| strip_prefix_ignore_case(label, qualifier))
        .unwrap_or(label);
    let is_progress = strip_prefix_ignore_case(label, "progress").is_some_and(is_empty_or_progress_qualifier);
    // "Status" needs a percentage, because commands and responses have a status, too.
    let is_status = strip_prefix_ignore_case(label, "status").is_some_and(is_empty_or_progress_qualifier)
        && starts_with_percentage(value);
    (is_progress || is_status).then_some(1)
}

/// Returns true for text that may follow the word "progress" in a label: nothing, or a qualifier such as
/// `so far`.
fn is_empty_or_progress_qualifier(text_after_word: &str) -> bool {
    text_after_word.is_empty()
        || [" on ", " of ", " so far", " ("]
            .iter()
            .any(|qualifier| strip_prefix_ignore_case(text_after_word, qualifier).is_some())
}

/// Strips a prefix, ignoring ASCII case.
fn strip_prefix_ignore_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let beginning = text.get(..prefix.len())?;
    beginning.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// Returns true for `70%`, `~70 %`, `about 70.5 percent`.
fn starts_with_percentage(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '~', '≈', '(', '*', '_']);
    let text = ["about ", "around ", "roughly "]
        .iter()
        .find_map(|qualifier| strip_prefix_ignore_case(text, qualifier))
        .unwrap_or(text);
    let after_number = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ',');
    let unit = after_number.trim_start();
    after_number.len() < text.len()
        && (unit.starts_with('%') || strip_prefix_ignore_case(unit, "percent").is_some())
}

/// Removes HTML comments. A `<!--` that is never closed is not a comment, so the text is kept and the
/// characters are changed so that they cannot begin a comment elsewhere.
fn remove_comments_and_escape_unclosed(text: &str) -> String {
    let mut text_without_comments = String::new();
    let mut remaining_text = text;
    while let Some((before, after_open)) = remaining_text.split_once("<!--") {
        let Some((_, after_close)) = after_open.split_once("-->") else { break };
        text_without_comments.push_str(before);
        remaining_text = after_close;
    }
    (text_without_comments + remaining_text).replace("<!--", "<!·-")
}

/// Adds the labels that are missing in the notes section, or the whole section if it is missing. Documents leave
/// out labels without text, so any of them may be missing.
pub(super) fn add_missing_labels(document: &str) -> String {
    let Some(notes_start) = find_notes_start(document) else {
        return format!("{}\n\n{EMPTY_NOTES_SECTION}", document.trim_end());
    };
    let has_label = |label: &&str| document[notes_start..].contains(&format!("\n- {label}"));
    let missing_lines: String =
        NOTE_LABELS.iter().filter(|label| !has_label(label)).map(|label| format!("- {label}\n")).collect();
    if missing_lines.is_empty() {
        document.to_owned()
    } else {
        format!("{}\n{missing_lines}", document.trim_end())
    }
}

/// Removes the labels without text, and the whole notes section if nothing remains in it.
pub(super) fn remove_empty_labels_and_empty_section(document: &str) -> String {
    let Some(notes_start) = find_notes_start(document) else { return document.to_owned() };
    let (text_above, section) = document.split_at(notes_start);
    let lines: Vec<&str> = section.lines().collect();
    let is_label = |line: &str| parse_label(line).is_some();
    // A label without text on its line counts as filled if text follows on the next lines.
    let should_keep = |index: usize| {
        let next_text_line = lines[index + 1..].iter().find(|line| !line.trim().is_empty());
        parse_label(lines[index]).is_none_or(|(_, value)| !value.trim().is_empty())
            || next_text_line.is_some_and(|line| !is_label(line))
    };
    let kept_lines: Vec<&str> =
        (0..lines.len()).filter(|index| should_keep(*index)).map(|index| lines[index]).collect();
    let kept_section = kept_lines.join("\n");
    let has_only_heading = remove_comments_and_escape_unclosed(&kept_section).trim() == NOTES_HEADING;
    if has_only_heading {
        format!("{}\n", text_above.trim_end())
    } else {
        format!("{text_above}{}\n", kept_section.trim_end())
    }
}
