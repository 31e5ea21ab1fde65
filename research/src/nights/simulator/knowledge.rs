//! The agent's knowledge: what its current request contains, and nothing else. A later statement overrides an
//! earlier one.

use super::rules::{Rule, find_rules};
use regex::{Captures, Regex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// The patterns with which the agent parses its commands' output, plans, notes, prompts, messages and summaries.
/// Those for prompts match any loop's wording: an item follows "your item", "this item" or "the current item"; a
/// handoff is a file of the handoff folder between backticks.
static KNOWLEDGE_PATTERNS: LazyLock<Regex> = LazyLock::new(|| {
    let patterns = [
        // The output of the agent's own commands, and the texts of the project.
        r"FACT\[(?<fact>[^\]]+)\]=(?<value>\d{5})",
        r"ASK\[(?<asks>part-\d+\.txt)\]",
        r"converted (?<converted>part-\d+\.txt) \d+-(?<to>\d+) of (?<lines>\d+)",
        r"written (?<written>part-\d+\.txt)",
        r"finished (?<finished>part-\d+\.txt); (?<left>\d+) open",
        // Anchored, because a handoff that quotes another session's command is not a question.
        r"(?m)^asked (?<asked>part-\d+\.txt)$",
        r"(?<stopped>saved what there is)",
        r"(?<testing>testing items)",
        r"FAIL (?<failing>part-\d+\.txt): (?<how>line \d+ is [a-z ]+|no result)",
        r"(?<passed>OK: every test passes)",
        r"(?m)^(?<plan># Plan)$",
        r"- \[ \] Convert (?<open>part-\d+\.txt)",
        // The output of git.
        r"(?m)^\s?M\s+(?<changed>part-\d+\.txt)$",
        // Notes and messages of sessions.
        r"At (?<at>part-\d+\.txt) line (?<line>\d+) of (?<of>\d+)",
        r#"Convert (?<waits>part-\d+\.txt)"?(?: waits for an answer| \(waits for)"#,
        // Statements of prompts: the item, a table of files and lines, another file to read, and the line
        // that ends the run.
        r"(?i:your|this|current) item\W+(?:is\W+)?Convert (?<told>part-\d+\.txt)",
        r"\| (?<row>part-\d+\.txt) \| (?<ranges>[\d, -]+) \|",
        r"`(?<handoff>\.claude/handoffs/[^`]+)`",
        r"(?<blocked><promise>BLOCKED[^<]*</promise>)",
        r"(?<promise><promise>[A-Z]+[^<]*</promise>|\bLOOP_COMPLETE\b|\bEXIT_SIGNAL: true\b)",
        r"(?<begun>earlier sessions began it|\(half done)",
    ];
    Regex::new(&patterns.join("|")).expect("a pattern")
});

/// A file in which a prompt may ask for notes.
static NOTES_FILE_PATTERN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"`([\w./-]+\.(?:md|txt))`").expect("a pattern"));

/// The progress in a file, as far as the agent knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileProgress {
    /// The first line that is not converted.
    pub next_line: Option<u32>,
    /// The number of lines of the file.
    pub line_count: Option<u32>,
}

/// The place where the agent writes its notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotesLocation {
    /// Below the item in this plan.
    UnderItem(String),
    /// At the end of this file.
    EndOfFile(String),
}

/// The content of a request, as the agent understands it.
#[derive(Debug, Default)]
pub struct Knowledge {
    /// The rules that the request states.
    pub rules: BTreeSet<Rule>,
    /// The value of each fact, by name.
    pub facts: BTreeMap<String, String>,
    /// The progress in each file that the request mentions.
    pub progress_by_file: BTreeMap<String, FileProgress>,
    /// The item that a prompt or message names.
    pub named_item: Option<String>,
    /// The open items of the plan, if it was read after the last tick.
    pub open_items: Option<Vec<String>>,
    /// The files that git reports as changed.
    pub changed_files: BTreeSet<String>,
    /// The failures that the last run of the test named, by file.
    pub failures: BTreeMap<String, String>,
    /// True if the last run of the test passed and nothing has changed since.
    pub is_test_passed: bool,
    /// The files whose results are written and whose items are not ticked.
    pub files_with_result: BTreeSet<String>,
    /// The files whose item needs an answer.
    pub files_needing_answer: BTreeSet<String>,
    /// The files whose question was written by the previous command.
    pub files_with_new_question: BTreeSet<String>,
    /// The files whose item waits for an answer.
    pub waiting_files: BTreeSet<String>,
    /// The items that were finished in this conversation.
    pub finished_files: BTreeSet<String>,
    /// How many items were open when the last one was finished.
    pub open_count: Option<u32>,
    /// The handoff that the prompt tells the agent to read.
    pub handoff_file: Option<String>,
    /// The line that ends the run; empty if unknown.
    pub promise_line: String,
    /// The line that says that only a person can help.
    pub blocked_line: String,
    /// True if the prompt says that the item it names is in progress.
    pub is_item_in_progress: bool,
    /// True after the commit that saves everything before a stop.
    pub has_committed_before_stop: bool,
    /// The place where the prompt asks for notes.
    pub notes_location: Option<NotesLocation>,
    /// The command that searches earlier sessions' transcripts, with PATTERN in it.
    pub search_command: Option<String>,
}

impl Knowledge {
    /// Parses a text from start to end. Later statements override earlier ones.
    pub fn parse(text: &str) -> Knowledge {
        let mut knowledge = Knowledge { rules: find_rules(text), ..Knowledge::default() };
        for captures in KNOWLEDGE_PATTERNS.captures_iter(text) {
            knowledge.apply_statement(&captures);
        }
        knowledge.notes_location =
            knowledge.rules.contains(&Rule::Notes).then(|| find_notes_location(text)).flatten();
        knowledge.search_command = super::rules::find_rule_text(Rule::Search, text)
            .and_then(|sentence| Some(sentence.strip_suffix('`')?.rsplit_once('`')?.1.to_owned()));
        knowledge
    }

    fn apply_statement(&mut self, captures: &Captures<'_>) {
        let group_text = |name: &str| captures.name(name).map(|group_match| group_match.as_str().to_owned());
        let group_number =
            |name: &str| captures.name(name).and_then(|group_match| group_match.as_str().parse::<u32>().ok());
        if let (Some(fact), Some(value)) = (group_text("fact"), group_text("value")) {
            self.facts.insert(fact, value);
        } else if let (Some(file), Some(last_line)) = (group_text("converted"), group_number("to")) {
            self.is_test_passed = false;
            self.set_progress(file, Some(last_line + 1), group_number("lines"));
        } else if let (Some(file), Some(line)) = (group_text("at"), group_number("line")) {
            self.set_progress(file, Some(line), group_number("of"));
        } else if let (Some(file), Some(ranges)) = (group_text("row"), group_text("ranges")) {
            let last_converted_line =
                ranges.rsplit([',', '-', ' ']).find_map(|part| part.parse::<u32>().ok());
            self.set_progress(file, last_converted_line.map(|last| last + 1), None);
        } else if let Some(file) = group_text("written") {
            self.files_with_result.insert(file);
        } else if let Some(file) = group_text("finished") {
            self.record_finished_item(file, group_number("left"));
        } else if let Some(file) = group_text("told") {
            self.is_item_in_progress = false;
            self.finished_files.remove(&file);
            self.named_item = Some(file);
        } else if group_text("plan").is_some() {
            self.open_items = Some(Vec::new());
        } else if let Some(file) = group_text("open") {
            self.open_items.get_or_insert_default().push(file);
        } else if let Some(promise) = group_text("promise") {
            self.promise_line = promise;
        } else if let Some(line) = group_text("blocked") {
            self.blocked_line = line;
        } else if let Some(handoff) = group_text("handoff") {
            self.handoff_file = Some(handoff);
        } else if group_text("begun").is_some() {
            self.is_item_in_progress = true;
        } else if group_text("stopped").is_some() {
            self.has_committed_before_stop = true;
        } else {
            self.apply_test_question_or_git_statement(captures);
        }
    }

    /// Applies statements of tests, questions and git about files.
    fn apply_test_question_or_git_statement(&mut self, captures: &Captures<'_>) {
        let group_text = |name: &str| captures.name(name).map(|group_match| group_match.as_str().to_owned());
        if let (Some(file), Some(failure)) = (group_text("failing"), group_text("how")) {
            self.is_test_passed = false;
            self.failures.insert(file, failure);
        } else if group_text("testing").is_some() {
            self.failures.clear();
        } else if group_text("passed").is_some() {
            self.failures.clear();
            self.is_test_passed = true;
        } else if let Some(file) = group_text("asks") {
            self.files_needing_answer.insert(file);
        } else if let Some(file) = group_text("asked") {
            self.files_with_new_question.insert(file);
        } else if let Some(file) = group_text("waits") {
            self.waiting_files.insert(file);
        } else if let Some(file) = group_text("changed") {
            self.changed_files.insert(file);
        }
    }

    fn set_progress(&mut self, file: String, next_line: Option<u32>, line_count: Option<u32>) {
        let progress = self.progress_by_file.entry(file).or_default();
        *progress = FileProgress { next_line, line_count: line_count.or(progress.line_count) };
    }

    fn record_finished_item(&mut self, file: String, open_count: Option<u32>) {
        self.files_with_result.remove(&file);
        self.progress_by_file.remove(&file);
        if self.named_item.as_ref() == Some(&file) {
            self.named_item = None;
        }
        self.finished_files.insert(file);
        self.open_count = open_count;
        self.open_items = None;
        self.is_test_passed = false;
    }

    /// Returns true if the request states the rule.
    pub fn states_rule(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    /// Returns the open items that the agent may work on now. The one that the prompt names comes first.
    pub(super) fn candidate_items(&self) -> Vec<String> {
        let open_items = self.open_items.clone().unwrap_or_default();
        let all_items = self
            .named_item
            .iter()
            .chain(open_items.iter().filter(|file| self.named_item.as_ref() != Some(file)));
        all_items
            .filter(|file| !self.finished_files.contains(*file) && !self.waiting_files.contains(*file))
            .cloned()
            .collect()
    }

    /// Renders the knowledge as text that `parse` can read. `should_keep` decides which facts and places are included.
    pub(super) fn render_summary(&self, should_keep: impl Fn(&str) -> bool) -> String {
        let mut statements = Vec::new();
        for (file, progress) in &self.progress_by_file {
            if let (Some(next_line), true) = (progress.next_line, should_keep(&format!("place {file}"))) {
                statements.push(format!(
                    "At {file} line {next_line} of {}.",
                    progress.line_count.unwrap_or(99_999)
                ));
            }
        }
        let facts = self.facts.iter().filter(|(name, _)| should_keep(name));
        statements.extend(facts.map(|(name, value)| format!("FACT[{name}]={value}")));
        statements
            .extend(self.waiting_files.iter().map(|file| format!("Convert {file} waits for an answer.")));
        if statements.is_empty() { "Nothing that I remember.".to_owned() } else { statements.join(" ") }
    }
}

/// Returns the file in the sentence about notes. "Under" or "below" the item means the plan itself.
fn find_notes_location(text: &str) -> Option<NotesLocation> {
    let sentence = super::rules::find_rule_text(Rule::Notes, text)?;
    let file = NOTES_FILE_PATTERN.captures_iter(&sentence).last()?[1].to_owned();
    let text_after = text.split_once(sentence.as_str()).map_or("", |(_, after)| after);
    let following_text: String = text_after.chars().take(40).collect();
    let is_under_item = ["under the item", "below the item"]
        .iter()
        .any(|phrase| sentence.contains(phrase) || following_text.contains(phrase));
    Some(if is_under_item { NotesLocation::UnderItem(file) } else { NotesLocation::EndOfFile(file) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(next: Option<u32>, lines: Option<u32>) -> Option<FileProgress> {
        Some(FileProgress { next_line: next, line_count: lines })
    }

    #[test]
    fn later_statements_override_earlier_ones() {
        let progress_of = |text: &str, file: &str| Knowledge::parse(text).progress_by_file.get(file).copied();
        let twice = "converted part-1.txt 1-26 of 60\nconverted part-1.txt 27-52 of 60";
        assert_eq!(progress_of(twice, "part-1.txt"), progress(Some(53), Some(60)));
        assert_eq!(
            progress_of("converted part-1.txt 27-60 of 60 finished part-1.txt; 2 open", "part-1.txt"),
            None
        );
        let resumed = "## Your item\n\n> Convert part-3.txt\n\n| part-3.txt | 1-80 | modified |\n";
        assert_eq!(progress_of(resumed, "part-3.txt"), progress(Some(81), None));
        assert_eq!(
            progress_of("echo \"converted part-1.txt 1-26 of $(wc -l < part-1.txt)\"", "part-1.txt"),
            None
        );
    }

    #[test]
    fn candidates_are_the_open_items_that_do_not_wait() {
        let plan = "# Plan\n\n- [x] Convert part-1.txt\n- [ ] Convert part-2.txt\n  ? Convert part-2.txt waits for an answer: which?\n- [ ] Convert part-3.txt\n";
        assert_eq!(Knowledge::parse(plan).candidate_items(), ["part-3.txt"]);
        let text_naming_item = format!("{plan}exactly this item: \"Convert part-4.txt\"");
        assert_eq!(Knowledge::parse(&text_naming_item).candidate_items(), ["part-4.txt", "part-3.txt"]);
        assert_eq!(Knowledge::parse(&format!("{plan}finished part-3.txt; 1 open")).open_items, None);
    }

    #[test]
    fn a_passing_test_clears_the_failures() {
        let failed = "testing items\nFAIL part-2.txt: line 27 is not converted\n";
        let knowledge = Knowledge::parse(failed);
        assert_eq!(
            knowledge.failures.get("part-2.txt").map(String::as_str),
            Some("line 27 is not converted")
        );
        let passed = Knowledge::parse(&format!("{failed}testing items\nOK: every test passes"));
        assert!(passed.failures.is_empty() && passed.is_test_passed);
    }

    #[test]
    fn a_summary_parses_to_the_knowledge_it_was_rendered_from() {
        let knowledge = Knowledge::parse("converted part-2.txt 1-26 of 60 FACT[part-2.txt/0]=12345");
        let remembered = Knowledge::parse(&knowledge.render_summary(|_| true));
        assert_eq!(
            (&remembered.progress_by_file, &remembered.facts),
            (&knowledge.progress_by_file, &knowledge.facts)
        );
        let forgotten = Knowledge::parse(&knowledge.render_summary(|_| false));
        assert_eq!((forgotten.progress_by_file.len(), forgotten.facts.len()), (0, 0));
    }
}
