//! Is the run done? What the agent claims, and what stands against it.

use crate::gate::Evidence;
use session::promise::{self, Claim};
use session::text::{clip, counted};
use session::{RunState, TodoList};

/// What one verify command said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyOutcome {
    /// The command.
    pub command: String,
    /// True when it exited with 0 in time.
    pub passed: bool,
    /// How it ended and what it printed, shortened.
    pub words: String,
}

/// What the agent claims, and what stands against it before any command has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    /// No promise was made.
    NotClaimed,
    /// The agent cannot go on.
    Blocked(String),
    /// The promise is refused, for these reasons.
    Refused(Vec<String>),
    /// Nothing stands against it but the verify commands.
    Plausible,
}

/// How many names a refusal lists.
const NAMES_LISTED: usize = 5;

/// Looks at the promise (the line, or the pop of the root frame) and the items.
pub fn completion(state: &RunState, evidence: &Evidence) -> Completion {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    match promise::claim(message, &state.completion_promise, &state.nonce) {
        Claim::None if !evidence.root_popped => Completion::NotClaimed,
        Claim::Blocked(reason) => Completion::Blocked(reason),
        Claim::None | Claim::Complete => {
            let reasons = objections(state, evidence.todo.as_ref());
            if reasons.is_empty() { Completion::Plausible } else { Completion::Refused(reasons) }
        }
    }
}

fn objections(state: &RunState, todo: Option<&TodoList>) -> Vec<String> {
    let Some(file) = &state.todo_file else { return Vec::new() };
    let Some(todo) = todo else {
        return vec![format!(
            "the to-do file {file} is missing, with {}",
            counted(state.known_items.len(), "known item")
        )];
    };
    let mut reasons = Vec::new();
    let open = todo.open();
    if !open.is_empty() {
        let verb = if open.len() == 1 { "is" } else { "are" };
        reasons.push(format!("{} {verb} open in {file}: {}", counted(open.len(), "item"), names(&open)));
    }
    // One that was ticked and then removed from the list is done.
    let unticked: Vec<String> =
        state.known_items.iter().filter(|item| !state.ever_done.contains(item)).cloned().collect();
    let vanished = todo.vanished(&unticked);
    if !vanished.is_empty() {
        reasons.push(format!(
            "{} vanished unticked from {file}: {}",
            counted(vanished.len(), "item"),
            names(&vanished)
        ));
    }
    reasons
}

fn names(items: &[String]) -> String {
    let listed = items
        .iter()
        .take(NAMES_LISTED)
        .map(|item| format!("\"{}\"", clip(item, 80)))
        .collect::<Vec<_>>()
        .join(", ");
    let rest = items.len().saturating_sub(NAMES_LISTED);
    if rest > 0 { format!("{listed} and {rest} more") } else { listed }
}

/// What a completed run has to show.
pub(crate) fn completed_words(state: &RunState, evidence: &Evidence) -> String {
    let items = evidence.todo.as_ref().map(|todo| counted(todo.done().len(), "item"));
    let verify = (!evidence.verify.is_empty())
        .then(|| format!("{} passed", counted(evidence.verify.len(), "verify command")));
    let parts: Vec<String> = items.filter(|_| state.todo_file.is_some()).into_iter().chain(verify).collect();
    if parts.is_empty() { "promised".to_owned() } else { parts.join(", ") }
}

/// Why a promise is refused.
pub(crate) fn refusal_reasons(state: &RunState, evidence: &Evidence) -> Vec<String> {
    if let Completion::Refused(reasons) = completion(state, evidence) {
        return reasons;
    }
    let failed = |outcome: &&VerifyOutcome| !outcome.passed;
    evidence
        .verify
        .iter()
        .filter(failed)
        .map(|outcome| format!("verify command `{}` {}", outcome.command, outcome.words))
        .collect()
}
