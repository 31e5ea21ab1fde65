//! `plimsoll turns list`.

use super::row::{head, row};
use super::{TurnsError, Which, bring_up_to_date, no_turn_recorded};
use crate::record_json::turn_json;
use clap::Args;
use plimsoll_store::Project;
use plimsoll_terminal::columns::width;
use plimsoll_terminal::console;
use plimsoll_terminal::console::say;
use plimsoll_terminal::value_parsers;
use serde_json::Value;
use std::process::ExitCode;

/// Which turns, and how.
#[derive(Debug, Default, Args)]
pub(super) struct ListArguments {
    #[command(flatten)]
    which: Which,
    /// The last N of them [default: 20]
    #[arg(short = 'n', long = "last", value_name = "N", value_parser = value_parsers::whole_number::<usize>)]
    last: Option<usize>,
    /// Print one JSON array: each turn with its eight fields and `ext`
    #[arg(long)]
    json: bool,
}

const USUAL: usize = 20;

pub(super) fn list(project: &Project, arguments: &ListArguments) -> Result<ExitCode, TurnsError> {
    bring_up_to_date(project);
    let found = match arguments.which.selection().last(project, arguments.last.unwrap_or(USUAL)) {
        Err(TurnsError::NoLog(_)) if !arguments.json => return Ok(no_turn_recorded(project)),
        Err(TurnsError::NoLog(_)) => Vec::new(),
        found => found?,
    };
    if arguments.json {
        let all: Vec<Value> = found.iter().map(turn_json).collect();
        console::json(Value::Array(all));
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        return Ok(console::nothing_to_show("No turn matches."));
    }
    // A program that reads the list wants its turns alone.
    if console::is_terminal() {
        let _ = console::paint(&[head()]);
    }
    let width = width();
    found.iter().for_each(|turn| say(row(turn, width)));
    Ok(ExitCode::SUCCESS)
}
