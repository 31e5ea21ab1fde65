//! Questions to git whose answers are long lists, or which say why there is none.

use super::asking;
use crate::Outcome;
use crate::child::{self, Terms};
use crate::git_error::GitError;
use crate::git_output::last_words;
use crate::time_limit::TimeLimit;
use std::path::Path;
use std::process::Command;

/// A list of names may be long; one that is longer is no list we want to work through.
pub(crate) const MOST_LIST: usize = 64 * 1024 * 1024;

/// A path, and the filter that it is under.
pub(crate) type Filtered = (Vec<u8>, Vec<u8>);

/// Which of these paths are under a filter, and its name. Nothing is run to find out.
pub(crate) fn filters_of(
    folder: &Path,
    paths: &mut dyn Iterator<Item = &[u8]>,
    limit: TimeLimit,
) -> Result<Vec<Filtered>, GitError> {
    let input = zero_terminated(paths);
    if input.is_empty() {
        return Ok(Vec::new());
    }
    answer(folder, &["check-attr", "-z", "--stdin", "filter"], Some(input), limit)
        .map(|list| parse_filters(&list))
}

pub(crate) fn zero_terminated(paths: &mut dyn Iterator<Item = &[u8]>) -> Vec<u8> {
    paths.flat_map(|path| [path, b"\0"].concat()).collect()
}

pub(crate) fn parse_filters(list: &[u8]) -> Vec<Filtered> {
    let fields: Vec<&[u8]> = list.split(|byte| *byte == 0).collect();
    // A bare `filter` or `-filter` names none.
    let is_name = |value: &[u8]| ![&b"unspecified"[..], b"unset", b"set", b""].contains(&value);
    let found = fields.chunks_exact(3).filter(|field| is_name(field[2]));
    found.map(|field| (field[0].to_vec(), field[2].to_vec())).collect()
}

/// What git answers; why not, if it does not.
pub(crate) fn answer(
    folder: &Path,
    arguments: &[&str],
    input: Option<Vec<u8>>,
    limit: TimeLimit,
) -> Result<Vec<u8>, GitError> {
    run_question(asking(folder, arguments, limit), input, limit)
}

pub(crate) fn run_question(
    command: Result<Command, Outcome>,
    input: Option<Vec<u8>>,
    limit: TimeLimit,
) -> Result<Vec<u8>, GitError> {
    let terms = Terms { input, most_output: MOST_LIST, ..Terms::within(limit.left()) };
    as_answer(command.map_or_else(|outcome| outcome, |command| child::run(command, terms)))
}

pub(crate) fn as_answer(outcome: Outcome) -> Result<Vec<u8>, GitError> {
    if outcome.timed_out {
        return Err(GitError::TookTooLong);
    }
    if !outcome.succeeded() {
        return Err(GitError::Failed(last_words(&outcome)));
    }
    // The rest was thrown away: a list without its end would look like less work.
    if outcome.stdout.len() >= MOST_LIST {
        return Err(GitError::TooManyFiles);
    }
    Ok(outcome.stdout)
}
