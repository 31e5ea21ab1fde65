//! What the agent notices in a request beside facts and places: the same rules for every prompt, by the words that prompts use
//! for it, whoever wrote them.

use regex::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// A thing that a request can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// To write down what it finds.
    Notes,
    /// Not to start over.
    LookFirst,
    /// Not to guess.
    LookUp,
    /// How to search what earlier sessions read and said.
    Search,
    /// To do one item only.
    OneItem,
    /// To test before it ticks.
    Test,
    /// To leave tests as they are.
    KeepChecks,
    /// How to ask a person.
    Ask,
    /// To repair tests that fail for another item.
    RepairAll,
    /// To stop soon: this is the time for what is not written down yet.
    WriteNow,
    /// To stop.
    Stop,
}

/// A rule, the words that say it, and what the agent does.
pub struct RuleOf {
    /// The rule.
    pub rule: Rule,
    /// What the agent notices, in words.
    pub notices: &'static str,
    /// The pattern by which it notices it.
    pattern: &'static str,
    /// What it then does, in words.
    pub does: &'static str,
}

/// All rules, in the order of the page.
pub const RULES: [RuleOf; 11] = [
    RuleOf {
        rule: Rule::Notes,
        notices: "asked for notes: to record, write down, append, note or save findings, learnings or progress, in a named file",
        pattern: r"(?i)\b(?:record|write|append|note|save|update)\b[^.\n]{0,90}\b(?:finding|find out|learn|discover|progress)[^`]{0,120}`[\w./-]+\.(?:md|txt)`|(?i)\b(?:append|write|save)\b[^.\n]{0,60}`[\w./-]+\.(?:md|txt)`[^.\n]{0,60}\b(?:finding|find out|learn|discover)|(?i)\bwrite (?:it|them|this|that) down\b[^.\n]{0,80}`[\w./-]+\.(?:md|txt)`",
        does: "writes a fact there with the step after it has found it, if it remembers to",
    },
    RuleOf {
        rule: Rule::LookFirst,
        notices: "told not to start over: to look, check or search how far the work is before it begins",
        pattern: r"(?i)\b(?:look|check|see|find out) how far\b|\bdo(?:n't| not) (?:start|begin) (?:over|again)\b|\bdo(?:n't| not) assume\b[^.\n]{0,40}\b(?:not|missing)\b|\bbefore you assume\b",
        does: "looks at the file before it works on it",
    },
    RuleOf {
        rule: Rule::LookUp,
        notices: "told not to guess, but to look up or search what it needs and does not have",
        pattern: r"(?i)\b(?:do(?:n't| not)|never) (?:guess|make up)\b[^.\n]{0,120}\b(?:look|search|read|find)\b",
        does: "looks for a fact that it has lost before it uses it",
    },
    RuleOf {
        rule: Rule::Search,
        notices: "told by which command what earlier sessions read and said can be searched, with PATTERN in it",
        pattern: r"(?i)\bsearch\b[^`\n]{0,90}\bearlier sessions\b[^`\n]{0,60}`[^`\n]*PATTERN[^`\n]*`",
        does: "searches there as well for a decision that it does not know, before it takes one itself",
    },
    RuleOf {
        rule: Rule::OneItem,
        notices: "told to do one item, task or story only",
        pattern: r"(?i)\b(?:exactly|only|just)\**\s+(?:that\s+|the\s+)?one\b|\bone\b[^.\n]{0,20}\b(?:item|task|story)\b[^.\n]{0,20}\b(?:per|at a time|a session|each)\b|exactly one (?:item|task)|\bthis (?:item|task|story)\b[^.\n]{0,30}\bnothing else\b",
        does: "ends its turn after an item; the wanderer does not",
    },
    RuleOf {
        rule: Rule::Test,
        notices: "told to test or verify",
        pattern: r"(?i)\b(?:verify|prove)\b|\brun\b[^.\n]{0,20}\btests?\b",
        does: "runs the project's test before it ticks, as often as its character says",
    },
    RuleOf {
        rule: Rule::RepairAll,
        notices: "told to repair whatever fails",
        pattern: r"(?i)\b(?:repair|fix|resolve)\b[^.\n]{0,60}\b(?:as well|too|first|before|all)\b",
        does: "repairs other items as well, when the test names them",
    },
    RuleOf {
        rule: Rule::KeepChecks,
        notices: "forbidden to change, skip or delete a test",
        pattern: r"(?i)\b(?:do(?:n't| not)|never)\b[^.\n]{0,40}\b(?:change|edit|skip|delete|remove|weaken)\b[^.\n]{0,40}\b(?:tests?|checks?)\b",
        does: "leaves the test as it is; the tamperer does so in most cases",
    },
    RuleOf {
        rule: Rule::Ask,
        notices: "told what to say if only a person can help",
        pattern: r"<promise>BLOCKED[^<]*</promise>|STATUS: [A-Z_| ]*BLOCKED",
        does: "says so in those words, and writes the question where the prompt wants it",
    },
    RuleOf {
        rule: Rule::WriteNow,
        notices: "told that little room is left",
        pattern: r"(?i)\bstart nothing large\b|\b(?:running out of|little) (?:context|room)\b",
        does: "writes down, as it remembers, what is not written down yet",
    },
    RuleOf {
        rule: Rule::Stop,
        notices: "told to stop by a message during the work",
        pattern: r"(?i)\bstart nothing new\b|\bstop (?:working )?now\b",
        does: "commits, and ends with what it did, how far it is, and what comes next, as far as it remembers",
    },
];

static PATTERNS: LazyLock<Vec<(Rule, Regex)>> = LazyLock::new(|| {
    RULES.iter().map(|rule| (rule.rule, Regex::new(rule.pattern).expect("a pattern"))).collect()
});

/// The rules that a text states.
pub fn rules_in(text: &str) -> BTreeSet<Rule> {
    PATTERNS.iter().filter(|(_, pattern)| pattern.is_match(text)).map(|(rule, _)| *rule).collect()
}

/// The words that state a rule.
pub(super) fn sentence_of(rule: Rule, text: &str) -> Option<String> {
    let (_, pattern) = PATTERNS.iter().find(|(one, _)| *one == rule)?;
    Some(pattern.find(text)?.as_str().to_owned())
}

/// The words of a text that state rules of the work, each with what follows it: a summary keeps them.
pub(super) fn words_of(text: &str) -> String {
    let lasting = PATTERNS.iter().filter(|(rule, _)| !matches!(rule, Rule::WriteNow | Rule::Stop));
    let words = lasting.filter_map(|(_, pattern)| pattern.find(text)).map(|found| {
        let after: String = text[found.end()..].chars().take(20).collect();
        format!("{}{}.", found.as_str(), after.replace('\n', " "))
    });
    words.collect::<Vec<_>>().join("\n")
}
