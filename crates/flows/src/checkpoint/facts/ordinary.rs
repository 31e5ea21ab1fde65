//! What only a session of no run has: what its user asked for, and the client's own task list.

use plimsoll_domain::TodoList;
use plimsoll_domain::handoff::{Handoff, OrdinarySession};
use plimsoll_domain::todo::DEFAULT_PLAN;
use plimsoll_protocol::client_tasks::{ClientTask, TaskState};
use plimsoll_store::tail::{self, Conversation};
use std::path::Path;

/// So many of the last requests are told.
const REQUESTS: usize = 3;

/// The facts with the user's requests, and with the task list; without one, with what is open in the project's plan.
pub(super) fn with_conversation(
    facts: Handoff,
    transcript: Option<&Path>,
    plan: Option<&TodoList>,
) -> Handoff {
    let said = transcript.and_then(|path| tail::conversation(path, REQUESTS).ok()).unwrap_or_default();
    let Conversation { first_request, last_requests, tasks } = said;
    // Each whole: a secret is found before a cut goes through it.
    let ordinary = OrdinarySession {
        first_request: first_request.as_deref().map(plimsoll_secrets::without),
        last_requests: last_requests.iter().map(|request| plimsoll_secrets::without(request)).collect(),
    };
    let plan = plan.filter(|_| tasks.is_empty());
    let (done, open) = match plan {
        Some(plan) => (Vec::new(), plan.open()),
        None => lists(&tasks),
    };
    Handoff { ordinary: Some(ordinary), done, open, plan: plan.map(|_| DEFAULT_PLAN.to_owned()), ..facts }
}

/// What is done, and what is open: first what is in progress.
fn lists(tasks: &[ClientTask]) -> (Vec<String>, Vec<String>) {
    let of = |state: TaskState| tasks.iter().filter(move |task| task.state == state);
    let subjects = |state| of(state).map(|task| task.subject.clone());
    let in_progress = of(TaskState::InProgress).map(|task| format!("{} (in progress)", task.subject));
    (subjects(TaskState::Completed).collect(), in_progress.chain(subjects(TaskState::Pending)).collect())
}
