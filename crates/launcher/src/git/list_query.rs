//! Git queries whose output is a long list, or which return the reason for a failure.

use super::read_only_command;
use crate::CommandOutcome;
use crate::child::{self, ChildOptions};
use crate::git_error::GitError;
use crate::git_output::fatal_message_or_last_output_line;
use crate::time_limit::TimeLimit;
use std::path::Path;
use std::process::Command;

/// Maximum size of a list of names; longer output is an error.
pub(crate) const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;

/// A path, and the name of the filter that it is under.
pub(crate) type PathAndFilterName = (Vec<u8>, Vec<u8>);

/// Returns which of these paths are under a filter, with its name. Runs no filter.
pub(crate) fn query_filters_of_paths(
    folder: &Path,
    paths: &mut dyn Iterator<Item = &[u8]>,
    limit: TimeLimit,
) -> Result<Vec<PathAndFilterName>, GitError> {
    let input = join_nul_terminated(paths);
    if input.is_empty() {
        return Ok(Vec::new());
    }
    run_query_for_complete_output(folder, &["check-attr", "-z", "--stdin", "filter"], Some(input), limit)
        .map(|output| parse_check_attr_filters(&output))
}

pub(crate) fn join_nul_terminated(paths: &mut dyn Iterator<Item = &[u8]>) -> Vec<u8> {
    paths.flat_map(|path| [path, b"\0"].concat()).collect()
}

pub(crate) fn parse_check_attr_filters(output: &[u8]) -> Vec<PathAndFilterName> {
    let fields: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
    // `filter` without a value and `-filter` name no filter.
    let is_filter_name = |value: &[u8]| ![&b"unspecified"[..], b"unset", b"set", b""].contains(&value);
    let filtered_triples = fields.chunks_exact(3).filter(|triple| is_filter_name(triple[2]));
    filtered_triples.map(|triple| (triple[0].to_vec(), triple[2].to_vec())).collect()
}

/// Runs a read-only git query and returns its complete output. Returns an error if the query fails, times out,
/// or prints too much.
pub(crate) fn run_query_for_complete_output(
    folder: &Path,
    arguments: &[&str],
    input: Option<Vec<u8>>,
    limit: TimeLimit,
) -> Result<Vec<u8>, GitError> {
    run_command_for_complete_output(read_only_command(folder, arguments, limit), input, limit)
}

pub(crate) fn run_command_for_complete_output(
    command: Result<Command, CommandOutcome>,
    input: Option<Vec<u8>>,
    limit: TimeLimit,
) -> Result<Vec<u8>, GitError> {
    let options = ChildOptions {
        input,
        max_output_bytes: MAX_LIST_BYTES,
        ..ChildOptions::with_timeout(limit.remaining())
    };
    complete_stdout_or_error(command.map_or_else(|outcome| outcome, |command| child::run(command, options)))
}

pub(crate) fn complete_stdout_or_error(outcome: CommandOutcome) -> Result<Vec<u8>, GitError> {
    if outcome.timed_out {
        return Err(GitError::TimedOut);
    }
    if !outcome.succeeded() {
        return Err(GitError::Failed(fatal_message_or_last_output_line(&outcome)));
    }
    // The output was cut off: an incomplete list would look like less work.
    if outcome.stdout.len() >= MAX_LIST_BYTES {
        return Err(GitError::TooManyFiles);
    }
    Ok(outcome.stdout)
}
