//! `plimsoll plan --fix`: boxes before the lines of a plan that look like items, after showing the change.

use crate::console;
use crate::console::{fail, refused, say};
use plimsoll_domain::TodoList;
use plimsoll_domain::text::{counted, one_line};
use plimsoll_domain::todo_without_boxes::with_boxes;
use plimsoll_policy::todo_list::{shell_word, unfit, words};
use plimsoll_store::{Durability, disk};
use similar::TextDiff;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

/// Shows the change and writes it: exit code 0 written or nothing to fix, 1 nothing was written.
pub(super) fn fix(path: &Path, file: &str, named: bool, yes: bool) -> ExitCode {
    let bytes = match disk::read(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return fail(super::no_list(file), 1),
        Err(error) => return refused(&error),
    };
    // Read with replacement characters, the file would be written back with them.
    let Ok(before) = std::str::from_utf8(&bytes) else {
        return fail(format!("{} is not UTF-8: save it as UTF-8, then run this again", one_line(file)), 1);
    };
    let after = with_boxes(before);
    if after == before {
        return nothing_to_fix(before, file, named);
    }
    let diff = TextDiff::from_lines(before, after.as_str());
    say(diff.unified_diff().header(file, file).to_string().trim_end());
    if !yes && !std::io::stdin().is_terminal() {
        let named = if named { format!(" --todo {}", shell_word(file)) } else { String::new() };
        let command = format!("plimsoll plan --fix --yes{named}");
        return fail(
            format!("nothing was written, because there is no terminal to ask for confirmation: {command}"),
            1,
        );
    }
    if !yes && !agrees(file) {
        return fail("nothing was written", 1);
    }
    // The file may have been edited while the question was open.
    match disk::read(path) {
        Ok(now) if now.as_deref() == Some(&bytes) => {}
        Ok(_) => {
            return fail(format!("{} has changed in the meantime: nothing was written", one_line(file)), 1);
        }
        Err(error) => return refused(&error),
    }
    disk::sweep_drafts_of(path);
    match disk::replace(path, after.as_bytes(), Durability::Durable) {
        Ok(()) => {
            let items = counted(TodoList::parse(&after).items.len(), "item");
            say(format!("{}: {items}", one_line(file)));
            ExitCode::SUCCESS
        }
        Err(error) => refused(&error),
    }
}

fn nothing_to_fix(text: &str, file: &str, named: bool) -> ExitCode {
    let items = TodoList::parse(text).items.len();
    if items == 0
        && let Some(unfit) = unfit(text)
    {
        return fail(words(&unfit, file, named), 1);
    }
    let items = counted(items, "item");
    say(format!("{} has {items} with checkboxes: nothing to fix", one_line(file)));
    ExitCode::SUCCESS
}

fn agrees(file: &str) -> bool {
    console::ask(format!("Write this to {}? [y/N] ", one_line(file)));
    console::agrees()
}
