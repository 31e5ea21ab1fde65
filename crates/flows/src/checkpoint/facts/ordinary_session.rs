//! Facts that only sessions outside a run have: what the user asked for, and the client's task list.

use plimsoll_domain::TodoList;
use plimsoll_domain::handoff::{Handoff, UserRequests};
use plimsoll_domain::todo::DEFAULT_PLAN;
use plimsoll_protocol::client_tasks::{ClientTask, TaskState};
use plimsoll_store::tail::{self, RequestsAndTasks};
use std::path::Path;

const MAX_LAST_REQUESTS: usize = 3;

/// Adds the user's requests, and the items of the client's task list. Without a task list, the open items of
/// the project's plan are used.
pub(super) fn add_requests_and_tasks_else_open_plan_items(
    handoff: Handoff,
    transcript_path: Option<&Path>,
    plan: Option<&TodoList>,
) -> Handoff {
    let RequestsAndTasks { requests, tasks } = transcript_path
        .and_then(|path| tail::read_requests_and_tasks(path, tail::MAX_TAIL_BYTES).ok())
        .unwrap_or_default();
    // Secrets are removed from the full text, because a cut could split a secret and hide it from the search.
    let requests = requests.iter().map(|request| plimsoll_secrets::redact(request)).collect();
    let user_requests = UserRequests::first_and_last(requests, MAX_LAST_REQUESTS);
    let plan = plan.filter(|_| tasks.is_empty());
    let (done_items, open_items) = match plan {
        Some(plan) => (Vec::new(), plan.open_items()),
        None => completed_and_open_task_subjects(&tasks),
    };
    Handoff {
        user_requests: Some(user_requests),
        done_items,
        open_items,
        plan_path: plan.map(|_| DEFAULT_PLAN.to_owned()),
        ..handoff
    }
}

/// Returns the completed tasks, and the open ones, with those in progress first.
fn completed_and_open_task_subjects(tasks: &[ClientTask]) -> (Vec<String>, Vec<String>) {
    let tasks_in_state = |state: TaskState| tasks.iter().filter(move |task| task.state == state);
    let subjects_in_state = |state| tasks_in_state(state).map(|task| task.subject.clone());
    let in_progress =
        tasks_in_state(TaskState::InProgress).map(|task| format!("{} (in progress)", task.subject));
    (
        subjects_in_state(TaskState::Completed).collect(),
        in_progress.chain(subjects_in_state(TaskState::Pending)).collect(),
    )
}
