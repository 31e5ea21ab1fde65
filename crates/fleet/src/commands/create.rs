//! `plimsoll fleet create`: writes a clone's plan to the database. The target branch is pushed before the fleet is created: if the
//! process is killed between the two, only the branch remains, and repeating the command continues from there.

use super::clone_remote::{CloneRemote, CloneRemoteError};
use super::{CommandError, connect_and_run_with_timeout};
use crate::database_error::FleetError;
use crate::fleet::Fleet;
use crate::fleet::plan::{NewPlan, hash_objective, migrate_and_check_write_rights_and_name};
use plimsoll_domain::git_names::{BranchName, CommitId};
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
use plimsoll_store::{Project, StoreError, disk, environment};
use plimsoll_terminal::console::{print_error, print_text};
use plimsoll_terminal::fleet_command_line::{CreateArguments, DeliverTo};
use plimsoll_terminal::project_choice;
use std::path::PathBuf;
use std::process::ExitCode;

/// Maximum length of a name, which becomes a part of branch names and paths.
const MAX_NAME_BYTES: usize = 60;

/// The reason why no fleet was created.
#[derive(Debug, thiserror::Error)]
pub(super) enum CreateError {
    #[error(
        "`{0}` cannot be the name of a fleet: at most {MAX_NAME_BYTES} letters, digits, `-`, `_` and `.`, the first a letter or digit"
    )]
    InvalidName(String),
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
    #[error(
        "--branch belongs to --deliver branch: with merge the work goes onto the branch that is checked out"
    )]
    BranchOptionWithMerge,
    #[error(
        "the plan {0} is not committed, and the machines that join have only what is: git add {0}, commit and push it"
    )]
    PlanNotCommitted(String),
    #[error("the branch `{branch}` is not on {remote}: git push {remote} {branch}")]
    BranchNotOnRemote { branch: String, remote: String },
    #[error(
        "{commit}, the commit that is checked out, is not on `{branch}` of {remote}: git push {remote} {branch}"
    )]
    CommitNotPushed { commit: String, branch: String, remote: String },
    #[error("`{branch}` of {remote} has commits that are not here: git pull, then run this again")]
    RemoteHasNewerCommits { branch: String, remote: String },
    #[error(
        "there is a branch `{branch}` on {remote} already, at {commit}: choose another name, or --branch"
    )]
    TargetBranchExists { branch: String, remote: String, commit: String },
    #[error(
        "branches of items of an earlier fleet `{0}` are on {1} (plimsoll-items/{0}/…), where those of this one would be: merge or remove them, or choose another name"
    )]
    ItemBranchesExist(String, String),
}

impl CreateError {
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            CreateError::Remote(CloneRemoteError::Remote(
                RemoteError::Rejected(_) | RemoteError::Unreachable(_),
            )) => Some(
                "nothing was put into the database; see that git push works here, and repeat this".to_owned(),
            ),
            CreateError::Store(error) => Some(error.hint().to_owned()),
            _ => None,
        }
    }
}

/// Checks everything, pushes the target branch and creates the fleet.
pub(super) fn create_fleet(arguments: &CreateArguments) -> Result<ExitCode, CommandError> {
    let prepared_fleet = PreparedFleet::from_checked_arguments_and_remote(arguments)?;
    // The tables are prepared before anything is pushed, so that a database error leaves nothing to undo.
    let name = arguments.name.clone();
    connect_and_run_with_timeout("prepare the tables", move |mut database| {
        migrate_and_check_write_rights_and_name(&mut database, &name)
    })?;
    prepared_fleet.create_missing_target_or_dry_run_if_merging()?;
    let plan_items = plan_items_without_estimates(&prepared_fleet.shared_work);
    let plan = prepared_fleet.new_plan(arguments);
    let result = connect_and_run_with_timeout("create the fleet", move |database| {
        Fleet::create_if_name_free(database, &plan, &plan_items).map(drop)
    });
    if let Err(error) = result {
        return Err(prepared_fleet.warn_if_branch_created_and_return_error(error).into());
    }
    prepared_fleet.print_fleet_summary_and_join_command(arguments);
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

/// The checked input of a new fleet.
struct PreparedFleet {
    name: String,
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
        check_fleet_name(&arguments.name)?;
        if arguments.deliver == DeliverTo::Merge && arguments.branch.is_some() {
            return Err(CreateError::BranchOptionWithMerge);
        }
        if let Some(ignored_state) = Project::ignored_state_file_unless_another_is_used() {
            if ignored_state.is_in_current_folder() {
                return Err(CreateError::ProjectOwnedByOtherUser(ignored_state.to_string()));
            }
            print_error(&ignored_state);
        }
        let project = project_choice::find_project_for_new_run_and_print_notice(arguments.todo.as_deref());
        let shared_work =
            read_task_and_unfinished_plan_to_share(&project, &read_objective_into_new_run(arguments)?)?;
        let checkout = project_checkout::check_suitable_for_workers(&project)?;
        if !git::is_tracked(project.root(), &shared_work.plan) {
            return Err(CreateError::PlanNotCommitted(to_safe_single_line(&shared_work.plan)));
        }
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
        let name = arguments.name.clone();
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
            name: arguments.name.clone(),
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
            print_error(&format!(
                "the branch `{}` is on {} by now; repeat this command to go on with it",
                to_safe_single_line(self.target_branch.as_str()),
                self.remote_name
            ));
        }
        error
    }

    fn print_fleet_summary_and_join_command(&self, arguments: &CreateArguments) {
        let name = &arguments.name;
        let open_count = self.shared_work.todo.open_items().len();
        print_text(format!(
            "the fleet `{name}` is created: {}, from {}",
            count_with_noun(open_count, "open item"),
            short_commit(&self.checkout.head_commit)
        ));
        print_text(format!(
            "its work comes together on {} of {}",
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

fn check_fleet_name(name: &str) -> Result<(), CreateError> {
    let is_allowed_character =
        |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    let starts_with_alphanumeric = name.starts_with(|character: char| character.is_ascii_alphanumeric());
    // git refuses these in a branch name.
    let is_reserved_by_git = name.contains("..") || name.ends_with('.') || name.ends_with(".lock");
    if starts_with_alphanumeric
        && !is_reserved_by_git
        && name.len() <= MAX_NAME_BYTES
        && name.chars().all(is_allowed_character)
    {
        Ok(())
    } else {
        Err(CreateError::InvalidName(to_safe_single_line(name)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_name_is_valid_in_branch_names_and_paths() {
        for name in ["night", "2026-01-07", "a.b_c-D"] {
            assert!(check_fleet_name(name).is_ok(), "{name}");
        }
        let long = "a".repeat(MAX_NAME_BYTES + 1);
        for name in ["", "-x", ".x", "a/b", "a b", "a..b", "a.", "a.lock", "größer", "a\nb", &long] {
            assert!(matches!(check_fleet_name(name), Err(CreateError::InvalidName(_))), "{name}");
        }
    }
}
