//! `plimsoll turns grep`.

use super::{TurnsError, Which, bring_up_to_date};
use clap::Args;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::text::one_line;
use plimsoll_flows::turns::{self, places};
use plimsoll_store::Project;
use plimsoll_terminal::columns::clip;
use plimsoll_terminal::columns::width;
use plimsoll_terminal::console::say;
use regex::{Regex, RegexBuilder};
use std::process::ExitCode;

/// What to look for, and where.
#[derive(Debug, Args)]
pub(super) struct GrepArguments {
    /// A regular expression
    pattern: String,
    /// Ignore the case of letters
    #[arg(short, long)]
    ignore_case: bool,
    #[command(flatten)]
    which: Which,
}

/// Exit code 0 if something was found, else 1, as with grep.
pub(super) fn grep(project: &Project, arguments: &GrepArguments) -> Result<ExitCode, TurnsError> {
    bring_up_to_date(project);
    let pattern = RegexBuilder::new(&arguments.pattern)
        .case_insensitive(arguments.ignore_case)
        .build()
        .map_err(|error| TurnsError::Typed(format!("the pattern cannot be read: {error}")))?;
    let which = arguments.which.selection();
    let mut logs = which.logs(project)?;
    logs.reverse();
    let mut is_found = false;
    for log in logs {
        for line in log.forwards()? {
            let line = line?;
            if !turns::header(&line).is_some_and(|header| which.may_mean(&header)) {
                continue;
            }
            let Some(record) = turns::recorded(&log, &line).filter(|turn| which.means(turn)) else {
                continue;
            };
            for hit in hits(&record, &pattern) {
                is_found = true;
                say(clip(&hit, width()));
            }
        }
    }
    Ok(if is_found { ExitCode::SUCCESS } else { ExitStatus::Failure.into() })
}

/// `SESSION:NUMBER  where: line`
fn hits(record: &turns::Recorded, pattern: &Regex) -> Vec<String> {
    let Some(turn) = record.turn() else { return Vec::new() };
    let name = record.name();
    let mut hits = Vec::new();
    for (place, text) in places(turn) {
        for line in text.lines().filter(|line| pattern.is_match(line)) {
            let hit = format!("{name}  {place}: {}", one_line(line));
            if !hits.contains(&hit) {
                hits.push(hit);
            }
        }
    }
    hits
}
