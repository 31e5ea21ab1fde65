//! Git queries whose output is a long list, or which return the reason for a failure.

use super::read_only_command;
use crate::CommandOutcome;
use crate::child::{self, ChildOptions};
use crate::git_error::GitError;
use crate::git_output::failure_reason;
use crate::time_limit::TimeLimit;
use std::path::Path;
use std::process::Command;

/// The longest list that is read. A list of names may be long, but we do not process a longer one.
pub(crate) const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;

/// A path, and the name of the filter that it is under.
pub(crate) type FilteredPath = (Vec<u8>, Vec<u8>);

/// Returns which of these paths are under a filter, with its name. Runs no filter.
pub(crate) fn filters_of_paths(
    folder: &Path,
    paths: &mut dyn Iterator<Item = &[u8]>,
    limit: TimeLimit,
) -> Result<Vec<FilteredPath>, GitError> {
    let input = join_nul_terminated(paths);
    if input.is_empty() {
        return Ok(Vec::new());
    }
    run_list_query(folder, &["check-attr", "-z", "--stdin", "filter"], Some(input), limit)
        .map(|output| parse_filtered_paths(&output))
}

pub(crate) fn join_nul_terminated(paths: &mut dyn Iterator<Item = &[u8]>) -> Vec<u8> {
    paths.flat_map(|path| [path, b"\0"].concat()).collect()
}

pub(crate) fn parse_filtered_paths(output: &[u8]) -> Vec<FilteredPath> {
    let fields: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
    // `filter` without a value and `-filter` name no filter.
    let is_filter_name = |value: &[u8]| ![&b"unspecified"[..], b"unset", b"set", b""].contains(&value);
    let filtered_fields = fields.chunks_exact(3).filter(|field| is_filter_name(field[2]));
    filtered_fields.map(|field| (field[0].to_vec(), field[2].to_vec())).collect()
}

/// Runs a git query and returns its output, or the reason for its failure.
pub(crate) fn run_list_query(
    folder: &Path,
    arguments: &[&str],
    input: Option<Vec<u8>>,
    limit: TimeLimit,
) -> Result<Vec<u8>, GitError> {
    run_list_command(read_only_command(folder, arguments, limit), input, limit)
}

pub(crate) fn run_list_command(
    command: Result<Command, CommandOutcome>,
    input: Option<Vec<u8>>,
    limit: TimeLimit,
) -> Result<Vec<u8>, GitError> {
    let options = ChildOptions {
        input,
        max_output_bytes: MAX_LIST_BYTES,
        ..ChildOptions::with_timeout(limit.remaining())
    };
    into_list_output(command.map_or_else(|outcome| outcome, |command| child::run(command, options)))
}

pub(crate) fn into_list_output(outcome: CommandOutcome) -> Result<Vec<u8>, GitError> {
    if outcome.timed_out {
        return Err(GitError::TimedOut);
    }
    if !outcome.succeeded() {
        return Err(GitError::Failed(failure_reason(&outcome)));
    }
    // The output was cut off: an incomplete list would look like less work.
    if outcome.stdout.len() >= MAX_LIST_BYTES {
        return Err(GitError::TooManyFiles);
    }
    Ok(outcome.stdout)
}
