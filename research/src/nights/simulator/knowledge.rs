//! The agent's knowledge: what its current request contains, and nothing else. A later statement overrides an earlier one.

use super::rules::{Rule, rules_in};
use regex::{Captures, Regex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// The patterns by which the agent reads its commands' output, plans, notes, prompts, messages and summaries. What it takes out
/// of prompts it finds by rules that hold for any text: an item is what follows the words "your item", "this item" or "the
/// current item"; a handoff is a file of that folder between backticks.
static SIGNS: LazyLock<Regex> = LazyLock::new(|| {
    let signs = [
        // Its own commands, and the texts of the project.
        r"FACT\[(?<fact>[^\]]+)\]=(?<value>\d{5})",
        r"ASK\[(?<asks>part-\d+\.txt)\]",
        r"converted (?<converted>part-\d+\.txt) \d+-(?<to>\d+) of (?<lines>\d+)",
        r"written (?<written>part-\d+\.txt)",
        r"finished (?<finished>part-\d+\.txt); (?<left>\d+) open",
        // A handoff that quotes another session's command asks nothing.
        r"(?m)^asked (?<asked>part-\d+\.txt)$",
        r"(?<stopped>saved what there is)",
        r"(?<testing>testing items)",
        r"FAIL (?<failing>part-\d+\.txt): (?<how>line \d+ is [a-z ]+|no result)",
        r"(?<passed>OK: every test passes)",
        r"(?m)^(?<plan># Plan)$",
        r"- \[ \] Convert (?<open>part-\d+\.txt)",
        // What git says.
        r"(?m)^\s?M\s+(?<changed>part-\d+\.txt)$",
        // Notes and messages of sessions.
        r"At (?<at>part-\d+\.txt) line (?<line>\d+) of (?<of>\d+)",
        r#"Convert (?<waits>part-\d+\.txt)"?(?: waits for an answer| \(waits for)"#,
        // What a prompt tells: the item, a table of places, another file to read, and the line that ends the run.
        r"(?i:your|this|current) item\W+(?:is\W+)?Convert (?<told>part-\d+\.txt)",
        r"\| (?<row>part-\d+\.txt) \| (?<ranges>[\d, -]+) \|",
        r"`(?<handoff>\.claude/handoffs/[^`]+)`",
        r"(?<blocked><promise>BLOCKED[^<]*</promise>)",
        r"(?<promise><promise>[A-Z]+[^<]*</promise>|\bLOOP_COMPLETE\b|\bEXIT_SIGNAL: true\b)",
        r"(?<begun>earlier sessions began it|\(half done)",
    ];
    Regex::new(&signs.join("|")).expect("a pattern")
});

/// The files in which a prompt may ask for notes.
static FILES: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`([\w./-]+\.(?:md|txt))`").expect("a pattern"));

/// How far a file is, as far as the agent knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The first line that is not converted.
    pub next: Option<u32>,
    /// How many lines it has.
    pub lines: Option<u32>,
}

/// Where the agent writes its notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notes {
    /// Under the item, in this list.
    Under(String),
    /// At the end of this file.
    After(String),
}

/// What the agent has read out of a request.
#[derive(Debug, Default)]
pub struct Knowledge {
    /// The rules that it states.
    pub rules: BTreeSet<Rule>,
    /// The facts by their names.
    pub facts: BTreeMap<String, String>,
    /// How far each file is that it has heard of.
    pub places: BTreeMap<String, Place>,
    /// The item that a prompt or message names.
    pub told: Option<String>,
    /// The open items of the plan, if it was read after the last tick.
    pub open: Option<Vec<String>>,
    /// The files that git calls changed.
    pub changed: BTreeSet<String>,
    /// What the last run of the test names, and why.
    pub failing: BTreeMap<String, String>,
    /// The last run of the test passed, and nothing was changed since.
    pub is_tested: bool,
    /// The files whose results are written, and whose items are not ticked.
    pub written: BTreeSet<String>,
    /// The files whose item needs an answer.
    pub asks: BTreeSet<String>,
    /// Of these, those whose question was just written.
    pub asked: BTreeSet<String>,
    /// The files whose item waits for an answer.
    pub waits: BTreeSet<String>,
    /// Items that were finished in this conversation.
    pub finished: BTreeSet<String>,
    /// How many items were open when the last one was finished.
    pub left: Option<u32>,
    /// A file that the prompt names for more.
    pub handoff: Option<String>,
    /// The line that ends the run; empty if unknown.
    pub promise: String,
    /// The line that says that only a person can help.
    pub blocked: String,
    /// True if the prompt says that the item it names has been begun.
    pub is_begun: bool,
    /// True after the last save before a stop.
    pub has_saved: bool,
    /// Where the prompt asks for notes.
    pub notes: Option<Notes>,
    /// The command that searches what earlier sessions read and said, with PATTERN in it.
    pub search: Option<String>,
}

impl Knowledge {
    /// Reads a text from its beginning to its end: what comes later overrides what came before.
    pub fn read(text: &str) -> Knowledge {
        let mut knowledge = Knowledge { rules: rules_in(text), ..Knowledge::default() };
        for sign in SIGNS.captures_iter(text) {
            knowledge.take(&sign);
        }
        knowledge.notes = knowledge.rules.contains(&Rule::Notes).then(|| notes_in(text)).flatten();
        knowledge.search = super::rules::sentence_of(Rule::Search, text)
            .and_then(|sentence| Some(sentence.strip_suffix('`')?.rsplit_once('`')?.1.to_owned()));
        knowledge
    }

    fn take(&mut self, sign: &Captures<'_>) {
        let word = |name: &str| sign.name(name).map(|found| found.as_str().to_owned());
        let number = |name: &str| sign.name(name).and_then(|found| found.as_str().parse::<u32>().ok());
        if let (Some(fact), Some(value)) = (word("fact"), word("value")) {
            self.facts.insert(fact, value);
        } else if let (Some(file), Some(to)) = (word("converted"), number("to")) {
            self.is_tested = false;
            self.place(file, Some(to + 1), number("lines"));
        } else if let (Some(file), Some(line)) = (word("at"), number("line")) {
            self.place(file, Some(line), number("of"));
        } else if let (Some(file), Some(ranges)) = (word("row"), word("ranges")) {
            let last = ranges.rsplit([',', '-', ' ']).find_map(|part| part.parse::<u32>().ok());
            self.place(file, last.map(|last| last + 1), None);
        } else if let Some(file) = word("written") {
            self.written.insert(file);
        } else if let Some(file) = word("finished") {
            self.finish(file, number("left"));
        } else if let Some(file) = word("told") {
            self.is_begun = false;
            self.finished.remove(&file);
            self.told = Some(file);
        } else if word("plan").is_some() {
            self.open = Some(Vec::new());
        } else if let Some(file) = word("open") {
            self.open.get_or_insert_default().push(file);
        } else if let Some(promise) = word("promise") {
            self.promise = promise;
        } else if let Some(line) = word("blocked") {
            self.blocked = line;
        } else if let Some(handoff) = word("handoff") {
            self.handoff = Some(handoff);
        } else if word("begun").is_some() {
            self.is_begun = true;
        } else if word("stopped").is_some() {
            self.has_saved = true;
        } else {
            self.take_state_of(sign);
        }
    }

    /// What tests, questions and git say of files.
    fn take_state_of(&mut self, sign: &Captures<'_>) {
        let word = |name: &str| sign.name(name).map(|found| found.as_str().to_owned());
        if let (Some(file), Some(how)) = (word("failing"), word("how")) {
            self.is_tested = false;
            self.failing.insert(file, how);
        } else if word("testing").is_some() {
            self.failing.clear();
        } else if word("passed").is_some() {
            self.failing.clear();
            self.is_tested = true;
        } else if let Some(file) = word("asks") {
            self.asks.insert(file);
        } else if let Some(file) = word("asked") {
            self.asked.insert(file);
        } else if let Some(file) = word("waits") {
            self.waits.insert(file);
        } else if let Some(file) = word("changed") {
            self.changed.insert(file);
        }
    }

    fn place(&mut self, file: String, next: Option<u32>, lines: Option<u32>) {
        let known = self.places.entry(file).or_default();
        *known = Place { next, lines: lines.or(known.lines) };
    }

    fn finish(&mut self, file: String, left: Option<u32>) {
        self.written.remove(&file);
        self.places.remove(&file);
        if self.told.as_ref() == Some(&file) {
            self.told = None;
        }
        self.finished.insert(file);
        self.left = left;
        self.open = None;
        self.is_tested = false;
    }

    /// True if the request states the rule.
    pub fn has(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    /// The open items that the agent may take now, the one that it was told first.
    pub(super) fn candidates(&self) -> Vec<String> {
        let open = self.open.clone().unwrap_or_default();
        let all = self.told.iter().chain(open.iter().filter(|file| self.told.as_ref() != Some(file)));
        all.filter(|file| !self.finished.contains(*file) && !self.waits.contains(*file)).cloned().collect()
    }

    /// The knowledge as text that `read` understands; `keeps` decides which parts are included.
    pub(super) fn summary(&self, keeps: impl Fn(&str) -> bool) -> String {
        let mut parts = Vec::new();
        for (file, place) in &self.places {
            if let (Some(next), true) = (place.next, keeps(&format!("place {file}"))) {
                parts.push(format!("At {file} line {next} of {}.", place.lines.unwrap_or(99_999)));
            }
        }
        let facts = self.facts.iter().filter(|(name, _)| keeps(name));
        parts.extend(facts.map(|(name, value)| format!("FACT[{name}]={value}")));
        parts.extend(self.waits.iter().map(|file| format!("Convert {file} waits for an answer.")));
        if parts.is_empty() { "Nothing that I remember.".to_owned() } else { parts.join(" ") }
    }
}

/// The file that the sentence about notes names. "Under" or "below" the item means the list itself.
fn notes_in(text: &str) -> Option<Notes> {
    let sentence = super::rules::sentence_of(Rule::Notes, text)?;
    let file = FILES.captures_iter(&sentence).last()?[1].to_owned();
    let after = text.split_once(sentence.as_str()).map_or("", |(_, after)| after);
    let next: String = after.chars().take(40).collect();
    let is_under = ["under the item", "below the item"]
        .iter()
        .any(|under| sentence.contains(under) || next.contains(under));
    Some(if is_under { Notes::Under(file) } else { Notes::After(file) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(next: Option<u32>, lines: Option<u32>) -> Option<Place> {
        Some(Place { next, lines })
    }

    #[test]
    fn what_came_later_counts() {
        let known = |text: &str, file: &str| Knowledge::read(text).places.get(file).copied();
        let twice = "converted part-1.txt 1-26 of 60\nconverted part-1.txt 27-52 of 60";
        assert_eq!(known(twice, "part-1.txt"), place(Some(53), Some(60)));
        assert_eq!(known("converted part-1.txt 27-60 of 60 finished part-1.txt; 2 open", "part-1.txt"), None);
        let resumed = "## Your item\n\n> Convert part-3.txt\n\n| part-3.txt | 1-80 | modified |\n";
        assert_eq!(known(resumed, "part-3.txt"), place(Some(81), None));
        assert_eq!(known("echo \"converted part-1.txt 1-26 of $(wc -l < part-1.txt)\"", "part-1.txt"), None);
    }

    #[test]
    fn the_open_items_are_those_of_the_last_reading_that_do_not_wait() {
        let plan = "# Plan\n\n- [x] Convert part-1.txt\n- [ ] Convert part-2.txt\n  ? Convert part-2.txt waits for an answer: which?\n- [ ] Convert part-3.txt\n";
        assert_eq!(Knowledge::read(plan).candidates(), ["part-3.txt"]);
        let told = format!("{plan}exactly this item: \"Convert part-4.txt\"");
        assert_eq!(Knowledge::read(&told).candidates(), ["part-4.txt", "part-3.txt"]);
        assert_eq!(Knowledge::read(&format!("{plan}finished part-3.txt; 1 open")).open, None);
    }

    #[test]
    fn a_test_that_passes_ends_what_failed() {
        let failed = "testing items\nFAIL part-2.txt: line 27 is not converted\n";
        let known = Knowledge::read(failed);
        assert_eq!(known.failing.get("part-2.txt").map(String::as_str), Some("line 27 is not converted"));
        let passed = Knowledge::read(&format!("{failed}testing items\nOK: every test passes"));
        assert!(passed.failing.is_empty() && passed.is_tested);
    }

    #[test]
    fn a_summary_is_read_as_what_was_known() {
        let known = Knowledge::read("converted part-2.txt 1-26 of 60 FACT[part-2.txt/0]=12345");
        let told = Knowledge::read(&known.summary(|_| true));
        assert_eq!((&told.places, &told.facts), (&known.places, &known.facts));
        let vague = Knowledge::read(&known.summary(|_| false));
        assert_eq!((vague.places.len(), vague.facts.len()), (0, 0));
    }
}
