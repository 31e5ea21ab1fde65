//! `plimsoll turns follow`: turns as they happen.

use super::row::row;
use super::{TurnsError, Which, bring_up_to_date};
use crate::commands::status::width;
use crate::console;
use clap::Args;
use plimsoll_store::Project;
use std::collections::HashSet;
use std::process::ExitCode;
use std::time::Duration;

/// Which turns.
#[derive(Debug, Args)]
pub(super) struct FollowArguments {
    #[command(flatten)]
    which: Which,
}

/// Turns take seconds.
const INTERVAL: Duration = Duration::from_millis(500);
/// More do not come between two looks.
const MOST: usize = 50;
/// So many that have been are shown at first.
const BEFORE: usize = 5;

/// Ends with Ctrl-C, or when the reader is gone.
pub(super) fn follow(project: &Project, arguments: &FollowArguments) -> Result<ExitCode, TurnsError> {
    let mut seen = HashSet::new();
    let mut is_first = true;
    loop {
        bring_up_to_date(project);
        let found = match arguments.which.selection().last(project, MOST) {
            Err(TurnsError::NoLog(_)) => Vec::new(),
            found => found?,
        };
        let new: Vec<_> = found
            .into_iter()
            .filter(|turn| seen.insert((turn.session_id.clone(), turn.header.seq)))
            .collect();
        let left_out = if is_first { new.len().saturating_sub(BEFORE) } else { 0 };
        is_first = false;
        for turn in &new[left_out..] {
            if console::try_say(row(turn, width())).is_err() {
                return Ok(ExitCode::SUCCESS);
            }
        }
        std::thread::sleep(INTERVAL);
    }
}
