//! Messages about a state file that Plimsoll did not write.

use super::ShellLoop;
use crate::todo_list::quote_for_shell;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};

/// The maximum number of characters shown of a text from the file.
const MAX_SHOWN_CHARS: usize = 60;

/// Explains why the file is not that of a run which this user started in this folder: it lacks markers, or, if it has all
/// of them, there is no record of the run.
fn explain_why_file_is_not_your_run(missing_markers: &[&str]) -> String {
    if missing_markers.is_empty() {
        return "your state folder has no record of such a run in this folder (it came with a clone, was moved, or its record was lost)"
            .to_owned();
    }
    format!("Plimsoll did not write it (it has no {})", missing_markers.join(" and no "))
}

/// Renders the error of `--resume` if the state file is not that of a run started here, with the command that moves the file away.
pub fn describe_no_run_to_resume_and_fix(file: &str, missing_markers: &[&str]) -> String {
    format!(
        "there is no run to resume: {} exists, but {}; to start a new run without it: mv {} {}",
        to_safe_single_line(file),
        explain_why_file_is_not_your_run(missing_markers),
        quote_for_shell(file),
        quote_for_shell(&format!("{file}.before"))
    )
}

/// Renders a hint for when the file has replaced that of an unfinished run: the run continues from its copy once the file
/// is moved away.
pub fn describe_how_to_resume_replaced_run(file: &str, run_name: &str) -> String {
    let (quoted_file, quoted_copy) = (quote_for_shell(file), quote_for_shell(&format!("{file}.before")));
    format!(
        "\nto continue the earlier run \"{}\" from its copy: mv {quoted_file} {quoted_copy} && plimsoll run --resume",
        truncate_end(&to_safe_single_line(run_name), MAX_SHOWN_CHARS)
    )
}

/// Renders the error of a new run that would overwrite the file, with the command that moves the file away.
pub fn describe_state_file_blocking_new_run(file: &str, missing_markers: &[&str]) -> String {
    format!(
        "{} exists, and {}; to start without it: mv {} {}",
        to_safe_single_line(file),
        explain_why_file_is_not_your_run(missing_markers),
        quote_for_shell(file),
        quote_for_shell(&format!("{file}.before"))
    )
}

/// Renders the status of a folder that has no run of Plimsoll but the state file of a shell loop: the loop's status,
/// iteration, open items and invalid fields as recorded in that file.
pub fn render_no_run_here_and_loop_status(
    file: &str,
    missing_markers: &[&str],
    shell_loop: &ShellLoop,
) -> String {
    let status = shell_loop.status.as_deref().map_or("no status".to_owned(), |status| {
        format!("status \"{}\"", truncate_end(&to_safe_single_line(status), MAX_SHOWN_CHARS))
    });
    let mut lines = vec![
        format!(
            "There is no Plimsoll run here. {} exists, but {}.",
            to_safe_single_line(file),
            explain_why_file_is_not_your_run(missing_markers)
        ),
        format!(
            "It says: {status}, session {} of {}, {} open.",
            shell_loop.iteration,
            shell_loop.max_iterations,
            count_with_noun(shell_loop.open_items.len(), "item")
        ),
    ];
    lines.extend(
        shell_loop
            .invalid_fields
            .iter()
            .map(|field_error| format!("Not understood: {}.", to_safe_single_line(field_error))),
    );
    lines.push("`plimsoll gate` and `plimsoll monitor` judge for its loop.".to_owned());
    lines.join("\n")
}
