//! The parts of a handoff's text that the judge searches.

use super::locations::{LineRange, line_ranges};
use regex::Regex;
use std::sync::LazyLock;

/// The beginning of a handoff's first line.
const MARKER: &str = "[Plimsoll handoff";

static EXCHANGES_HEADING: LazyLock<Regex> =
    LazyLock::new(|| regex("(?i)exchange|conversation|transcript|(last|recent) messages"));
static REQUEST_HEADING: LazyLock<Regex> =
    LazyLock::new(|| regex("(?i)request|asked|want|prompt|current|task"));
static CURRENT_HEADING: LazyLock<Regex> = LazyLock::new(|| regex("(?i)current|in progress|next"));
static NEXT_HEADING: LazyLock<Regex> = LazyLock::new(|| regex("(?i)next"));
static DONE_HEADING: LazyLock<Regex> = LazyLock::new(|| regex("(?i)done|completed|finished"));
static FAILURE_WORD: LazyLock<Regex> = LazyLock::new(|| regex(r"(?i)fail|error|exit (code|status) [1-9]"));
static REPAIR_WORD: LazyLock<Regex> = LazyLock::new(|| regex("(?i)pass|succe|repaired|fixed|later"));
static CHANGE_WORD: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?i)edit|writ|wrote|chang|modif|creat|add|new|updat|sed -i|renam|untracked|git mv")
});
static NEW_FILE_WORD: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i)\bnew\b|creat|added|untracked|\?\?|\bWrite\b"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

/// A part of the text under one heading. The text before the first heading is a part without a heading.
#[derive(Debug, Default)]
struct Section {
    heading: String,
    lines: Vec<String>,
}

impl Section {
    fn flat_text(&self) -> String {
        flatten(&self.lines.join("\n"))
    }
}

#[derive(Debug)]
pub(super) struct HandoffText {
    lines: Vec<String>,
    flat_text: String,
    /// The sections before the last exchanges.
    fact_sections: Vec<Section>,
}

/// Returns a text on one line, without marks of quotation and with single spaces.
pub(super) fn flatten(text: &str) -> String {
    let unquoted_lines: Vec<&str> = text.lines().map(without_quotation_marks).collect();
    unquoted_lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn without_quotation_marks(line: &str) -> &str {
    line.trim_start_matches([' ', '\t', '>']).trim()
}

impl HandoffText {
    pub(super) fn parse(text: &str) -> HandoffText {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut fact_sections = vec![Section::default()];
        for line in &lines {
            if line.starts_with('#') {
                if EXCHANGES_HEADING.is_match(line) {
                    break;
                }
                fact_sections.push(Section { heading: line.clone(), lines: Vec::new() });
            } else if let Some(section) = fact_sections.last_mut() {
                section.lines.push(line.clone());
            }
        }
        HandoffText { flat_text: flatten(text), lines, fact_sections }
    }

    pub(super) fn contains(&self, text: &str) -> bool {
        self.flat_text.contains(&flatten(text))
    }

    pub(super) fn count(&self, flat_text: &str) -> usize {
        self.flat_text.matches(flat_text).count()
    }

    /// Returns the number of lines that consist of this text, apart from marks of quotation and list marks.
    pub(super) fn count_whole_lines(&self, flat_text: &str) -> usize {
        let is_mark = |character: char| " \t>-*\"“”`".contains(character);
        let without_number = |line: &str| -> String {
            let without_digits = line.trim_start_matches(|character: char| character.is_ascii_digit());
            without_digits.strip_prefix(". ").unwrap_or(line).to_owned()
        };
        let is_text = |line: &&String| {
            let line = line.trim_matches(is_mark);
            line == flat_text || without_number(line).trim_matches(is_mark) == flat_text
        };
        self.lines.iter().filter(is_text).count()
    }

    /// Returns true if both texts occur, at most `max_distance` bytes apart.
    pub(super) fn contains_near(&self, first: &str, second: &str, max_distance: usize) -> bool {
        let positions = |text: &str| -> Vec<usize> {
            self.flat_text.match_indices(&flatten(text)).map(|(position, _)| position).collect()
        };
        let second_positions = positions(second);
        let is_near =
            |position: &usize| second_positions.iter().any(|other| position.abs_diff(*other) <= max_distance);
        positions(first).iter().any(is_near)
    }

    pub(super) fn marker_count(&self) -> usize {
        self.lines.iter().filter(|line| without_quotation_marks(line).starts_with(MARKER)).count()
    }

    fn lines_with_path(&self, path: &str) -> impl Iterator<Item = &String> {
        self.lines.iter().filter(move |line| line.contains(path))
    }

    /// Returns true if a line names the file as changed, or names lines of it.
    pub(super) fn names_changed_file(&self, path: &str) -> bool {
        !self.locations(path).is_empty()
            || self.lines_with_path(path).any(|line| CHANGE_WORD.is_match(&line.replace(path, " ")))
    }

    pub(super) fn names_new_file(&self, path: &str) -> bool {
        self.lines_with_path(path).any(|line| NEW_FILE_WORD.is_match(&line.replace(path, " ")))
    }

    /// Returns the line numbers that stand in one line with the path.
    pub(super) fn locations(&self, path: &str) -> Vec<LineRange> {
        locations_in(self.lines_with_path(path), path)
    }

    /// Returns the line numbers that stand in one line with the path, except in the last exchanges.
    pub(super) fn locations_in_facts(&self, path: &str) -> Vec<LineRange> {
        locations_in(self.fact_lines().filter(|line| line.contains(path)), path)
    }

    fn fact_lines(&self) -> impl Iterator<Item = &String> {
        self.fact_sections.iter().flat_map(|section| &section.lines)
    }

    /// Returns true if the item occurs where it is not done.
    pub(super) fn names_open_item(&self, item: &str) -> bool {
        let flat_item = flatten(item);
        let flat_done_text: String = self
            .fact_sections
            .iter()
            .filter(|section| DONE_HEADING.is_match(&section.heading))
            .map(|section| section.flat_text() + "\n")
            .collect();
        self.count(&flat_item) > flat_done_text.matches(&flat_item).count()
    }

    /// Returns true if a section of requests has the finished request as its last one.
    pub(super) fn presents_as_last_request(&self, finished_request: &str, current_request: &str) -> bool {
        let (finished_request, current_request) = (flatten(finished_request), flatten(current_request));
        self.fact_sections.iter().filter(|section| REQUEST_HEADING.is_match(&section.heading)).any(
            |section| {
                let text = section.flat_text();
                let position_of = |request: &str| text.rfind(request);
                match (position_of(&finished_request), position_of(&current_request)) {
                    (Some(finished), Some(current)) => finished > current,
                    (Some(_), None) => true,
                    (None, _) => false,
                }
            },
        )
    }

    /// Returns true if a line of the facts says that the command failed, and not that it passed later.
    pub(super) fn presents_as_failed(&self, command: &str) -> bool {
        let says_failed = |line: &&String| {
            line.contains(command) && {
                let words = line.replace(command, " ");
                FAILURE_WORD.is_match(&words) && !REPAIR_WORD.is_match(&words)
            }
        };
        self.fact_lines().any(|line| says_failed(&line))
    }

    pub(super) fn presents_as_current_item(&self, item: &str) -> bool {
        let flat_item = flatten(item);
        self.fact_sections
            .iter()
            .filter(|section| CURRENT_HEADING.is_match(&section.heading))
            .flat_map(|section| &section.lines)
            .any(|line| flatten(line).contains(&flat_item) && !line.contains("[x]"))
    }

    /// Returns true if a section about the next step has the done step, and not the real one.
    pub(super) fn presents_done_step_as_next(&self, done_step: &str, next_step: Option<&str>) -> bool {
        let (done_step, next_step) = (flatten(done_step), next_step.map(flatten));
        self.fact_sections.iter().filter(|section| NEXT_HEADING.is_match(&section.heading)).any(|section| {
            let text = section.flat_text();
            text.contains(&done_step) && !next_step.as_ref().is_some_and(|step| text.contains(step.as_str()))
        })
    }
}

fn locations_in<'a>(lines: impl Iterator<Item = &'a String>, path: &str) -> Vec<LineRange> {
    lines.flat_map(|line| line_ranges(&line.replace(path, " "))).collect()
}
