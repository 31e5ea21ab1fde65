//! What is said of a state that no run of ours wrote.

use super::Loop;
use crate::todo_list::shell_word;
use plimsoll_domain::text::{clip, counted, one_line};

/// How much of a foreign text is shown.
const SHOWN: usize = 60;

fn lacks(missing: &[&str]) -> String {
    if missing.is_empty() {
        return "you started no such run in this folder (your state folder has no record of it: it came with a clone, was moved, or its record was lost)"
            .to_owned();
    }
    format!("Plimsoll did not write it (it has no {})", missing.join(" and no "))
}

/// `--resume` finds no run of ours.
pub fn no_run_to_resume(file: &str, missing: &[&str]) -> String {
    format!(
        "there is no run to resume: {} is there, but {}; to begin a new run without it: mv {} {}",
        one_line(file),
        lacks(missing),
        shell_word(file),
        shell_word(&format!("{file}.before"))
    )
}

/// A run of ours was there before it, and is not over: only its copy is left.
pub fn goes_on_from_copy(file: &str, name: &str) -> String {
    let (from, to) = (shell_word(file), shell_word(&format!("{file}.before")));
    format!(
        "\nthe run \"{}\" that was there before continues from its copy: mv {from} {to} && plimsoll run --resume",
        clip(&one_line(name), SHOWN)
    )
}

/// A new run would write over it.
pub fn in_the_way(file: &str, missing: &[&str]) -> String {
    format!(
        "{} is there, and {}; to begin without it: mv {} {}",
        one_line(file),
        lacks(missing),
        shell_word(file),
        shell_word(&format!("{file}.before"))
    )
}

/// The loop's status, as its file says.
pub fn standing(file: &str, missing: &[&str], of: &Loop) -> String {
    let status = of
        .status
        .as_deref()
        .map_or("no status".to_owned(), |status| format!("status \"{}\"", clip(&one_line(status), SHOWN)));
    let mut lines = vec![
        format!("There is no run of Plimsoll's here. {} is there, but {}.", one_line(file), lacks(missing)),
        format!(
            "It says: {status}, iteration {} of {}, {} open.",
            of.iteration,
            of.max_iterations,
            counted(of.open.len(), "item")
        ),
    ];
    lines.extend(of.not_understood.iter().map(|what| format!("Not understood: {}.", one_line(what))));
    lines.push("`plimsoll gate` and `plimsoll monitor` judge for its loop.".to_owned());
    lines.join("\n")
}
