//! Renders the section about the session's item: its steps, and the items that the session must not take.

use super::checks;
use crate::size::ItemSize;
use crate::state::RunState;
use crate::text::{to_safe_single_line, truncate_end};

/// The maximum number of other items that are named. The others can be found in the plan.
const MAX_NAMED_ITEMS: usize = 5;
/// The maximum lengths of the session's item and of another item, in characters.
const MAX_CURRENT_ITEM_CHARS: usize = 200;
const MAX_OTHER_ITEM_CHARS: usize = 80;

/// The hint for an item that was set aside and is now retried.
pub const SET_ASIDE_HINT: &str =
    "It was set aside because earlier sessions began it and made no progress. Check how far it is first.";

/// The instruction for an item that is too large for one context window.
const SPLIT_INSTRUCTION: &str = "It is too large for one context window. First split it: add its parts as `- [ ]` lines below it. Then do the first part. Tick the item when all its parts are ticked.";

/// Renders the section about the session's item. `takeover_step` is the first step of a session that takes
/// over a half-done item.
pub(super) fn render_item_section(
    state: &RunState,
    item: Option<&str>,
    takeover_step: Option<&str>,
) -> String {
    let file = state.options.todo_file.as_deref().map(to_safe_single_line);
    let paragraphs = match (&file, item) {
        (Some(file), Some(item)) => vec![
            format!("> {}", truncate_end(&to_safe_single_line(item), MAX_CURRENT_ITEM_CHARS)),
            describe_item_position_and_hints(state, file, item),
            render_items_to_skip_with_reasons(state, item),
            render_items_removed_unticked(state, file),
            render_numbered_steps(
                state,
                Some(item),
                &wording_for_plan_item(state, Some(item), file),
                takeover_step,
            ),
        ],
        (Some(file), None) if !state.items_removed_without_being_ticked().is_empty() => {
            vec![
                render_items_removed_unticked(state, file),
                render_numbered_steps(state, None, &wording_for_plan_item(state, None, file), takeover_step),
            ]
        }
        (Some(file), None) if !state.plan_items.todo_items.is_empty() => vec![format!(
            "Every open item of `{file}` waits for the user's answer. Do nothing and end your turn."
        )],
        (Some(file), None) => vec![format!(
            "All items of `{file}` are ticked. Check all work with {}. Fix each failure, then {}.",
            checks::quote_check_commands_or_default(state, item),
            if state.options.completes_without_promise() {
                "end your turn"
            } else {
                "write the promise line below"
            }
        )],
        (None, _) => vec![
            "One complete step of the task below.".to_owned(),
            render_numbered_steps(
                state,
                item,
                &WorkWording {
                    subject: "the task",
                    unit_of_work: "one step of it",
                    if_already_done: "",
                    if_unproven: "explain why",
                    final_step: "Commit with a message that names the step, and end your turn.".to_owned(),
                },
                takeover_step,
            ),
        ],
    };
    let paragraphs: Vec<String> = paragraphs.into_iter().filter(|text| !text.is_empty()).collect();
    format!("## Your item\n\n{}\n", paragraphs.join("\n\n"))
}

/// Describes the position of the item in the plan, with hints for an item that was set aside or must be split.
fn describe_item_position_and_hints(state: &RunState, file: &str, item: &str) -> String {
    let was_set_aside = state.plan_items.set_aside_items.iter().any(|set_aside_item| set_aside_item == item);
    let qualifier = match (
        was_set_aside || state.plan_items.set_aside_items.is_empty(),
        state.plan_items.parked_questions.is_empty(),
    ) {
        (true, true) => "",
        (false, true) => " that is not set aside",
        (true, false) => " that does not wait for an answer",
        (false, false) => " that is not set aside and does not wait for an answer",
    };
    let open_count = state.plan_items.todo_items.len();
    let total_count = open_count + state.plan_items.completed_items.len();
    let needs_split = ItemSize::parse_from_item(item) == Some(ItemSize::VeryComplex);
    let hints = [(was_set_aside, SET_ASIDE_HINT), (needs_split, SPLIT_INSTRUCTION)];
    let hint_text: String =
        hints.iter().filter(|(applies, _)| *applies).map(|(_, hint)| format!(" {hint}")).collect();
    // After a split, the file also contains the sub-items of the item.
    if state.options.item_brief.is_some() && total_count == 1 {
        return format!("It is the only item of `{file}`.{hint_text}");
    }
    format!(
        "It is the first open item of `{file}`{qualifier} ({open_count} of {total_count} items open).{hint_text}"
    )
}

/// Renders the open items that this session must skip, each with the reason. Returns an empty string if there are
/// none.
fn render_items_to_skip_with_reasons(state: &RunState, current_item: &str) -> String {
    let skip_reason = |item: &String| {
        let is_half_done =
            state.half_done_checkpoints.iter().any(|checkpoint| checkpoint.current_todo_item == *item);
        if item == current_item {
            None
        } else if state.is_parked(item) {
            Some("waits for the user's answer")
        } else if state.plan_items.set_aside_items.contains(item) {
            Some("set aside: sessions made no progress on it")
        } else if is_half_done {
            Some("half done: a later session resumes it")
        } else {
            None
        }
    };
    let named_items: Vec<String> = state
        .plan_items
        .todo_items
        .iter()
        .filter_map(|item| {
            skip_reason(item).map(|reason| {
                format!("\"{}\" ({reason})", truncate_end(&to_safe_single_line(item), MAX_OTHER_ITEM_CHARS))
            })
        })
        .collect();
    if named_items.is_empty() {
        return String::new();
    }
    let unnamed_count = named_items.len().saturating_sub(MAX_NAMED_ITEMS);
    let more_note = if unnamed_count > 0 { format!(", and {unnamed_count} more") } else { String::new() };
    format!("Skip these items: {}{more_note}.", named_items[..named_items.len() - unnamed_count].join(", "))
}

/// Renders the items that were removed from the plan without a tick, and how to restore them. Returns an empty
/// string if there are none.
fn render_items_removed_unticked(state: &RunState, file: &str) -> String {
    let items: Vec<String> = state
        .items_removed_without_being_ticked()
        .iter()
        .map(|item| format!("- {}", truncate_end(&to_safe_single_line(item), MAX_CURRENT_ITEM_CHARS)))
        .collect();
    if items.is_empty() {
        return String::new();
    }
    format!(
        "These items were removed from `{file}` without a tick. First add each again as `- [ ]`, or as `- [x]` if it is done:\n\n{}",
        items.join("\n")
    )
}

/// The phrases that differ between an item of a plan and a step of a task without a plan.
struct WorkWording<'a> {
    subject: &'a str,
    unit_of_work: &'a str,
    /// What to do if the work is already done.
    if_already_done: &'a str,
    /// What to do with work that cannot be proven.
    if_unproven: &'a str,
    final_step: String,
}

fn wording_for_plan_item(state: &RunState, item: Option<&str>, file: &str) -> WorkWording<'static> {
    let is_trivial = item.is_some_and(|item| ItemSize::parse_from_item(item) == Some(ItemSize::Trivial));
    let continuation_note = if state.options.allows_several_items_per_session || is_trivial {
        " Start another item only if a message tells you to."
    } else {
        ""
    };
    WorkWording {
        subject: "the item",
        unit_of_work: "this item",
        if_already_done: "If it is done and you can prove it, tick it and end your turn.",
        if_unproven: "leave the item unticked and note why below it",
        final_step: format!(
            "Tick its line in `{file}` (`- [x]`), commit with a message that names the item, and end your turn.{continuation_note}"
        ),
    }
}

/// Renders the numbered steps of a session. A verify command checks the whole project, so it may fail because of
/// items that are still open.
fn render_numbered_steps(
    state: &RunState,
    item: Option<&str>,
    wording: &WorkWording<'_>,
    takeover_step: Option<&str>,
) -> String {
    let check_commands = checks::quote_check_commands_or_default(state, item);
    let WorkWording { subject, unit_of_work, if_already_done, if_unproven, final_step } = wording;
    let already_done_sentence =
        if if_already_done.is_empty() { String::new() } else { format!(" {if_already_done}") };
    let first_step = match takeover_step {
        Some(step) => format!("{step}.{already_done_sentence}"),
        None => format!(
            "First look at `git status`, `git log -5` and the code that {subject} is about. Do not assume that it is missing.{already_done_sentence}",
        ),
    };
    let exception = if state.options.unique_verify_and_check_commands().is_empty() {
        ""
    } else {
        ", unless only other open work causes it"
    };
    format!(
        "1. {first_step}\n\
         2. Do {unit_of_work} completely, and nothing else. Leave no placeholders. Make small decisions yourself.\n\
         3. Prove it with {check_commands}. Fix each failure{exception}. If you cannot fix it, {if_unproven}. Never change, skip or delete a test or check to make it pass.\n\
         4. {final_step}\n\n\
         Commit each part as soon as it is complete and its checks pass, if the project's rules (CLAUDE.md) allow it. Uncommitted work may be lost."
    )
}
