//! `plimsoll turns grep`.

use super::{TurnFilter, TurnsError, record_missing_turns_or_print_warning};
use clap::Args;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_flows::turns::{self, labeled_texts};
use plimsoll_store::Project;
use plimsoll_terminal::columns::clip_to_columns;
use plimsoll_terminal::console::{line_width_from_columns_or_terminal, print_text};
use regex::{Regex, RegexBuilder};
use std::process::ExitCode;

/// The pattern, and which turns to search.
#[derive(Debug, Args)]
pub(super) struct GrepArguments {
    /// A regular expression
    pattern: String,
    /// Ignore the case of letters
    #[arg(short, long)]
    ignore_case: bool,
    #[command(flatten)]
    filter: TurnFilter,
}

/// Prints the matching lines. Exits with 0 if a line matches, otherwise with 1, like grep.
pub(super) fn grep(project: &Project, arguments: &GrepArguments) -> Result<ExitCode, TurnsError> {
    record_missing_turns_or_print_warning(project);
    let pattern = RegexBuilder::new(&arguments.pattern)
        .case_insensitive(arguments.ignore_case)
        .build()
        .map_err(|error| TurnsError::InvalidInput(format!("the pattern cannot be read: {error}")))?;
    let selection = arguments.filter.to_selection();
    let mut logs = selection.selected_logs(project)?;
    logs.reverse();
    let mut has_match = false;
    for log in logs {
        for line in log.forward_lines()? {
            let line = line?;
            if !turns::record_header(&line).is_some_and(|header| selection.header_matches(&header)) {
                continue;
            }
            let Some(record) = turns::decode_record_keeping_error_in_body(&log, &line)
                .filter(|record| selection.content_matches(record))
            else {
                continue;
            };
            for matching_line in unique_matching_lines_with_labels(&record, &pattern) {
                has_match = true;
                print_text(clip_to_columns(&matching_line, line_width_from_columns_or_terminal()));
            }
        }
    }
    Ok(if has_match { ExitCode::SUCCESS } else { ExitStatus::Failure.into() })
}

/// Returns the matching lines without duplicates, as `SESSION:NUMBER  LABEL: line`.
fn unique_matching_lines_with_labels(record: &turns::LoggedRecord, pattern: &Regex) -> Vec<String> {
    let Some(turn) = record.turn() else { return Vec::new() };
    let name = record.short_session_id_and_number();
    let mut matches = Vec::new();
    for (label, text) in labeled_texts(turn) {
        for line in text.lines().filter(|line| pattern.is_match(line)) {
            let match_line = format!("{name}  {label}: {}", to_safe_single_line(line));
            if !matches.contains(&match_line) {
                matches.push(match_line);
            }
        }
    }
    matches
}
