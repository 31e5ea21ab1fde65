//! Decides whether the next session resumes a checkpoint. It takes the checkpoint of its own item; those of other items wait in the
//! state's `half_done`. [`plimsoll_domain::resume`] words what the session is told.

use crate::item_in_hand::{first_in_hand, item_in_hand};
use plimsoll_domain::state::checkpoint::NOT_BEGUN;
use plimsoll_domain::state::{Cause, Checkpoint, ItemWork};
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::verdict::Course;
use plimsoll_domain::{Ending, RunState, TodoList};

/// The checkpoint that the next session resumes, if there is one. One that was asked for, or written before a
/// compaction, never forces a resume: once its item is ticked it is history. What was ticked since the checkpoint is
/// finished: nothing of it is handed on to the next item.
pub fn due(checkpoint: &Checkpoint, todo: Option<&TodoList>, set_aside: &[String]) -> Option<Checkpoint> {
    let is_finished = item_is_ticked(checkpoint, todo);
    // Its session ticked its item and began no other.
    let was_finished = !checkpoint.item_work.is_begun && !checkpoint.item_work.finished.is_empty();
    let forced = matches!(checkpoint.cause, Cause::Level | Cause::Budget | Cause::Crash);
    if !checkpoint.active || ((is_finished || was_finished) && !forced) {
        return None;
    }
    Some(match todo {
        Some(todo) if is_finished => after(checkpoint, todo, set_aside),
        _ => checkpoint.clone(),
    })
}

/// The checkpoint for the session that is planned: of the item it is told to do, and of no other. One of another item that
/// is half done waits until its turn comes.
pub fn for_next(state: &mut RunState, todo: Option<&TodoList>) -> Option<Checkpoint> {
    let due = due(&state.context_checkpoint, todo, &state.items.set_aside);
    let item = item_in_hand(state).cloned();
    state.half_done.retain(|waiting| state.items.todo_items.contains(&waiting.current_todo_item));
    let is_of_another = |due: &Checkpoint| {
        item.as_ref() != Some(&due.current_todo_item)
            && state.items.todo_items.contains(&due.current_todo_item)
    };
    match due {
        Some(other) if other.item_work.is_begun && is_of_another(&other) => {
            // One an item: the newer checkpoint of the same item replaces the older one.
            state.half_done.retain(|waiting| waiting.current_todo_item != other.current_todo_item);
            state.half_done.push(other);
            take_waiting(state, item.as_deref())
        }
        Some(due) => Some(due),
        None => take_waiting(state, item.as_deref()),
    }
}

fn take_waiting(state: &mut RunState, item: Option<&str>) -> Option<Checkpoint> {
    let place =
        state.half_done.iter().position(|waiting| Some(waiting.current_todo_item.as_str()) == item)?;
    Some(state.half_done.remove(place))
}

/// The next open item of a plan that waits for no answer.
pub(crate) fn next_free(todo: &TodoList, set_aside: &[String]) -> Option<String> {
    first_in_hand(todo.free().iter(), set_aside).cloned()
}

/// The checkpoint of an item that has been ticked since, for the item after it.
fn after(checkpoint: &Checkpoint, todo: &TodoList, set_aside: &[String]) -> Checkpoint {
    let work = &checkpoint.item_work;
    let finished = work.finished.iter().chain([&checkpoint.current_todo_item]).cloned().collect();
    let next = next_free(todo, set_aside);
    Checkpoint {
        current_todo_item: next.unwrap_or_default(),
        files_in_progress: Vec::new(),
        progress_on_item: NOT_BEGUN.to_owned(),
        next_step: String::new(),
        earlier_notes: None,
        earlier_handoff: String::new(),
        item_work: ItemWork {
            own_item: work.own_item.clone(),
            finished,
            is_begun: false,
            ..ItemWork::default()
        },
        ..checkpoint.clone()
    }
}

/// True when the item that was in progress at the checkpoint has been ticked since.
pub fn item_is_ticked(checkpoint: &Checkpoint, todo: Option<&TodoList>) -> bool {
    let item = &checkpoint.current_todo_item;
    !item.is_empty() && todo.is_some_and(|todo| todo.is_ticked(item))
}

/// What the current iteration did, in a sentence.
pub fn last_action(state: &RunState, ending: &Ending) -> String {
    let quoted = |item: &String| format!("\"{}\"", clip(&one_line(item), 80));
    let ticked: Vec<String> = state.ticked_now().iter().map(quoted).collect();
    let open = state.iteration_record.item.as_ref().filter(|item| state.items.todo_items.contains(item));
    let what = match (ticked.is_empty(), open) {
        (true, Some(item)) if state.asked_now().any(|question| question.item == *item) => {
            format!("asked the user about {}, which waits for the answer", quoted(item))
        }
        (false, None) => format!("finished {}", ticked.join(", ")),
        (false, Some(item)) => format!("finished {}; {} is still open", ticked.join(", "), quoted(item)),
        (true, Some(item)) => format!("worked on {}, which is still open", quoted(item)),
        (true, None) => "ticked no item".to_owned(),
    };
    let how = match ending.traits().course {
        Course::Orderly => String::new(),
        Course::Stopped | Course::Broken => format!(" (it ended early: {})", ending.word().replace('_', " ")),
    };
    format!("iteration {} {what}{how}", state.iteration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::FileInProgress;

    #[test]
    fn a_checkpoint_on_demand_or_by_compaction_is_history_once_its_item_is_ticked() {
        let open = TodoList::parse("- [ ] two\n");
        let ticked = TodoList::parse("- [x] two\n");
        let checkpoint = |cause, active| Checkpoint {
            active,
            cause,
            current_todo_item: "two".into(),
            ..Checkpoint::default()
        };
        for (cause, todo, resumes) in [
            (Cause::Level, &open, true),
            (Cause::Level, &ticked, true),
            (Cause::Compact, &open, true),
            (Cause::Compact, &ticked, false),
            (Cause::Manual, &ticked, false),
        ] {
            assert_eq!(due(&checkpoint(cause, true), Some(todo), &[]).is_some(), resumes, "{cause:?}");
            assert_eq!(due(&checkpoint(cause, false), Some(todo), &[]), None);
        }
        let ticked_by_its_session = |cause| Checkpoint {
            item_work: ItemWork { finished: vec!["one".into()], is_begun: false, ..ItemWork::default() },
            ..checkpoint(cause, true)
        };
        assert!(due(&ticked_by_its_session(Cause::Manual), Some(&open), &[]).is_none());
        assert!(due(&ticked_by_its_session(Cause::Level), Some(&open), &[]).is_some());
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
        let plan = |state: &mut RunState, text: &str| {
            let list = todo(text);
            state.take_items(&list);
            let next = for_next(state, Some(&list));
            state.context_checkpoint.active = false;
            next.map(|next| next.current_todo_item)
        };
        assert_eq!(plan(&mut state, "- [ ] urgent\n- [ ] parser\n"), None);
        assert_eq!(state.half_done.len(), 1);
        // The urgent session leaves nothing; then it is the parser's turn.
        assert_eq!(plan(&mut state, "- [x] urgent\n- [ ] parser\n").as_deref(), Some("parser"));
        assert!(state.half_done.is_empty());
        // One that is ticked meanwhile is forgotten.
        state.context_checkpoint.active = true;
        assert_eq!(plan(&mut state, "- [ ] urgent\n- [ ] parser\n"), None);
        assert_eq!(plan(&mut state, "- [ ] urgent\n- [x] parser\n"), None);
        assert!(state.half_done.is_empty());
    }

    #[test]
    fn the_last_action_names_what_was_finished_and_what_is_still_open() {
        let state = |open: &[&str], done: &[&str]| {
            let mut state = RunState { iteration: 3, ..RunState::default() };
            state.iteration_record.item = Some("two".into());
            state.items.todo_items = open.iter().map(|item| (*item).to_owned()).collect();
            state.items.completed_items = done.iter().map(|item| (*item).to_owned()).collect();
            state
        };
        let crashed = Ending::Crashed("was killed".into());
        for (state, ending, expected) in [
            (state(&[], &["two"]), Ending::Completed, "iteration 3 finished \"two\""),
            (
                state(&["two"], &["one"]),
                Ending::Completed,
                "iteration 3 finished \"one\"; \"two\" is still open",
            ),
            (
                state(&["two"], &[]),
                crashed,
                "iteration 3 worked on \"two\", which is still open (it ended early: crashed)",
            ),
            (state(&[], &[]), Ending::Completed, "iteration 3 ticked no item"),
        ] {
            assert_eq!(last_action(&state, &ending), expected);
        }
    }

    #[test]
    fn nothing_of_an_item_that_was_ticked_since_is_handed_on_to_the_next_one() {
        let checkpoint = Checkpoint {
            active: true,
            current_todo_item: "two".into(),
            progress_on_item: "70%".into(),
            next_step: "line 91".into(),
            resume_summary: "UTC".into(),
            files_in_progress: vec![FileInProgress { path: "two.rs".into(), ..FileInProgress::default() }],
            item_work: ItemWork {
                own_item: "one".into(),
                finished: vec!["one".into()],
                uncommitted: vec!["two.rs".into()],
                ..ItemWork::default()
            },
            ..Checkpoint::default()
        };
        let todo = TodoList::parse("- [x] one\n- [x] two\n- [ ] stuck\n- [ ] three\n");
        let due = due(&checkpoint, Some(&todo), &["stuck".to_owned()]).unwrap();
        assert_eq!((due.current_todo_item.as_str(), due.resume_summary.as_str()), ("three", "UTC"));
        assert_eq!((due.progress_on_item.as_str(), due.next_step.as_str()), (NOT_BEGUN, ""));
        assert!(due.files_in_progress.is_empty());
        assert_eq!(due.item_work.finished, ["one", "two"]);
        let work = &due.item_work;
        assert!(!work.is_begun && work.uncommitted.is_empty());
    }
}
