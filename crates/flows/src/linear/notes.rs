//! Queues notes for Linear in the outbox if an issue is configured. `plimsoll run` and `plimsoll linear sync`
//! send them.

use crate::run_context::RunContext;
use plimsoll_domain::Settings;
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::linear::{LinearNote, LinearNoteKind};
use plimsoll_domain::state::RunState;
use plimsoll_policy::linear::ParallelItemEvent;
use plimsoll_store::{Project, clock, config, outbox};

/// Queues a note about a checkpoint of a run. An error is only recorded in the journal, so that it does not
/// prevent the checkpoint.
pub(crate) fn queue_checkpoint_note(context: &RunContext<'_>, run: &RunState) {
    let render_text = || plimsoll_policy::linear::render_checkpoint_note(run, &plimsoll_secrets::redact);
    queue_iteration_note(context, run, LinearNoteKind::Checkpoint, render_text);
}

/// Queues a note with the questions that the current iteration asked, if there are any.
pub(crate) fn queue_note_about_iteration_questions(project: &Project, run: &RunState) {
    if run.questions_of_current_iteration().next().is_none() {
        return;
    }
    let (settings, _) = config::load_settings(project);
    let context = RunContext { project, settings: &settings, run_id: &run.run_id };
    queue_iteration_note(&context, run, LinearNoteKind::Question, || {
        plimsoll_policy::linear::render_note_on_iteration_questions(run, &plimsoll_secrets::redact)
    });
}

pub(crate) fn queue_run_end_note(project: &Project, run: &RunState) {
    let (settings, _) = config::load_settings(project);
    let context = RunContext { project, settings: &settings, run_id: &run.run_id };
    queue_iteration_note(&context, run, LinearNoteKind::End, || {
        plimsoll_policy::linear::render_run_end_note(run, &plimsoll_secrets::redact)
    });
}

/// Queues a note about an item of a parallel run, identified by its number in the plan. The runs of the items
/// themselves queue no notes.
pub(crate) fn queue_item_note(
    project: &Project,
    settings: &Settings,
    run: &RunState,
    item_number: u32,
    item: &str,
    event: ParallelItemEvent<'_>,
) {
    let context = RunContext { project, settings, run_id: &run.run_id };
    queue_note_if_issue_set_and_text_new(&context, run, (LinearNoteKind::Item, item_number), || {
        plimsoll_policy::linear::render_item_note(item, event, &plimsoll_secrets::redact)
    });
}

fn queue_iteration_note(
    context: &RunContext<'_>,
    run: &RunState,
    kind: LinearNoteKind,
    render_text: impl Fn() -> String,
) {
    queue_note_if_issue_set_and_text_new(context, run, (kind, run.iteration), render_text);
}

fn queue_note_if_issue_set_and_text_new(
    context: &RunContext<'_>,
    run: &RunState,
    (kind, iteration_or_item_number): (LinearNoteKind, u32),
    render_text: impl Fn() -> String,
) {
    let Some(issue) = &context.settings.linear.issue else { return };
    let note = LinearNote {
        recorded_at: clock::to_timestamp(clock::now()),
        run_id: context.run_id.clone(),
        task_name: plimsoll_secrets::redact(&run.options.task_name),
        issue_name: issue.clone(),
        iteration_or_item_number,
        kind,
        text: render_text(),
    };
    // If the process that ends the iteration is killed, the same note is queued again, so duplicates are skipped.
    let is_queued = outbox::read_notes(context.project, context.run_id).is_ok_and(|notes| {
        let last_note = notes.iter().rev().find(|queued| {
            queued.iteration_or_item_number == note.iteration_or_item_number && queued.kind == kind
        });
        last_note.is_some_and(|queued| queued.text == note.text)
    });
    if is_queued {
        return;
    }
    if let Err(error) = outbox::append_note_with_best_effort_lock(context.project, &note) {
        let error = format!("{error}; {}", error.hint());
        let _ = context.journal_run_event(run, JournalEvent::LinearFailed { error, retry_at: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::RunOptions;

    #[test]
    fn secrets_are_left_out_of_a_note() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let token = format!("{}{}", "ghp_", "a1".repeat(18));
        let task_name = format!("the key {token} and postgres://me:hunter2hunter2@db/x");
        let state = RunState {
            run_id: "r1".into(),
            options: RunOptions { task_name, ..RunOptions::default() },
            ..RunState::default()
        };
        let mut settings = Settings::default();
        settings.linear.issue = Some("ENG-1".to_owned());
        let context = RunContext { project: &project, settings: &settings, run_id: &state.run_id };
        queue_checkpoint_note(&context, &state);
        let note = outbox::read_notes(&project, &"r1".into()).unwrap().remove(0);
        assert_eq!(
            note.task_name,
            "the key [redacted:github-token] and postgres://me:[redacted:url-password]@db/x"
        );
        assert!(!format!("{note:?}").contains(&token), "{note:?}");
    }

    #[test]
    fn without_an_issue_no_note_is_queued() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let state = RunState { run_id: "r1".into(), ..RunState::default() };
        let queue_with = |settings: &Settings| {
            queue_checkpoint_note(&RunContext { project: &project, settings, run_id: &state.run_id }, &state);
        };
        queue_with(&Settings::default());
        assert!(!plimsoll_store::disk::exists(&outbox::outbox_folder(&project)));
        let mut settings = Settings::default();
        settings.linear.issue = Some("ENG-1".to_owned());
        queue_with(&settings);
        queue_with(&settings);
        assert_eq!(
            outbox::read_notes(&project, &"r1".into()).unwrap().len(),
            1,
            "the same words are told once"
        );
    }
}
