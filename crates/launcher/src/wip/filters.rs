//! Ensures that files with a filter are committed only through the filter. Files that git-crypt encrypts must not
//! be committed as plain text because the filter is missing, fails, or was removed from the attributes.

use super::CommitSelection;
use crate::changes::{self, FolderInWorkingTree, PathFilters, quote_path_as_input_line};
use crate::child::{self, ChildOptions};
use crate::git::GitWriter;
use crate::git::list_query;
use crate::git::list_query::{PathAndFilterName, query_filters_of_paths};
use crate::git_error::GitError;
use crate::git_output;
use crate::time_limit::TimeLimit;
use plimsoll_domain::git_names::CommitId;
use plimsoll_system::paths::os_str_from_bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// The timeout for a trial run of all filters on their files before the commit; the files may be large.
const FILTER_TRIAL_TIMEOUT: Duration = Duration::from_secs(60);

/// Excludes the files whose filter is missing, may not run, or fails on one of its files. Configures `writer` so
/// that the other filters are required to succeed and a failed filter does not run again. Returns the filters
/// that may not run.
pub(super) fn exclude_unusable_and_return_forbidden_filters(
    writer: &mut GitWriter<'_>,
    folder_in_tree: &FolderInWorkingTree,
    head: Option<&CommitId>,
    selection: &mut CommitSelection,
    limit: TimeLimit,
) -> Result<Vec<String>, GitError> {
    let folder = writer.folder();
    let files = selected_regular_files(folder, selection);
    let (filtered_paths, mut excluded) =
        filtered_files_and_files_with_changed_filter(folder, head, selection, &files, limit)?;
    let mut paths_by_filter: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for (path, filter) in filtered_paths {
        paths_by_filter.entry(filter).or_default().push(path);
    }
    let mut forbidden_filters = Vec::new();
    let clean_filters = if paths_by_filter.is_empty() {
        BTreeSet::new()
    } else {
        names_of_configured_clean_filters(folder, limit)?
    };
    let trial_limit = TimeLimit::from_now(FILTER_TRIAL_TIMEOUT);
    for (filter, paths) in paths_by_filter {
        let is_configured = clean_filters.contains(&filter);
        if !writer.allows_filter(&filter) {
            forbidden_filters.push(String::from_utf8_lossy(&filter).into_owned());
        } else if is_configured
            && filter_succeeds_on_all_files(writer, folder_in_tree, &filter, &paths, trial_limit)
        {
            // Without `required`, git commits a file as plain text if its filter fails.
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

/// Excludes all files that have a filter now or had one according to HEAD's attributes. Returns the current
/// filters.
pub(super) fn exclude_filtered_files_and_return_filters(
    folder: &Path,
    head: Option<&CommitId>,
    selection: &mut CommitSelection,
    limit: TimeLimit,
) -> Result<Vec<String>, GitError> {
    let files = selected_regular_files(folder, selection);
    let (filtered_paths, mut excluded) =
        filtered_files_and_files_with_changed_filter(folder, head, selection, &files, limit)?;
    let filters: BTreeSet<String> =
        filtered_paths.iter().map(|(_, name)| String::from_utf8_lossy(name).into_owned()).collect();
    excluded.extend(filtered_paths.into_iter().map(|(path, _)| path));
    selection.exclude(&excluded);
    Ok(filters.into_iter().collect())
}

fn selected_regular_files(folder: &Path, selection: &CommitSelection) -> Vec<Vec<u8>> {
    let is_file = |path: &&Vec<u8>| {
        folder.join(os_str_from_bytes(path)).symlink_metadata().is_ok_and(|metadata| metadata.is_file())
    };
    selection.paths.iter().filter(is_file).cloned().collect()
}

/// Returns the files that have a filter, and the files whose filter in HEAD's attributes was a different one or has
/// been removed. The latter must not be committed without HEAD's filter. If HEAD's attributes cannot be read,
/// the second set contains all files.
fn filtered_files_and_files_with_changed_filter(
    folder: &Path,
    head: Option<&CommitId>,
    selection: &CommitSelection,
    files: &[Vec<u8>],
    limit: TimeLimit,
) -> Result<(Vec<PathAndFilterName>, BTreeSet<Vec<u8>>), GitError> {
    let filters = head
        .map(|head| changes::filters_after_commit_and_at_head(folder, head, &selection.paths, files, limit));
    match filters {
        Some(Ok(PathFilters { after_commit, at_head })) => {
            let with_changed_filter = at_head.into_iter().filter(|file| !after_commit.contains(file));
            let with_changed_filter = with_changed_filter.map(|(path, _)| path).collect();
            Ok((after_commit, with_changed_filter))
        }
        error_or_no_head => {
            let filtered_paths = query_filters_of_paths(folder, &mut files.iter().map(Vec::as_slice), limit)?;
            let with_changed_filter =
                error_or_no_head.map_or(BTreeSet::new(), |_| files.iter().cloned().collect());
            Ok((filtered_paths, with_changed_filter))
        }
    }
}

/// Returns the names of the filters that have a `clean` or `process` command. Omits names with a `=`, because they
/// cannot be configured on a command line.
fn names_of_configured_clean_filters(folder: &Path, limit: TimeLimit) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let arguments = ["config", "--null", "--get-regexp", r"^filter\..*\.(clean|process)$"];
    // The command also fails if no filter is configured.
    let output = list_query::run_query_for_complete_output(folder, &arguments, None, limit)
        .or_else(|error| if limit.has_passed() { Err(error) } else { Ok(Vec::new()) })?;
    let mut is_set_by_key: BTreeMap<Vec<u8>, bool> = BTreeMap::new();
    for entry in git_output::split_nul_terminated(&output) {
        let key_length = entry.iter().position(|byte| *byte == b'\n').unwrap_or(entry.len());
        // A later value of the same key overrides an earlier one.
        is_set_by_key.insert(entry[..key_length].to_vec(), key_length + 1 < entry.len());
    }
    let filters = is_set_by_key.into_iter().filter(|(_, is_set)| *is_set).filter_map(|(key, _)| {
        let last_dot = key.iter().rposition(|byte| *byte == b'.')?;
        key.get(b"filter.".len()..last_dot).map(<[u8]>::to_vec)
    });
    Ok(filters.filter(|name| !name.contains(&b'=')).collect())
}

/// Returns whether a filter succeeds on all of these files. Writes nothing.
fn filter_succeeds_on_all_files(
    writer: &GitWriter<'_>,
    folder_in_tree: &FolderInWorkingTree,
    filter: &[u8],
    paths: &[Vec<u8>],
    limit: TimeLimit,
) -> bool {
    let paths_from_root = paths.iter().map(|path| [folder_in_tree.prefix.as_slice(), path].concat());
    let input: Vec<u8> = paths_from_root.flat_map(|path| quote_path_as_input_line(&path)).collect();
    let required_setting = filter_setting(filter, "required=true");
    let mut trial_writer = writer.clone();
    trial_writer.add_settings([required_setting]);
    let command = trial_writer.command_in(&folder_in_tree.root, &["hash-object", "--stdin-paths"]);
    child::run(command, ChildOptions { input: Some(input), ..ChildOptions::with_timeout(limit.remaining()) })
        .succeeded()
}

fn filter_setting(filter: &[u8], suffix: &str) -> OsString {
    os_str_from_bytes(&[b"filter.", filter, b".", suffix.as_bytes()].concat()).into_owned()
}
