//! `--notify`: starts a program of the user's at the end and at pauses, with the facts as JSON on its standard
//! input. It is started as it was given, word by word; no shell reads it.

use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::{RunState, Verdict};
use plimsoll_store::{Project, journal};
use serde_json::json;
use std::time::Duration;

/// A message to a telephone may take a while; a run does not wait longer.
const DEADLINE: Duration = Duration::from_secs(30);

/// Starts the user's program. A failure of it is only recorded in the journal, and a journal that cannot be written does
/// not prevent the notification.
pub fn notify(project: &Project, state: &RunState, verdict: &Verdict) {
    if state.options.notify.is_empty() {
        return;
    }
    let event = match verdict {
        Verdict::Stop { .. } => "ended",
        Verdict::Pause { .. } => "paused",
        Verdict::Continue { .. } => return,
    };
    let message = json!({
        "event": event,
        "task_name": plimsoll_secrets::without(&state.options.task_name),
        "run_id": state.run_id,
        "project": project.root().to_string_lossy(),
        "status": state.lifecycle.status().word(),
        "marker": plimsoll_secrets::without(&verdict.marker().to_string()),
        "paused_until": state.lifecycle.paused_until(),
        "iteration": state.iteration,
        "items_done": state.items.completed_items.len(),
        "items_open": state.items.todo_items.len(),
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
