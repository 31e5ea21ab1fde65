//! `plimsoll log`: prints the journal, one line for each event; with `--why`, the reasons for the last decision.

mod check;
mod follow;
mod why;

use crate::journal_lines::journal::JournalReader;
use crate::journal_lines::page::LogPage;
use crate::journal_lines::{JournalDescriber, current_run_id, initial_lines};
use clap::Args;
use plimsoll_store::Project;
use plimsoll_terminal::console::{fail_with_store_error, has_colors, print_nothing_to_show};
use plimsoll_terminal::value_parsers;
use std::process::ExitCode;

/// Arguments of `plimsoll log`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LogArguments {
    /// Print new lines as they come, until the run is over
    #[arg(short, long)]
    follow: bool,
    /// Only the newest N lines [default: all of the run, else 50]
    #[arg(short = 'n', long, value_name = "N", value_parser = value_parsers::whole_number::<usize>)]
    lines: Option<usize>,
    /// Explain a decision, with its figures [default: the last one]
    ///
    /// WHAT is a `level` (or L1, L2, L3), a `verdict` (or completed, refused, circuit_breaker, paused, …), or any event of the
    /// journal.
    #[arg(long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "last", conflicts_with_all = ["follow", "lines"])]
    why: Option<String>,
    /// Print which verify commands passed on a commit
    ///
    /// Also for which items, in which sessions, at what cost, and whether the turn logs are intact. Exits with 1 if no run of
    /// yours checked the commit.
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["why", "json", "follow", "lines"])]
    check: Option<String>,
    /// With --why: print its journal entries as one JSON list
    #[arg(long, requires = "why", conflicts_with_all = ["follow", "lines"])]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll log                  since the current run began
  plimsoll log -n 20
  plimsoll log --follow         as it happens; ends with the run
  plimsoll log --why            why Plimsoll acted last
  plimsoll log --why L2         the last checkpoint, with the figures
  plimsoll log --why refused    why a promise was not believed
  plimsoll log --check HEAD     what was proved of a commit";

fn empty_journal_message(project: &Project) -> String {
    format!(
        "The journal {} is empty: it begins with a run, or with the first warning or end of a session with our hooks (`plimsoll init`).",
        project.journal_path().display()
    )
}

/// Prints the log, an explanation or a commit's receipt. Returns exit code 0 also if the journal is empty, but 1 if `--why` or
/// `--check` finds nothing.
pub(crate) fn print_log_explanation_or_receipt(arguments: &LogArguments) -> ExitCode {
    let project = Project::find_upwards_from_current_dir();
    if let Some(commit) = &arguments.check {
        return check::print_commit_receipt(&project, commit);
    }
    if let Some(kind) = &arguments.why {
        return why::print_explanation_of_last_event(&project, kind, arguments.json);
    }
    let mut journal = JournalReader::new(project.journal_path());
    let lines = match if arguments.follow { journal.read_new_complete_lines() } else { journal.read_all() } {
        Ok(lines) => lines,
        Err(error) => return fail_with_store_error(&error),
    };
    let (mut page, mut describer) = (LogPage::new(has_colors()), JournalDescriber::default());
    let shown_lines =
        initial_lines(&mut describer, &lines, current_run_id(&project).as_ref(), arguments.lines);
    let is_output_open = shown_lines.iter().all(|line| page.print_line(line));
    if arguments.follow && is_output_open {
        return follow::follow_journal(&project, journal, describer, page);
    }
    if let Some(message) = crate::foreign_state::describe_foreign_state(&project) {
        plimsoll_terminal::console::print_warning(&message);
    }
    if shown_lines.is_empty() && is_output_open {
        return print_nothing_to_show(empty_journal_message(&project));
    }
    ExitCode::SUCCESS
}
