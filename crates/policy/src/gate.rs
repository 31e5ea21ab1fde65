//! The gate: end the run, wait, or go on with a fresh session. One pure function for the Stop hook (which
//! judges provisionally) and for `plimsoll run` and `plimsoll gate` (which judge finally).

use session::promise::{self, Claim};
use session::state::RunState;
use session::text::{clip, counted};
use session::verdict::ContinueKind;
use session::{Ending, Status, TodoList, Verdict};

/// What is known when the gate judges.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// How the session ended.
    pub ending: Ending,
    /// The last assistant message, as the client handed it over.
    pub last_message: Option<String>,
    /// The to-do list; none when the run has none or its file is missing.
    pub todo: Option<TodoList>,
    /// What the verify commands said; empty before they have run.
    pub verify: Vec<VerifyOutcome>,
}

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

/// Looks at the promise and the items.
pub fn completion(state: &RunState, evidence: &Evidence) -> Completion {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    match promise::claim(message, &state.completion_promise, &state.nonce) {
        Claim::None => Completion::NotClaimed,
        Claim::Blocked(reason) => Completion::Blocked(reason),
        Claim::Complete => {
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
    let vanished = todo.vanished(&state.known_items);
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

/// Judges, in the order of the design: cancelled, completed or blocked, fatal, limits, iterations, go on.
/// Completion comes before the limits, so that a promise on the last iteration counts. The state takes the
/// verdict; an active checkpoint is left as it is, for the next prompt to carry on.
pub fn gate(state: &mut RunState, evidence: &Evidence) -> Verdict {
    let verdict = judge(state, evidence);
    state.refusals = match &verdict {
        Verdict::Continue { kind: ContinueKind::Refused, .. } => refusal_reasons(state, evidence),
        Verdict::Pause { .. } => std::mem::take(&mut state.refusals),
        _ => Vec::new(),
    };
    match &verdict {
        Verdict::Stop { status, .. } => state.status = *status,
        Verdict::Pause { .. } => state.status = Status::Paused,
        Verdict::Continue { .. } => state.status = Status::Running,
    }
    state.last_verdict = Some(verdict.clone());
    verdict
}

fn judge(state: &RunState, evidence: &Evidence) -> Verdict {
    if state.status.is_over() {
        return Verdict::Stop { status: state.status, reason: String::new() };
    }
    let completion = completion(state, evidence);
    match &completion {
        Completion::Plausible if evidence.verify.iter().all(|outcome| outcome.passed) => {
            return Verdict::Stop { status: Status::Completed, reason: completed_words(state, evidence) };
        }
        Completion::Blocked(reason) => {
            return Verdict::Stop { status: Status::Blocked, reason: reason.clone() };
        }
        _ => {}
    }
    match &evidence.ending {
        Ending::Fatal(words) => {
            return Verdict::Stop { status: Status::FatalError, reason: clip(words, 300) };
        }
        Ending::Limit(words) => {
            return Verdict::Pause { until: None, reason: format!("usage limit: {}", clip(words, 200)) };
        }
        Ending::Overloaded(words) => {
            return Verdict::Pause { until: None, reason: format!("overloaded: {}", clip(words, 200)) };
        }
        Ending::Interrupted => return Verdict::Pause { until: None, reason: "interrupted".to_owned() },
        _ => {}
    }
    if state.iteration >= state.max_iterations {
        let reason = format!("{} done", counted(state.iteration as usize, "iteration"));
        return Verdict::Stop { status: Status::MaxIterations, reason };
    }
    go_on(state, evidence, &completion)
}

fn go_on(state: &RunState, evidence: &Evidence, completion: &Completion) -> Verdict {
    if matches!(completion, Completion::Refused(_) | Completion::Plausible) {
        let reason = refusal_reasons(state, evidence).join("; ");
        return Verdict::Continue {
            kind: ContinueKind::Refused,
            reason: clip(&session::text::one_line(&reason), 500),
        };
    }
    let checkpoint = &state.context_checkpoint;
    if crate::resume::due(checkpoint, evidence.todo.as_ref()).is_some() {
        return Verdict::Continue { kind: ContinueKind::Checkpoint, reason: checkpoint.handoff_file.clone() };
    }
    Verdict::Continue { kind: ContinueKind::Next, reason: next_words(state, evidence) }
}

fn next_words(state: &RunState, evidence: &Evidence) -> String {
    let ending = match &evidence.ending {
        Ending::Completed | Ending::HookStopped | Ending::Unknown => String::new(),
        Ending::WindowFull(why) => format!("the window was full ({why}); "),
        Ending::ClientLimit(which) => format!("the client's {which} ended the session; "),
        Ending::Crashed(why) => format!("the client {why}; "),
        Ending::Failed(words) => format!("the session failed: {}; ", clip(words, 200)),
        Ending::Fatal(_) | Ending::Limit(_) | Ending::Overloaded(_) | Ending::Interrupted => String::new(),
    };
    let open = evidence.todo.as_ref().map_or(state.todo_items.len(), |todo| todo.open().len());
    match &state.todo_file {
        Some(_) => format!("{ending}{}", counted(open, "open item")),
        None => format!("{ending}no promise yet"),
    }
}

fn completed_words(state: &RunState, evidence: &Evidence) -> String {
    let items = evidence.todo.as_ref().map(|todo| counted(todo.done().len(), "item"));
    let verify = (!evidence.verify.is_empty())
        .then(|| format!("{} passed", counted(evidence.verify.len(), "verify command")));
    let parts: Vec<String> = items.filter(|_| state.todo_file.is_some()).into_iter().chain(verify).collect();
    if parts.is_empty() { "promised".to_owned() } else { parts.join(", ") }
}

fn refusal_reasons(state: &RunState, evidence: &Evidence) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use session::state::Checkpoint;

    const PROMISE: &str = "done\n<promise>COMPLETE n1</promise>";

    fn state() -> RunState {
        RunState {
            run_id: "r1".into(),
            nonce: "n1".into(),
            completion_promise: "COMPLETE".into(),
            iteration: 3,
            max_iterations: 50,
            todo_file: Some("fix_plan.md".into()),
            known_items: vec!["one".into(), "two".into()],
            ..RunState::default()
        }
    }

    fn evidence(message: &str, todo: &str) -> Evidence {
        Evidence {
            ending: Ending::Completed,
            last_message: Some(message.to_owned()),
            todo: Some(TodoList::parse(todo)),
            verify: Vec::new(),
        }
    }

    const DONE: &str = "- [x] one\n- [x] two\n";

    fn marker(state: &mut RunState, evidence: &Evidence) -> String {
        gate(state, evidence).marker().to_string()
    }

    #[test]
    fn a_promise_with_all_items_done_completes_also_on_the_last_iteration() {
        let mut state = state();
        state.iteration = 50;
        assert_eq!(marker(&mut state, &evidence(PROMISE, DONE)), "RALPH_STOP|completed|2 items");
        assert_eq!(state.status, Status::Completed);
    }

    #[test]
    fn a_promise_is_refused_while_items_are_open_or_have_vanished() {
        let mut state = state();
        let line = marker(&mut state, &evidence(PROMISE, "- [x] one\n- [ ] two\n"));
        assert_eq!(line, "RALPH_CONTINUE|refused|1 item is open in fix_plan.md: \"two\"");
        let line = marker(&mut state, &evidence(PROMISE, "- [x] one\n"));
        assert_eq!(line, "RALPH_CONTINUE|refused|1 item vanished unticked from fix_plan.md: \"two\"");
        assert_eq!(state.refusals.len(), 1);
        let missing = Evidence { todo: None, ..evidence(PROMISE, "") };
        assert!(marker(&mut state, &missing).contains("missing"));
    }

    #[test]
    fn a_promise_is_refused_while_a_verify_command_fails() {
        let mut state = state();
        let outcome =
            |passed| VerifyOutcome { command: "make test".into(), passed, words: "exited with 2".into() };
        let failing = Evidence { verify: vec![outcome(true), outcome(false)], ..evidence(PROMISE, DONE) };
        assert_eq!(
            marker(&mut state, &failing),
            "RALPH_CONTINUE|refused|verify command `make test` exited with 2"
        );
        assert_eq!(state.refusals, ["verify command `make test` exited with 2"]);
        let passing = Evidence { verify: vec![outcome(true)], ..evidence(PROMISE, DONE) };
        assert_eq!(marker(&mut state, &passing), "RALPH_STOP|completed|2 items, 1 verify command passed");
        assert!(state.refusals.is_empty());
    }

    #[test]
    fn the_order_is_cancelled_completed_fatal_limits_iterations_continue() {
        let with = |ending: Ending| Evidence { ending, ..evidence("working", "- [ ] one\n- [ ] two\n") };
        let mut cancelled = state();
        cancelled.status = Status::Cancelled;
        assert_eq!(marker(&mut cancelled, &evidence(PROMISE, DONE)), "RALPH_STOP|cancelled|");
        let last = || RunState { iteration: 50, ..state() };
        for (ending, beginning) in [
            (Ending::Fatal("authentication failed".into()), "RALPH_STOP|fatal_error|authentication"),
            (Ending::Limit("429".into()), "RALPH_PAUSE|-|usage limit: 429"),
            (Ending::Overloaded("529".into()), "RALPH_PAUSE|-|overloaded: 529"),
            (Ending::Interrupted, "RALPH_PAUSE|-|interrupted"),
            (Ending::Completed, "RALPH_STOP|max_iterations|50 iterations"),
            (Ending::Crashed("x".into()), "RALPH_STOP|max_iterations|50 iterations"),
        ] {
            let line = marker(&mut last(), &with(ending));
            assert!(line.starts_with(beginning), "{line} vs {beginning}");
        }
        assert_eq!(marker(&mut state(), &with(Ending::Completed)), "RALPH_CONTINUE|next|2 open items");
    }

    #[test]
    fn a_checkpoint_never_jumps_the_queue_and_is_kept_whatever_the_verdict() {
        let mut state = state();
        state.context_checkpoint =
            Checkpoint { active: true, handoff_file: "h.md".into(), ..Checkpoint::default() };
        assert_eq!(marker(&mut state, &evidence("x", "- [ ] one\n")), "RALPH_CONTINUE|checkpoint|h.md");
        state.iteration = 50;
        assert!(marker(&mut state, &evidence("x", "- [ ] one\n")).starts_with("RALPH_STOP|max_iterations"));
        assert!(state.context_checkpoint.active);
    }

    #[test]
    fn blocked_is_an_honest_way_out() {
        let message = "<promise>BLOCKED n1 no credentials</promise>";
        assert_eq!(
            marker(&mut state(), &evidence(message, "- [ ] one\n")),
            "RALPH_STOP|blocked|no credentials"
        );
    }

    #[test]
    fn without_a_to_do_file_promise_and_verify_alone_decide() {
        let mut state = RunState { todo_file: None, known_items: Vec::new(), ..state() };
        let bare = Evidence { todo: None, ..evidence(PROMISE, "") };
        assert_eq!(marker(&mut state, &bare), "RALPH_STOP|completed|promised");
        state.status = Status::Running;
        let working = Evidence { todo: None, ..evidence("working", "") };
        assert_eq!(marker(&mut state, &working), "RALPH_CONTINUE|next|no promise yet");
    }
}
