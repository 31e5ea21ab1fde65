//! `plimsoll explain`: why it last acted, from the journal.

use crate::log::{BEGINS, Teller, entries};
use crate::{console, fail, refused, say};
use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;
use store::Project;

/// What to explain.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArguments {
    /// `level` (or L1, L2, L3), `verdict` (or what it said: completed, refused, circuit_breaker, paused, …),
    /// any event of the journal, or `last`: whatever came last
    #[arg(value_name = "LEVEL|VERDICT|LAST", default_value = "last")]
    what: String,
    /// Print the entries of the journal behind it, as one JSON list
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll explain            whatever came last
  plimsoll explain L2         the last checkpoint, with the figures
  plimsoll explain refused    why a promise was not believed";

/// Explains it: exit code 0, or 1 where the journal has nothing of the kind.
pub(crate) fn explain(arguments: &ExplainArguments) -> ExitCode {
    let project = Project::of_command();
    let entries = match entries(&project) {
        Ok(entries) => entries,
        Err(error) => return refused(&error),
    };
    if entries.is_empty() {
        let journal = project.journal();
        let words = format!("nothing has been written to {} yet: nothing was done", journal.display());
        return fail(format!("{words}\nhint: {BEGINS}"), 1);
    }
    let wanted = Wanted::named(&arguments.what);
    let Some(at) = entries.iter().rposition(|entry| wanted.is(entry)) else {
        let what = &arguments.what;
        return fail(format!("the journal has no {what}\nhint: it has {}", kinds(&entries)), 1);
    };
    let beside = beside(&entries, at);
    if arguments.json {
        let found: Vec<&Value> = std::iter::once(&entries[at]).chain(&beside).collect();
        console::json(json!(found));
    } else {
        say(words(&entries[at], &beside));
    }
    ExitCode::SUCCESS
}

/// Which entry is meant.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Last,
    Level(Option<String>),
    Verdict,
    /// What a verdict said, or an event's name.
    Word(String),
}

impl Wanted {
    fn named(word: &str) -> Wanted {
        let word = word.to_lowercase();
        match word.as_str() {
            "last" => Wanted::Last,
            "level" => Wanted::Level(None),
            "l1" | "l2" | "l3" => Wanted::Level(Some(word.to_uppercase())),
            "verdict" => Wanted::Verdict,
            _ => Wanted::Word(word),
        }
    }

    fn is(&self, entry: &Value) -> bool {
        let event = entry["event"].as_str().unwrap_or_default();
        match self {
            Wanted::Last => !QUIET.contains(&event),
            Wanted::Level(level) => {
                let by_level = matches!(event, "warning" | "ended")
                    || event == "checkpoint"
                        && entry["cause"].as_str().is_none_or(|cause| matches!(cause, "level" | "step"));
                by_level && level.as_ref().is_none_or(|level| entry["level"] == level.as_str())
            }
            Wanted::Verdict => event.ends_with("verdict"),
            Wanted::Word(word) => event == word || event.ends_with("verdict") && says(entry, word),
        }
    }
}

/// Events that only keep a record, and decide nothing.
const QUIET: [&str; 7] =
    ["session_start", "session_end", "iteration_closed", "planned", "spawned", "notified", "breaker_opened"];

/// Whether a verdict's marker says this: a status, what makes it go on, or `paused`.
fn says(entry: &Value, word: &str) -> bool {
    let marker = entry["marker"].as_str().unwrap_or_default();
    let mut fields = marker.split('|');
    let (kind, what) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    match kind {
        "RALPH_PAUSE" => matches!(word, "pause" | "paused"),
        "RALPH_STOP" => what == word || word == "stop",
        _ => what == word || word == "continue",
    }
}

/// What was decided with a verdict stands right behind it.
fn beside(entries: &[Value], at: usize) -> Vec<Value> {
    let same = |entry: &&Value| {
        let belongs = matches!(entry["event"].as_str(), Some("breaker_opened" | "set_aside"));
        belongs && entry["run_id"] == entries[at]["run_id"] && entry["iteration"] == entries[at]["iteration"]
    };
    let is_verdict = entries[at]["event"] == "verdict";
    entries[at + 1..].iter().take(3).filter(same).filter(|_| is_verdict).cloned().collect()
}

/// The line of the log, then the reasons beneath it.
fn words(entry: &Value, beside: &[Value]) -> String {
    let told = Teller::default().tell_entry(entry);
    let at = entry["at"].as_str().and_then(store::clock::parse).map(store::clock::for_people);
    let iteration = entry["iteration"].as_u64().map(|number| format!(", session {number} of the run"));
    let session = entry["session_id"].as_str().filter(|_| iteration.is_none());
    let whose = iteration.or_else(|| session.map(|id| format!(", session {id}"))).unwrap_or_default();
    let head = told.unwrap_or_else(|| entry["event"].as_str().unwrap_or_default().replace('_', " "));
    let reasons = policy::explain::reasons(entry, beside);
    let mut lines = vec![format!("{}{whose}", at.unwrap_or_else(|| "?".to_owned())), head];
    lines.extend(reasons.iter().map(|reason| format!("  {reason}")));
    lines.join("\n")
}

/// The names that would find something.
fn kinds(entries: &[Value]) -> String {
    let mut kinds: Vec<&str> = entries
        .iter()
        .filter_map(|entry| entry["event"].as_str())
        .filter(|event| !event.ends_with("verdict"))
        .collect();
    if entries.iter().any(|entry| Wanted::Verdict.is(entry)) {
        kinds.push("verdict");
    }
    if entries.iter().any(|entry| Wanted::Level(None).is(entry)) {
        kinds.push("level");
    }
    kinds.sort_unstable();
    kinds.dedup();
    kinds.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_the_kind_that_was_asked_for_is_found() {
        let entries = [
            json!({ "event": "warning", "level": "L1" }),
            json!({ "event": "checkpoint", "cause": "level", "level": "L2" }),
            json!({ "event": "checkpoint", "cause": "compact", "level": "L1" }),
            json!({ "event": "ended", "level": "L3" }),
            json!({ "event": "provisional_verdict", "marker": "RALPH_CONTINUE|refused|x" }),
            json!({ "event": "verdict", "marker": "RALPH_PAUSE|-|thrash", "run_id": "r", "iteration": 2 }),
            json!({ "event": "verdict", "marker": "RALPH_STOP|circuit_breaker|x", "run_id": "r", "iteration": 3 }),
            json!({ "event": "breaker_opened", "run_id": "r", "iteration": 3 }),
            json!({ "event": "session_end" }),
        ];
        for (word, expected) in [
            ("level", Some(3)),
            ("L1", Some(0)),
            ("l2", Some(1)),
            ("L3", Some(3)),
            ("verdict", Some(6)),
            ("refused", Some(4)),
            ("paused", Some(5)),
            ("circuit_breaker", Some(6)),
            ("checkpoint", Some(2)),
            ("LAST", Some(6)),
            ("session_end", Some(8)),
            ("completed", None),
        ] {
            let wanted = Wanted::named(word);
            assert_eq!(entries.iter().rposition(|entry| wanted.is(entry)), expected, "{word}");
        }
        assert_eq!(beside(&entries, 6).len(), 1);
        assert_eq!(beside(&entries, 5).len(), 0, "another iteration's");
        assert!(kinds(&entries).contains("ended, level"), "{}", kinds(&entries));
    }
}
