//! `plimsoll fleet create`: writes a clone's plan to the database. The target branch is pushed before the fleet is created: if the
//! process is killed between the two, only the branch remains, and repeating the command continues from there.

use super::clone_remote::{CloneRemote, CloneRemoteError};
use super::{CommandError, connect_and_run_with_timeout};
use crate::database_error::FleetError;
use crate::fleet::Fleet;
use crate::fleet::fleet_status::{FleetStatus, read_all_statuses};
use crate::fleet::plan::{NewPlan, check_fleet_can_be_created, hash_objective};
use crate::fleet_name::{FleetName, InvalidFleetName};
use crate::settings::url_with_credentials;
use crate::settings_loader::URL_VARIABLE;
use plimsoll_domain::git_names::{BranchName, CommitId, RepoPath};
use plimsoll_domain::prompt::strip_prompt_block;
use plimsoll_domain::state::DeliveryMode;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line};
use plimsoll_flows::run::lifecycle::{
    NewRun, SharedWork, StartError, read_task_and_unfinished_plan_to_share,
};
use plimsoll_flows::workers::project_checkout::{self, ProjectCheckout, UnsuitableRepository};
use plimsoll_launcher::branch::BranchError;
use plimsoll_launcher::git;
use plimsoll_launcher::remote_repository::RemoteError;
use plimsoll_policy::plan::EstimatedItem;
use plimsoll_store::{Project, StoreError, disk, environment, layout};
use plimsoll_terminal::console::{print_text, print_warning};
use plimsoll_terminal::fleet_command_line::{CreateArguments, DeliverTo};
use plimsoll_terminal::project_choice;
use std::path::PathBuf;
use std::process::ExitCode;

/// The reason why no fleet was created.
#[derive(Debug, thiserror::Error)]
pub(super) enum CreateError {
    #[error("`{0}` cannot be the name of a fleet: {1}")]
    InvalidName(String, InvalidFleetName),
    #[error("{0}")]
    ProjectOwnedByOtherUser(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the objective file {0} is missing")]
    ObjectiveFileMissing(PathBuf),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    UnsuitableRepository(#[from] UnsuitableRepository),
    #[error(transparent)]
    Branch(#[from] BranchError),
    #[error(transparent)]
    Remote(#[from] CloneRemoteError),
    #[error("--branch belongs to --deliver branch: --deliver merge uses the branch that is checked out")]
    BranchOptionWithMerge,
    #[error(
        "the plan {0} is not committed, so machines that join do not have it: git add {0}, commit and push it"
    )]
    PlanNotCommitted(String),
    #[error("PROMPT.md has uncommitted changes, which machines that join do not have: commit and push it")]
    TaskNotCommitted,
    #[error("the fleet `{fleet}` merges its work into `{branch}` of the same remote")]
    BranchOfOtherFleet { branch: String, fleet: String },
    #[error("the branch `{branch}` is not on {remote}: git push {remote} {branch}")]
    BranchNotOnRemote { branch: String, remote: String },
    #[error(
        "{commit}, the commit that is checked out, is not on `{branch}` of {remote}: git push {remote} {branch}"
    )]
    CommitNotPushed { commit: String, branch: String, remote: String },
    #[error("`{branch}` of {remote} has commits that are not here: git pull, then run this again")]
    RemoteHasNewerCommits { branch: String, remote: String },
    #[error(
        "the branch `{branch}` already exists on {remote}, at {commit}: choose another name, or --branch"
    )]
    TargetBranchExists { branch: String, remote: String, commit: String },
    #[error(
        "{1} has item branches of an earlier fleet `{0}` (plimsoll-items/{0}/…): merge or remove them, or choose another name"
    )]
    ItemBranchesExist(String, String),
}

impl CreateError {
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            CreateError::Remote(CloneRemoteError::Remote(
                RemoteError::Rejected(_) | RemoteError::Unreachable(_),
            )) => Some(
                "nothing was written to the database; check that git push works here, then run this again"
                    .to_owned(),
            ),
            CreateError::BranchOfOtherFleet { .. } => Some("choose another branch with --branch".to_owned()),
            CreateError::Store(error) => Some(error.hint().to_owned()),
            _ => None,
        }
    }
}

/// Checks everything, pushes the target branch and creates the fleet.
pub(super) fn create_fleet(arguments: &CreateArguments) -> Result<ExitCode, CommandError> {
    let prepared_fleet = PreparedFleet::from_checked_arguments_and_remote(arguments)?;
    // This is checked before anything is pushed, so that a database error leaves nothing to undo.
    let name = prepared_fleet.name.clone();
    let other_fleets = connect_and_run_with_timeout("prepare the fleet", move |mut database| {
        check_fleet_can_be_created(&mut database, &name)?;
        Ok(read_all_statuses(database)?.statuses)
    })?;
    prepared_fleet.check_branch_belongs_to_no_fleet(&other_fleets)?;
    prepared_fleet.create_missing_target_or_dry_run_if_merging()?;
    let plan_items = plan_items_without_estimates(&prepared_fleet.shared_work);
    let plan = prepared_fleet.new_plan(arguments);
    let member_password = uuid::Uuid::new_v4().simple().to_string();
    let password = member_password.clone();
    let result = connect_and_run_with_timeout("create the fleet", move |database| {
        Fleet::create_if_name_free(database, &plan, &plan_items, &password).map(drop)
    });
    if let Err(error) = result {
        return Err(prepared_fleet.warn_if_branch_created_and_return_error(error).into());
    }
    prepared_fleet.print_fleet_summary_and_join_command();
    print_member_credentials(&prepared_fleet.name, &member_password);
    Ok(ExitCode::SUCCESS)
}

fn plan_items_without_estimates(shared_work: &SharedWork) -> Vec<EstimatedItem> {
    let to_item_without_estimate = |item: &plimsoll_domain::todo::PlanItem| EstimatedItem {
        text: item.text.clone(),
        is_done: item.is_ticked,
        file_lines: None,
        model: None,
    };
    shared_work.todo.items.iter().map(to_item_without_estimate).collect()
}

/// Prints how other machines reach the database as members of the fleet. The password is stored nowhere, so it is shown only now.
fn print_member_credentials(name: &FleetName, password: &str) {
    let role = name.schema();
    print_text(format!(
        "machines that join connect to the database as the role `{role}`; its password is shown only now:"
    ));
    let own_address = environment::variable(URL_VARIABLE).unwrap_or_default();
    print_text(match url_with_credentials(&own_address, &role, password) {
        Some(url) => format!("  {URL_VARIABLE}={}", to_safe_single_line(&url)),
        None => format!("  PGUSER={role} PGPASSWORD={password}"),
    });
}

/// The checked input of a new fleet.
struct PreparedFleet {
    name: FleetName,
    project: Project,
    shared_work: SharedWork,
    checkout: ProjectCheckout,
    remote: CloneRemote,
    /// The user's name for the remote.
    remote_name: String,
    /// The branch into which items are merged.
    target_branch: BranchName,
    deliver_to: DeliverTo,
    /// True if the target branch must still be created.
    is_target_missing: bool,
}

impl PreparedFleet {
    fn from_checked_arguments_and_remote(arguments: &CreateArguments) -> Result<PreparedFleet, CreateError> {
        let name = FleetName::parse(&arguments.name)
            .map_err(|error| CreateError::InvalidName(to_safe_single_line(&arguments.name), error))?;
        if arguments.deliver == DeliverTo::Merge && arguments.branch.is_some() {
            return Err(CreateError::BranchOptionWithMerge);
        }
        if let Some(ignored_state) = Project::ignored_state_file_unless_another_is_used() {
            if ignored_state.is_in_current_folder() {
                return Err(CreateError::ProjectOwnedByOtherUser(ignored_state.to_string()));
            }
            print_warning(&ignored_state);
        }
        let current_folder = environment::current_dir();
        if layout::find_repository(&current_folder).is_none() {
            return Err(UnsuitableRepository::NoRepository(current_folder).into());
        }
        let project = project_choice::find_project_for_new_run_and_print_notice(arguments.todo.as_deref());
        let shared_work =
            read_task_and_unfinished_plan_to_share(&project, &read_objective_into_new_run(arguments)?)?;
        let checkout = project_checkout::check_suitable_for_workers(&project)?;
        if !git::is_tracked(project.root(), &shared_work.plan) {
            return Err(CreateError::PlanNotCommitted(to_safe_single_line(&shared_work.plan)));
        }
        check_committed_prompt_has_same_task(&project, &checkout)?;
        let remote = CloneRemote::open_with_temporary_copy(&checkout.repository_root, &arguments.remote)?;
        let remote_name = to_safe_single_line(&arguments.remote);
        check_head_is_pushed_and_is_tip_if_merging(&checkout, &remote, &remote_name, arguments.deliver)?;
        if remote.has_branches_below(&format!("plimsoll-items/{}", arguments.name))? {
            return Err(CreateError::ItemBranchesExist(arguments.name.clone(), remote_name));
        }
        let default_target_name = || format!("plimsoll/{}", arguments.name);
        let (target_branch, is_target_missing) = match arguments.deliver {
            DeliverTo::Merge => (parse_branch_name(&checkout.branch)?, false),
            DeliverTo::Branch => {
                let target_name = arguments.branch.clone().unwrap_or_else(default_target_name);
                let target_branch = parse_branch_name(&target_name)?;
                // Only the branch that a killed `create` has left may be there.
                if target_name != default_target_name()
                    && let Some(tip) = remote.fetch_branch_tip(&target_branch)?
                {
                    return Err(CreateError::TargetBranchExists {
                        branch: to_safe_single_line(&target_name),
                        remote: remote_name,
                        commit: short_commit(&tip),
                    });
                }
                let is_target_missing = is_target_missing_or_error_if_not_at_head(
                    &checkout,
                    &remote,
                    &remote_name,
                    &target_branch,
                )?;
                (target_branch, is_target_missing)
            }
        };
        let deliver_to = arguments.deliver;
        Ok(PreparedFleet {
            name,
            project,
            shared_work,
            checkout,
            remote,
            remote_name,
            target_branch,
            deliver_to,
            is_target_missing,
        })
    }

    /// Fails if an unfinished fleet merges into the same branch. Does not matter with `merge`: that branch is the user's own.
    fn check_branch_belongs_to_no_fleet(&self, fleets: &[FleetStatus]) -> Result<(), CreateError> {
        let address = self.remote.address();
        let has_same_branch = |fleet: &&FleetStatus| {
            fleet.end_reason.is_none()
                && fleet.remote_address == address
                && fleet.target_branch == self.target_branch.as_str()
        };
        match fleets.iter().find(has_same_branch).filter(|_| self.deliver_to == DeliverTo::Branch) {
            None => Ok(()),
            Some(fleet) => Err(CreateError::BranchOfOtherFleet {
                branch: to_safe_single_line(self.target_branch.as_str()),
                fleet: to_safe_single_line(&fleet.name),
            }),
        }
    }

    /// Creates the target branch. With `merge`, only checks with a dry run that pushing is allowed.
    fn create_missing_target_or_dry_run_if_merging(&self) -> Result<(), CreateError> {
        let commit = &self.checkout.head_commit;
        match self.deliver_to {
            DeliverTo::Branch if self.is_target_missing => {
                self.remote.create_branch(&self.target_branch, commit)?;
            }
            DeliverTo::Branch => {}
            DeliverTo::Merge => {
                // A dry run of what a worker pushes. Items are counted from 1, so no fleet uses this branch.
                let probe_branch = parse_branch_name(&format!("plimsoll-items/{}/0/0", self.name))?;
                self.remote.dry_run_push_to_branch(&probe_branch, commit)?;
            }
        }
        Ok(())
    }

    fn new_plan(&self, arguments: &CreateArguments) -> NewPlan {
        let project_folder = self.checkout.project_path.to_string_lossy().into_owned();
        let plan_file =
            self.checkout.project_path.join(&self.shared_work.plan).to_string_lossy().into_owned();
        NewPlan {
            name: self.name.clone(),
            remote_address: self.remote.address(),
            target_branch: self.target_branch.to_string(),
            verify_commands: arguments.verify.clone(),
            delivery_mode: match self.deliver_to {
                DeliverTo::Branch => DeliveryMode::Branch,
                DeliverTo::Merge => DeliveryMode::Merge,
            },
            objective_hash: hash_objective(&self.shared_work.task),
            max_cost_usd: arguments.max_cost,
            start_commit: self.checkout.head_commit.to_string(),
            plan_file,
            is_plan_tracked: true,
            project_folder,
            promise_word: arguments.promise.to_string(),
            max_sessions: arguments.max_iterations,
        }
    }

    /// Prints a warning if the target branch was created although the fleet was not. Returns `error` unchanged.
    fn warn_if_branch_created_and_return_error(&self, error: FleetError) -> FleetError {
        if self.is_target_missing {
            let branch = to_safe_single_line(self.target_branch.as_str());
            let remote = &self.remote_name;
            let next_step = if branch == format!("plimsoll/{}", self.name) {
                "run this command again to continue".to_owned()
            } else {
                format!("before you run this command again: git push {remote} --delete {branch}")
            };
            print_warning(&format!("the branch `{branch}` was already created on {remote}; {next_step}"));
        }
        error
    }

    fn print_fleet_summary_and_join_command(&self) {
        let name = &self.name;
        let open_count = self.shared_work.todo.open_items().len();
        print_text(format!(
            "created the fleet `{name}`: {}, from {}",
            count_with_noun(open_count, "open item"),
            short_commit(&self.checkout.head_commit)
        ));
        print_text(format!(
            "the work is merged into {} of {}",
            to_safe_single_line(self.target_branch.as_str()),
            self.remote_name
        ));
        if !git::is_tracked(self.project.root(), "PROMPT.md") {
            print_text(
                "the task is not in the repository: give it to each machine, as PROMPT.md or with --objective-file",
            );
        }
        print_text(format!(
            "in a clone on each machine: plimsoll fleet join {name} --workers N -- CLIENT ARGS"
        ));
    }
}

fn read_objective_into_new_run(arguments: &CreateArguments) -> Result<NewRun, CreateError> {
    let objective = match &arguments.objective_file {
        Some(file) => {
            let path = environment::current_dir().join(file);
            Some(disk::read_text(&path)?.ok_or(CreateError::ObjectiveFileMissing(path))?)
        }
        None => arguments.objective.clone(),
    };
    Ok(NewRun { objective, plan_file: arguments.todo.clone(), ..NewRun::default() })
}

/// Fails if git tracks PROMPT.md and its task differs from the one in the commit, because the machines that join would have
/// another task. The block that Plimsoll writes into the file does not matter.
fn check_committed_prompt_has_same_task(
    project: &Project,
    checkout: &ProjectCheckout,
) -> Result<(), CreateError> {
    let path = checkout.project_path.join("PROMPT.md");
    let committed = RepoPath::parse(&path.to_string_lossy()).ok().and_then(|path| {
        git::file_content_in_commit(&checkout.repository_root, &checkout.head_commit, &path)
    });
    let (Some(committed), Some(current)) = (committed, disk::read(&project.prompt_path())?) else {
        return Ok(());
    };
    let task =
        |bytes: &[u8]| hash_objective(&String::from_utf8_lossy(strip_prompt_block(bytes).unwrap_or(bytes)));
    if task(&committed) == task(&current) { Ok(()) } else { Err(CreateError::TaskNotCommitted) }
}

/// Checks that the checked-out commit is on the remote's branch. With `merge` it must be the branch's last
/// commit, so that the clone and the remote have the same plan.
fn check_head_is_pushed_and_is_tip_if_merging(
    checkout: &ProjectCheckout,
    remote: &CloneRemote,
    remote_name: &str,
    deliver_to: DeliverTo,
) -> Result<(), CreateError> {
    let head_commit = &checkout.head_commit;
    let (branch, remote_name) = (to_safe_single_line(&checkout.branch), remote_name.to_owned());
    let Some(branch_tip) = remote.fetch_branch_tip(&parse_branch_name(&checkout.branch)?)? else {
        return Err(CreateError::BranchNotOnRemote { branch, remote: remote_name });
    };
    match (remote.contains_commit(&branch_tip, head_commit), deliver_to) {
        (false, _) => Err(CreateError::CommitNotPushed {
            commit: short_commit(head_commit),
            branch,
            remote: remote_name,
        }),
        (true, DeliverTo::Merge) if branch_tip != *head_commit => {
            Err(CreateError::RemoteHasNewerCommits { branch, remote: remote_name })
        }
        (true, _) => Ok(()),
    }
}

/// Returns true if the remote has no target branch, and false if the branch is at the checked-out commit because an
/// earlier attempt was interrupted. Fails if the branch is at another commit.
fn is_target_missing_or_error_if_not_at_head(
    checkout: &ProjectCheckout,
    remote: &CloneRemote,
    remote_name: &str,
    target_branch: &BranchName,
) -> Result<bool, CreateError> {
    match remote.fetch_branch_tip(target_branch)? {
        None => Ok(true),
        Some(tip) if tip == checkout.head_commit => Ok(false),
        Some(tip) => Err(CreateError::TargetBranchExists {
            branch: to_safe_single_line(target_branch.as_str()),
            remote: remote_name.to_owned(),
            commit: short_commit(&tip),
        }),
    }
}

fn parse_branch_name(name: &str) -> Result<BranchName, CreateError> {
    BranchName::parse(name).map_err(|error| BranchError::InvalidName(error.0).into())
}

fn short_commit(commit: &CommitId) -> String {
    commit.as_str().chars().take(12).collect()
}
