//! Notes for Linear: put into the outbox where an issue is set. Nothing is sent here; `plimsoll run` and
//! `plimsoll linear sync` do that.

use crate::run_context::RunContext;
use plimsoll_domain::Settings;
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::linear::{Note, NoteKind};
use plimsoll_domain::state::RunState;
use plimsoll_policy::linear::ItemNews;
use plimsoll_store::{Project, clock, config, outbox};

/// Notes a checkpoint of a run. A note that cannot be written must not cost the checkpoint.
pub(crate) fn note_checkpoint(context: &RunContext<'_>, state: &RunState) {
    let words = || plimsoll_policy::linear::checkpoint(state, &plimsoll_secrets::without);
    note(context, state, NoteKind::Checkpoint, words);
}

/// Notes the questions that the current iteration asked.
pub(crate) fn note_questions(project: &Project, state: &RunState) {
    if state.asked_now().next().is_none() {
        return;
    }
    let (settings, _) = config::load(project);
    let context = RunContext { project, settings: &settings, run_id: &state.run_id };
    note(&context, state, NoteKind::Question, || {
        plimsoll_policy::linear::questions(state, &plimsoll_secrets::without)
    });
}

/// Notes the end of a run.
pub(crate) fn note_end(project: &Project, state: &RunState) {
    let (settings, _) = config::load(project);
    let context = RunContext { project, settings: &settings, run_id: &state.run_id };
    note(&context, state, NoteKind::End, || plimsoll_policy::linear::end(state, &plimsoll_secrets::without));
}

/// Notes what has become of an item of a parallel run, by its number in the plan. The runs of its items tell nothing by themselves.
pub(crate) fn note_item(
    project: &Project,
    settings: &Settings,
    run: &RunState,
    number: u32,
    item: &str,
    news: ItemNews<'_>,
) {
    let context = RunContext { project, settings, run_id: &run.run_id };
    note_of(&context, run, (NoteKind::Item, number), || {
        plimsoll_policy::linear::item_news(item, news, &plimsoll_secrets::without)
    });
}

fn note(context: &RunContext<'_>, state: &RunState, kind: NoteKind, words: impl Fn() -> String) {
    note_of(context, state, (kind, state.iteration), words);
}

fn note_of(
    context: &RunContext<'_>,
    state: &RunState,
    (kind, iteration): (NoteKind, u32),
    words: impl Fn() -> String,
) {
    let Some(issue) = &context.settings.linear.issue else { return };
    let note = Note {
        at: clock::stamp(clock::now()),
        run_id: context.run_id.clone(),
        task: plimsoll_secrets::without(&state.options.task_name),
        issue: issue.clone(),
        iteration,
        kind,
        words: words(),
    };
    // The process that judges after a kill comes here again.
    let is_told = outbox::notes(context.project, context.run_id).is_ok_and(|notes| {
        let of_it = notes.iter().rev().find(|known| known.iteration == note.iteration && known.kind == kind);
        of_it.is_some_and(|known| known.words == note.words)
    });
    if is_told {
        return;
    }
    if let Err(error) = outbox::add(context.project, &note) {
        let trouble = format!("{error}; {}", error.hint());
        let _ = context.note_of_run(state, JournalEvent::LinearFailed { trouble, until: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::RunOptions;

    #[test]
    fn what_looks_like_a_secret_is_left_out_of_a_note() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
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
        note_checkpoint(&context, &state);
        let note = outbox::notes(&project, &"r1".into()).unwrap().remove(0);
        assert_eq!(
            note.task,
            "the key [redacted:github-token] and postgres://me:[redacted:url-password]@db/x"
        );
        assert!(!format!("{note:?}").contains(&token), "{note:?}");
    }

    #[test]
    fn without_an_issue_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let state = RunState { run_id: "r1".into(), ..RunState::default() };
        let note_with = |settings: &Settings| {
            note_checkpoint(&RunContext { project: &project, settings, run_id: &state.run_id }, &state);
        };
        note_with(&Settings::default());
        assert!(!plimsoll_store::disk::exists(&outbox::folder(&project)));
        let mut settings = Settings::default();
        settings.linear.issue = Some("ENG-1".to_owned());
        note_with(&settings);
        note_with(&settings);
        assert_eq!(outbox::notes(&project, &"r1".into()).unwrap().len(), 1, "the same words are told once");
    }
}
