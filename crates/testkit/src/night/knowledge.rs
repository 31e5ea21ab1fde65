//! The agent's knowledge: what its current request contains, and nothing else. A later statement overrides an earlier one.

use crate::scripted_model::Request;
use regex::{Captures, Regex};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The patterns by which the agent reads its commands' output, its own notes, prompts, messages and summaries. What it takes
/// out of prompts it finds by rules that hold for any text: an item is what follows the words "your item", "this item" or
/// "the current item"; a handoff is a file of that folder between backticks; a file for notes is named where the form of a
/// note, `  > …`, is shown.
static SIGNS: LazyLock<Regex> = LazyLock::new(|| {
    let signs = [
        r"FACT\[(?<fact>[^\]]+)\]=(?<value>\d{5})",
        r"converted (?<converted>part-\d+\.txt) \d+-(?<to>\d+) of (?<lines>\d+)",
        r"At (?<at>part-\d+\.txt) line (?<line>\d+) of (?<of>\d+)",
        r"I work on (?<on>part-\d+\.txt)",
        r"\| (?<row>part-\d+\.txt) \| (?<ranges>[\d, -]+) \|",
        r"finished (?<finished>part-\d+\.txt); (?<left>\d+) open",
        r"(?i:your|this|current) item\W+(?:is\W+)?Convert (?<told>part-\d+\.txt)",
        r"`(?<handoff>\.claude/handoffs/[^`]+)`",
        r"(?<promise><promise>COMPLETE[^<]*</promise>)",
        r"(?<stop>CCS_CHECKPOINT_TRIGGERED\|L2)",
        r"(?<begun>It was set aside: earlier sessions began it)",
        r"` *> [^`]*` under the item in `(?<notes>[^`]+)`",
    ];
    Regex::new(&signs.join("|")).expect("a pattern")
});

static OPEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"- \[ \] Convert (part-\d+\.txt)").expect("a pattern"));

/// The file that the agent converts, as far as it knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hand {
    /// Its name.
    pub file: String,
    /// The first line that is not converted.
    pub next: Option<u32>,
    /// How many lines it has.
    pub lines: Option<u32>,
}

/// What the agent has read out of a request.
#[derive(Debug, Default)]
pub struct Knowledge {
    /// The facts by their names.
    pub facts: BTreeMap<String, String>,
    /// The current file; none between two items.
    pub hand: Option<Hand>,
    /// How many items were open when the last one was finished.
    pub left: Option<u32>,
    /// The handoff that the prompt names.
    pub handoff: Option<String>,
    /// The line that ends the run; empty if unknown.
    pub promise: String,
    /// True if a message asks the agent to stop.
    pub told_to_stop: bool,
    /// True if the prompt says that earlier sessions have begun the item.
    pub is_begun: bool,
    /// The file in which the prompt asks for notes.
    pub notes_file: Option<String>,
}

impl Knowledge {
    pub(super) fn of(request: &Request) -> Knowledge {
        Knowledge::read(&request.text())
    }

    /// Reads a text from its beginning to its end: what comes later overrides what came before.
    pub fn read(text: &str) -> Knowledge {
        let mut knowledge = Knowledge::default();
        for sign in SIGNS.captures_iter(text) {
            knowledge.take(&sign);
        }
        knowledge
    }

    fn take(&mut self, sign: &Captures<'_>) {
        let word = |name: &str| sign.name(name).map(|found| found.as_str().to_owned());
        let number = |name: &str| sign.name(name).and_then(|found| found.as_str().parse::<u32>().ok());
        if let (Some(fact), Some(value)) = (word("fact"), word("value")) {
            self.facts.insert(fact, value);
        } else if let (Some(file), Some(to)) = (word("converted"), number("to")) {
            self.hand = Some(Hand { file, next: Some(to + 1), lines: number("lines") });
        } else if let (Some(file), Some(line)) = (word("at"), number("line")) {
            self.hand = Some(Hand { file, next: Some(line), lines: number("of") });
        } else if let (Some(file), Some(ranges)) = (word("row"), word("ranges")) {
            let last = ranges.rsplit([',', '-', ' ']).find_map(|part| part.parse::<u32>().ok());
            self.hand = Some(Hand { file, next: last.map(|last| last + 1), lines: None });
        } else if word("finished").is_some() {
            self.hand = None;
            self.is_begun = false;
            self.left = number("left");
        } else if let Some(file) = word("told").or(word("on")) {
            if self.hand.as_ref().is_none_or(|hand| hand.file != file) {
                self.hand = Some(Hand { file, next: None, lines: None });
            }
        } else if let Some(handoff) = word("handoff") {
            self.handoff = Some(handoff);
        } else if let Some(promise) = word("promise") {
            self.promise = promise;
        } else if word("stop").is_some() {
            self.told_to_stop = true;
        } else if word("begun").is_some() {
            self.is_begun = true;
        } else if let Some(file) = word("notes") {
            self.notes_file = Some(file);
        }
    }

    /// The knowledge as text that `read` understands; `keeps` decides which parts are included.
    pub(super) fn notes(&self, keeps: impl Fn(&str) -> bool) -> String {
        let mut notes = match &self.hand {
            Some(Hand { file, next: Some(next), lines }) if keeps("place") => {
                format!("At {file} line {next} of {}.", lines.unwrap_or(99_999))
            }
            Some(hand) => format!("I work on {}.", hand.file),
            None => "Between two items.".to_owned(),
        };
        for (name, value) in self.facts.iter().filter(|(name, _)| keeps(name)) {
            notes.push_str(&format!(" FACT[{name}]={value}"));
        }
        notes
    }
}

/// The files of the open items in a list that has just been read.
pub(super) fn open_items(list: &str) -> Vec<String> {
    OPEN.captures_iter(list).map(|found| found[1].to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hand(file: &str, next: Option<u32>, lines: Option<u32>) -> Option<Hand> {
        Some(Hand { file: file.to_owned(), next, lines })
    }

    #[test]
    fn what_came_later_counts() {
        let known = |text: &str| Knowledge::read(text).hand;
        assert_eq!(
            known("converted part-1.txt 1-20 of 60\nconverted part-1.txt 21-40 of 60"),
            hand("part-1.txt", Some(41), Some(60))
        );
        assert_eq!(known("converted part-1.txt 41-60 of 60 finished part-1.txt; 2 open"), None);
        let resumed = "## Your item\n\n> Convert part-3.txt\n\n| part-3.txt | 1-80 | modified |\n";
        assert_eq!(known(resumed), hand("part-3.txt", Some(81), None));
        assert_eq!(known("exactly this item: \"Convert part-4.txt\""), hand("part-4.txt", None, None));
        assert_eq!(known("echo \"converted part-1.txt 1-20 of $(wc -l < part-1.txt)\""), None);
    }

    #[test]
    fn notes_are_read_as_what_was_known() {
        let known = Knowledge::read("converted part-2.txt 1-20 of 60 FACT[part-2.txt/0]=12345");
        let told = Knowledge::read(&known.notes(|_| true));
        assert_eq!((&told.hand, &told.facts), (&known.hand, &known.facts));
        let vague = Knowledge::read(&known.notes(|_| false));
        assert_eq!((vague.hand, vague.facts.len()), (hand("part-2.txt", None, None), 0));
    }
}
