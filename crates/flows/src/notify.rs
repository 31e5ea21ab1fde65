//! `--notify`: a program of the user's is told of the end and of pauses, with the facts as JSON on its standard
//! input. It is started as it was given, word by word; no shell reads it.

use serde_json::json;
use session::journal::Entry;
use session::{RunState, Verdict};
use std::time::Duration;
use store::{Project, StoreError, journal};

/// A message to a telephone may take a while; a run does not wait longer.
const DEADLINE: Duration = Duration::from_secs(30);

/// Tells it. A program that fails is noted in the journal, and nothing else happens.
pub fn notify(project: &Project, state: &RunState, verdict: &Verdict) -> Result<(), StoreError> {
    if state.notify.is_empty() {
        return Ok(());
    }
    let event = match verdict {
        Verdict::Stop { .. } => "ended",
        Verdict::Pause { .. } => "paused",
        Verdict::Continue { .. } => return Ok(()),
    };
    let message = json!({
        "event": event,
        "task_name": secrets::without(&state.task_name),
        "run_id": state.run_id,
        "project": project.root().to_string_lossy(),
        "status": state.status.word(),
        "marker": secrets::without(&verdict.marker().to_string()),
        "paused_until": state.paused_until,
        "iteration": state.iteration,
        "items_done": state.completed_items.len(),
        "items_open": state.todo_items.len(),
        "cost_usd": state.cost_usd,
        "tokens": state.tokens,
    });
    let outcome = launcher::tell(&state.notify, project.root(), message.to_string().as_bytes(), DEADLINE);
    let trouble = match (&outcome.trouble, outcome.timed_out, outcome.code) {
        (Some(trouble), ..) => Some(format!("could not be started: {trouble}")),
        (None, true, _) => Some(format!("took longer than {} s", DEADLINE.as_secs())),
        (None, false, Some(0)) => None,
        (None, false, code) => {
            Some(format!("exited with {}", code.map_or("a signal".into(), |code| code.to_string())))
        }
    };
    let entry = Entry::new("notified").run(Some((&state.run_id, state.iteration)));
    journal::note(
        project,
        entry.fact("what", event).fact("program", state.notify.clone()).fact("trouble", trouble),
    )
}
