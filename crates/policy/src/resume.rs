//! Decides whether the next session resumes a checkpoint. A session resumes the checkpoint of its item; those of other
//! items wait in `half_done_checkpoints` of the state. [`plimsoll_domain::resume`] renders the text for the session.

use crate::current_item::{choose_current_item, current_unparked_item};
use plimsoll_domain::state::checkpoint::NOT_STARTED;
use plimsoll_domain::state::{Checkpoint, CheckpointCause, ItemWork};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_domain::verdict::EndingCategory;
use plimsoll_domain::{RunState, SessionEnding, TodoList};

/// Returns the checkpoint that the next session resumes, if there is one. A checkpoint that was requested, or written
/// before a compaction, is not resumed once its item is ticked. If the item of another checkpoint has been ticked since,
/// the checkpoint is changed for the next item and loses the details of the finished one.
pub fn checkpoint_to_resume_or_carry_to_next_item(
    checkpoint: &Checkpoint,
    todo: Option<&TodoList>,
    set_aside_items: &[String],
) -> Option<Checkpoint> {
    let is_item_ticked = is_checkpoint_item_ticked(checkpoint, todo);
    // The session had ticked its item and started no other one.
    let was_finished_at_checkpoint =
        !checkpoint.item_work.is_begun && !checkpoint.item_work.ticked_items.is_empty();
    let forces_resume =
        matches!(checkpoint.cause, CheckpointCause::Level | CheckpointCause::Budget | CheckpointCause::Crash);
    if !checkpoint.active || ((is_item_ticked || was_finished_at_checkpoint) && !forces_resume) {
        return None;
    }
    Some(match todo {
        Some(todo) if is_item_ticked => carry_over_to_next_open_item(checkpoint, todo, set_aside_items),
        _ => checkpoint.clone(),
    })
}

/// Removes and returns the checkpoint for the planned session: only the one of its assigned item. The checkpoint of
/// another half-done item is stored until that item is next.
pub fn store_half_done_and_take_next_checkpoint(
    state: &mut RunState,
    todo: Option<&TodoList>,
) -> Option<Checkpoint> {
    let checkpoint = checkpoint_to_resume_or_carry_to_next_item(
        &state.context_checkpoint,
        todo,
        &state.plan_items.set_aside_items,
    );
    let item = current_unparked_item(state).cloned();
    state
        .half_done_checkpoints
        .retain(|half_done| state.plan_items.todo_items.contains(&half_done.current_todo_item));
    let is_for_other_open_item = |checkpoint: &Checkpoint| {
        item.as_ref() != Some(&checkpoint.current_todo_item)
            && state.plan_items.todo_items.contains(&checkpoint.current_todo_item)
    };
    match checkpoint {
        Some(checkpoint) if checkpoint.item_work.is_begun && is_for_other_open_item(&checkpoint) => {
            // There is one checkpoint for each item: the newer one replaces the older one.
            state
                .half_done_checkpoints
                .retain(|half_done| half_done.current_todo_item != checkpoint.current_todo_item);
            state.half_done_checkpoints.push(checkpoint);
            remove_half_done_checkpoint_of_item(state, item.as_deref())
        }
        Some(checkpoint) => Some(checkpoint),
        None => remove_half_done_checkpoint_of_item(state, item.as_deref()),
    }
}

fn remove_half_done_checkpoint_of_item(state: &mut RunState, item: Option<&str>) -> Option<Checkpoint> {
    let index = state
        .half_done_checkpoints
        .iter()
        .position(|half_done| Some(half_done.current_todo_item.as_str()) == item)?;
    Some(state.half_done_checkpoints.remove(index))
}

/// Returns the next open item of a plan that is not waiting for an answer.
pub(crate) fn next_unparked_open_item(todo: &TodoList, set_aside_items: &[String]) -> Option<String> {
    choose_current_item(todo.unparked_open_items().iter(), set_aside_items).cloned()
}

/// Returns the checkpoint of an item that has been ticked since, changed for the next open item.
fn carry_over_to_next_open_item(
    checkpoint: &Checkpoint,
    todo: &TodoList,
    set_aside_items: &[String],
) -> Checkpoint {
    let item_work = &checkpoint.item_work;
    let finished_items =
        item_work.ticked_items.iter().chain([&checkpoint.current_todo_item]).cloned().collect();
    let next_item = next_unparked_open_item(todo, set_aside_items);
    Checkpoint {
        current_todo_item: next_item.unwrap_or_default(),
        files_in_progress: Vec::new(),
        progress_on_item: NOT_STARTED.to_owned(),
        next_step: String::new(),
        earlier_notes: None,
        earlier_handoff: String::new(),
        item_work: ItemWork {
            session_item: item_work.session_item.clone(),
            ticked_items: finished_items,
            is_begun: false,
            ..ItemWork::default()
        },
        ..checkpoint.clone()
    }
}

/// Returns true if the item that was in progress at the checkpoint has been ticked since.
pub fn is_checkpoint_item_ticked(checkpoint: &Checkpoint, todo: Option<&TodoList>) -> bool {
    let item = &checkpoint.current_todo_item;
    !item.is_empty() && todo.is_some_and(|todo| todo.is_item_ticked(item))
}

/// Describes the result of the current iteration in a sentence.
pub fn describe_current_iteration_result(state: &RunState, ending: &SessionEnding) -> String {
    let quote_item = |item: &String| format!("\"{}\"", truncate_end(&to_safe_single_line(item), 80));
    let ticked_items: Vec<String> = state.items_ticked_in_iteration().iter().map(quote_item).collect();
    let open_item =
        state.iteration_record.item.as_ref().filter(|item| state.plan_items.todo_items.contains(item));
    let action = match (ticked_items.is_empty(), open_item) {
        (true, Some(item))
            if state.questions_of_current_iteration().any(|question| question.item == *item) =>
        {
            format!("asked the user about {}, which waits for the answer", quote_item(item))
        }
        (false, None) => format!("finished {}", ticked_items.join(", ")),
        (false, Some(item)) => {
            format!("finished {}; {} is still open", ticked_items.join(", "), quote_item(item))
        }
        (true, Some(item)) => format!("worked on {}, which is still open", quote_item(item)),
        (true, None) => "ticked no item".to_owned(),
    };
    let ending_text = match ending.category_and_description().category {
        EndingCategory::Completed => String::new(),
        EndingCategory::StoppedExternally | EndingCategory::Aborted => {
            format!(" (it ended early: {})", ending.as_str().replace('_', " "))
        }
    };
    format!("iteration {} {action}{ending_text}", state.iteration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::FileInProgress;

    #[test]
    fn a_requested_or_compaction_checkpoint_ends_with_its_ticked_item() {
        let open = TodoList::parse("- [ ] two\n");
        let ticked = TodoList::parse("- [x] two\n");
        let checkpoint = |cause, active| Checkpoint {
            active,
            cause,
            current_todo_item: "two".into(),
            ..Checkpoint::default()
        };
        for (cause, todo, should_resume) in [
            (CheckpointCause::Level, &open, true),
            (CheckpointCause::Level, &ticked, true),
            (CheckpointCause::Compact, &open, true),
            (CheckpointCause::Compact, &ticked, false),
            (CheckpointCause::Manual, &ticked, false),
        ] {
            assert_eq!(
                checkpoint_to_resume_or_carry_to_next_item(&checkpoint(cause, true), Some(todo), &[])
                    .is_some(),
                should_resume,
                "{cause:?}"
            );
            assert_eq!(
                checkpoint_to_resume_or_carry_to_next_item(&checkpoint(cause, false), Some(todo), &[]),
                None
            );
        }
        let ticked_by_its_session = |cause| Checkpoint {
            item_work: ItemWork { ticked_items: vec!["one".into()], is_begun: false, ..ItemWork::default() },
            ..checkpoint(cause, true)
        };
        assert!(
            checkpoint_to_resume_or_carry_to_next_item(
                &ticked_by_its_session(CheckpointCause::Manual),
                Some(&open),
                &[]
            )
            .is_none()
        );
        assert!(
            checkpoint_to_resume_or_carry_to_next_item(
                &ticked_by_its_session(CheckpointCause::Level),
                Some(&open),
                &[]
            )
            .is_some()
        );
    }

    #[test]
    fn a_checkpoint_of_another_item_waits_for_its_turn() {
        let todo = |text: &str| TodoList::parse(text);
        let mut state = RunState {
            context_checkpoint: Checkpoint {
                active: true,
                current_todo_item: "parser".into(),
                progress_on_item: "70%".into(),
                ..Checkpoint::default()
            },
            ..RunState::default()
        };
        let next_checkpoint_item = |state: &mut RunState, text: &str| {
            let list = todo(text);
            state.update_items_and_questions_from_plan(&list);
            let next = store_half_done_and_take_next_checkpoint(state, Some(&list));
            state.context_checkpoint.active = false;
            next.map(|next| next.current_todo_item)
        };
        assert_eq!(next_checkpoint_item(&mut state, "- [ ] urgent\n- [ ] parser\n"), None);
        assert_eq!(state.half_done_checkpoints.len(), 1);
        // The urgent session leaves nothing; then it is the parser's turn.
        assert_eq!(
            next_checkpoint_item(&mut state, "- [x] urgent\n- [ ] parser\n").as_deref(),
            Some("parser")
        );
        assert!(state.half_done_checkpoints.is_empty());
        // A checkpoint whose item is ticked meanwhile is dropped.
        state.context_checkpoint.active = true;
        assert_eq!(next_checkpoint_item(&mut state, "- [ ] urgent\n- [ ] parser\n"), None);
        assert_eq!(next_checkpoint_item(&mut state, "- [ ] urgent\n- [x] parser\n"), None);
        assert!(state.half_done_checkpoints.is_empty());
    }

    #[test]
    fn the_last_action_names_what_was_finished_and_what_is_still_open() {
        let state = |open: &[&str], done: &[&str]| {
            let mut state = RunState { iteration: 3, ..RunState::default() };
            state.iteration_record.item = Some("two".into());
            state.plan_items.todo_items = open.iter().map(|item| (*item).to_owned()).collect();
            state.plan_items.completed_items = done.iter().map(|item| (*item).to_owned()).collect();
            state
        };
        let crashed = SessionEnding::Crashed("was killed".into());
        for (state, ending, expected) in [
            (state(&[], &["two"]), SessionEnding::Completed, "iteration 3 finished \"two\""),
            (
                state(&["two"], &["one"]),
                SessionEnding::Completed,
                "iteration 3 finished \"one\"; \"two\" is still open",
            ),
            (
                state(&["two"], &[]),
                crashed,
                "iteration 3 worked on \"two\", which is still open (it ended early: crashed)",
            ),
            (state(&[], &[]), SessionEnding::Completed, "iteration 3 ticked no item"),
        ] {
            assert_eq!(describe_current_iteration_result(&state, &ending), expected);
        }
    }

    #[test]
    fn no_details_of_a_ticked_item_are_handed_on_to_the_next_item() {
        let checkpoint = Checkpoint {
            active: true,
            current_todo_item: "two".into(),
            progress_on_item: "70%".into(),
            next_step: "line 91".into(),
            resume_summary: "UTC".into(),
            files_in_progress: vec![FileInProgress { path: "two.rs".into(), ..FileInProgress::default() }],
            item_work: ItemWork {
                session_item: "one".into(),
                ticked_items: vec!["one".into()],
                uncommitted_files: vec!["two.rs".into()],
                ..ItemWork::default()
            },
            ..Checkpoint::default()
        };
        let todo = TodoList::parse("- [x] one\n- [x] two\n- [ ] stuck\n- [ ] three\n");
        let resumed =
            checkpoint_to_resume_or_carry_to_next_item(&checkpoint, Some(&todo), &["stuck".to_owned()])
                .unwrap();
        assert_eq!((resumed.current_todo_item.as_str(), resumed.resume_summary.as_str()), ("three", "UTC"));
        assert_eq!((resumed.progress_on_item.as_str(), resumed.next_step.as_str()), (NOT_STARTED, ""));
        assert!(resumed.files_in_progress.is_empty());
        assert_eq!(resumed.item_work.ticked_items, ["one", "two"]);
        let item_work = &resumed.item_work;
        assert!(!item_work.is_begun && item_work.uncommitted_files.is_empty());
    }
}
