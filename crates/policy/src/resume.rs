//! Is there something to resume?

use session::TodoList;
use session::state::{Cause, Checkpoint};

/// The checkpoint that the next session resumes, if there is one. One that was asked for, or written before a
/// compaction, never forces a resume: once its item is ticked it is history.
pub fn due(checkpoint: &Checkpoint, todo: Option<&TodoList>) -> Option<Checkpoint> {
    let ticked = item_is_ticked(checkpoint, todo);
    let forced = matches!(checkpoint.cause, Cause::Level | Cause::Budget | Cause::Crash);
    (checkpoint.active && (forced || !ticked)).then(|| {
        let mut due = checkpoint.clone();
        if ticked {
            due.progress_on_item = "done: it is ticked, take the next one".to_owned();
        }
        due
    })
}

/// True when the item that was in progress at the checkpoint has been ticked since.
pub fn item_is_ticked(checkpoint: &Checkpoint, todo: Option<&TodoList>) -> bool {
    let item = &checkpoint.current_todo_item;
    !item.is_empty() && todo.is_some_and(|todo| todo.is_ticked(item))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(due(&checkpoint(cause, true), Some(todo)).is_some(), resumes, "{cause:?}");
            assert_eq!(due(&checkpoint(cause, false), Some(todo)), None);
        }
    }
}
