//! Which item the session is about, and which ones it leaves alone.

use crate::size::Size;
use crate::state::RunState;
use crate::text::{clip, counted, one_line};

/// How many open items are named at most: the file has the rest.
const ITEMS_NAMED: usize = 10;

/// The open items except the current one, so that no session has to open the file to know what is left.
pub(super) fn open_items(state: &RunState) -> String {
    let in_hand = state.item_in_hand();
    let others: Vec<&String> = state.items.todo_items.iter().filter(|item| Some(*item) != in_hand).collect();
    if others.is_empty() {
        return String::new();
    }
    let named: String = others
        .iter()
        .take(ITEMS_NAMED)
        .map(|item| {
            let is_half_done = state.half_done.iter().any(|waiting| waiting.current_todo_item == **item);
            let aside = if state.is_parked(item) {
                " (waits for the user's answer: leave it)"
            } else if state.items.set_aside.contains(item) {
                " (set aside: sessions made no progress on it)"
            } else if is_half_done {
                " (half done: leave it, a later session resumes it)"
            } else {
                ""
            };
            format!("- {}{aside}\n", clip(&one_line(item), 120))
        })
        .collect();
    let rest = others.len().saturating_sub(ITEMS_NAMED);
    let more = if rest > 0 { format!("- … and {rest} more\n") } else { String::new() };
    format!("## Open after this session's item\n\n{named}{more}")
}

/// What the list has lost, and what to do about it.
fn put_back(file: &str, state: &RunState) -> String {
    let items: Vec<String> =
        state.vanished().iter().map(|item| format!("- {}\n", clip(&one_line(item), 200))).collect();
    if items.is_empty() {
        return String::new();
    }
    format!(
        "\nThese items were in `{}` and are gone, unticked. Put each back as a `- [ ]` line, or as `- [x]` if it is done, and continue with the first open one:\n\n{}\n",
        one_line(file),
        items.concat()
    )
}

/// Of an item that was set aside and is taken up again.
pub const BEGUN_BEFORE: &str = "It was set aside: earlier sessions began it and made no progress. Check how far it is before you continue with it.";

/// What this session is about.
pub(super) fn item(state: &RunState) -> String {
    let file = state.options.todo_file.as_deref().map(one_line);
    let (file, next) = match (&file, state.item_in_hand()) {
        (Some(file), Some(next)) => (file, next),
        (Some(file), None) if !state.vanished().is_empty() => return put_back(file, state),
        (Some(file), None) if !state.items.todo_items.is_empty() => {
            return format!(
                "Every open item of `{file}` waits for the user's answer. Do nothing, and end your turn.\n"
            );
        }
        (Some(file), None) => {
            return format!(
                "All items of `{file}` are ticked. Check all of the work, then make the promise below.\n"
            );
        }
        (None, _) => {
            return "Do one complete step of the task, verify it, commit, and end your turn.\n".to_owned();
        }
    };
    let which = match (state.items.set_aside.is_empty(), state.items.parked.is_empty()) {
        (true, true) => "",
        (false, true) => " that is not set aside",
        (true, false) => " that does not wait for an answer",
        (false, false) => " that is not set aside and does not wait for an answer",
    };
    let then = if state.options.pack {
        "You may then be told to continue with the next one in this session: do so only then. "
    } else {
        ""
    };
    let split = if Size::stated(next) == Some(Size::VeryComplex) {
        "It is marked as too large for one window: first split it. Add its parts as `- [ ]` lines below it, do the first part, and tick the item itself when all its parts are ticked.\n"
    } else {
        ""
    };
    let begun =
        if state.items.set_aside.contains(next) { format!("{BEGUN_BEFORE}\n") } else { String::new() };
    format!(
        "Do **exactly one item**: the first open one of `{file}`{which}, which is \"{}\". Verify it, tick it (`- [x]`), commit, and end your turn. Commit each part that is complete by itself: the best moment for a checkpoint is right after a commit. {then}{} in all.\n{split}{begun}{}",
        clip(&one_line(next), 200),
        counted(state.items.todo_items.len(), "open item"),
        put_back(file, state),
    )
}
