//! The notes of a handoff: what the session itself says, in a section of its own that nothing generated overwrites.

use crate::text::{clip, one_line};
use plimsoll_protocol::foreign_words::for_model;

/// What the session wrote into its section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// What was being done.
    pub summary: String,
    /// How far the item is.
    pub progress: String,
    /// What to do next.
    pub next: String,
}

/// Where the generated part ends. Everything below belongs to the session and is never overwritten.
pub(super) const NOTES_HEADING: &str = "## Notes from the session";

pub(super) const EMPTY_NOTES: &str = "## Notes from the session

<!-- The session's own claims, not verified. -->
- Summary:
- Progress on the item:
- Next step:
";

const LABELS: [&str; 3] = ["Summary:", "Progress on the item:", "Next step:"];

/// Where the notes begin: at the first line that is their heading and nothing else. The words above may quote it, and
/// the session may write it a second time.
pub(super) fn notes_start(document: &str) -> Option<usize> {
    let mut place = 0;
    for line in document.split_inclusive('\n') {
        if line.trim_end() == NOTES_HEADING {
            return Some(place);
        }
        place += line.len();
    }
    // A hand may have written more behind it.
    document.rfind(&format!("\n{NOTES_HEADING}")).map(|before| before + 1)
}

impl Notes {
    /// Reads the session's section back.
    pub fn parse(document: &str) -> Notes {
        let section = notes_start(document).map_or("", |place| &document[place + NOTES_HEADING.len()..]);
        let (notes, free) = Notes::labelled(section);
        Notes { summary: if notes.summary.is_empty() { free } else { notes.summary }, ..notes }
    }

    /// Reads the notes off the session's last message. Without a label it is no note.
    pub fn in_message(message: &str) -> Notes {
        Notes::labelled(message).0
    }

    /// The document with these notes in the place of its own: only for the session's own words.
    pub fn replace(&self, document: &str) -> String {
        let Some(place) = notes_start(document) else { return document.to_owned() };
        let (above, mut section) = (&document[..place], document[place..].to_owned());
        for (label, note) in LABELS.iter().zip([&self.summary, &self.progress, &self.next]) {
            if note.is_empty() {
                continue;
            }
            let mark = format!("\n- {label}");
            let Some(start) = section.find(&mark) else { continue };
            let words = start + mark.len();
            let end = section[words..].find('\n').map_or(section.len(), |length| words + length);
            section.replace_range(words..end, &format!(" {}", for_model(&one_line(note))));
        }
        format!("{above}{section}")
    }

    /// The labelled lines with what follows each, and the words before the first label.
    fn labelled(section: &str) -> (Notes, String) {
        let mut fields = [String::new(), String::new(), String::new(), String::new()];
        let mut current = 3;
        for line in without_comments(section).lines() {
            let label = label_of(line);
            let words = match label {
                Some((field, words)) => {
                    current = field;
                    words
                }
                None => line,
            };
            fields[current] = one_line(&format!("{} {words}", fields[current]));
        }
        let [summary, progress, next, free] = fields.map(|text| clip(&for_model(&text), 1_000));
        (Notes { summary, progress, next }, free)
    }

    /// True when the session wrote nothing.
    pub fn is_empty(&self) -> bool {
        self.summary.is_empty() && self.progress.is_empty() && self.next.is_empty()
    }
}

/// Returns which note a line begins (an index of [`LABELS`]), and the words behind its label. Models vary the labels that they are
/// asked for: `progress — 70%`, `**Status:** 70 %`, `2. Next steps: …`.
fn label_of(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_start_matches(LIST_MARKS);
    let (number, rest) = line.split_at(line.find(|c: char| !c.is_ascii_digit())?);
    let line =
        if number.is_empty() { line } else { rest.strip_prefix(['.', ')'])?.trim_start_matches(LIST_MARKS) };
    let (name, words) = split_label(line)?;
    let words = words.trim_start_matches(EMPHASIS);
    Some((field_of(name.trim_end_matches(LIST_MARKS), words)?, words))
}

/// Characters that may precede a label: the marks of lists, headings, quotations and emphasis.
const LIST_MARKS: [char; 7] = [' ', '\t', '-', '*', '_', '#', '>'];
const EMPHASIS: [char; 2] = ['*', '_'];
/// Separators of a label and its words. A hyphen is one only with a space on each side.
const SEPARATORS: [&str; 5] = [":", "—", "–", "=", " - "];

/// Splits a line at its first separator.
fn split_label(line: &str) -> Option<(&str, &str)> {
    let first = SEPARATORS.iter().filter_map(|mark| Some((line.find(mark)?, mark.len())));
    let (place, length) = first.min()?;
    Some((&line[..place], &line[place + length..]))
}

/// Returns the field that a label names, whatever its case.
fn field_of(name: &str, words: &str) -> Option<usize> {
    if name.eq_ignore_ascii_case("summary") {
        return Some(0);
    }
    if ["next step", "next steps"].iter().any(|label| name.eq_ignore_ascii_case(label)) {
        return Some(2);
    }
    let name = ["current ", "overall "].iter().find_map(|word| strip_word(name, word)).unwrap_or(name);
    let is_progress = strip_word(name, "progress").is_some_and(is_of_something);
    // Much else has a status: of a command, of a response.
    let is_status = strip_word(name, "status").is_some_and(is_of_something) && begins_with_percentage(words);
    (is_progress || is_status).then_some(1)
}

/// True for what may follow the word "progress" in a label: nothing, or what it is the progress of.
fn is_of_something(rest: &str) -> bool {
    rest.is_empty() || [" on ", " of ", " so far", " ("].iter().any(|word| strip_word(rest, word).is_some())
}

/// Strips the beginning of a text, whatever its case.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let beginning = text.get(..word.len())?;
    beginning.eq_ignore_ascii_case(word).then(|| &text[word.len()..])
}

/// True for `70%`, `~70 %`, `about 70.5 percent`.
fn begins_with_percentage(words: &str) -> bool {
    let words = words.trim_start_matches([' ', '~', '≈', '(', '*', '_']);
    let words =
        ["about ", "around ", "roughly "].iter().find_map(|word| strip_word(words, word)).unwrap_or(words);
    let rest = words.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ',');
    let unit = rest.trim_start();
    rest.len() < words.len() && (unit.starts_with('%') || strip_word(unit, "percent").is_some())
}

/// The text without its comments. One that never ends is not a comment: the text only mentions the letters. They are
/// written so that they begin none elsewhere either.
fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("<!--") {
        let Some((_, after)) = behind.split_once("-->") else { break };
        kept.push_str(before);
        rest = after;
    }
    (kept + rest).replace("<!--", "<!·-")
}

/// The document with a line for each note, where some are missing: an ordinary session's has only those that say something.
pub(super) fn with_all_labels(document: &str) -> String {
    let Some(place) = notes_start(document) else {
        return format!("{}\n\n{EMPTY_NOTES}", document.trim_end());
    };
    let is_there = |label: &&str| document[place..].contains(&format!("\n- {label}"));
    let missing: String =
        LABELS.iter().filter(|label| !is_there(label)).map(|label| format!("- {label}\n")).collect();
    if missing.is_empty() { document.to_owned() } else { format!("{}\n{missing}", document.trim_end()) }
}

/// The document without the lines of notes that say nothing, and without the section if none does.
pub(super) fn without_empty_labels(document: &str) -> String {
    let Some(place) = notes_start(document) else { return document.to_owned() };
    let (above, section) = document.split_at(place);
    let lines: Vec<&str> = section.lines().collect();
    let is_label = |line: &str| label_of(line).is_some();
    // What stands below an empty label belongs to it.
    let says_something = |place: usize| {
        let next = lines[place + 1..].iter().find(|line| !line.trim().is_empty());
        label_of(lines[place]).is_none_or(|(_, words)| !words.trim().is_empty())
            || next.is_some_and(|line| !is_label(line))
    };
    let kept: Vec<&str> =
        (0..lines.len()).filter(|place| says_something(*place)).map(|place| lines[place]).collect();
    let kept = kept.join("\n");
    let is_bare = without_comments(&kept).trim() == NOTES_HEADING;
    if is_bare { format!("{}\n", above.trim_end()) } else { format!("{above}{}\n", kept.trim_end()) }
}
