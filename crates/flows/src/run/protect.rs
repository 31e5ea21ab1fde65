//! `--protect`: records the content of protected paths when a run begins, and compares it after each session.
//! The disk is read directly, because a session can hide files from git and replace the repository. HEAD and
//! the run's branch are also compared, because they are what the user gets. The record is stored next to the
//! ledger, where no session writes.

use crate::run::start_error::StartError;
use crate::run::{branch, save_work};
use crate::run_context::RunContext;
use plimsoll_domain::RunState;
use plimsoll_domain::git_names::RepoPath;
use plimsoll_domain::protected::{
    GitFailure, MAX_LISTED_CHANGES, ProtectedChanges, ProtectedCommits, ProtectedEntry, ProtectedFiles,
    describe_protected_changes,
};
use plimsoll_launcher::git::{self, AllowedPrograms};
use plimsoll_policy::gate::SessionEvidence;
use plimsoll_policy::protected::{
    CurrentFiles, ProtectError, add_new_paths_keeping_recorded, changes_to_undo_unless_made_outside_sessions,
    is_same_or_below, list_changes_since_record, missing_path_error, other_repository_error,
    parse_protected_path, reject_linked_missing_or_unreadable_path, reject_path_spelled_differently_in_head,
    remove_nested_paths,
};
use plimsoll_store::{Project, StoreError, config, disk, layout, protected_files, state_file};

/// Checks the paths that are requested for a new run, and those of the user's settings that exist in the
/// project. Returns them with their entries on the disk.
pub(super) fn check_and_read_requested_and_settings_paths(
    project: &Project,
    requested_paths: &[String],
    plan_file: Option<&str>,
) -> Result<ProtectedFiles, StartError> {
    let (settings, _) = config::load_settings(project);
    let to_settings_error = |error: ProtectError| {
        let file = config::user_settings_path().map(|file| file.display().to_string()).unwrap_or_default();
        ProtectError::InSettings { file, error: Box::new(error) }
    };
    let mut settings_paths = parse_paths_into_on_disk_spelling(project, &settings.protect, plan_file)
        .map_err(to_settings_error)?;
    // The settings apply to all projects, so paths that this one lacks are ignored.
    settings_paths.retain(|path| path_exists(project, path));
    let requested_paths = parse_paths_into_on_disk_spelling(project, requested_paths, plan_file)?;
    let paths = remove_nested_paths(settings_paths.iter().chain(&requested_paths).cloned());
    let entries = protected_files::read_protected_entries(project.root(), &paths);
    check_paths_can_be_protected(project, &settings_paths, &entries).map_err(to_settings_error)?;
    check_paths_can_be_protected(project, &requested_paths, &entries)?;
    Ok(ProtectedFiles { paths, entries, ..ProtectedFiles::default() })
}

/// Reads the entries of the paths that a new run protects, on the disk and in commits.
pub(super) fn read_protected_files_with_committed_entries(
    project: &Project,
    requested_paths: &[String],
    plan_file: Option<&str>,
    runs_commit_hooks: bool,
) -> Result<ProtectedFiles, StartError> {
    let files = check_and_read_requested_and_settings_paths(project, requested_paths, plan_file)?;
    Ok(add_committed_and_committable_entries(
        project,
        files,
        None,
        branch::allowed_programs(runs_commit_hooks),
    )?)
}

/// Returns a warning if a parallel run leaves the paths of the user's settings unprotected.
pub fn unprotected_parallel_run_warning(project: &Project) -> Option<&'static str> {
    let (settings, _) = config::load_settings(project);
    (!settings.protect.is_empty()).then_some(
        "a parallel run protects no files: `protect` in your settings has no effect here; a --verify command can compare the files",
    )
}

/// Records further paths for a run that is resumed; returns all paths that are protected from now on.
/// Existing entries are kept, so that repeating the command line cannot accept what a session has changed.
pub(super) fn add_paths_to_record_and_return_all(
    project: &Project,
    run: &RunState,
    added_paths: &[String],
) -> Result<Vec<String>, StartError> {
    if added_paths.is_empty() {
        return Ok(run.options.protected_paths.clone());
    }
    if run.options.workers.is_some() || run.options.item_brief.is_some() {
        return Err(ProtectError::UsedWithWorkers.into());
    }
    let record = match protected_files::read_protected_record(project, &run.run_id) {
        None if !run.options.protected_paths.is_empty() => return Err(ProtectError::MissingRecord.into()),
        loaded_record => loaded_record.unwrap_or_default(),
    };
    let mut paths = remove_nested_paths(parse_paths_into_on_disk_spelling(
        project,
        added_paths,
        run.options.todo_file.as_deref(),
    )?);
    paths.retain(|path| !record.paths.iter().any(|recorded_path| is_same_or_below(path, recorded_path)));
    if paths.is_empty() {
        return Ok(record.paths);
    }
    let entries = protected_files::read_protected_entries(project.root(), &paths);
    check_paths_can_be_protected(project, &paths, &entries)?;
    let mut added_files = ProtectedFiles { paths: paths.clone(), entries, ..ProtectedFiles::default() };
    let is_unchanged =
        || protected_files::read_protected_entries(project.root(), &record.paths) == record.entries;
    let run_branch = record.commits.as_ref().and_then(|commits| commits.branch.as_deref());
    if record.commits.is_some() || is_unchanged() {
        if record.commits.is_none() {
            // The repository was created later: only now can commits contain the recorded files.
            added_files.paths.extend(record.paths.iter().cloned());
        }
        added_files = add_committed_and_committable_entries(
            project,
            added_files,
            run_branch,
            save_work::commit_programs_unless_repository_replaced(project, run),
        )?;
        added_files.paths = paths;
    }
    let record = add_new_paths_keeping_recorded(record, added_files);
    protected_files::write_protected_record(project, &run.run_id, &record)?;
    Ok(record.paths)
}

/// Parses paths, and spells them as their folders list them, as git does for new files.
fn parse_paths_into_on_disk_spelling(
    project: &Project,
    texts: &[String],
    plan_file: Option<&str>,
) -> Result<Vec<String>, ProtectError> {
    let parse_and_spell = |text: &String| {
        let path = parse_protected_path(text, plan_file)?;
        Ok(disk::on_disk_spelling_or_keep(project.root(), &path))
    };
    texts.iter().map(parse_and_spell).collect()
}

fn path_exists(project: &Project, path: &str) -> bool {
    let path = project.root().join(path);
    disk::exists(&path) || disk::is_link(&path)
}

fn check_paths_can_be_protected(
    project: &Project,
    paths: &[String],
    entries: &[ProtectedEntry],
) -> Result<(), ProtectError> {
    for path in paths {
        reject_linked_missing_or_unreadable_path(path, entries)?;
        if !path_exists(project, path) {
            return Err(missing_path_error(path));
        }
        let mut parent_folders = path.match_indices('/').map(|(end, _)| &path[..end]);
        if let Some(repository) =
            parent_folders.find(|folder| path_exists(project, &format!("{folder}/.git")))
        {
            return Err(other_repository_error(path, repository));
        }
    }
    Ok(())
}

/// Adds the entries that HEAD, this branch and a commit of the current files have for the paths. Adds nothing
/// outside a repository, or if nothing is protected.
fn add_committed_and_committable_entries(
    project: &Project,
    files: ProtectedFiles,
    branch: Option<&str>,
    allowed_programs: AllowedPrograms,
) -> Result<ProtectedFiles, ProtectError> {
    let root = project.root();
    if files.paths.is_empty() || layout::find_git_folder(root).is_none() {
        return Ok(files);
    }
    let paths = to_repo_paths(&files.paths);
    let to_protect_error = |failure: GitFailure, unreadable_part: &str| match failure {
        GitFailure::TimedOut => ProtectError::GitTimedOut,
        GitFailure::Unreadable => ProtectError::Git(format!("git cannot read {unreadable_part}")),
    };
    let repository = git::git_folder_identities_with_folder_prefix(root)
        .map_err(|failure| to_protect_error(failure, "the repository"))?;
    let current_branch =
        git::checked_out_branch_full_ref(root).map_err(|failure| to_protect_error(failure, "HEAD"))?;
    let prepare_index = || {
        protected_files::remove_stale_git_indexes_and_return_new_path(project)
            .map_err(|error| ProtectError::Git(error.to_string()))
    };
    let references: Vec<&str> = std::iter::once("HEAD").chain(branch).collect();
    let mut committed_entries = Vec::new();
    for (reference, entries) in
        git::entries_of_references_until_timeout(root, &prepare_index()?, &references, &paths)
    {
        committed_entries.extend(entries.map_err(|failure| to_protect_error(failure, &reference))?);
    }
    for path in &files.paths {
        let is_other_file = |spelling: &str| {
            path_exists(project, spelling) && !disk::is_same_path(&root.join(path), &root.join(spelling))
        };
        reject_path_spelled_differently_in_head(path, &committed_entries, is_other_file)?;
    }
    let committable_entries =
        git::entries_git_would_commit(root, &prepare_index()?, &paths, &committed_entries, allowed_programs)
            .map_err(|error| ProtectError::Git(error.to_string()))?;
    let branch = branch.map(str::to_owned).or(current_branch);
    let commits = Some(ProtectedCommits {
        repository,
        branch,
        head_files: committed_entries,
        working_tree_files: committable_entries,
    });
    Ok(ProtectedFiles { commits, ..files })
}

/// Records the identity of the repository again after the run's first files are written. On an overlay file
/// system the first write into a git folder of a lower layer, as in a fresh container, gives the folder
/// another birth time.
pub(super) fn refresh_repository_identity(project: &Project, run: &RunState) -> Result<(), StartError> {
    if run.options.protected_paths.is_empty() {
        return Ok(());
    }
    let Some(mut record) = protected_files::read_protected_record(project, &run.run_id) else {
        return Ok(());
    };
    if let Some(commits) = &mut record.commits
        && let Ok(repository) = git::git_folder_identities_with_folder_prefix(project.root())
        && commits.repository != repository
    {
        commits.repository = repository;
        protected_files::write_protected_record(project, &run.run_id, &record)?;
    }
    Ok(())
}

fn to_repo_paths(paths: &[String]) -> Vec<RepoPath> {
    paths.iter().filter_map(|path| RepoPath::parse(path).ok()).collect()
}

/// Returns true if it is unknown whether one of the verify commands changes protected files. Returns false
/// while files differ from the record, because they must be restored first.
pub(super) fn should_test_whether_commands_change_protected(project: &Project, run: &RunState) -> bool {
    let has_untested_command = |record: ProtectedFiles| {
        run.options.verify_commands.iter().any(|command| !record.harmless_verify_commands.contains(command))
    };
    !run.options.protected_paths.is_empty()
        && run.outcomes.protected_changes.is_empty()
        && protected_files::read_protected_record(project, &run.run_id).is_some_and(has_untested_command)
}

/// Records that these verify commands did not change the protected files of a run.
pub(super) fn record_harmless_verify_commands(
    context: &RunContext<'_>,
    run: &RunState,
    commands: impl Iterator<Item = String>,
) -> Result<(), StoreError> {
    let RunContext { project, run_id, .. } = *context;
    let Some(mut record) = protected_files::read_protected_record(project, run_id) else { return Ok(()) };
    record.harmless_verify_commands.extend(commands);
    record.harmless_verify_commands.retain(|command| run.options.verify_commands.contains(command));
    record.harmless_verify_commands.sort();
    record.harmless_verify_commands.dedup();
    protected_files::write_protected_record(project, run_id, &record)
}

/// Adds the changes of protected files to the evidence; returns true if there are more than before. Changes
/// of an earlier comparison are kept, because a background process may restore a file while the verify
/// commands run. Returns false if git timed out: no tick counts then, but no change has been detected either.
pub(super) fn add_changes_and_return_if_any_new(
    context: &RunContext<'_>,
    run: &RunState,
    evidence: &mut SessionEvidence,
) -> bool {
    let changes = compare_protected_files_with_record(context.project, run);
    evidence.only_user_can_restore_protected |= changes.needs_user;
    let has_git_answered = !changes.git_timed_out;
    let evidence_changes = &mut evidence.protected_file_changes;
    let count_before = evidence_changes.len();
    for change in changes.descriptions {
        if evidence_changes.len() < MAX_LISTED_CHANGES && !evidence_changes.contains(&change) {
            evidence_changes.push(change);
        }
    }
    has_git_answered && evidence_changes.len() > count_before
}

/// Returns the changes of protected files that the next session must undo. Fails instead of starting a
/// session that could not complete the run, or that would undo what the user has changed since the last
/// session was judged.
pub(super) fn changes_to_undo_or_error_if_made_by_user(
    project: &Project,
    run: &RunState,
) -> Result<Vec<String>, ProtectError> {
    let outcomes = &run.outcomes;
    changes_to_undo_unless_made_outside_sessions(
        &outcomes.protected_changes,
        outcomes.protected_needs_user,
        compare_protected_files_with_record(project, run),
    )
}

/// Returns the changes that the next session must undo, and records them in the state, so that changes which
/// were restored since the last session are removed.
pub(super) fn record_changes_next_session_must_undo(
    context: &RunContext<'_>,
    run: &RunState,
) -> Result<Vec<String>, StartError> {
    let remaining_changes = changes_to_undo_or_error_if_made_by_user(context.project, run)?;
    if remaining_changes != run.outcomes.protected_changes {
        context.update_state_without_sync(|state| {
            state.outcomes.protected_changes.clone_from(&remaining_changes);
        })?;
    }
    Ok(remaining_changes)
}

fn compare_protected_files_with_record(project: &Project, run: &RunState) -> ProtectedChanges {
    if run.options.protected_paths.is_empty() {
        return ProtectedChanges::default();
    }
    // Without a record nothing proves that they are unchanged.
    let Some(record) = protected_files::read_protected_record(project, &run.run_id) else {
        let describe = |path: &String| format!("{path} (its record is gone; begin a new run)");
        let descriptions = run.options.protected_paths.iter().map(describe).collect();
        return ProtectedChanges { descriptions, needs_user: true, git_timed_out: false };
    };
    let root = project.root();
    let entries = protected_files::read_protected_entries(root, &record.paths);
    let (mut repository, mut commits) = (Err(GitFailure::Unreadable), Vec::new());
    if let Some(recorded_commits) = &record.commits {
        repository = git::git_folder_identities_with_folder_prefix(root);
        let references: Vec<&str> =
            std::iter::once("HEAD").chain(recorded_commits.branch.as_deref()).collect();
        // If the first query times out, the others would time out as well.
        if repository != Err(GitFailure::TimedOut) {
            commits = match protected_files::remove_stale_git_indexes_and_return_new_path(project) {
                Ok(index) => git::entries_of_references_until_timeout(
                    root,
                    &index,
                    &references,
                    &to_repo_paths(&record.paths),
                ),
                // Handled like a timeout, because the repository itself is intact.
                Err(_) => vec![("HEAD".to_owned(), Err(GitFailure::TimedOut))],
            };
        }
    }
    list_changes_since_record(&record, &CurrentFiles { entries, repository_id: repository, commits })
}

/// Returns a warning if the newest run ended while protected files differed from its record: the next run
/// records them in their current state.
pub fn warning_if_last_run_left_protected_changes(project: &Project) -> Option<String> {
    let last_run =
        state_file::load_state(project, None).ok().flatten().filter(|run| run.lifecycle.has_ended())?;
    let changes = compare_protected_files_with_record(project, &last_run).descriptions;
    let has_remaining_changes = !last_run.outcomes.protected_changes.is_empty() && !changes.is_empty();
    has_remaining_changes.then(|| {
        format!(
            "the new run accepts the protected files as they are now; the last run ended with these changes: {}",
            describe_protected_changes(&changes)
        )
    })
}
