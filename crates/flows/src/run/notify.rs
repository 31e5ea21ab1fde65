//! `--notify`: starts a program of the user's at the end, at pauses and for each question, with the facts as JSON on its standard
//! input. It is started as it was given, word by word; no shell reads it.

use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::{RunState, Verdict};
use plimsoll_store::{Project, journal};
use serde_json::json;
use std::time::Duration;

/// A message to a telephone may take a while; a run does not wait longer.
const DEADLINE: Duration = Duration::from_secs(30);

/// How many questions a message holds.
const QUESTIONS: usize = 20;

/// Starts the user's program for an end or a pause. A failure of it is only recorded in the journal, and a journal that cannot
/// be written does not prevent the notification.
pub fn notify(project: &Project, state: &RunState, verdict: &Verdict) {
    let event = match verdict {
        Verdict::Stop { .. } => "ended",
        Verdict::Pause { .. } => "paused",
        Verdict::Continue { .. } => return,
    };
    start(project, state, event, Some(verdict), &state.items.parked);
}

/// The same for questions that wait for an answer since the last session: one message for all of them.
pub(crate) fn notify_of_questions(project: &Project, state: &RunState, questions: &[OpenQuestion]) {
    if !questions.is_empty() {
        start(project, state, "question", state.lifecycle.last_verdict(), questions);
    }
}

fn start(
    project: &Project,
    state: &RunState,
    event: &str,
    verdict: Option<&Verdict>,
    questions: &[OpenQuestion],
) {
    if state.options.notify.is_empty() {
        return;
    }
    let without = plimsoll_secrets::without;
    let questions: Vec<_> = questions
        .iter()
        .take(QUESTIONS)
        .map(|one| json!({ "item": without(&one.item), "question": without(&one.question) }))
        .collect();
    let message = json!({
        "event": event,
        "task_name": without(&state.options.task_name),
        "run_id": state.run_id,
        "project": project.root().to_string_lossy(),
        "status": state.lifecycle.status().word(),
        "marker": verdict.map(|verdict| without(&verdict.marker().to_string())),
        "paused_until": state.lifecycle.paused_until(),
        "iteration": state.iteration,
        "items_done": state.items.completed_items.len(),
        "items_open": state.items.todo_items.len(),
        "questions": questions,
        "cost_usd": state.spent.cost_usd,
        "tokens": state.spent.tokens,
    });
    let outcome = plimsoll_launcher::tell(
        &state.options.notify,
        project.root(),
        message.to_string().as_bytes(),
        DEADLINE,
    );
    let trouble = match (&outcome.trouble, outcome.timed_out, outcome.code) {
        (Some(trouble), ..) => Some(format!("could not be started: {trouble}")),
        (None, true, _) => Some(format!("took longer than {} s", DEADLINE.as_secs())),
        (None, false, Some(0)) => None,
        (None, false, code) => {
            Some(format!("exited with {}", code.map_or("a signal".into(), |code| code.to_string())))
        }
    };
    let event =
        JournalEvent::Notified { what: event.to_owned(), program: state.options.notify.clone(), trouble };
    let _ = journal::note(project, JournalEntry::of_run(state, event));
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::RunOptions;
    use plimsoll_domain::status::Status;

    #[test]
    fn the_program_is_told_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let token = format!("{}{}", "ghp_", "aB3dE5fG7hK9".repeat(3));
        let told = folder.path().join("told.json");
        let state = RunState {
            run_id: "r1".into(),
            options: RunOptions {
                task_name: format!("push with {token}"),
                notify: vec!["sh".into(), "-c".into(), format!("cat > {}", told.display())],
                ..RunOptions::default()
            },
            ..RunState::default()
        };
        let verdict = Verdict::Stop { status: Status::Blocked, reason: format!("refused: {token}") };
        notify(&project, &state, &verdict);
        let text = plimsoll_store::disk::read_text(&told).unwrap().unwrap();
        assert!(!text.contains("ghp_"), "{text}");
        let message: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(message["task_name"], "push with [redacted:github-token]");
        assert!(
            message["marker"].as_str().unwrap().ends_with("refused: [redacted:github-token]"),
            "{message}"
        );
    }
}
