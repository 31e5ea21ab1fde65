//! `plimsoll plan --fix`: makes items of the lines of a plan that look like items, after showing the change.

use plimsoll_domain::TodoList;
use plimsoll_domain::plan_fix::{self, FixedPlan};
use plimsoll_domain::text::{counted, one_line};
use plimsoll_policy::todo_list::{by_hand_words, shell_word, unfit, words};
use plimsoll_store::{Durability, Project, disk, lock};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, refused, say};
use similar::TextDiff;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

/// Shows the change and writes it: exit code 0 written or nothing to fix, 1 nothing was written, or lines are left that only a
/// person can rewrite.
pub(super) fn fix(project: &Project, path: &Path, file: &str, named: bool, yes: bool) -> ExitCode {
    let bytes = match disk::read(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return fail(super::no_list(file)),
        Err(error) => return refused(&error),
    };
    // Read with replacement characters, the file would be written back with them.
    let Ok(before) = std::str::from_utf8(&bytes) else {
        return fail(format!("{} is not UTF-8: save it as UTF-8, then run this again", one_line(file)));
    };
    let fixed = plan_fix::fix(before);
    let after = &fixed.text;
    if after == before {
        return nothing_to_fix(&fixed, file, named);
    }
    let diff = TextDiff::from_lines(before, after.as_str());
    say(diff.unified_diff().header(file, file).to_string().trim_end());
    // The run and its sessions write the plan, too: what they wrote in the same moment would be lost.
    if lock::is_run_held(project) {
        let words =
            format!("nothing was written, because a run is at work on {}: end it first", one_line(file));
        return fail(format!("{words} (Ctrl-C, then plimsoll run --resume)"));
    }
    if !yes && !std::io::stdin().is_terminal() {
        let named = if named { format!(" --todo {}", shell_word(file)) } else { String::new() };
        let command = format!("plimsoll plan --fix --yes{named}");
        return fail(format!(
            "nothing was written, because there is no terminal to ask for confirmation: {command}"
        ));
    }
    if !yes && !agrees(file) {
        return fail("nothing was written");
    }
    // The file may have been edited while the question was open.
    match disk::read(path) {
        Ok(now) if now.as_deref() == Some(&bytes) => {}
        Ok(_) => {
            return fail(format!("{} has changed in the meantime: nothing was written", one_line(file)));
        }
        Err(error) => return refused(&error),
    }
    disk::sweep_drafts_of(path);
    match disk::replace(path, after.as_bytes(), Durability::Durable) {
        Ok(()) => written(&fixed, file),
        Err(error) => refused(&error),
    }
}

fn written(fixed: &FixedPlan, file: &str) -> ExitCode {
    let items = counted(TodoList::parse(&fixed.text).items.len(), "item");
    say(format!("{}: {items}", one_line(file)));
    if fixed.questions > 0 {
        let (items, verb) =
            (counted(fixed.questions, "item"), if fixed.questions == 1 { "has" } else { "have" });
        say(format!(
            "{items} {verb} a mark that can mean canceled or begun: a run passes over such an item until you answer the question below it, tick it or remove it"
        ));
    }
    if fixed.left.is_empty() { ExitCode::SUCCESS } else { fail(by_hand_words(&fixed.left, file)) }
}

fn nothing_to_fix(fixed: &FixedPlan, file: &str, named: bool) -> ExitCode {
    if !fixed.left.is_empty() {
        return fail(by_hand_words(&fixed.left, file));
    }
    let text = &fixed.text;
    let items = TodoList::parse(text).items.len();
    if items == 0
        && let Some(unfit) = unfit(text)
    {
        return fail(words(&unfit, file, named));
    }
    let items = counted(items, "item");
    say(format!("{} has {items} with checkboxes: nothing to fix", one_line(file)));
    ExitCode::SUCCESS
}

fn agrees(file: &str) -> bool {
    console::ask(format!("Write this to {}? [y/N] ", one_line(file)));
    console::agrees()
}
