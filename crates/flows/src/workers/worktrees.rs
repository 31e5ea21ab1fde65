//! The worktrees of a parallel run, one for each item, and the repository in which results are merged. They
//! are in the user's state folder, outside every working tree.

use crate::run::branch::allowed_programs;
use crate::run::review::EXPORT_FOLDER_PREFIX;
use crate::run::sandbox::{CommandScope, run_user_command_sandboxed_if_enabled};
use crate::workers::project_checkout::{ITEM_PLAN_FILE, ProjectCheckout};
use plimsoll_domain::RunState;
use plimsoll_domain::TodoList;
use plimsoll_domain::git_names::{BranchName, CommitId};
use plimsoll_domain::item_brief::ReturnedWork;
use plimsoll_domain::prompt::RETURNED_WORK_FILE;
use plimsoll_domain::todo::PlanItem;
use plimsoll_launcher::git::AllowedPrograms;
use plimsoll_launcher::merge_repository::MergeRepository;
use plimsoll_launcher::plimsoll_repository::PlimsollRepository;
use plimsoll_launcher::remote_repository::RemoteError;
use plimsoll_launcher::worktree::{PlanFiles, WorktreeError};
use plimsoll_launcher::{git, worktree};
use plimsoll_store::{Durability, Project, StoreError, disk, layout, ledger};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The environment variable with the number of the worker, for example for a server that needs its own port.
pub(super) const WORKER_VARIABLE: &str = "PLIMSOLL_WORKER";
/// The timeout of the setup command. It is long, because dependencies may have to be fetched and built.
const SETUP_TIMEOUT: Duration = Duration::from_secs(1_800);
/// The file with patterns of ignored files that a worktree also needs. The client uses the same file.
const INCLUDE_FILE: &str = ".worktreeinclude";
/// Settings that git does not track, and the learned context windows.
const ALWAYS_COPIED_FILES: [&str; 4] =
    [".claude/settings.local.json", ".mcp.json", ".claude/plimsoll.json", ".claude/plimsoll/windows.json"];

#[derive(Debug, thiserror::Error)]
pub(super) enum WorktreeSetupError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] WorktreeError),
    #[error("its folder now belongs to another repository: check it and remove it (git worktree remove)")]
    OtherRepository,
    #[error("--setup failed: {0}")]
    SetupCommandFailed(String),
    #[error("the branch of the run no longer exists")]
    TargetBranchGone,
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// The worktrees of a run, and what is needed to prepare them.
#[derive(Debug, Clone)]
pub(super) struct Worktrees {
    pub(super) checkout: ProjectCheckout,
    /// The repository in which results are merged and verified.
    pub(super) merge_repository: MergeRepository,
    worktrees_folder: PathBuf,
    main_project: Project,
    /// Plan files; what sessions change in them is not merged.
    pub(super) plan_files: PlanFiles,
    setup_command: Option<SetupCommand>,
    /// The programs, such as filters, that may run when files are checked out.
    allowed_programs: AllowedPrograms,
    /// True for the merge repository of a fleet, which the next run uses again.
    keeps_merge_repository: bool,
}

/// The command that prepares a worktree, and the scope in which it runs.
#[derive(Debug, Clone)]
pub(super) struct SetupCommand {
    pub(super) command: String,
    pub(super) scope: CommandScope,
}

/// The description of an item's worktree.
#[derive(Debug, Clone)]
pub(super) struct WorktreeSpec {
    pub(super) item_index: usize,
    pub(super) worker_number: usize,
    pub(super) branch: BranchName,
    /// The commit at which the work begins; `None` for the end of the target.
    pub(super) start_commit: Option<CommitId>,
    /// The item with its notes, questions and answers.
    pub(super) plan_item: PlanItem,
    /// True if the item's run continues with the plan that is in the worktree.
    pub(super) keeps_existing_plan: bool,
    /// Why earlier work was sent back, if it was.
    pub(super) returned_work: Option<ReturnedWork>,
}

/// Returns the folder of a run's worktrees, or `None` without a home folder.
pub(super) fn worktrees_folder(main_project: &Project, run_id: &str) -> Option<PathBuf> {
    Some(ledger::records_folder(main_project)?.parent()?.join("trees").join(run_id))
}

/// Returns the git folder of the separate repository in which the results of a run are merged. A fleet uses
/// another one. Returns `None` without a home folder.
pub(super) fn merge_git_folder(main_project: &Project, run_id: &str) -> Option<PathBuf> {
    Some(worktrees_folder(main_project, run_id)?.join("merge.git"))
}

impl Worktrees {
    /// Opens the merge repository of a run and returns the run's worktrees. No worktree is created.
    pub(super) fn new_and_open_merge_repository(
        main_project: &Project,
        run_state: &RunState,
        checkout: ProjectCheckout,
        plan_files: PlanFiles,
        setup_command: Option<SetupCommand>,
        plimsoll_repository: PlimsollRepository,
        keeps_merge_repository: bool,
    ) -> Result<Worktrees, WorktreeSetupError> {
        let no_home_error = || StoreError::NoHome { project: main_project.root().to_owned() };
        let worktrees_folder = worktrees_folder(main_project, &run_state.run_id).ok_or_else(no_home_error)?;
        let allowed_programs = allowed_programs(run_state.options.runs_commit_hooks);
        let merge_repository =
            MergeRepository::open(plimsoll_repository, &worktrees_folder.join("merge"), allowed_programs)?;
        Ok(Worktrees {
            checkout,
            merge_repository,
            worktrees_folder,
            main_project: main_project.clone(),
            plan_files,
            setup_command,
            allowed_programs,
            keeps_merge_repository,
        })
    }

    /// Returns the path of an item's worktree.
    pub(super) fn item_worktree(&self, item: usize) -> PathBuf {
        self.worktrees_folder.join((item + 1).to_string())
    }

    /// Returns the path of the worktree in which results are merged.
    pub(super) fn merge_worktree(&self) -> PathBuf {
        self.merge_repository.work_tree().to_owned()
    }

    /// Returns the project in a worktree.
    pub(super) fn project_in(&self, worktree: &Path) -> Project {
        // Joining an empty path would append a slash, and comparisons of path prefixes would fail.
        let is_root = self.checkout.project_path.as_os_str().is_empty();
        Project::with_local_files(&if is_root {
            worktree.to_owned()
        } else {
            worktree.join(&self.checkout.project_path)
        })
    }

    /// Returns true if a folder is still the linked worktree that was created there. An agent can change the
    /// file that refers git to its repository. The hooks and settings of another repository are not the
    /// user's, and our commands must not run in the user's working tree or in another item's worktree.
    pub(super) fn is_linked_worktree_of_project_repository(&self, worktree: &Path) -> bool {
        let (Some((worktree_root, git_folder)), Some(main_git_folder)) =
            (layout::find_repository(worktree), layout::find_git_folder(&self.checkout.repository_root))
        else {
            return false;
        };
        let linked_git_path = disk::read_text(&git_folder.join("gitdir")).ok().flatten().unwrap_or_default();
        let repository_identity = layout::repository_identity(worktree);
        worktree_root == worktree
            && git_folder != main_git_folder
            && !repository_identity.is_empty()
            && repository_identity == layout::repository_identity(&self.checkout.repository_root)
            && disk::canonicalize_or_keep(Path::new(linked_git_path.trim()))
                == disk::canonicalize_or_keep(&worktree.join(".git"))
    }

    /// Prepares the worktree of an item: its branch, files that git does not track, the item's plan and the
    /// setup command. If it was interrupted by a kill, it continues with what is missing.
    pub(super) fn prepare_item_worktree(
        &self,
        worktree_spec: &WorktreeSpec,
        should_abort: &dyn Fn() -> bool,
    ) -> Result<(), WorktreeSetupError> {
        let worktree = self.item_worktree(worktree_spec.item_index);
        let start_commit = worktree_spec.start_commit.as_ref().ok_or(WorktreeSetupError::TargetBranchGone)?;
        let worktree_exists = git::head_commit(&worktree).is_some();
        if worktree_exists && !self.is_linked_worktree_of_project_repository(&worktree) {
            return Err(WorktreeSetupError::OtherRepository);
        }
        if worktree_exists {
            worktree::wait_for_git_and_remove_locks(&worktree);
            worktree::create_or_switch_to_branch_unless_moved(
                &worktree,
                &worktree_spec.branch,
                start_commit,
                &self.plan_files,
                self.allowed_programs,
            )?;
        } else {
            self.remove_incomplete_and_create_parent(&worktree)?;
            worktree::create_worktree_on_new_or_unmoved_branch(
                &self.checkout.repository_root,
                &worktree,
                &worktree_spec.branch,
                start_commit,
                self.allowed_programs,
            )?;
        }
        let project = self.project_in(&worktree);
        self.copy_missing_settings_and_included_files(&project)?;
        self.write_item_plan_with_notes_unless_kept(worktree_spec)?;
        let returned_work_path = project.root().join(RETURNED_WORK_FILE);
        match &worktree_spec.returned_work {
            Some(work) => {
                disk::replace(
                    &returned_work_path,
                    work.render_return_reason_and_diffs().as_bytes(),
                    Durability::Lazy,
                )?;
            }
            None => disk::remove_if_exists(&returned_work_path)?,
        }
        if !worktree_exists {
            self.run_setup_command_if_configured(&project, worktree_spec.worker_number, should_abort)?;
        }
        Ok(())
    }

    /// Writes the plan of an item's run. An existing plan is kept if the run continues with it; otherwise
    /// only its notes are kept.
    pub(super) fn write_item_plan_with_notes_unless_kept(
        &self,
        worktree_spec: &WorktreeSpec,
    ) -> Result<(), StoreError> {
        let project = self.project_in(&self.item_worktree(worktree_spec.item_index));
        let existing_plan = disk::read_text(&project.root().join(ITEM_PLAN_FILE))?;
        if existing_plan.is_some() && worktree_spec.keeps_existing_plan {
            return Ok(());
        }
        let existing_items = TodoList::parse(&existing_plan.unwrap_or_default()).items;
        let mut plan_item = worktree_spec.plan_item.clone();
        let existing_notes = existing_items.into_iter().flat_map(|item| item.notes);
        let missing_notes = existing_notes.filter(|note| !plan_item.notes.contains(note)).collect::<Vec<_>>();
        plan_item.notes.splice(0..0, missing_notes);
        let plan = TodoList::from_items(vec![plan_item]).render_markdown();
        disk::replace(&project.root().join(ITEM_PLAN_FILE), plan.as_bytes(), Durability::Durable)
    }

    /// Prepares the worktree in which results are merged, if it is not ready yet.
    pub(super) fn prepare_merge_worktree_unless_ready(
        &self,
        commit: &CommitId,
        should_abort: &dyn Fn() -> bool,
    ) -> Result<(), WorktreeSetupError> {
        if self.merge_repository.is_ready() {
            return Ok(());
        }
        self.merge_repository.check_out_commit(commit)?;
        let project = self.project_in(self.merge_repository.work_tree());
        self.copy_missing_settings_and_included_files(&project)?;
        self.run_setup_command_if_configured(&project, 0, should_abort)?;
        Ok(self.merge_repository.mark_ready()?)
    }

    /// Removes the worktree in which results were merged, its repository if no other run uses it, and the
    /// folders that reviews exported commits to and left behind.
    pub(super) fn remove_merge_worktree_and_review_exports(&self) -> Result<(), StoreError> {
        self.merge_repository.remove(!self.keeps_merge_repository)?;
        // Remove the export folders that killed reviews left behind.
        for name in disk::list_names(&self.worktrees_folder)
            .into_iter()
            .filter(|name| name.starts_with(EXPORT_FOLDER_PREFIX))
        {
            disk::remove_folder_and_contents(&self.worktrees_folder.join(name))?;
        }
        disk::remove_empty_folder(&self.worktrees_folder);
        Ok(())
    }

    /// Removes a worktree that a kill has left incomplete, and creates its parent folder.
    fn remove_incomplete_and_create_parent(&self, worktree: &Path) -> Result<(), WorktreeSetupError> {
        if let Some(parent) = worktree.parent() {
            disk::create_folder(parent)?;
        }
        match worktree::force_remove_worktree(&self.checkout.repository_root, worktree) {
            Err(error) if disk::exists(worktree) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Removes a worktree. Its records must have been copied before.
    pub(super) fn remove_worktree(&self, worktree: &Path) -> Result<(), WorktreeError> {
        worktree::force_remove_worktree(&self.checkout.repository_root, worktree)?;
        disk::remove_empty_folder(&self.worktrees_folder);
        Ok(())
    }

    /// Copies local settings, and the ignored files that match `.worktreeinclude`, unless the worktree has
    /// them.
    fn copy_missing_settings_and_included_files(&self, project: &Project) -> Result<(), StoreError> {
        let include_file = self.main_project.root().join(INCLUDE_FILE);
        let included_files = if disk::is_file(&include_file) {
            worktree::ignored_files_matching_patterns_in_file(self.main_project.root(), &include_file)
        } else {
            Vec::new()
        };
        for file in ALWAYS_COPIED_FILES.into_iter().map(str::to_owned).chain(included_files) {
            let target_path = project.root().join(&file);
            if disk::exists(&target_path) {
                continue;
            }
            if let Some(bytes) = disk::read(&self.main_project.root().join(&file))? {
                disk::replace(&target_path, &bytes, Durability::Lazy)?;
            }
        }
        Ok(())
    }

    fn run_setup_command_if_configured(
        &self,
        project: &Project,
        worker_number: usize,
        should_abort: &dyn Fn() -> bool,
    ) -> Result<(), WorktreeSetupError> {
        let Some(SetupCommand { command, scope }) = &self.setup_command else { return Ok(()) };
        let environment = [(WORKER_VARIABLE, worker_number.to_string())];
        let outcome = run_user_command_sandboxed_if_enabled(
            project,
            scope,
            command,
            &environment,
            SETUP_TIMEOUT,
            should_abort,
        );
        if outcome.succeeded() {
            return Ok(());
        }
        if let Some(error) = outcome.start_error {
            return Err(WorktreeSetupError::SetupCommandFailed(error));
        }
        let output = [outcome.stdout.as_slice(), outcome.stderr.as_slice()].concat();
        let output = plimsoll_domain::text::truncate_start(String::from_utf8_lossy(&output).trim(), 1_000);
        Err(WorktreeSetupError::SetupCommandFailed(if output.is_empty() {
            "it printed nothing".to_owned()
        } else {
            output
        }))
    }
}
