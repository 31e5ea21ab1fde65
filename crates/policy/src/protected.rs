//! Checks which paths may be protected, and finds the changes of protected files since the run began.

use plimsoll_domain::file_names::is_same_or_below_ignoring_case;
use plimsoll_domain::protected::{
    GitEntry, GitFailure, MAX_LISTED_CHANGES, ProtectedChanges, ProtectedCommits, ProtectedContent,
    ProtectedEntry, ProtectedFiles, describe_protected_changes, parse_path_of_change,
};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum length of a file name in a message, in characters. Sessions choose the names, so they may be long.
const MAX_NAME_CHARS: usize = 300;
/// Number of characters of an object id that are shown.
const SHOWN_ID_CHARS: usize = 12;
/// Paths that the run itself writes, so they change in every session.
const PATHS_WRITTEN_BY_RUN: [&str; 5] =
    [".claude/plimsoll", ".claude/handoffs", ".claude/ralph-state.json", "PROMPT.md", "progress.txt"];

/// Why files cannot be protected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtectError {
    /// A path cannot be protected.
    #[error("cannot protect {path}: {reason}")]
    InvalidPath {
        path: String,
        /// The reason, and what to do.
        reason: String,
    },
    /// The path that cannot be protected is in the user's settings.
    #[error("{error}; the path is in `protect` in {file}")]
    InSettings {
        file: String,
        /// The error for the path.
        error: Box<ProtectError>,
    },
    /// Git cannot list the files of HEAD or of the working tree.
    #[error("cannot protect files: {0}")]
    Git(String),
    /// Protected files have changed outside of sessions, so no session can undo the change and complete the run.
    #[error(
        "before a session begins, {0}; if a verify command writes there, let it write elsewhere or protect single files; restore the files, then plimsoll run --resume; to keep them as they are now, begin a new run (plimsoll stop, then plimsoll run)"
    )]
    ChangedOutsideSessions(String),
    /// Git timed out, so changes in commits are unknown.
    #[error(
        "git does not answer in time, so protected files cannot be compared with what commits have; run this again once `git status` is quick"
    )]
    GitTimedOut,
    /// The record of the protected files is missing.
    #[error(
        "the record of the protected files is missing beside the run's ledger; begin a new run (plimsoll stop, then plimsoll run)"
    )]
    MissingRecord,
    /// The run has several workers, each with its own worktree.
    #[error(
        "--protect cannot be used with --workers: each worker has files of its own; add a --verify command that compares the files, or run with one worker"
    )]
    UsedWithWorkers,
}

impl ProtectError {
    /// Creates the error for a path.
    pub fn for_path(path: &str, reason: impl Into<String>) -> ProtectError {
        ProtectError::InvalidPath { path: display_path(path), reason: reason.into() }
    }
}

fn display_path(path: &str) -> String {
    if path.is_empty() { "\"\"".to_owned() } else { truncate_end(&to_safe_single_line(path), MAX_NAME_CHARS) }
}

/// Parses a path that the user wants to protect, and normalizes it. Rejects paths outside the project, the project
/// itself, git's folder, and paths that the run writes, such as its plan file.
pub fn parse_protected_path(text: &str, plan_file: Option<&str>) -> Result<String, ProtectError> {
    let reject = |reason: &str| Err(ProtectError::for_path(text, reason));
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if text.starts_with('/') || parts.contains(&"..") || text.contains('\0') {
        return reject("it leads out of the project; name a file or folder in it, relative to the project");
    }
    if parts.is_empty() {
        return reject("it is the whole project, in which sessions work; name files or folders in it");
    }
    if parts.iter().any(|part| part.eq_ignore_ascii_case(".git")) {
        return reject("git changes its own folder with each commit; name files or folders of the project");
    }
    let path = parts.join("/");
    let plan_file = plan_file.map(|plan| plan.trim_start_matches("./"));
    match PATHS_WRITTEN_BY_RUN
        .iter()
        .copied()
        .chain(plan_file)
        .find(|run_path| paths_overlap_ignoring_case(&path, run_path))
    {
        Some(run_path) => {
            let run_path = to_safe_single_line(run_path);
            reject(&format!("the run itself writes {run_path}; name the files or folders beside it"))
        }
        None => Ok(path),
    }
}

/// Returns an error if HEAD has a path only in another spelling. Git compares paths exactly, so nothing in a commit would
/// count as this path. `is_other_file` returns true if a spelling is another file on the disk than the path.
pub fn reject_path_spelled_differently_in_head(
    path: &str,
    head_entries: &[GitEntry],
    is_other_file: impl Fn(&str) -> bool,
) -> Result<(), ProtectError> {
    let mut other_spelling = None;
    for entry in head_entries.iter().filter(|entry| is_same_or_below_ignoring_case(&entry.path, path)) {
        if is_same_or_below(&entry.path, path) {
            return Ok(());
        }
        let name_count = path.split('/').count();
        other_spelling = Some(entry.path.split('/').take(name_count).collect::<Vec<_>>().join("/"));
    }
    match other_spelling.filter(|spelling| !is_other_file(spelling)) {
        Some(spelling) => {
            let spelling = to_safe_single_line(&spelling);
            let reason =
                format!("HEAD has it as {spelling}; rename one of them, so that git recognizes the files");
            Err(ProtectError::for_path(path, reason))
        }
        None => Ok(()),
    }
}

/// Checks the entries at, above and below a path. Links at or above it, unreadable files and a missing path are errors.
pub fn reject_linked_missing_or_unreadable_path(
    path: &str,
    entries: &[ProtectedEntry],
) -> Result<(), ProtectError> {
    for entry in entries.iter().filter(|entry| paths_overlap(&entry.path, path)) {
        let is_path_or_parent = is_same_or_below(path, &entry.path);
        match &entry.content {
            ProtectedContent::Link { target } if is_path_or_parent => {
                let (link, target) = (to_safe_single_line(&entry.path), to_safe_single_line(target));
                let reason = format!(
                    "{link} is a symbolic link to {target}; name what it leads to, if that is in the project"
                );
                return Err(ProtectError::for_path(path, reason));
            }
            ProtectedContent::Unreadable { reason } => {
                let reason = format!("{reason}; name fewer files, or others");
                return Err(ProtectError::for_path(&entry.path, reason));
            }
            // A parent of the path is a file.
            _ if is_path_or_parent && path != entry.path => return Err(missing_path_error(path)),
            ProtectedContent::Link { .. } | ProtectedContent::File { .. } => {}
        }
    }
    Ok(())
}

/// Creates the error for a path that does not exist.
pub fn missing_path_error(path: &str) -> ProtectError {
    ProtectError::for_path(path, "there is no such file or folder in the project")
}

/// Creates the error for a path in a repository nested in the project.
pub fn other_repository_error(path: &str, repository: &str) -> ProtectError {
    let repository = to_safe_single_line(repository);
    let reason = format!(
        "it is in another repository, whose commits are not compared; name {repository}, or run there"
    );
    ProtectError::for_path(path, reason)
}

/// The current state of the protected paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentFiles {
    /// The files and links on the disk.
    pub entries: Vec<ProtectedEntry>,
    /// The identity of the git folder.
    pub repository_id: Result<String, GitFailure>,
    /// The entries of HEAD and of the branch, with their names.
    pub commits: Vec<(String, Result<Vec<GitEntry>, GitFailure>)>,
}

/// Returns how the protected files differ from the record.
pub fn list_changes_since_record(recorded: &ProtectedFiles, current: &CurrentFiles) -> ProtectedChanges {
    let mut changes = BTreeMap::new();
    for path in paths_changed_on_disk(recorded, &current.entries) {
        let undo = describe_how_to_undo(recorded, &path);
        changes.entry(path.clone()).or_insert_with(|| format!("{} ({undo})", display_path(&path)));
    }
    let mut other_changes = Vec::new();
    let (mut needs_user, mut has_git_timed_out) = (false, false);
    if let Some(recorded_commits) = &recorded.commits {
        match &current.repository_id {
            Ok(repository) if *repository == recorded_commits.repository => {}
            Err(GitFailure::TimedOut) => has_git_timed_out = true,
            Ok(_) | Err(GitFailure::Unreadable) => {
                needs_user = true;
                other_changes.push(
                    ".git (it is not the repository in which the run began; restore that one)".to_owned(),
                );
            }
        }
        for (name, entries) in &current.commits {
            let entries = match entries {
                Ok(entries) => entries,
                Err(GitFailure::Unreadable) => {
                    other_changes.push(format!("{} (git cannot read it; restore it)", display_path(name)));
                    continue;
                }
                Err(GitFailure::TimedOut) => {
                    has_git_timed_out = true;
                    continue;
                }
            };
            for path in unexpected_paths_in_commit(recorded_commits, entries) {
                let undo = describe_how_to_undo(recorded, &path);
                let describe_change =
                    || format!("{} in {} ({undo}, and commit that)", display_path(&path), display_path(name));
                changes.entry(path.clone()).or_insert_with(describe_change);
            }
        }
    }
    if has_git_timed_out {
        other_changes.push("unknown files (git did not answer in time)".to_owned());
    }
    let descriptions =
        other_changes.into_iter().chain(changes.into_values()).take(MAX_LISTED_CHANGES).collect();
    ProtectedChanges { descriptions, needs_user, git_timed_out: has_git_timed_out }
}

/// Returns the changes of protected files that the next session must undo. Returns an error if files have changed that
/// were not reported before, because the next session would undo a change that the user may have wanted. Also returns an
/// error if a change needs the user, or if git timed out.
pub fn changes_to_undo_unless_made_outside_sessions(
    earlier_changes: &[String],
    earlier_changes_needed_user: bool,
    current_changes: ProtectedChanges,
) -> Result<Vec<String>, ProtectError> {
    let ProtectedChanges { descriptions, needs_user, git_timed_out: has_git_timed_out } = current_changes;
    if has_git_timed_out {
        return Err(ProtectError::GitTimedOut);
    }
    // If the list of earlier changes was truncated, it does not show which files are new.
    let is_earlier_change = |change: &&String| {
        earlier_changes.len() >= MAX_LISTED_CHANGES
            || earlier_changes
                .iter()
                .any(|earlier_change| parse_path_of_change(earlier_change) == parse_path_of_change(change))
    };
    let new_changes: Vec<String> =
        descriptions.iter().filter(|change| !is_earlier_change(change)).cloned().collect();
    let refused_changes =
        if needs_user || earlier_changes_needed_user { &descriptions } else { &new_changes };
    if refused_changes.is_empty() {
        return Ok(descriptions);
    }
    Err(ProtectError::ChangedOutsideSessions(describe_protected_changes(refused_changes)))
}

/// Returns the paths on the disk that differ from the record: changed, new or removed.
fn paths_changed_on_disk(recorded: &ProtectedFiles, current: &[ProtectedEntry]) -> Vec<String> {
    let recorded_contents: BTreeMap<&str, &ProtectedContent> =
        recorded.entries.iter().map(|entry| (entry.path.as_str(), &entry.content)).collect();
    let current_paths: BTreeSet<&str> = current.iter().map(|entry| entry.path.as_str()).collect();
    let is_changed =
        |entry: &&ProtectedEntry| recorded_contents.get(entry.path.as_str()) != Some(&&entry.content);
    let changed = current.iter().filter(is_changed).map(|entry| entry.path.clone());
    let removed =
        recorded_contents.keys().filter(|path| !current_paths.contains(*path)).map(|path| (*path).to_owned());
    changed.chain(removed).collect()
}

/// Returns the paths in a commit that match neither the recorded HEAD nor the recorded working tree. Both versions are
/// the user's, and a session may commit what the user had not committed.
fn unexpected_paths_in_commit(recorded: &ProtectedCommits, current: &[GitEntry]) -> Vec<String> {
    let ProtectedCommits {
        head_files: recorded_head_files, working_tree_files: recorded_working_files, ..
    } = recorded;
    let expected_objects: BTreeSet<(&str, &str)> = recorded_head_files
        .iter()
        .chain(recorded_working_files)
        .map(|entry| (entry.path.as_str(), entry.object.as_str()))
        .collect();
    let is_unexpected =
        |entry: &&GitEntry| !expected_objects.contains(&(entry.path.as_str(), entry.object.as_str()));
    let (expected_paths, current_paths) = (entry_paths(recorded_working_files), entry_paths(current));
    let is_removed = |entry: &&GitEntry| {
        expected_paths.contains(entry.path.as_str()) && !current_paths.contains(entry.path.as_str())
    };
    let unexpected =
        current.iter().filter(is_unexpected).chain(recorded_head_files.iter().filter(is_removed));
    unexpected.map(|entry| entry.path.clone()).collect()
}

fn entry_paths(entries: &[GitEntry]) -> BTreeSet<&str> {
    entries.iter().map(|entry| entry.path.as_str()).collect()
}

/// Describes how to undo the change of a path.
fn describe_how_to_undo(recorded: &ProtectedFiles, path: &str) -> String {
    let expected_entry = recorded
        .commits
        .iter()
        .flat_map(|commits| &commits.working_tree_files)
        .find(|entry| entry.path == path);
    match expected_entry.map(|entry| (entry, entry.object.strip_prefix("160000 "))) {
        Some((_, Some(commit))) => format!("restore the commit {} of this repository", shorten_id(commit)),
        Some((entry, None)) => format!("restore it from {}", shorten_id(&entry.source)),
        None if recorded.entries.iter().any(|entry| entry.path == path) => {
            "restore it by hand: git has no copy".to_owned()
        }
        None => "remove it".to_owned(),
    }
}

fn shorten_id(id: &str) -> &str {
    id.get(..SHOWN_ID_CHARS).unwrap_or(id)
}

/// Adds newly protected paths to the record, with their current state. Earlier records are kept, also below a new path.
/// If the project had no repository before, the git part of the new record covers the recorded paths, too.
pub fn add_new_paths_keeping_recorded(
    recorded_files: ProtectedFiles,
    new_files: ProtectedFiles,
) -> ProtectedFiles {
    if recorded_files.paths.is_empty() {
        return new_files;
    }
    let ProtectedFiles { paths: recorded_paths, mut entries, commits: recorded_commits, .. } = recorded_files;
    let is_new =
        |path: &str| !recorded_paths.iter().any(|recorded_path| is_same_or_below(path, recorded_path));
    // The verify commands may write below a new path, so none of them is known to be harmless.
    let harmless_verify_commands =
        if new_files.paths.is_empty() { recorded_files.harmless_verify_commands } else { Vec::new() };
    let paths = remove_nested_paths(recorded_paths.iter().cloned().chain(new_files.paths));
    entries.extend(new_files.entries.into_iter().filter(|entry| is_new(&entry.path)));
    entries.sort_by(|left, right| left.path.cmp(&right.path));
    let merged_commits = match (recorded_commits, new_files.commits) {
        (Some(mut merged), Some(new_commits)) => {
            merged.head_files.extend(new_commits.head_files.into_iter().filter(|entry| is_new(&entry.path)));
            merged
                .working_tree_files
                .extend(new_commits.working_tree_files.into_iter().filter(|entry| is_new(&entry.path)));
            Some(merged)
        }
        // A session may have committed other versions of files that were recorded without a repository, so only new
        // paths are added.
        (None, Some(mut new_commits)) => {
            new_commits.head_files.retain(|entry| is_new(&entry.path));
            Some(new_commits)
        }
        (commits, None) => commits,
    };
    ProtectedFiles {
        paths,
        entries,
        commits: merged_commits,
        harmless_verify_commands,
        ..ProtectedFiles::default()
    }
}

/// Returns the paths sorted, without those that are below another one.
pub fn remove_nested_paths(paths: impl IntoIterator<Item = String>) -> Vec<String> {
    let paths: BTreeSet<String> = paths.into_iter().collect();
    let is_nested =
        |path: &&String| paths.iter().any(|other| other != *path && is_same_or_below(path, other));
    paths.iter().filter(|path| !is_nested(path)).cloned().collect()
}

/// Returns true if a path is the folder itself or below it.
pub fn is_same_or_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('/'))
}

fn paths_overlap_ignoring_case(path: &str, other_path: &str) -> bool {
    is_same_or_below_ignoring_case(path, other_path) || is_same_or_below_ignoring_case(other_path, path)
}

/// Returns true if one of two paths is the other or below it.
pub fn paths_overlap(path: &str, other_path: &str) -> bool {
    is_same_or_below(path, other_path) || is_same_or_below(other_path, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, bytes: &str) -> ProtectedEntry {
        let content = ProtectedContent::File { sha256: bytes.into(), is_executable: false };
        ProtectedEntry { path: path.into(), content }
    }

    fn link(path: &str) -> ProtectedEntry {
        ProtectedEntry { path: path.into(), content: ProtectedContent::Link { target: "copy".into() } }
    }

    fn committed(path: &str, object: &str) -> GitEntry {
        GitEntry { path: path.into(), object: object.into(), source: "0123456789abcdef".into() }
    }

    fn recorded(entries: &[ProtectedEntry]) -> ProtectedFiles {
        ProtectedFiles { paths: vec!["tests".into()], entries: entries.to_vec(), ..ProtectedFiles::default() }
    }

    fn present(entries: &[ProtectedEntry]) -> CurrentFiles {
        CurrentFiles { entries: entries.to_vec(), repository_id: Ok(String::new()), commits: Vec::new() }
    }

    fn describe_disk_changes(recorded: &ProtectedFiles, entries: &[ProtectedEntry]) -> Vec<String> {
        list_changes_since_record(recorded, &present(entries)).descriptions
    }

    #[test]
    fn a_path_is_refused_with_the_reason_and_what_to_do() {
        for (text, expected) in [
            ("../x", "leads out of the project"),
            ("/etc/passwd", "leads out of the project"),
            ("a/../../x", "leads out of the project"),
            (".", "is the whole project"),
            ("", "is the whole project"),
            (".git/config", "git changes its own folder"),
            ("vendor/.GIT", "git changes its own folder"),
            ("fix_plan.md", "the run itself writes fix_plan.md"),
            (".claude", "the run itself writes .claude/plimsoll"),
            (".claude/plimsoll/runs", "the run itself writes .claude/plimsoll"),
            ("PROMPT.md", "the run itself writes PROMPT.md"),
            ("prompt.MD", "the run itself writes PROMPT.md"),
            ("Fix_Plan.md", "the run itself writes fix_plan.md"),
            (".CLAUDE", "the run itself writes .claude/plimsoll"),
            (".Claude/Plimsoll/x", "the run itself writes .claude/plimsoll"),
            (".claude/hando\u{fb00}s", "the run itself writes .claude/handoffs"),
        ] {
            let error = parse_protected_path(text, Some("./fix_plan.md")).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert_eq!(parse_protected_path("./tests//unit/", Some("plan.md")).as_deref(), Ok("tests/unit"));
        assert_eq!(
            parse_protected_path(".claude/settings.json", None).as_deref(),
            Ok(".claude/settings.json")
        );
    }

    #[test]
    fn a_path_that_git_spells_differently_is_refused() {
        let entries = |paths: &[&str]| paths.iter().map(|path| committed(path, "1")).collect::<Vec<_>>();
        for (path, head_paths, other_files, expected_spelling) in [
            ("tests", &["tests/a"][..], &[][..], None),
            ("Tests", &["tests/a"], &[], Some("tests")),
            ("Tests", &["tests/a"], &["tests"], None),
            ("Tests", &["tests/a", "Tests/b"], &[], None),
            ("docs/Makefile", &["Docs/ma\u{212a}efile"], &[], Some("Docs/ma\u{212a}efile")),
            ("new", &[], &[], None),
            ("new", &["newer", "x/new"], &[], None),
        ] {
            let result = reject_path_spelled_differently_in_head(path, &entries(head_paths), |spelling| {
                other_files.contains(&spelling)
            });
            let text = result.err().map(|error| error.to_string());
            let expected = expected_spelling
                .map(|spelling| format!("cannot protect {path}: HEAD has it as {spelling};"));
            let is_expected = match (&text, &expected) {
                (Some(text), Some(expected)) => text.starts_with(expected),
                (text, expected) => text == expected,
            };
            assert!(is_expected, "{path} {head_paths:?}: {text:?}");
        }
    }

    #[test]
    fn links_are_refused_at_or_above_a_path_and_allowed_below_it() {
        assert!(matches!(
            reject_linked_missing_or_unreadable_path("a/b", &[link("a")]),
            Err(ProtectError::InvalidPath { .. })
        ));
        assert!(matches!(
            reject_linked_missing_or_unreadable_path("a", &[link("a")]),
            Err(ProtectError::InvalidPath { .. })
        ));
        assert_eq!(reject_linked_missing_or_unreadable_path("a", &[link("a/b"), file("a/c", "1")]), Ok(()));
        assert!(
            reject_linked_missing_or_unreadable_path("a/b", &[file("a", "1")])
                == Err(missing_path_error("a/b"))
        );
    }

    #[test]
    fn changed_new_and_removed_files_are_listed_with_their_undo() {
        let known = recorded(&[file("tests/a", "1"), file("tests/b", "1"), file("tests/c", "1")]);
        let by_hand = |path: &str| format!("{path} (restore it by hand: git has no copy)");
        let removed = |path: &str| format!("{path} (remove it)");
        assert_eq!(describe_disk_changes(&known, &known.entries), [""; 0]);
        let present = [file("tests/a", "2"), link("tests/b"), file("tests/d", "1")];
        let (a, b, c) = (by_hand("tests/a"), by_hand("tests/b"), by_hand("tests/c"));
        assert_eq!(
            describe_disk_changes(&known, &present),
            [a.clone(), b.clone(), c.clone(), removed("tests/d")]
        );
        assert_eq!(describe_disk_changes(&known, &[link("tests")]), [removed("tests"), a, b, c]);
        let long = describe_disk_changes(&known, &[file(&format!("tests/{}", "x".repeat(5_000)), "1")]);
        assert!(long.iter().all(|change| change.len() <= MAX_NAME_CHARS + 50), "{long:?}");
        let many: Vec<ProtectedEntry> =
            (0..9_000).map(|number| file(&format!("tests/{number}"), "1")).collect();
        assert_eq!(describe_disk_changes(&known, &many).len(), MAX_LISTED_CHANGES);
    }

    #[test]
    fn a_commit_may_only_contain_the_versions_of_head_or_the_disk() {
        let git = ProtectedCommits {
            head_files: vec![committed("tests/a", "100644 1"), committed("tests/gone", "100644 1")],
            working_tree_files: vec![committed("tests/a", "100644 2"), committed("tests/mine", "100755 1")],
            ..ProtectedCommits::default()
        };
        let known = ProtectedFiles { commits: Some(git), ..recorded(&[file("tests/a", "2")]) };
        let changes = |entries: &[GitEntry]| {
            let commits = vec![("HEAD".to_owned(), Ok(entries.to_vec()))];
            list_changes_since_record(&known, &CurrentFiles { commits, ..present(&known.entries) })
                .descriptions
        };
        let git = known.commits.as_ref().unwrap();
        for entries in [&git.head_files, &git.working_tree_files, &git.head_files[..1].to_vec()] {
            assert_eq!(changes(entries), [""; 0], "{entries:?}");
        }
        let restore = "tests/a in HEAD (restore it from 0123456789ab, and commit that)";
        assert_eq!(changes(&[committed("tests/a", "100644 3")]), [restore]);
        assert_eq!(changes(&[committed("tests/a", "100755 2")]), [restore], "its mode");
        assert_eq!(changes(&[]), [restore], "removed");
        let both = [committed("tests/a", "100644 1"), committed("tests/new", "100644 1")];
        assert_eq!(changes(&both), ["tests/new in HEAD (remove it, and commit that)"]);
    }

    #[test]
    fn a_head_that_git_cannot_read_and_another_repository_are_changes() {
        let git = ProtectedCommits { repository: "one".into(), ..ProtectedCommits::default() };
        let known = ProtectedFiles { commits: Some(git), ..recorded(&[]) };
        let commits = vec![("refs/heads/night".to_owned(), Err(GitFailure::Unreadable))];
        let present = CurrentFiles { repository_id: Ok("two".into()), commits, ..present(&[]) };
        let changes = list_changes_since_record(&known, &present);
        let texts = &changes.descriptions;
        assert!(texts[0].starts_with(".git (it is not the repository"), "{changes:?}");
        assert!(texts[1].starts_with("refs/heads/night (git cannot read it"), "{changes:?}");
        assert!(changes.needs_user && !changes.git_timed_out, "{changes:?}");
        assert_eq!(
            list_changes_since_record(&recorded(&[]), &present),
            ProtectedChanges::default(),
            "no repository"
        );
    }

    #[test]
    fn a_git_timeout_is_reported_and_nothing_has_to_be_restored() {
        let known = ProtectedFiles { commits: Some(ProtectedCommits::default()), ..recorded(&[]) };
        let silent = || Err(GitFailure::TimedOut);
        let commits = vec![("HEAD".to_owned(), silent()), ("refs/heads/night".to_owned(), silent())];
        for present in [
            CurrentFiles { repository_id: silent().map(|_: Vec<GitEntry>| String::new()), ..present(&[]) },
            CurrentFiles { commits, ..present(&[]) },
        ] {
            let changes = list_changes_since_record(&known, &present);
            assert_eq!(changes.descriptions, ["unknown files (git did not answer in time)"]);
            assert!(changes.git_timed_out && !changes.needs_user);
            assert_eq!(
                changes_to_undo_unless_made_outside_sessions(&[], false, changes),
                Err(ProtectError::GitTimedOut)
            );
        }
    }

    #[test]
    fn a_session_undoes_only_changes_that_sessions_made() {
        let changes = |descriptions: &[&str], needs_user| ProtectedChanges {
            descriptions: descriptions.iter().map(|one| (*one).to_owned()).collect(),
            needs_user,
            git_timed_out: false,
        };
        let known = ["tests/a (restore it from 1)".to_owned(), "b in c (remove it)".to_owned()];
        let same_files = ["tests/a in HEAD (restore it from 1, and commit that)", "b in c (remove it)"];
        let changes_to_undo =
            changes_to_undo_unless_made_outside_sessions(&known, false, changes(&same_files, false));
        assert_eq!(changes_to_undo.as_deref(), Ok(&same_files.map(str::to_owned)[..]));
        let refusal_text = |known: &[String], needed_user, present| {
            changes_to_undo_unless_made_outside_sessions(known, needed_user, present)
                .expect_err("refused")
                .to_string()
        };
        let words = "before a session begins, 1 protected file has changed since the run began: mine (restore it from 1);";
        let text = refusal_text(&known, false, changes(&["mine (restore it from 1)", same_files[0]], false));
        assert!(text.starts_with(words) && text.contains("to keep them as they are now"), "{text}");
        assert!(refusal_text(&known, true, changes(&same_files, false)).contains("tests/a in HEAD"));
        assert!(refusal_text(&known, false, changes(&same_files, true)).contains("tests/a in HEAD"));
        assert_eq!(
            changes_to_undo_unless_made_outside_sessions(&known, true, ProtectedChanges::default()),
            Ok(Vec::new())
        );
    }

    #[test]
    fn a_resume_records_new_paths_and_keeps_what_was_recorded_before() {
        let known = recorded(&[file("tests/a", "1"), file("tests/b", "1")]);
        let known = ProtectedFiles { harmless_verify_commands: vec!["make".into()], ..known };
        assert_eq!(add_new_paths_keeping_recorded(known.clone(), ProtectedFiles::default()), known);
        let new = ProtectedFiles {
            paths: vec!["check.sh".into()],
            ..recorded(&[file("check.sh", "9"), file("tests/a", "weakened")])
        };
        let both = add_new_paths_keeping_recorded(known, new);
        assert!(both.harmless_verify_commands.is_empty(), "the commands may write there");
        assert_eq!(both.entries, [file("check.sh", "9"), file("tests/a", "1"), file("tests/b", "1")]);
        assert_eq!(both.paths, ["check.sh", "tests"]);
    }

    #[test]
    fn a_repository_created_later_may_contain_the_recorded_files() {
        let known = recorded(&[file("tests/a", "1")]);
        let git = ProtectedCommits {
            head_files: vec![committed("tests/a", "100644 weak"), committed("check.sh", "100644 1")],
            working_tree_files: vec![committed("tests/a", "100644 1"), committed("check.sh", "100644 1")],
            ..ProtectedCommits::default()
        };
        let new = ProtectedFiles { paths: vec!["check.sh".into()], commits: Some(git), ..recorded(&[]) };
        let git = add_new_paths_keeping_recorded(known, new).commits.expect("a git part");
        assert_eq!(git.head_files, [committed("check.sh", "100644 1")]);
        assert_eq!(git.working_tree_files.len(), 2);
    }

    #[test]
    fn paths_below_other_paths_are_left_out() {
        let paths = ["tests/unit/a", "tests", "check.sh", "tests", "tests-old"].map(str::to_owned);
        assert_eq!(remove_nested_paths(paths), ["check.sh", "tests", "tests-old"]);
    }
}
