//! What may be protected, and what of it has changed since the run began.

use plimsoll_domain::protected::{
    GitEntry, GitFailure, MAX_CHANGES, ProtectedChanges, ProtectedCommits, ProtectedContent, ProtectedEntry,
    ProtectedFiles, changed_path, describe_changes,
};
use plimsoll_domain::text::{clip, one_line};
use std::collections::{BTreeMap, BTreeSet};

/// The most bytes of the name of a file: sessions choose the names.
const MAX_NAME_BYTES: usize = 300;
/// So much of an id is shown.
const SHOWN_ID: usize = 12;
/// What a run writes itself, so that every session would change it.
const WRITTEN_BY_RUN: [&str; 5] =
    [".claude/plimsoll", ".claude/handoffs", ".claude/ralph-state.json", "PROMPT.md", "progress.txt"];

/// Why files cannot be protected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtectError {
    /// A path.
    #[error("cannot protect {path}: {reason}")]
    Path {
        /// The path.
        path: String,
        /// The reason, and what to do.
        reason: String,
    },
    /// The path is in the user's settings.
    #[error("{error}; the path is in `protect` in {file}")]
    InSettings {
        /// The file.
        file: String,
        /// What is wrong with it.
        error: Box<ProtectError>,
    },
    /// Git does not say what commits have or would have.
    #[error("cannot protect files: {0}")]
    Git(String),
    /// Protected files have changed, and no session did it: none could complete the run.
    #[error(
        "before a session begins, {0}; if a verify command writes there, let it write elsewhere or protect single files; restore the files, then plimsoll run --resume; to keep them as they are now, begin a new run (plimsoll stop, then plimsoll run)"
    )]
    ChangedByNoSession(String),
    /// It is not known whether protected files have changed in commits.
    #[error(
        "git does not answer in time, so protected files cannot be compared with what commits have; run this again once `git status` is quick"
    )]
    NoAnswer,
    /// The record is gone.
    #[error(
        "the record of the protected files is missing beside the run's ledger; begin a new run (plimsoll stop, then plimsoll run)"
    )]
    NoRecord,
    /// Workers have worktrees of their own.
    #[error(
        "--protect cannot be used with --workers: each worker has files of its own; add a --verify command that compares the files, or run with one worker"
    )]
    WithWorkers,
}

impl ProtectError {
    /// Creates the error for a path.
    pub fn of_path(path: &str, reason: impl Into<String>) -> ProtectError {
        ProtectError::Path { path: show_path(path), reason: reason.into() }
    }
}

fn show_path(path: &str) -> String {
    if path.is_empty() { "\"\"".to_owned() } else { clip(&one_line(path), MAX_NAME_BYTES) }
}

/// Parses a path that the user wants to protect into its parts, joined by slashes. `plan` is the plan file of the run.
pub fn parse_path(text: &str, plan: Option<&str>) -> Result<String, ProtectError> {
    let refuse = |reason: &str| Err(ProtectError::of_path(text, reason));
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if text.starts_with('/') || parts.contains(&"..") || text.contains('\0') {
        return refuse("it leads out of the project; name a file or folder in it, relative to the project");
    }
    if parts.is_empty() {
        return refuse("it is the whole project, in which sessions work; name files or folders in it");
    }
    if parts.iter().any(|part| part.eq_ignore_ascii_case(".git")) {
        return refuse("git changes its own folder with each commit; name files or folders of the project");
    }
    let path = parts.join("/");
    let plan = plan.map(|plan| plan.trim_start_matches("./"));
    match WRITTEN_BY_RUN.iter().copied().chain(plan).find(|written| is_related(&path, written)) {
        Some(written) => {
            let written = one_line(written);
            refuse(&format!("the run itself writes {written}; name the files or folders beside it"))
        }
        None => Ok(path),
    }
}

/// Checks that what was read at and below a path can be protected.
pub fn check_entries(path: &str, entries: &[ProtectedEntry]) -> Result<(), ProtectError> {
    for entry in entries.iter().filter(|entry| is_related(&entry.path, path)) {
        let is_on_the_way = is_below(path, &entry.path);
        match &entry.content {
            ProtectedContent::Link { target } if is_on_the_way => {
                let (link, target) = (one_line(&entry.path), one_line(target));
                let reason = format!(
                    "{link} is a symbolic link to {target}; name what it leads to, if that is in the project"
                );
                return Err(ProtectError::of_path(path, reason));
            }
            ProtectedContent::Unreadable { reason } => {
                let reason = format!("{reason}; name fewer files, or others");
                return Err(ProtectError::of_path(&entry.path, reason));
            }
            // A file where a folder was named.
            _ if is_on_the_way && path != entry.path => return Err(missing(path)),
            ProtectedContent::Link { .. } | ProtectedContent::File { .. } => {}
        }
    }
    Ok(())
}

/// The error for a path at which nothing is.
pub fn missing(path: &str) -> ProtectError {
    ProtectError::of_path(path, "there is no such file or folder in the project")
}

/// The error for a path in a repository below the project's own.
pub fn in_other_repository(path: &str, repository: &str) -> ProtectError {
    let repository = one_line(repository);
    let reason = format!(
        "it is in another repository, whose commits are not compared; name {repository}, or run there"
    );
    ProtectError::of_path(path, reason)
}

/// What is at the protected paths now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentFiles {
    /// The files and links on the disk.
    pub entries: Vec<ProtectedEntry>,
    /// The identity of the git folder.
    pub repository: Result<String, GitFailure>,
    /// What HEAD and the branch have, by their names.
    pub commits: Vec<(String, Result<Vec<GitEntry>, GitFailure>)>,
}

/// Returns how the protected files differ from the record.
pub fn list_changes(recorded: &ProtectedFiles, present: &PresentFiles) -> ProtectedChanges {
    let mut changes = BTreeMap::new();
    for path in changed_on_disk(recorded, &present.entries) {
        let undo = describe_undo(recorded, &path);
        changes.entry(path.clone()).or_insert_with(|| format!("{} ({undo})", show_path(&path)));
    }
    let mut others = Vec::new();
    let (mut needs_user, mut is_unanswered) = (false, false);
    if let Some(git) = &recorded.git {
        match &present.repository {
            Ok(repository) if *repository == git.repository => {}
            Err(GitFailure::NoAnswer) => is_unanswered = true,
            Ok(_) | Err(GitFailure::Unreadable) => {
                needs_user = true;
                others.push(
                    ".git (it is not the repository in which the run began; restore that one)".to_owned(),
                );
            }
        }
        for (name, entries) in &present.commits {
            let entries = match entries {
                Ok(entries) => entries,
                Err(GitFailure::Unreadable) => {
                    others.push(format!("{} (git cannot read it; restore it)", show_path(name)));
                    continue;
                }
                Err(GitFailure::NoAnswer) => {
                    is_unanswered = true;
                    continue;
                }
            };
            for path in unexpected_in_commit(git, entries) {
                let undo = describe_undo(recorded, &path);
                let words =
                    || format!("{} in {} ({undo}, and commit that)", show_path(&path), show_path(name));
                changes.entry(path.clone()).or_insert_with(words);
            }
        }
    }
    if is_unanswered {
        others.push("unknown files (git did not answer in time)".to_owned());
    }
    let descriptions = others.into_iter().chain(changes.into_values()).take(MAX_CHANGES).collect();
    ProtectedChanges { descriptions, needs_user, is_unanswered }
}

/// Returns the changes of protected files that the sessions of a run are to undo. Refuses to begin a session if other files have
/// changed, which the next session would undo although the user may have wanted it, or if no session can undo a change.
pub fn changes_for_session(
    known: &[String],
    needed_user: bool,
    present: ProtectedChanges,
) -> Result<Vec<String>, ProtectError> {
    let ProtectedChanges { descriptions, needs_user, is_unanswered } = present;
    if is_unanswered {
        return Err(ProtectError::NoAnswer);
    }
    // A list that was cut off says nothing about other files.
    let is_known = |change: &&String| {
        known.len() >= MAX_CHANGES || known.iter().any(|one| changed_path(one) == changed_path(change))
    };
    let unknown: Vec<String> = descriptions.iter().filter(|change| !is_known(change)).cloned().collect();
    let refused = if needs_user || needed_user { &descriptions } else { &unknown };
    if refused.is_empty() {
        return Ok(descriptions);
    }
    Err(ProtectError::ChangedByNoSession(describe_changes(refused)))
}

/// Returns the paths that are on the disk not as they were recorded: changed, new or removed.
fn changed_on_disk(recorded: &ProtectedFiles, present: &[ProtectedEntry]) -> Vec<String> {
    let known: BTreeMap<&str, &ProtectedContent> =
        recorded.entries.iter().map(|entry| (entry.path.as_str(), &entry.content)).collect();
    let found: BTreeSet<&str> = present.iter().map(|entry| entry.path.as_str()).collect();
    let is_changed = |entry: &&ProtectedEntry| known.get(entry.path.as_str()) != Some(&&entry.content);
    let changed = present.iter().filter(is_changed).map(|entry| entry.path.clone());
    let removed = known.keys().filter(|path| !found.contains(*path)).map(|path| (*path).to_owned());
    changed.chain(removed).collect()
}

/// Returns the paths that a commit has otherwise than HEAD and the disk had when they were recorded. Each of these two is as the user
/// wanted it, and a session may commit what the user had not.
fn unexpected_in_commit(recorded: &ProtectedCommits, present: &[GitEntry]) -> Vec<String> {
    let ProtectedCommits { committed, would_be, .. } = recorded;
    let known: BTreeSet<(&str, &str)> =
        committed.iter().chain(would_be).map(|entry| (entry.path.as_str(), entry.object.as_str())).collect();
    let is_unexpected = |entry: &&GitEntry| !known.contains(&(entry.path.as_str(), entry.object.as_str()));
    let (kept, found) = (paths_of(would_be), paths_of(present));
    let is_removed =
        |entry: &&GitEntry| kept.contains(entry.path.as_str()) && !found.contains(entry.path.as_str());
    let unexpected = present.iter().filter(is_unexpected).chain(committed.iter().filter(is_removed));
    unexpected.map(|entry| entry.path.clone()).collect()
}

fn paths_of(entries: &[GitEntry]) -> BTreeSet<&str> {
    entries.iter().map(|entry| entry.path.as_str()).collect()
}

/// Returns how the change of a path is undone.
fn describe_undo(recorded: &ProtectedFiles, path: &str) -> String {
    let would_be = recorded.git.iter().flat_map(|git| &git.would_be).find(|entry| entry.path == path);
    match would_be.map(|entry| (entry, entry.object.strip_prefix("160000 "))) {
        Some((_, Some(commit))) => format!("restore the commit {} of this repository", clip_id(commit)),
        Some((entry, None)) => format!("restore it from {}", clip_id(&entry.source)),
        None if recorded.entries.iter().any(|entry| entry.path == path) => {
            "restore it by hand: git has no copy".to_owned()
        }
        None => "remove it".to_owned(),
    }
}

fn clip_id(id: &str) -> &str {
    id.get(..SHOWN_ID).unwrap_or(id)
}

/// Adds paths to what is recorded, with what is there now. What was recorded before stays as it was, also below a new path. If the
/// project was in no repository before, `new.git` is about the recorded paths, too.
pub fn with_new_paths(recorded: ProtectedFiles, new: ProtectedFiles) -> ProtectedFiles {
    if recorded.paths.is_empty() {
        return new;
    }
    let ProtectedFiles { paths: known, mut entries, git, .. } = recorded;
    let is_new = |path: &str| !known.iter().any(|known| is_below(path, known));
    // The verify commands may write below a new path.
    let harmless_verify = if new.paths.is_empty() { recorded.harmless_verify } else { Vec::new() };
    let paths = without_nested(known.iter().cloned().chain(new.paths));
    entries.extend(new.entries.into_iter().filter(|entry| is_new(&entry.path)));
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    let git = match (git, new.git) {
        (Some(mut git), Some(new)) => {
            git.committed.extend(new.committed.into_iter().filter(|entry| is_new(&entry.path)));
            git.would_be.extend(new.would_be.into_iter().filter(|entry| is_new(&entry.path)));
            Some(git)
        }
        // A session may have committed other files than those that were recorded without a repository.
        (None, Some(mut new)) => {
            new.committed.retain(|entry| is_new(&entry.path));
            Some(new)
        }
        (git, None) => git,
    };
    ProtectedFiles { paths, entries, git, harmless_verify, ..ProtectedFiles::default() }
}

/// Returns these paths, sorted, without those that are below another one.
pub fn without_nested(paths: impl IntoIterator<Item = String>) -> Vec<String> {
    let paths: BTreeSet<String> = paths.into_iter().collect();
    let is_nested = |path: &&String| paths.iter().any(|other| other != *path && is_below(path, other));
    paths.iter().filter(|path| !is_nested(path)).cloned().collect()
}

/// True if a path is another one, or below it.
pub fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// True if one of two paths is the other, or below it.
pub fn is_related(one: &str, other: &str) -> bool {
    is_below(one, other) || is_below(other, one)
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

    fn present(entries: &[ProtectedEntry]) -> PresentFiles {
        PresentFiles { entries: entries.to_vec(), repository: Ok(String::new()), commits: Vec::new() }
    }

    fn changes_on_disk(recorded: &ProtectedFiles, entries: &[ProtectedEntry]) -> Vec<String> {
        list_changes(recorded, &present(entries)).descriptions
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
        ] {
            let error = parse_path(text, Some("./fix_plan.md")).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert_eq!(parse_path("./tests//unit/", Some("plan.md")).as_deref(), Ok("tests/unit"));
        assert_eq!(parse_path(".claude/settings.json", None).as_deref(), Ok(".claude/settings.json"));
    }

    #[test]
    fn a_link_at_a_path_or_on_the_way_to_it_is_refused_and_one_below_it_is_not() {
        assert!(matches!(check_entries("a/b", &[link("a")]), Err(ProtectError::Path { .. })));
        assert!(matches!(check_entries("a", &[link("a")]), Err(ProtectError::Path { .. })));
        assert_eq!(check_entries("a", &[link("a/b"), file("a/c", "1")]), Ok(()));
        assert!(check_entries("a/b", &[file("a", "1")]) == Err(missing("a/b")));
    }

    #[test]
    fn changed_new_and_removed_files_are_named_with_the_way_to_undo_that() {
        let known = recorded(&[file("tests/a", "1"), file("tests/b", "1"), file("tests/c", "1")]);
        let by_hand = |path: &str| format!("{path} (restore it by hand: git has no copy)");
        let removed = |path: &str| format!("{path} (remove it)");
        assert_eq!(changes_on_disk(&known, &known.entries), [""; 0]);
        let present = [file("tests/a", "2"), link("tests/b"), file("tests/d", "1")];
        let (a, b, c) = (by_hand("tests/a"), by_hand("tests/b"), by_hand("tests/c"));
        assert_eq!(changes_on_disk(&known, &present), [a.clone(), b.clone(), c.clone(), removed("tests/d")]);
        assert_eq!(changes_on_disk(&known, &[link("tests")]), [removed("tests"), a, b, c]);
        let long = changes_on_disk(&known, &[file(&format!("tests/{}", "x".repeat(5_000)), "1")]);
        assert!(long.iter().all(|change| change.len() <= MAX_NAME_BYTES + 50), "{long:?}");
        let many: Vec<ProtectedEntry> =
            (0..9_000).map(|number| file(&format!("tests/{number}"), "1")).collect();
        assert_eq!(changes_on_disk(&known, &many).len(), MAX_CHANGES);
    }

    #[test]
    fn a_commit_may_have_what_head_or_the_disk_had_and_nothing_else() {
        let git = ProtectedCommits {
            committed: vec![committed("tests/a", "100644 1"), committed("tests/gone", "100644 1")],
            would_be: vec![committed("tests/a", "100644 2"), committed("tests/mine", "100755 1")],
            ..ProtectedCommits::default()
        };
        let known = ProtectedFiles { git: Some(git), ..recorded(&[file("tests/a", "2")]) };
        let changes = |entries: &[GitEntry]| {
            let commits = vec![("HEAD".to_owned(), Ok(entries.to_vec()))];
            list_changes(&known, &PresentFiles { commits, ..present(&known.entries) }).descriptions
        };
        let git = known.git.as_ref().unwrap();
        for entries in [&git.committed, &git.would_be, &git.committed[..1].to_vec()] {
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
        let known = ProtectedFiles { git: Some(git), ..recorded(&[]) };
        let commits = vec![("refs/heads/night".to_owned(), Err(GitFailure::Unreadable))];
        let present = PresentFiles { repository: Ok("two".into()), commits, ..present(&[]) };
        let changes = list_changes(&known, &present);
        let texts = &changes.descriptions;
        assert!(texts[0].starts_with(".git (it is not the repository"), "{changes:?}");
        assert!(texts[1].starts_with("refs/heads/night (git cannot read it"), "{changes:?}");
        assert!(changes.needs_user && !changes.is_unanswered, "{changes:?}");
        assert_eq!(list_changes(&recorded(&[]), &present), ProtectedChanges::default(), "no repository");
    }

    #[test]
    fn a_git_that_does_not_answer_is_named_as_the_cause_and_nothing_is_to_be_restored() {
        let known = ProtectedFiles { git: Some(ProtectedCommits::default()), ..recorded(&[]) };
        let silent = || Err(GitFailure::NoAnswer);
        let commits = vec![("HEAD".to_owned(), silent()), ("refs/heads/night".to_owned(), silent())];
        for present in [
            PresentFiles { repository: silent().map(|_: Vec<GitEntry>| String::new()), ..present(&[]) },
            PresentFiles { commits, ..present(&[]) },
        ] {
            let changes = list_changes(&known, &present);
            assert_eq!(changes.descriptions, ["unknown files (git did not answer in time)"]);
            assert!(changes.is_unanswered && !changes.needs_user);
            assert_eq!(changes_for_session(&[], false, changes), Err(ProtectError::NoAnswer));
        }
    }

    #[test]
    fn a_session_is_only_told_to_undo_what_a_session_has_changed() {
        let changes = |descriptions: &[&str], needs_user| ProtectedChanges {
            descriptions: descriptions.iter().map(|one| (*one).to_owned()).collect(),
            needs_user,
            is_unanswered: false,
        };
        let known = ["tests/a (restore it from 1)".to_owned(), "b in c (remove it)".to_owned()];
        let same_files = ["tests/a in HEAD (restore it from 1, and commit that)", "b in c (remove it)"];
        let left = changes_for_session(&known, false, changes(&same_files, false));
        assert_eq!(left.as_deref(), Ok(&same_files.map(str::to_owned)[..]));
        let refused = |known: &[String], needed_user, present| {
            changes_for_session(known, needed_user, present).expect_err("refused").to_string()
        };
        let words = "before a session begins, 1 protected file has changed since the run began: mine (restore it from 1);";
        let text = refused(&known, false, changes(&["mine (restore it from 1)", same_files[0]], false));
        assert!(text.starts_with(words) && text.contains("to keep them as they are now"), "{text}");
        assert!(refused(&known, true, changes(&same_files, false)).contains("tests/a in HEAD"));
        assert!(refused(&known, false, changes(&same_files, true)).contains("tests/a in HEAD"));
        assert_eq!(changes_for_session(&known, true, ProtectedChanges::default()), Ok(Vec::new()));
    }

    #[test]
    fn a_resume_records_new_paths_and_keeps_what_was_recorded_before() {
        let known = recorded(&[file("tests/a", "1"), file("tests/b", "1")]);
        let known = ProtectedFiles { harmless_verify: vec!["make".into()], ..known };
        assert_eq!(with_new_paths(known.clone(), ProtectedFiles::default()), known);
        let new = ProtectedFiles {
            paths: vec!["check.sh".into()],
            ..recorded(&[file("check.sh", "9"), file("tests/a", "weakened")])
        };
        let both = with_new_paths(known, new);
        assert!(both.harmless_verify.is_empty(), "the commands may write there");
        assert_eq!(both.entries, [file("check.sh", "9"), file("tests/a", "1"), file("tests/b", "1")]);
        assert_eq!(both.paths, ["check.sh", "tests"]);
    }

    #[test]
    fn a_repository_that_came_after_the_record_may_have_what_the_disk_had() {
        let known = recorded(&[file("tests/a", "1")]);
        let git = ProtectedCommits {
            committed: vec![committed("tests/a", "100644 weak"), committed("check.sh", "100644 1")],
            would_be: vec![committed("tests/a", "100644 1"), committed("check.sh", "100644 1")],
            ..ProtectedCommits::default()
        };
        let new = ProtectedFiles { paths: vec!["check.sh".into()], git: Some(git), ..recorded(&[]) };
        let git = with_new_paths(known, new).git.expect("a git part");
        assert_eq!(git.committed, [committed("check.sh", "100644 1")]);
        assert_eq!(git.would_be.len(), 2);
    }

    #[test]
    fn paths_below_other_paths_are_left_out() {
        let paths = ["tests/unit/a", "tests", "check.sh", "tests", "tests-old"].map(str::to_owned);
        assert_eq!(without_nested(paths), ["check.sh", "tests", "tests-old"]);
    }
}
