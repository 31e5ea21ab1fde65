//! Commits files under a filter only through the filter. What git-crypt hides must not get into a history as
//! clear text because a filter was missing, failed, or was removed from the file's attributes.

use super::CommitSelection;
use crate::changes::{self, FolderInTree, PathFilters, quote_path_line};
use crate::child::{self, ChildOptions};
use crate::git::GitWriter;
use crate::git::list_query;
use crate::git::list_query::{FilteredPath, filters_of_paths};
use crate::git_error::GitError;
use crate::git_output;
use crate::time_limit::TimeLimit;
use plimsoll_domain::git_names::CommitId;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The timeout for trying each filter on its files before the commit runs it; the files may be large.
const FILTER_TRIAL_TIMEOUT: Duration = Duration::from_secs(60);

/// Excludes the files whose filter is missing, may not run, or fails on one of them. Configures the writer so
/// that the other filters must not fail, and that a failed filter is not run again. Returns the filters that
/// may not run.
pub(super) fn exclude_unusable_and_return_forbidden_filters(
    writer: &mut GitWriter<'_>,
    folder_in_tree: &FolderInTree,
    head: Option<&CommitId>,
    selection: &mut CommitSelection,
    limit: TimeLimit,
) -> Result<Vec<String>, GitError> {
    let folder = writer.folder();
    let files = selected_regular_files(folder, selection);
    let (filtered_paths, mut excluded) =
        files_with_filters_and_with_changed_filters(folder, head, selection, &files, limit)?;
    let mut by_filter: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for (path, filter) in filtered_paths {
        by_filter.entry(filter).or_default().push(path);
    }
    let mut forbidden_filters = Vec::new();
    let clean_filters =
        if by_filter.is_empty() { BTreeSet::new() } else { configured_clean_filters(folder, limit)? };
    let trial_limit = TimeLimit::from_now(FILTER_TRIAL_TIMEOUT);
    for (filter, paths) in by_filter {
        let is_configured = clean_filters.contains(&filter);
        if !writer.allows_filter(&filter) {
            forbidden_filters.push(String::from_utf8_lossy(&filter).into_owned());
        } else if is_configured
            && filter_succeeds_on_all(writer, folder_in_tree, &filter, &paths, trial_limit)
        {
            // Without `required`, git commits a file in clear text if its filter fails.
            writer.add_settings([filter_setting(&filter, "required=true")]);
            continue;
        } else if is_configured {
            writer.add_settings(
                ["clean=", "process=", "required=false"].map(|suffix| filter_setting(&filter, suffix)),
            );
        }
        excluded.extend(paths);
    }
    selection.exclude(&excluded);
    Ok(forbidden_filters)
}

/// Excludes all files that are under a filter now or were in HEAD. Returns the filters.
pub(super) fn exclude_filtered_files_and_return_filters(
    folder: &Path,
    head: Option<&CommitId>,
    selection: &mut CommitSelection,
    limit: TimeLimit,
) -> Result<Vec<String>, GitError> {
    let files = selected_regular_files(folder, selection);
    let (filtered_paths, mut excluded) =
        files_with_filters_and_with_changed_filters(folder, head, selection, &files, limit)?;
    let filters: BTreeSet<String> =
        filtered_paths.iter().map(|(_, name)| String::from_utf8_lossy(name).into_owned()).collect();
    excluded.extend(filtered_paths.into_iter().map(|(path, _)| path));
    selection.exclude(&excluded);
    Ok(filters.into_iter().collect())
}

fn selected_regular_files(folder: &Path, selection: &CommitSelection) -> Vec<Vec<u8>> {
    let is_file = |path: &&Vec<u8>| {
        folder.join(OsStr::from_bytes(path)).symlink_metadata().is_ok_and(|metadata| metadata.is_file())
    };
    selection.paths.iter().filter(is_file).cloned().collect()
}

/// Returns the files that are under a filter, and those that are under another filter according to HEAD's
/// attributes. Whoever changed the attributes, the latter must not be committed as they are. If HEAD's
/// attributes cannot be read, all files are in the second set.
fn files_with_filters_and_with_changed_filters(
    folder: &Path,
    head: Option<&CommitId>,
    selection: &CommitSelection,
    files: &[Vec<u8>],
    limit: TimeLimit,
) -> Result<(Vec<FilteredPath>, BTreeSet<Vec<u8>>), GitError> {
    let filters = head
        .map(|head| changes::filters_after_commit_and_at_head(folder, head, &selection.paths, files, limit));
    match filters {
        Some(Ok(PathFilters { after_commit, at_head })) => {
            let with_changed_filter = at_head.into_iter().filter(|file| !after_commit.contains(file));
            let with_changed_filter = with_changed_filter.map(|(path, _)| path).collect();
            Ok((after_commit, with_changed_filter))
        }
        error_or_no_head => {
            let filtered_paths = filters_of_paths(folder, &mut files.iter().map(Vec::as_slice), limit)?;
            let with_changed_filter =
                error_or_no_head.map_or(BTreeSet::new(), |_| files.iter().cloned().collect());
            Ok((filtered_paths, with_changed_filter))
        }
    }
}

/// Returns the filters that change what is committed, without filters whose name cannot be set on a command
/// line.
fn configured_clean_filters(folder: &Path, limit: TimeLimit) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let arguments = ["config", "--null", "--get-regexp", r"^filter\..*\.(clean|process)$"];
    // The command fails if there is no such filter.
    let output = list_query::run_list_query(folder, &arguments, None, limit)
        .or_else(|error| if limit.has_passed() { Err(error) } else { Ok(Vec::new()) })?;
    let mut commands: BTreeMap<Vec<u8>, bool> = BTreeMap::new();
    for entry in git_output::split_nul_terminated(&output) {
        let end = entry.iter().position(|byte| *byte == b'\n').unwrap_or(entry.len());
        // The last setting of a filter counts.
        commands.insert(entry[..end].to_vec(), end + 1 < entry.len());
    }
    let filters = commands.into_iter().filter(|(_, is_set)| *is_set).filter_map(|(key, _)| {
        let last_dot = key.iter().rposition(|byte| *byte == b'.')?;
        key.get(b"filter.".len()..last_dot).map(<[u8]>::to_vec)
    });
    Ok(filters.filter(|name| !name.contains(&b'=')).collect())
}

/// Returns whether a filter succeeds on every one of these files. Nothing is written.
fn filter_succeeds_on_all(
    writer: &GitWriter<'_>,
    folder_in_tree: &FolderInTree,
    filter: &[u8],
    paths: &[Vec<u8>],
    limit: TimeLimit,
) -> bool {
    let paths_from_root = paths.iter().map(|path| [folder_in_tree.prefix.as_slice(), path].concat());
    let input: Vec<u8> = paths_from_root.flat_map(|path| quote_path_line(&path)).collect();
    let required = filter_setting(filter, "required=true");
    let mut trial_writer = writer.clone();
    trial_writer.add_settings([required]);
    let command = trial_writer.command_in(&folder_in_tree.root, &["hash-object", "--stdin-paths"]);
    child::run(command, ChildOptions { input: Some(input), ..ChildOptions::with_timeout(limit.remaining()) })
        .succeeded()
}

fn filter_setting(filter: &[u8], suffix: &str) -> OsString {
    OsStr::from_bytes(&[b"filter.", filter, b".", suffix.as_bytes()].concat()).to_owned()
}
