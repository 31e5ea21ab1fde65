//! `--protect`: records what protected paths hold when a run begins, and compares it after each session. The disk is read itself:
//! a session can hide files from git, and replace the repository. HEAD and the run's branch are compared, too: they are what the user
//! gets. The record lies beside the ledger, where no session writes.

use crate::run::start_error::StartError;
use crate::run::{branch, save_work};
use crate::run_context::RunContext;
use plimsoll_domain::RunState;
use plimsoll_domain::git_names::RepoPath;
use plimsoll_domain::protected::{
    GitFailure, MAX_CHANGES, ProtectedChanges, ProtectedCommits, ProtectedEntry, ProtectedFiles,
    describe_changes,
};
use plimsoll_launcher::git::{self, AllowedPrograms};
use plimsoll_policy::gate::Evidence;
use plimsoll_policy::protected::{
    PresentFiles, ProtectError, changes_for_session, check_entries, in_other_repository, is_below,
    list_changes, missing, parse_path, with_new_paths, without_nested,
};
use plimsoll_store::{Project, StoreError, config, disk, layout, protected, state_file};

/// Checks the paths that the user names for a new run, and those of the user's settings that the project has. Returns what they hold on
/// the disk.
pub(super) fn read_paths(
    project: &Project,
    given: &[String],
    plan: Option<&str>,
) -> Result<ProtectedFiles, StartError> {
    let (settings, _) = config::load(project);
    let in_settings = |error: ProtectError| {
        let file = config::user_file().map(|file| file.display().to_string()).unwrap_or_default();
        ProtectError::InSettings { file, error: Box::new(error) }
    };
    let mut in_settings_file = parse_paths(&settings.protect, plan).map_err(in_settings)?;
    // The settings are for all projects.
    in_settings_file.retain(|path| is_there(project, path));
    let given = parse_paths(given, plan)?;
    let paths = without_nested(in_settings_file.iter().chain(&given).cloned());
    let entries = protected::read_entries(project.root(), &paths);
    check_paths(project, &in_settings_file, &entries).map_err(in_settings)?;
    check_paths(project, &given, &entries)?;
    Ok(ProtectedFiles { paths, entries, ..ProtectedFiles::default() })
}

/// Records what a new run protects.
pub(super) fn record_paths(
    project: &Project,
    given: &[String],
    plan: Option<&str>,
    commit_hooks: bool,
) -> Result<ProtectedFiles, StartError> {
    let files = read_paths(project, given, plan)?;
    Ok(with_commits(project, files, None, branch::allowed_programs(commit_hooks))?)
}

/// Returns a warning if a parallel run leaves the paths of the user's settings unprotected.
pub fn unprotected_words(project: &Project) -> Option<&'static str> {
    let (settings, _) = config::load(project);
    (!settings.protect.is_empty()).then_some(
        "warning: a parallel run protects no files: `protect` in your settings has no effect here; a --verify command can compare the files",
    )
}

/// Records further paths for a run that is resumed; returns all that are protected from now on. What was recorded before stays, so that
/// the same command line cannot accept what a session has changed.
pub(super) fn record_further_paths(
    project: &Project,
    run: &RunState,
    given: &[String],
) -> Result<Vec<String>, StartError> {
    if given.is_empty() {
        return Ok(run.options.protect.clone());
    }
    if run.options.workers.is_some() || run.options.item_brief.is_some() {
        return Err(ProtectError::WithWorkers.into());
    }
    let recorded = match protected::read_record(project, &run.run_id) {
        None if !run.options.protect.is_empty() => return Err(ProtectError::NoRecord.into()),
        recorded => recorded.unwrap_or_default(),
    };
    let mut paths = without_nested(parse_paths(given, run.options.todo_file.as_deref())?);
    paths.retain(|path| !recorded.paths.iter().any(|known| is_below(path, known)));
    if paths.is_empty() {
        return Ok(recorded.paths);
    }
    let entries = protected::read_entries(project.root(), &paths);
    check_paths(project, &paths, &entries)?;
    let mut new = ProtectedFiles { paths: paths.clone(), entries, ..ProtectedFiles::default() };
    let is_as_recorded = || protected::read_entries(project.root(), &recorded.paths) == recorded.entries;
    let branch = recorded.git.as_ref().and_then(|git| git.branch.as_deref());
    if recorded.git.is_some() || is_as_recorded() {
        if recorded.git.is_none() {
            // The repository came later: what commits may have of the recorded files is known only now.
            new.paths.extend(recorded.paths.iter().cloned());
        }
        new = with_commits(project, new, branch, save_work::allowed_programs(project, run))?;
        new.paths = paths;
    }
    let recorded = with_new_paths(recorded, new);
    protected::write_record(project, &run.run_id, &recorded)?;
    Ok(recorded.paths)
}

fn parse_paths(texts: &[String], plan: Option<&str>) -> Result<Vec<String>, ProtectError> {
    texts.iter().map(|text| parse_path(text, plan)).collect()
}

fn is_there(project: &Project, path: &str) -> bool {
    let path = project.root().join(path);
    disk::exists(&path) || disk::is_link(&path)
}

fn check_paths(project: &Project, paths: &[String], entries: &[ProtectedEntry]) -> Result<(), ProtectError> {
    for path in paths {
        check_entries(path, entries)?;
        if !is_there(project, path) {
            return Err(missing(path));
        }
        let mut folders = path.match_indices('/').map(|(end, _)| &path[..end]);
        if let Some(repository) = folders.find(|folder| is_there(project, &format!("{folder}/.git"))) {
            return Err(in_other_repository(path, repository));
        }
    }
    Ok(())
}

/// Adds what commits have of the files, HEAD and this branch, and what a commit of the files would have. Nothing outside a repository, or
/// if nothing is protected.
fn with_commits(
    project: &Project,
    files: ProtectedFiles,
    branch: Option<&str>,
    allowed: AllowedPrograms,
) -> Result<ProtectedFiles, ProtectError> {
    let root = project.root();
    if files.paths.is_empty() || layout::git_folder_of(root).is_none() {
        return Ok(files);
    }
    let paths = repo_paths(&files.paths);
    let refuse = |failure: GitFailure, what: &str| match failure {
        GitFailure::NoAnswer => ProtectError::NoAnswer,
        GitFailure::Unreadable => ProtectError::Git(format!("git cannot read {what}")),
    };
    let repository = git::repository_in_use(root).map_err(|failure| refuse(failure, "the repository"))?;
    let checked_out = git::branch_in_use(root).map_err(|failure| refuse(failure, "HEAD"))?;
    let index = || protected::index_draft(project).map_err(|error| ProtectError::Git(error.to_string()));
    let references: Vec<&str> = std::iter::once("HEAD").chain(branch).collect();
    let mut committed = Vec::new();
    for (reference, entries) in git::entries_of_references(root, &index()?, &references, &paths) {
        committed.extend(entries.map_err(|failure| refuse(failure, &reference))?);
    }
    let would_be = git::entries_if_committed(root, &index()?, &paths, &committed, allowed)
        .map_err(|error| ProtectError::Git(error.to_string()))?;
    let branch = branch.map(str::to_owned).or(checked_out);
    let git = Some(ProtectedCommits { repository, branch, committed, would_be });
    Ok(ProtectedFiles { git, ..files })
}

/// Reads the identity of the repository again once the run's first files are written. On an overlay file system the first write into a
/// git folder of a lower layer, as in a fresh container, gives the folder another birth time.
pub(super) fn renew_repository(project: &Project, run: &RunState) -> Result<(), StartError> {
    if run.options.protect.is_empty() {
        return Ok(());
    }
    let Some(mut recorded) = protected::read_record(project, &run.run_id) else { return Ok(()) };
    if let Some(git) = &mut recorded.git
        && let Ok(repository) = git::repository_in_use(project.root())
        && git.repository != repository
    {
        git.repository = repository;
        protected::write_record(project, &run.run_id, &recorded)?;
    }
    Ok(())
}

fn repo_paths(paths: &[String]) -> Vec<RepoPath> {
    paths.iter().filter_map(|path| RepoPath::parse(path).ok()).collect()
}

/// True if a verify command has not run yet since the protected files were recorded. What a session has changed is to be restored first.
pub(super) fn has_unchecked_verify(project: &Project, run: &RunState) -> bool {
    let is_unchecked = |recorded: ProtectedFiles| {
        run.options.verify.iter().any(|command| !recorded.harmless_verify.contains(command))
    };
    !run.options.protect.is_empty()
        && run.outcomes.changed_protected.is_empty()
        && protected::read_record(project, &run.run_id).is_some_and(is_unchecked)
}

/// Records that these verify commands have left the protected files of a run as they were.
pub(super) fn mark_verify_harmless(
    context: &RunContext<'_>,
    run: &RunState,
    commands: impl Iterator<Item = String>,
) -> Result<(), StoreError> {
    let RunContext { project, run_id, .. } = *context;
    let Some(mut recorded) = protected::read_record(project, run_id) else { return Ok(()) };
    recorded.harmless_verify.extend(commands);
    recorded.harmless_verify.retain(|command| run.options.verify.contains(command));
    recorded.harmless_verify.sort();
    recorded.harmless_verify.dedup();
    protected::write_record(project, run_id, &recorded)
}

/// Adds the changes of protected files to the evidence; returns true if there are more than before. What an earlier comparison found
/// stays: a process in the background may restore a file while the verify commands run. While git does not answer, no tick counts, but
/// no change is known either.
pub(super) fn record_changes(context: &RunContext<'_>, run: &RunState, evidence: &mut Evidence) -> bool {
    let changes = changed_files(context.project, run);
    evidence.protected_needs_user |= changes.needs_user;
    let is_answered = !changes.is_unanswered;
    let known = &mut evidence.changed_protected;
    let before = known.len();
    for change in changes.descriptions {
        if known.len() < MAX_CHANGES && !known.contains(&change) {
            known.push(change);
        }
    }
    is_answered && known.len() > before
}

/// Returns the changes of protected files that the next session is to undo. Refuses to begin a session that could not complete the run, or
/// that would undo what the user has changed since the last session was judged.
pub(super) fn changes_left(project: &Project, run: &RunState) -> Result<Vec<String>, ProtectError> {
    let outcomes = &run.outcomes;
    changes_for_session(
        &outcomes.changed_protected,
        outcomes.protected_needs_user,
        changed_files(project, run),
    )
}

/// Returns what [`changes_left`] returns, and records it in the state: what was restored since the last session is no longer there.
pub(super) fn check_before_session(
    context: &RunContext<'_>,
    run: &RunState,
) -> Result<Vec<String>, StartError> {
    let left = changes_left(context.project, run)?;
    if left != run.outcomes.changed_protected {
        context.update_lazily(|state| {
            state.outcomes.changed_protected.clone_from(&left);
        })?;
    }
    Ok(left)
}

/// Returns how the protected files differ from what was recorded.
fn changed_files(project: &Project, run: &RunState) -> ProtectedChanges {
    if run.options.protect.is_empty() {
        return ProtectedChanges::default();
    }
    // Without a record nothing proves that they are as they were.
    let Some(recorded) = protected::read_record(project, &run.run_id) else {
        let words = |path: &String| format!("{path} (its record is gone; begin a new run)");
        let descriptions = run.options.protect.iter().map(words).collect();
        return ProtectedChanges { descriptions, needs_user: true, is_unanswered: false };
    };
    let root = project.root();
    let entries = protected::read_entries(root, &recorded.paths);
    let (mut repository, mut commits) = (Err(GitFailure::Unreadable), Vec::new());
    if let Some(git) = &recorded.git {
        repository = git::repository_in_use(root);
        let references: Vec<&str> = std::iter::once("HEAD").chain(git.branch.as_deref()).collect();
        // Without an answer to the first question the others would be waited for, too.
        if repository != Err(GitFailure::NoAnswer) {
            commits = match protected::index_draft(project) {
                Ok(index) => {
                    git::entries_of_references(root, &index, &references, &repo_paths(&recorded.paths))
                }
                // Nothing is wrong with the repository.
                Err(_) => vec![("HEAD".to_owned(), Err(GitFailure::NoAnswer))],
            };
        }
    }
    list_changes(&recorded, &PresentFiles { entries, repository, commits })
}

/// Returns a warning if the newest run has ended while protected files were not as it had recorded them: the next run records them as they
/// are now.
pub fn changed_before_words(project: &Project) -> Option<String> {
    let last = state_file::load(project, None).ok().flatten().filter(|run| run.lifecycle.is_over())?;
    let changes = changed_files(project, &last).descriptions;
    let is_known = !last.outcomes.changed_protected.is_empty() && !changes.is_empty();
    is_known.then(|| {
        format!(
            "warning: the new run takes protected files as they are now, and the last run ended so: {}",
            describe_changes(&changes)
        )
    })
}
