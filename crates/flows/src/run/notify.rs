//! `--notify`: starts a program of the user at the end of a run, at pauses and for questions, and writes a JSON
//! message to its standard input. The program is started directly with its arguments, without a shell.

use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::{RunState, Verdict};
use plimsoll_store::{Project, journal};
use serde_json::json;
use std::time::Duration;

/// Timeout of the program; sending a message to a phone may take some seconds.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of questions in a message.
const MAX_QUESTIONS: usize = 20;

/// Starts the user's program if the verdict stops or pauses the run. A failure of the program is only recorded
/// in the journal, and a failed write to the journal is ignored.
pub fn notify_user_of_end_or_pause(project: &Project, state: &RunState, verdict: &Verdict) {
    let event = match verdict {
        Verdict::Stop { .. } => "ended",
        Verdict::Pause { .. } => "paused",
        Verdict::Continue { .. } => return,
    };
    run_and_journal_notify_program(project, state, event, Some(verdict), &state.plan_items.parked_questions);
}

/// Starts the user's program once for all new questions. Does nothing without questions.
pub(crate) fn notify_user_of_questions(project: &Project, state: &RunState, questions: &[OpenQuestion]) {
    if !questions.is_empty() {
        run_and_journal_notify_program(project, state, "question", state.lifecycle.last_verdict(), questions);
    }
}

fn run_and_journal_notify_program(
    project: &Project,
    state: &RunState,
    event: &str,
    verdict: Option<&Verdict>,
    questions: &[OpenQuestion],
) {
    if state.options.notify_command.is_empty() {
        return;
    }
    let redact = plimsoll_secrets::redact;
    let questions: Vec<_> = questions
        .iter()
        .take(MAX_QUESTIONS)
        .map(|question| json!({ "item": redact(&question.item), "question": redact(&question.question) }))
        .collect();
    let message = json!({
        "event": event,
        "task_name": redact(&state.options.task_name),
        "run_id": state.run_id,
        "project": project.root().to_string_lossy(),
        "status": state.lifecycle.status().as_str(),
        "marker": verdict.map(|verdict| redact(&verdict.to_marker().to_string())),
        "paused_until": state.lifecycle.paused_until(),
        "iteration": state.iteration,
        "items_done": state.plan_items.completed_items.len(),
        "items_open": state.plan_items.todo_items.len(),
        "questions": questions,
        "cost_usd": state.spending.cost_usd,
        "tokens": state.spending.tokens,
    });
    let outcome = plimsoll_launcher::run_program_with_stdin(
        &state.options.notify_command,
        project.root(),
        message.to_string().as_bytes(),
        PROGRAM_TIMEOUT,
    );
    let error_text = match (&outcome.start_error, outcome.timed_out, outcome.exit_code) {
        (Some(error), ..) => Some(format!("could not be started: {error}")),
        (None, true, _) => Some(format!("took longer than {} s", PROGRAM_TIMEOUT.as_secs())),
        (None, false, Some(0)) => None,
        (None, false, code) => {
            Some(format!("exited with {}", code.map_or("a signal".into(), |code| code.to_string())))
        }
    };
    let journal_event = JournalEvent::Notified {
        reason: event.to_owned(),
        program: state.options.notify_command.clone(),
        error: error_text,
    };
    let _ = journal::append_entry(project, JournalEntry::for_run(state, journal_event));
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::RunOptions;
    use plimsoll_domain::status::RunStatus;

    #[test]
    fn the_notification_contains_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let token = format!("{}{}", "ghp_", "aB3dE5fG7hK9".repeat(3));
        let message_path = folder.path().join("told.json");
        let state = RunState {
            run_id: "r1".into(),
            options: RunOptions {
                task_name: format!("push with {token}"),
                notify_command: vec!["sh".into(), "-c".into(), format!("cat > {}", message_path.display())],
                ..RunOptions::default()
            },
            ..RunState::default()
        };
        let verdict = Verdict::Stop { status: RunStatus::Blocked, reason: format!("refused: {token}") };
        notify_user_of_end_or_pause(&project, &state, &verdict);
        let text = plimsoll_store::disk::read_text(&message_path).unwrap().unwrap();
        assert!(!text.contains("ghp_"), "{text}");
        let message: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(message["task_name"], "push with [redacted:github-token]");
        assert!(
            message["marker"].as_str().unwrap().ends_with("refused: [redacted:github-token]"),
            "{message}"
        );
    }
}
