//! The rules that the agent notices in a request, in addition to facts and progress. The patterns are the same
//! for every prompt and match the wording that prompts use.

use regex::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// An instruction that a request can contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Asked for notes: to record, write down, append, note or save findings, learnings or progress, in a named
    /// file. The agent writes a fact there with the step after it has found it, if it remembers to.
    Notes,
    /// Told not to start over: to look, check or search how far the work is before it begins. The agent looks at
    /// the file before it works on it.
    InspectFirst,
    /// Told not to guess, but to look up or search what it needs and does not have. The agent looks for a fact
    /// that it has lost before it uses it.
    LookUp,
    /// Told by which command what earlier sessions read and said can be searched, with PATTERN in it. The agent
    /// searches there as well for a decision that it does not know, before it takes one itself.
    Search,
    /// Told to do one item, task or story only. The agent ends its turn after an item; the wanderer does not.
    OneItem,
    /// Told to test or verify. The agent runs the project's test before it ticks, as often as its character
    /// says.
    Test,
    /// Forbidden to change, skip or delete a test. The agent leaves the test as it is; the tamperer does so in
    /// most cases.
    KeepTests,
    /// Told what to say if only a person can help. The agent says so in those words, and writes the question
    /// where the prompt wants it.
    Ask,
    /// Told to repair whatever fails. The agent repairs other items as well, when the test names them.
    RepairAll,
    /// Told that little room is left. The agent writes down, as it remembers, what is not written down yet.
    WriteNow,
    /// Told to stop by a message during the work. The agent commits, and ends with what it did, how far it is,
    /// and what comes next, as far as it remembers.
    Stop,
}

/// A rule with its pattern.
struct RuleEntry {
    rule: Rule,
    /// The pattern by which the agent notices the rule.
    pattern: &'static str,
}

/// All rules.
const RULES: [RuleEntry; 11] = [
    RuleEntry {
        rule: Rule::Notes,
        pattern: r"(?i)\b(?:record|write|append|note|save|update)\b[^.\n]{0,90}\b(?:finding|find out|learn|discover|progress)[^`]{0,120}`[\w./-]+\.(?:md|txt)`|(?i)\b(?:append|write|save)\b[^.\n]{0,60}`[\w./-]+\.(?:md|txt)`[^.\n]{0,60}\b(?:finding|find out|learn|discover)|(?i)\bwrite (?:it|them|this|that) down\b[^.\n]{0,80}`[\w./-]+\.(?:md|txt)`",
    },
    RuleEntry {
        rule: Rule::InspectFirst,
        pattern: r"(?i)\b(?:look|check|see|find out) how far\b|\bdo(?:n't| not) (?:start|begin) (?:over|again)\b|\bdo(?:n't| not) assume\b[^.\n]{0,40}\b(?:not|missing)\b|\bbefore you assume\b",
    },
    RuleEntry {
        rule: Rule::LookUp,
        pattern: r"(?i)\b(?:do(?:n't| not)|never) (?:guess|make up)\b[^.\n]{0,120}\b(?:look|search|read|find)\b",
    },
    RuleEntry {
        rule: Rule::Search,
        pattern: r"(?i)\bsearch\b[^`\n]{0,90}\bearlier sessions\b[^`\n]{0,60}`[^`\n]*PATTERN[^`\n]*`",
    },
    RuleEntry {
        rule: Rule::OneItem,
        pattern: r"(?i)\b(?:exactly|only|just)\**\s+(?:that\s+|the\s+)?one\b|\bone\b[^.\n]{0,20}\b(?:item|task|story)\b[^.\n]{0,20}\b(?:per|at a time|a session|each)\b|exactly one (?:item|task)|\bthis (?:item|task|story)\b[^.\n]{0,30}\bnothing else\b",
    },
    RuleEntry { rule: Rule::Test, pattern: r"(?i)\b(?:verify|prove)\b|\brun\b[^.\n]{0,20}\btests?\b" },
    RuleEntry {
        rule: Rule::RepairAll,
        pattern: r"(?i)\b(?:repair|fix|resolve)\b[^.\n]{0,60}\b(?:as well|too|first|before|all)\b",
    },
    RuleEntry {
        rule: Rule::KeepTests,
        pattern: r"(?i)\b(?:do(?:n't| not)|never)\b[^.\n]{0,40}\b(?:change|edit|skip|delete|remove|weaken)\b[^.\n]{0,40}\b(?:tests?|checks?)\b",
    },
    RuleEntry { rule: Rule::Ask, pattern: r"<promise>BLOCKED[^<]*</promise>|STATUS: [A-Z_| ]*BLOCKED" },
    RuleEntry {
        rule: Rule::WriteNow,
        pattern: r"(?i)\bstart nothing large\b|\b(?:running out of|little) (?:context|room)\b",
    },
    RuleEntry { rule: Rule::Stop, pattern: r"(?i)\bstart nothing new\b|\bstop (?:working )?now\b" },
];

static RULE_PATTERNS: LazyLock<Vec<(Rule, Regex)>> = LazyLock::new(|| {
    RULES.iter().map(|rule| (rule.rule, Regex::new(rule.pattern).expect("a pattern"))).collect()
});

/// Returns the rules that a text states.
pub fn find_rules(text: &str) -> BTreeSet<Rule> {
    RULE_PATTERNS.iter().filter(|(_, pattern)| pattern.is_match(text)).map(|(rule, _)| *rule).collect()
}

/// Returns the text that states a rule.
pub(super) fn find_rule_text(rule: Rule, text: &str) -> Option<String> {
    let (_, pattern) = RULE_PATTERNS.iter().find(|(candidate, _)| *candidate == rule)?;
    Some(pattern.find(text)?.as_str().to_owned())
}

/// Returns the texts that state rules, each with up to 20 characters after it, for a summary. Leaves out the
/// rules that apply only at the moment (`WriteNow` and `Stop`).
pub(super) fn quote_rules_except_write_now_and_stop(text: &str) -> String {
    let rules_to_quote =
        RULE_PATTERNS.iter().filter(|(rule, _)| !matches!(rule, Rule::WriteNow | Rule::Stop));
    let quotes = rules_to_quote.filter_map(|(_, pattern)| pattern.find(text)).map(|rule_match| {
        let text_after: String = text[rule_match.end()..].chars().take(20).collect();
        format!("{}{}.", rule_match.as_str(), text_after.replace('\n', " "))
    });
    quotes.collect::<Vec<_>>().join("\n")
}
