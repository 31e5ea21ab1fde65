//! The rules that the agent notices in a request, in addition to facts and progress. The patterns are the same
//! for every prompt and match the wording that prompts use.

use regex::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// An instruction that a request can contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Write down findings.
    Notes,
    /// Do not start over.
    InspectFirst,
    /// Do not guess.
    LookUp,
    /// Search what earlier sessions read and said.
    Search,
    /// Do only one item.
    OneItem,
    /// Test before ticking.
    Test,
    /// Leave tests unchanged.
    KeepTests,
    /// How to ask a person.
    Ask,
    /// Repair tests that fail for other items.
    RepairAll,
    /// Little room is left: note all facts that are not noted yet.
    WriteNow,
    /// Stop now.
    Stop,
}

/// A rule with its pattern and its descriptions.
pub struct RuleEntry {
    pub rule: Rule,
    /// The description of what the agent notices, for the page.
    pub notice_text: &'static str,
    /// The pattern by which the agent notices the rule.
    pattern: &'static str,
    /// The description of the effect, for the page.
    pub effect_text: &'static str,
}

/// All rules, in the order of the page.
pub const RULES: [RuleEntry; 11] = [
    RuleEntry {
        rule: Rule::Notes,
        notice_text: "asked for notes: to record, write down, append, note or save findings, learnings or progress, in a named file",
        pattern: r"(?i)\b(?:record|write|append|note|save|update)\b[^.\n]{0,90}\b(?:finding|find out|learn|discover|progress)[^`]{0,120}`[\w./-]+\.(?:md|txt)`|(?i)\b(?:append|write|save)\b[^.\n]{0,60}`[\w./-]+\.(?:md|txt)`[^.\n]{0,60}\b(?:finding|find out|learn|discover)|(?i)\bwrite (?:it|them|this|that) down\b[^.\n]{0,80}`[\w./-]+\.(?:md|txt)`",
        effect_text: "writes a fact there with the step after it has found it, if it remembers to",
    },
    RuleEntry {
        rule: Rule::InspectFirst,
        notice_text: "told not to start over: to look, check or search how far the work is before it begins",
        pattern: r"(?i)\b(?:look|check|see|find out) how far\b|\bdo(?:n't| not) (?:start|begin) (?:over|again)\b|\bdo(?:n't| not) assume\b[^.\n]{0,40}\b(?:not|missing)\b|\bbefore you assume\b",
        effect_text: "looks at the file before it works on it",
    },
    RuleEntry {
        rule: Rule::LookUp,
        notice_text: "told not to guess, but to look up or search what it needs and does not have",
        pattern: r"(?i)\b(?:do(?:n't| not)|never) (?:guess|make up)\b[^.\n]{0,120}\b(?:look|search|read|find)\b",
        effect_text: "looks for a fact that it has lost before it uses it",
    },
    RuleEntry {
        rule: Rule::Search,
        notice_text: "told by which command what earlier sessions read and said can be searched, with PATTERN in it",
        pattern: r"(?i)\bsearch\b[^`\n]{0,90}\bearlier sessions\b[^`\n]{0,60}`[^`\n]*PATTERN[^`\n]*`",
        effect_text: "searches there as well for a decision that it does not know, before it takes one itself",
    },
    RuleEntry {
        rule: Rule::OneItem,
        notice_text: "told to do one item, task or story only",
        pattern: r"(?i)\b(?:exactly|only|just)\**\s+(?:that\s+|the\s+)?one\b|\bone\b[^.\n]{0,20}\b(?:item|task|story)\b[^.\n]{0,20}\b(?:per|at a time|a session|each)\b|exactly one (?:item|task)|\bthis (?:item|task|story)\b[^.\n]{0,30}\bnothing else\b",
        effect_text: "ends its turn after an item; the wanderer does not",
    },
    RuleEntry {
        rule: Rule::Test,
        notice_text: "told to test or verify",
        pattern: r"(?i)\b(?:verify|prove)\b|\brun\b[^.\n]{0,20}\btests?\b",
        effect_text: "runs the project's test before it ticks, as often as its character says",
    },
    RuleEntry {
        rule: Rule::RepairAll,
        notice_text: "told to repair whatever fails",
        pattern: r"(?i)\b(?:repair|fix|resolve)\b[^.\n]{0,60}\b(?:as well|too|first|before|all)\b",
        effect_text: "repairs other items as well, when the test names them",
    },
    RuleEntry {
        rule: Rule::KeepTests,
        notice_text: "forbidden to change, skip or delete a test",
        pattern: r"(?i)\b(?:do(?:n't| not)|never)\b[^.\n]{0,40}\b(?:change|edit|skip|delete|remove|weaken)\b[^.\n]{0,40}\b(?:tests?|checks?)\b",
        effect_text: "leaves the test as it is; the tamperer does so in most cases",
    },
    RuleEntry {
        rule: Rule::Ask,
        notice_text: "told what to say if only a person can help",
        pattern: r"<promise>BLOCKED[^<]*</promise>|STATUS: [A-Z_| ]*BLOCKED",
        effect_text: "says so in those words, and writes the question where the prompt wants it",
    },
    RuleEntry {
        rule: Rule::WriteNow,
        notice_text: "told that little room is left",
        pattern: r"(?i)\bstart nothing large\b|\b(?:running out of|little) (?:context|room)\b",
        effect_text: "writes down, as it remembers, what is not written down yet",
    },
    RuleEntry {
        rule: Rule::Stop,
        notice_text: "told to stop by a message during the work",
        pattern: r"(?i)\bstart nothing new\b|\bstop (?:working )?now\b",
        effect_text: "commits, and ends with what it did, how far it is, and what comes next, as far as it remembers",
    },
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
