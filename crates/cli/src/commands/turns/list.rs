//! `plimsoll turns list`.

use super::turn_row::{header_row, render_turn_row};
use super::{TurnFilter, TurnsError, print_no_recorded_turns, record_missing_turns_or_print_warning};
use crate::record_json::turn_json;
use clap::Args;
use plimsoll_store::Project;
use plimsoll_terminal::console::{self, line_width_from_columns_or_terminal, print_text};
use plimsoll_terminal::value_parsers;
use serde_json::Value;
use std::process::ExitCode;

/// Which turns to list, and in which format.
#[derive(Debug, Default, Args)]
pub(super) struct ListArguments {
    #[command(flatten)]
    filter: TurnFilter,
    /// The last N of them [default: 20]
    #[arg(short = 'n', long = "last", value_name = "N", value_parser = value_parsers::whole_number::<usize>)]
    last: Option<usize>,
    /// Print one JSON array: each turn with its eight fields and `ext`
    #[arg(long)]
    json: bool,
}

const DEFAULT_TURN_COUNT: usize = 20;

pub(super) fn list_last_turns(project: &Project, arguments: &ListArguments) -> Result<ExitCode, TurnsError> {
    record_missing_turns_or_print_warning(project);
    let turns = match arguments
        .filter
        .to_selection()
        .last_matching_turns_oldest_first(project, arguments.last.unwrap_or(DEFAULT_TURN_COUNT))
    {
        Err(TurnsError::NoLog(_)) if !arguments.json => return Ok(print_no_recorded_turns(project)),
        Err(TurnsError::NoLog(_)) => Vec::new(),
        turns => turns?,
    };
    if arguments.json {
        let documents: Vec<Value> = turns.iter().map(turn_json).collect();
        console::print_json(Value::Array(documents));
        return Ok(ExitCode::SUCCESS);
    }
    if turns.is_empty() {
        return Ok(console::print_nothing_to_show("No turn matches."));
    }
    // Programs that read the list from a pipe expect only turns, so the heading appears only on a terminal.
    if console::is_terminal() {
        let _ = console::print_painted_lines(&[header_row()], 2);
    }
    let width = line_width_from_columns_or_terminal();
    turns.iter().for_each(|turn| print_text(render_turn_row(turn, width)));
    Ok(ExitCode::SUCCESS)
}
