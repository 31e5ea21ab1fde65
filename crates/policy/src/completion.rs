//! Is the run done? What the agent claims, and what contradicts it.

use crate::evidence::Evidence;
pub use crate::evidence::VerifyOutcome;
use crate::near_miss::{NearMiss, find_near_miss};
use crate::review::missing_review;
use plimsoll_domain::item_set;
use plimsoll_domain::promise::{self, Claim};
use plimsoll_domain::protected::describe_changes;
use plimsoll_domain::text::{clip, counted};
use plimsoll_domain::{Ending, RunState, TodoList};

/// What the agent claims, and what contradicts it before any command has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    /// No promise was made.
    NotClaimed,
    /// The agent cannot continue.
    Blocked(String),
    /// The promise is refused, for these reasons: it was not given as asked, or something is not done.
    Refused(Vec<String>),
    /// Only the verify commands are left to decide.
    Plausible,
}

/// How many names a refusal lists.
const NAMES_LISTED: usize = 5;

/// Looks at the promise (the line, or the pop of the root frame) and the items.
pub fn completion(state: &RunState, evidence: &Evidence) -> Completion {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    match promise::claim(message, &state.options.completion_promise, &state.nonce) {
        Claim::None if state.options.ends_with_last_tick() => {
            let is_done = objections(state, evidence).is_empty() && has_ticks(evidence);
            let is_plausible = is_done && can_be_judged_by_ticks(state, &evidence.ending);
            if is_plausible { Completion::Plausible } else { Completion::NotClaimed }
        }
        Claim::None if !evidence.root_popped => match near_miss(state, message) {
            Some(miss) => {
                let reasons = std::iter::once(miss_words(state, &miss));
                Completion::Refused(reasons.chain(objections(state, evidence)).collect())
            }
            None => Completion::NotClaimed,
        },
        Claim::Blocked(reason) => Completion::Blocked(reason),
        Claim::None | Claim::Complete => {
            let reasons = objections(state, evidence);
            if reasons.is_empty() { Completion::Plausible } else { Completion::Refused(reasons) }
        }
    }
}

fn has_ticks(evidence: &Evidence) -> bool {
    evidence.todo.as_ref().is_some_and(|todo| !todo.done().is_empty())
}

/// True if the ticks of a session that ended like this count without a promise. What the session could not bring to its
/// own end counts only where commands prove it. What stopped the session from outside is judged first.
fn can_be_judged_by_ticks(state: &RunState, ending: &Ending) -> bool {
    match ending {
        Ending::Completed | Ending::HookStopped | Ending::WindowFull(_) | Ending::ClientLimit(_) => true,
        Ending::Silent(_) | Ending::OutOfTime | Ending::Crashed(_) | Ending::Failed(_) | Ending::Unknown => {
            !state.options.commands().is_empty()
        }
        Ending::Limit(_)
        | Ending::Overloaded(_)
        | Ending::Fatal(_)
        | Ending::Interrupted
        | Ending::Cancelled => false,
    }
}

/// True if a last message says that the session cannot go on.
pub fn says_blocked(state: &RunState, message: Option<&str>) -> bool {
    let message = message.unwrap_or_default();
    let claim = promise::claim(message, &state.options.completion_promise, &state.nonce);
    matches!(claim, Claim::Blocked(_))
}

fn near_miss(state: &RunState, message: &str) -> Option<NearMiss> {
    find_near_miss(message, &state.options.completion_promise, &state.nonce)
}

/// The line that was meant as the promise, and what it must be.
fn miss_words(state: &RunState, miss: &NearMiss) -> String {
    let line = if miss.is_blocked {
        promise::blocked_line(&state.nonce, "REASON")
    } else {
        promise::line(&state.options.completion_promise, &state.nonce)
    };
    let rival = promise::rival(&state.options.objective, &state.options.completion_promise, &state.nonce);
    let rival = rival.map_or(String::new(), |rival| {
        format!("; the task text names `{rival}`, but this line counts, whatever another text says")
    });
    format!(
        "the promise line did not count (it was \"{}\"): the last line of the last message must be exactly `{line}`, as plain text{rival}",
        miss.given
    )
}

/// After this many failures of the promise in a row, the run is not asked for it again if nothing else can decide.
const FAILURES: u32 = 2;

/// What became of the promise in a session after which nothing else was left to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unpromised {
    /// Something is left to do, the promise was made, or the session did not end by itself.
    No,
    /// The promise failed, and the next session is asked for it again.
    AskAgain,
    /// The verify commands decide; they have not run yet.
    Undecided,
    /// A verify command fails.
    Fails,
    /// Everything else says that the run is done.
    Completed(String),
    /// It failed too often, and nothing but the promise could say that the run is done.
    Blocked(String),
}

/// The number of failures in a row, this session's included. Something that is left to do resets it; a session that
/// did not end by itself leaves it as it was.
pub(crate) fn promise_failures(state: &RunState, evidence: &Evidence) -> u32 {
    if lacks_only_promise(state, evidence) {
        return state.outcomes.promise_failures.saturating_add(1);
    }
    let is_open = !objections(state, evidence).is_empty();
    // Without a list a session that makes no promise has worked on.
    let works_on = state.options.todo_file.is_none() && evidence.ending == Ending::Completed;
    if is_open || works_on { 0 } else { state.outcomes.promise_failures }
}

/// True when a session that ended by itself had nothing left to do but the promise, and did not make it: it made a
/// near miss, or it left every item ticked and said nothing of the kind.
fn lacks_only_promise(state: &RunState, evidence: &Evidence) -> bool {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    let is_none = promise::claim(message, &state.options.completion_promise, &state.nonce) == Claim::None;
    if !is_none || evidence.root_popped || evidence.ending != Ending::Completed {
        return false;
    }
    // No promise was asked for.
    if state.options.ends_with_last_tick() || !objections(state, evidence).is_empty() {
        return false;
    }
    match near_miss(state, message) {
        Some(miss) => !miss.is_blocked,
        None => state.options.todo_file.is_some() && has_ticks(evidence),
    }
}

/// True when the verify commands have to run for the verdict: nothing else contradicts completion.
pub fn needs_verify(state: &RunState, evidence: &Evidence) -> bool {
    if state.options.commands().is_empty() {
        return false;
    }
    let message = evidence.last_message.as_deref().unwrap_or_default();
    let is_missed = near_miss(state, message).is_some() && objections(state, evidence).is_empty();
    completion(state, evidence) == Completion::Plausible
        || is_missed
        || unpromised(state, evidence) == Unpromised::Undecided
}

pub(crate) fn unpromised(state: &RunState, evidence: &Evidence) -> Unpromised {
    if !lacks_only_promise(state, evidence) {
        return Unpromised::No;
    }
    // Where commands decide, another session would only be paid to say what they say.
    let commands_decide = !state.options.commands().is_empty() && !state.options.strict_promise;
    if !commands_decide && promise_failures(state, evidence) < FAILURES {
        return Unpromised::AskAgain;
    }
    if evidence.verify.iter().any(|outcome| !outcome.passed) {
        return Unpromised::Fails;
    }
    let has_run = !evidence.verify.is_empty();
    if state.options.commands().is_empty() || (has_run && state.options.strict_promise) {
        Unpromised::Blocked(unpromised_words(state, evidence))
    } else if has_run {
        Unpromised::Completed(format!("{}, without the promise", completed_words(state, evidence)))
    } else {
        Unpromised::Undecided
    }
}

/// Why a run ends of which only the promise is missing, and what to do.
fn unpromised_words(state: &RunState, evidence: &Evidence) -> String {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    let given = match near_miss(state, message) {
        Some(miss) => format!("it was \"{}\"", miss.given),
        None => "it was left out".to_owned(),
    };
    let done = match &state.options.todo_file {
        Some(file) => format!("every item of {file} is ticked, but "),
        None => String::new(),
    };
    let (times, line) = (FAILURES, promise::line(&state.options.completion_promise, &state.nonce));
    let advice = if state.options.commands().is_empty() {
        "check the work: if it is done, so is the run; otherwise plimsoll run --resume, with --verify CMD to let a command decide"
    } else {
        "the verify commands passed, but --strict-promise asks for the line: plimsoll run --resume --strict-promise=false lets them decide"
    };
    format!(
        "{done}the promise line was not given as asked, {times} times ({given} and must be `{line}`); {advice}"
    )
}

fn objections(state: &RunState, evidence: &Evidence) -> Vec<String> {
    changed_protected(evidence).into_iter().chain(items_left(state, evidence.todo.as_ref())).collect()
}

fn changed_protected(evidence: &Evidence) -> Option<String> {
    let changed = &evidence.changed_protected;
    (!changed.is_empty()).then(|| describe_changes(changed))
}

fn items_left(state: &RunState, todo: Option<&TodoList>) -> Vec<String> {
    let Some(file) = &state.options.todo_file else { return Vec::new() };
    let Some(todo) = todo else {
        return vec![format!(
            "the to-do file {file} is missing, with {}",
            counted(state.items.known_items.len(), "known item")
        )];
    };
    let mut reasons = Vec::new();
    let open = todo.open();
    if !open.is_empty() {
        let verb = if open.len() == 1 { "is" } else { "are" };
        reasons.push(format!("{} {verb} open in {file}: {}", counted(open.len(), "item"), names(&open)));
    }
    // One that was ticked and then removed from the list is done.
    let unticked = item_set::without(&state.items.known_items, &[&state.items.ever_done]);
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
    let mut parts = Vec::new();
    if state.options.todo_file.is_some()
        && let Some(todo) = &evidence.todo
    {
        parts.push(counted(todo.done().len(), "item"));
    }
    if !evidence.verify.is_empty() {
        parts.push(format!("{} passed", counted(evidence.verify.len(), "verify command")));
    }
    if parts.is_empty() { "promised".to_owned() } else { parts.join(", ") }
}

/// Why a promise is refused.
pub(crate) fn refusal_reasons(state: &RunState, evidence: &Evidence) -> Vec<String> {
    let mut reasons = match completion(state, evidence) {
        Completion::Refused(reasons) => reasons,
        Completion::NotClaimed => vec!["every item is ticked, and the promise line was left out".to_owned()],
        Completion::Blocked(_) => Vec::new(),
        Completion::Plausible => missing_review(state, evidence.todo.as_ref()).into_iter().collect(),
    };
    // What took ticks back comes first in the next prompt.
    let taken = state.outcomes.taken_back.as_ref().filter(|taken| taken.is_pending);
    let is_told = |command: &str| {
        taken.is_some_and(|taken| taken.failed.iter().any(|failed| failed.command == command))
    };
    let failed = evidence.verify.iter().filter(|outcome| !outcome.passed && !is_told(&outcome.command));
    reasons.extend(failed.map(|outcome| format!("verify command `{}` {}", outcome.command, outcome.words)));
    reasons
}
