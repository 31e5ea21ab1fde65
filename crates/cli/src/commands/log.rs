//! `plimsoll log`: the journal for people, one line for each thing that happened; or why the last of them was decided.

mod check;
mod follow;
mod why;

use crate::journal_lines::journal::Journal;
use crate::journal_lines::page::LogPage;
use crate::journal_lines::{EventPrinter, chosen, present_run};
use clap::Args;
use plimsoll_store::Project;
use plimsoll_terminal::console::{has_colours, nothing_to_show, refused};
use plimsoll_terminal::value_parsers;
use std::process::ExitCode;

/// How much of it, and for how long; or what is explained.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LogArguments {
    /// Print new lines as they come, until the run is over
    #[arg(short, long)]
    follow: bool,
    /// Only the newest N lines [default: all since the current run began, else 50]
    #[arg(short = 'n', long, value_name = "N", value_parser = value_parsers::whole_number::<usize>)]
    lines: Option<usize>,
    /// Explain the last decision, with the figures behind it: a `level` (or L1, L2, L3), a `verdict` (or what it said:
    /// completed, refused, circuit_breaker, paused, …), any event of the journal [default: what came last]
    #[arg(long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "last", conflicts_with_all = ["follow", "lines"])]
    why: Option<String>,
    /// Print what was proved of a commit: which verify commands passed on its tree, for which items, in which sessions, at what cost,
    /// and whether the turn logs are intact; exit code 1 if no run of yours checked it
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["why", "json", "follow", "lines"])]
    check: Option<String>,
    /// With --why: print the entries of the journal behind it, as one JSON list
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

fn no_events(project: &Project) -> String {
    format!(
        "The journal {} is empty: it begins with a run, or with the first warning or end of a session with our hooks (`plimsoll init`).",
        project.journal().display()
    )
}

/// Shows it; exit code 0, also where nothing has been written yet, but 1 where there is nothing to explain.
pub(crate) fn log(arguments: &LogArguments) -> ExitCode {
    let project = Project::of_command();
    if let Some(commit) = &arguments.check {
        return check::check(&project, commit);
    }
    if let Some(what) = &arguments.why {
        return why::why(&project, what, arguments.json);
    }
    let mut journal = Journal::new(project.journal());
    let lines = match if arguments.follow { journal.news() } else { journal.all() } {
        Ok(lines) => lines,
        Err(error) => return refused(&error),
    };
    let (mut page, mut teller) = (LogPage::new(has_colours()), EventPrinter::default());
    let shown = chosen(&mut teller, &lines, present_run(&project).as_ref(), arguments.lines);
    let read_on = shown.iter().all(|line| page.print(line));
    if arguments.follow && read_on {
        return follow::follow(&project, journal, teller, page);
    }
    if let Some(words) = crate::foreign_state::words(&project) {
        plimsoll_terminal::console::say_error(&words);
    }
    if shown.is_empty() && read_on {
        return nothing_to_show(no_events(&project));
    }
    ExitCode::SUCCESS
}
