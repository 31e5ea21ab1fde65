//! The worktrees of a parallel run, one for each item, and the repository in which results are merged. They lie among the user's
//! state, outside every working tree.

use crate::run::branch::allowed_programs;
use crate::run::review::EXPORTED;
use crate::run::sandbox::{CommandScope, run_command};
use crate::workers::ground::{Ground, ITEM_PLAN};
use plimsoll_domain::RunState;
use plimsoll_domain::TodoList;
use plimsoll_domain::git_names::{BranchName, CommitId};
use plimsoll_domain::item_brief::ReturnedWork;
use plimsoll_domain::prompt::RETURNED_FILE;
use plimsoll_domain::todo::Item;
use plimsoll_launcher::git::AllowedPrograms;
use plimsoll_launcher::merge_repository::MergeRepository;
use plimsoll_launcher::own_repository::OwnRepository;
use plimsoll_launcher::remote_repository::RemoteError;
use plimsoll_launcher::worktree::{PlanFiles, WorktreeError};
use plimsoll_launcher::{git, worktree};
use plimsoll_store::{Durability, Project, StoreError, disk, layout, ledger};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Names a worker to what it starts, such as a server that needs a port of its own.
pub(super) const WORKER_VARIABLE: &str = "PLIMSOLL_WORKER";
/// Dependencies may have to be fetched and built.
const SETUP_DEADLINE: Duration = Duration::from_secs(1_800);
/// Names what else a worktree needs; the client has the same file.
const INCLUDE: &str = ".worktreeinclude";
/// Settings that git does not follow, and the windows that were learned.
const COPIED: [&str; 4] =
    [".claude/settings.local.json", ".mcp.json", ".claude/plimsoll.json", ".claude/plimsoll/windows.json"];

/// Why a worktree could not be prepared.
#[derive(Debug, thiserror::Error)]
pub(super) enum TreeError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] WorktreeError),
    #[error(
        "its folder belongs to another repository by now: look at it, and remove it (git worktree remove)"
    )]
    NotOurs,
    #[error("--setup failed: {0}")]
    Setup(String),
    #[error("the branch into which everything is merged is gone")]
    NoTarget,
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// Where they are.
#[derive(Debug, Clone)]
pub(super) struct Trees {
    pub(super) ground: Ground,
    /// Where results are merged and verified.
    pub(super) merge: MergeRepository,
    folder: PathBuf,
    main: Project,
    /// What sessions change in these is not merged.
    pub(super) plan_files: PlanFiles,
    setup: Option<Setup>,
    /// Which filters run when files are checked out.
    allowed: AllowedPrograms,
    /// True for the repository of a fleet, which its next run uses again.
    keeps_repository: bool,
}

/// The command that prepares a worktree, and where it runs.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    pub(super) command: String,
    pub(super) scope: CommandScope,
}

/// What an item's worktree is made of.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) item: usize,
    pub(super) worker: usize,
    pub(super) branch: BranchName,
    /// None for the target's end.
    pub(super) begins_at: Option<CommitId>,
    /// The item with its notes, questions and answers.
    pub(super) plan: Item,
    /// True where the item's run goes on with the plan that it has.
    pub(super) keeps_plan: bool,
    /// Why earlier work was sent back.
    pub(super) returned: Option<ReturnedWork>,
}

/// The folder of a run's worktrees; none without a home.
pub(super) fn folder(main: &Project, run_id: &str) -> Option<PathBuf> {
    Some(ledger::all_records(main)?.parent()?.join("trees").join(run_id))
}

/// The git folder of the repository of ours in which the results of a run are merged; a fleet has another. None without a home.
pub(super) fn merge_git_folder(main: &Project, run_id: &str) -> Option<PathBuf> {
    Some(folder(main, run_id)?.join("merge.git"))
}

impl Trees {
    /// The places of a run whose results are merged in this repository.
    pub(super) fn open(
        main: &Project,
        run: &RunState,
        ground: Ground,
        plan_files: PlanFiles,
        setup: Option<Setup>,
        own: OwnRepository,
        keeps_repository: bool,
    ) -> Result<Trees, TreeError> {
        let home = || StoreError::NoHome { project: main.root().to_owned() };
        let folder = folder(main, &run.run_id).ok_or_else(home)?;
        let allowed = allowed_programs(run.options.commit_hooks);
        let merge = MergeRepository::open(own, &folder.join("merge"), allowed)?;
        Ok(Trees { ground, merge, folder, main: main.clone(), plan_files, setup, allowed, keeps_repository })
    }

    /// The worktree of an item.
    pub(super) fn of_item(&self, item: usize) -> PathBuf {
        self.folder.join((item + 1).to_string())
    }

    /// The one in which results come together.
    pub(super) fn of_merger(&self) -> PathBuf {
        self.merge.work_tree().to_owned()
    }

    /// The project in a worktree.
    pub(super) fn project(&self, tree: &Path) -> Project {
        // Joined with nothing, a path would end with a slash, and another project's begin with it.
        let is_root = self.ground.below.as_os_str().is_empty();
        Project::at(&if is_root { tree.to_owned() } else { tree.join(&self.ground.below) })
    }

    /// True if git takes a folder for the worktree that it was made as. An agent can write the file that leads git to its
    /// repository: the hooks and settings of another one are not the user's, and in the user's own working tree, or in another
    /// item's, no command of ours has any business.
    pub(super) fn is_ours(&self, tree: &Path) -> bool {
        let (Some((folder, git)), Some(main)) =
            (layout::repository(tree), layout::git_folder_of(&self.ground.repository))
        else {
            return false;
        };
        let back = disk::read_text(&git.join("gitdir")).ok().flatten().unwrap_or_default();
        let identity = layout::repository_identity(tree);
        folder == tree
            && git != main
            && !identity.is_empty()
            && identity == layout::repository_identity(&self.ground.repository)
            && disk::canonical(Path::new(back.trim())) == disk::canonical(&tree.join(".git"))
    }

    /// Prepares the worktree of an item: on its branch, with what git does not bring. Repeated after a kill it does what is
    /// missing.
    pub(super) fn prepare(&self, wanted: &Wanted, give_up: &dyn Fn() -> bool) -> Result<(), TreeError> {
        let tree = self.of_item(wanted.item);
        let begins_at = wanted.begins_at.as_ref().ok_or(TreeError::NoTarget)?;
        let is_there = git::head(&tree).is_some();
        if is_there && !self.is_ours(&tree) {
            return Err(TreeError::NotOurs);
        }
        if is_there {
            worktree::take_over(&tree);
            worktree::switch_new(&tree, &wanted.branch, begins_at, &self.plan_files, self.allowed)?;
        } else {
            self.clear(&tree)?;
            worktree::add(&self.ground.repository, &tree, &wanted.branch, begins_at, self.allowed)?;
        }
        let project = self.project(&tree);
        self.copy_files(&project)?;
        self.write_plan(wanted)?;
        let returned = project.root().join(RETURNED_FILE);
        match &wanted.returned {
            Some(work) => disk::replace(&returned, work.render().as_bytes(), Durability::Lazy)?,
            None => disk::remove(&returned)?,
        }
        if !is_there {
            self.set_up(&project, wanted.worker, give_up)?;
        }
        Ok(())
    }

    /// Writes the plan of an item's own run.
    pub(super) fn write_plan(&self, wanted: &Wanted) -> Result<(), StoreError> {
        let project = self.project(&self.of_item(wanted.item));
        let known = disk::read_text(&project.root().join(ITEM_PLAN))?;
        if known.is_some() && wanted.keeps_plan {
            return Ok(());
        }
        // What earlier sessions noted stays.
        let known = TodoList::parse(&known.unwrap_or_default()).items;
        let mut item = wanted.plan.clone();
        let known = known.into_iter().flat_map(|known| known.notes);
        let new = known.filter(|note| !item.notes.contains(note)).collect::<Vec<_>>();
        item.notes.splice(0..0, new);
        let plan = TodoList::from_items(vec![item]).render();
        disk::replace(&project.root().join(ITEM_PLAN), plan.as_bytes(), Durability::Durable)
    }

    /// Prepares the working tree in which results are merged.
    pub(super) fn prepare_merger(
        &self,
        commit: &CommitId,
        give_up: &dyn Fn() -> bool,
    ) -> Result<(), TreeError> {
        if self.merge.is_ready() {
            return Ok(());
        }
        self.merge.check_out(commit)?;
        let project = self.project(self.merge.work_tree());
        self.copy_files(&project)?;
        self.set_up(&project, 0, give_up)?;
        Ok(self.merge.mark_ready()?)
    }

    /// Removes the working tree in which results were merged, and the repository that no other run uses.
    pub(super) fn remove_merger(&self) -> Result<(), StoreError> {
        self.merge.remove(!self.keeps_repository)?;
        // What reviews that were killed have left.
        for name in disk::names(&self.folder).into_iter().filter(|name| name.starts_with(EXPORTED)) {
            disk::remove_folder(&self.folder.join(name))?;
        }
        disk::remove_empty_folder(&self.folder);
        Ok(())
    }

    /// What a kill has left half made is made anew.
    fn clear(&self, tree: &Path) -> Result<(), TreeError> {
        if let Some(above) = tree.parent() {
            disk::create_folder(above)?;
        }
        match worktree::remove(&self.ground.repository, tree) {
            Err(error) if disk::exists(tree) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Removes a worktree; its records are elsewhere by now.
    pub(super) fn remove(&self, tree: &Path) -> Result<(), WorktreeError> {
        worktree::remove(&self.ground.repository, tree)?;
        disk::remove_empty_folder(&self.folder);
        Ok(())
    }

    /// Copies what git does not bring, where it is not there.
    fn copy_files(&self, project: &Project) -> Result<(), StoreError> {
        let patterns = self.main.root().join(INCLUDE);
        let included = if disk::is_file(&patterns) {
            worktree::ignored_by(self.main.root(), &patterns)
        } else {
            Vec::new()
        };
        for file in COPIED.into_iter().map(str::to_owned).chain(included) {
            let to = project.root().join(&file);
            if disk::exists(&to) {
                continue;
            }
            if let Some(bytes) = disk::read(&self.main.root().join(&file))? {
                disk::replace(&to, &bytes, Durability::Lazy)?;
            }
        }
        Ok(())
    }

    fn set_up(&self, project: &Project, worker: usize, give_up: &dyn Fn() -> bool) -> Result<(), TreeError> {
        let Some(Setup { command, scope }) = &self.setup else { return Ok(()) };
        let environment = [(WORKER_VARIABLE, worker.to_string())];
        let outcome = run_command(project, scope, command, &environment, SETUP_DEADLINE, give_up);
        if outcome.succeeded() {
            return Ok(());
        }
        if let Some(trouble) = outcome.trouble {
            return Err(TreeError::Setup(trouble));
        }
        let said = [outcome.stdout.as_slice(), outcome.stderr.as_slice()].concat();
        let said = plimsoll_domain::text::clip_start(String::from_utf8_lossy(&said).trim(), 1_000);
        Err(TreeError::Setup(if said.is_empty() { "it printed nothing".to_owned() } else { said }))
    }
}
