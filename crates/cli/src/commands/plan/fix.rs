//! `plimsoll plan --fix`: turns lines of a plan that look like items into items, after showing the change.

use plimsoll_domain::TodoList;
use plimsoll_domain::plan_fix::{self, FixedPlan};
use plimsoll_domain::text::{count_with_noun, to_safe_single_line};
use plimsoll_policy::todo_list::{
    find_plan_problem, quote_for_shell, render_plan_problem_with_fix, render_unfixable_lines,
};
use plimsoll_store::{Durability, Project, disk, lock};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, fail_with_store_error, print_text};
use similar::TextDiff;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

/// Shows the change, asks the user and writes it. Returns exit code 0 if it was written or there was nothing to fix, and
/// 1 if nothing was written or lines remain that only a person can rewrite.
pub(super) fn fix_and_write_plan(
    project: &Project,
    path: &Path,
    plan_file: &str,
    is_file_named: bool,
    skip_confirmation: bool,
) -> ExitCode {
    let bytes = match disk::read(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return fail(super::missing_plan_message(plan_file)),
        Err(error) => return fail_with_store_error(&error),
    };
    // A lossy read would write replacement characters back to the file.
    let Ok(original_text) = std::str::from_utf8(&bytes) else {
        return fail(format!(
            "{} is not UTF-8: save it as UTF-8, then run this again",
            to_safe_single_line(plan_file)
        ));
    };
    let fixed_plan = plan_fix::add_missing_boxes_and_fix_unclear_lines(original_text);
    let new_text = &fixed_plan.text;
    if new_text == original_text {
        return print_nothing_to_fix_or_problem(&fixed_plan, plan_file, is_file_named);
    }
    let diff = TextDiff::from_lines(original_text, new_text.as_str());
    print_text(diff.unified_diff().header(plan_file, plan_file).to_string().trim_end());
    // The run and its sessions also write the plan; a change that they make at the same time would be lost.
    if lock::is_run_locked(project) {
        let message = format!(
            "nothing was written, because a run is at work on {}: end it first",
            to_safe_single_line(plan_file)
        );
        return fail(format!("{message} (Ctrl-C, then plimsoll run --resume)"));
    }
    if !skip_confirmation && !std::io::stdin().is_terminal() {
        let todo_option =
            if is_file_named { format!(" --todo {}", quote_for_shell(plan_file)) } else { String::new() };
        let command = format!("plimsoll plan --fix --yes{todo_option}");
        return fail(format!(
            "nothing was written, because there is no terminal to ask for confirmation: {command}"
        ));
    }
    if !skip_confirmation && !confirm_plan_write(plan_file) {
        return fail("nothing was written");
    }
    // The file may have been edited while the question was open.
    match disk::read(path) {
        Ok(current_bytes) if current_bytes.as_deref() == Some(&bytes) => {}
        Ok(_) => {
            return fail(format!(
                "{} has changed in the meantime: nothing was written",
                to_safe_single_line(plan_file)
            ));
        }
        Err(error) => return fail_with_store_error(&error),
    }
    disk::remove_leftover_temporary_files_of(path);
    match disk::replace(path, new_text.as_bytes(), Durability::Durable) {
        Ok(()) => print_item_counts_and_fail_if_unclear(&fixed_plan, plan_file),
        Err(error) => fail_with_store_error(&error),
    }
}

/// Prints how many items the written plan has. Fails if lines remain that only a person can rewrite.
fn print_item_counts_and_fail_if_unclear(fixed_plan: &FixedPlan, plan_file: &str) -> ExitCode {
    let item_count_text = count_with_noun(TodoList::parse(&fixed_plan.text).items.len(), "item");
    print_text(format!("{}: {item_count_text}", to_safe_single_line(plan_file)));
    if fixed_plan.question_count > 0 {
        let (question_count_text, verb) = (
            count_with_noun(fixed_plan.question_count, "item"),
            if fixed_plan.question_count == 1 { "has" } else { "have" },
        );
        print_text(format!(
            "{question_count_text} {verb} a mark that can mean canceled or begun: a run passes over such an item until you answer the question below it, tick it or remove it"
        ));
    }
    if fixed_plan.unclear_lines.is_empty() {
        ExitCode::SUCCESS
    } else {
        fail(render_unfixable_lines(&fixed_plan.unclear_lines, plan_file))
    }
}

/// Prints that there is nothing to fix. Fails if the plan has no items, or lines that only a person can rewrite.
fn print_nothing_to_fix_or_problem(fixed_plan: &FixedPlan, plan_file: &str, is_file_named: bool) -> ExitCode {
    if !fixed_plan.unclear_lines.is_empty() {
        return fail(render_unfixable_lines(&fixed_plan.unclear_lines, plan_file));
    }
    let text = &fixed_plan.text;
    let item_count = TodoList::parse(text).items.len();
    if item_count == 0
        && let Some(problem) = find_plan_problem(text)
    {
        return fail(render_plan_problem_with_fix(&problem, plan_file, is_file_named));
    }
    let item_count_text = count_with_noun(item_count, "item");
    print_text(format!(
        "{} has {item_count_text} with checkboxes: nothing to fix",
        to_safe_single_line(plan_file)
    ));
    ExitCode::SUCCESS
}

fn confirm_plan_write(plan_file: &str) -> bool {
    console::print_question(format!("Write this to {}? [y/N] ", to_safe_single_line(plan_file)));
    console::read_confirmation()
}
