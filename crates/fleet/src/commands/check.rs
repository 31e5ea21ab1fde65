//! `plimsoll doctor --fleet NAME`: inspects a fleet's database, remote and members, and prints the findings of
//! `plimsoll_policy::doctor`. Writes neither to the database nor to the remote.

use super::clone_remote::{CloneRemote, CloneRemoteError};
use super::fleet_text::{describe_fleet_state, render_item_counts};
use super::status::{FleetOverview, read_overview_of};
use super::{CommandError, connect_and_run_with_timeout, open_fleet_and_run_with_timeout};
use crate::database_error::FleetError;
use crate::fleet::database_inspection::inspect_server_and_rights;
use crate::fleet::fleet_status::{ItemStatus, WorkerStatus};
use crate::fleet::shared_plan::SharedPlan;
use crate::fleet_name::FleetName;
use plimsoll_domain::git_names::BranchName;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_launcher::git;
use plimsoll_policy::doctor::{
    FleetDiagnostics, FleetInfo, InspectionError, RemoteInfo, UnavailableReason, run_fleet_checks,
};
use plimsoll_store::{environment, layout};
use plimsoll_terminal::finding_page::print_findings_and_fail_on_problem;
use plimsoll_terminal::fleet_command_line::CheckArguments;
use std::process::ExitCode;

/// Prints the findings. Returns exit code 1 if one of them is a problem.
pub(super) fn check_fleet_and_print_findings(arguments: &CheckArguments) -> Result<ExitCode, CommandError> {
    let name = arguments.name.clone();
    let database_info = connect_and_run_with_timeout("inspect the database", move |mut database| {
        let name = FleetName::parse(&name).map_err(|_| FleetError::FleetNotFound(name))?;
        inspect_server_and_rights(&mut database, &name)
    });
    let overview_and_plan = open_fleet_and_run_with_timeout(&arguments.name, "read the fleet", |fleet| {
        // A plan with invalid values, which only somebody with the rights of the owner can write, is not checked.
        Ok((read_overview_of(fleet)?, fleet.read_shared_plan().ok()))
    });
    let (overview, plan) = match overview_and_plan {
        Ok((overview, plan)) => (Ok(overview), plan),
        Err(error) => (Err(error), None),
    };
    let remote = inspect_remote_and_test_push_if_in_clone(
        &arguments.remote,
        &arguments.name,
        overview.as_ref().ok(),
        plan.as_ref(),
    );
    let diagnostics = FleetDiagnostics {
        name: to_safe_single_line(&arguments.name),
        database: database_info.map_err(|error| to_unavailable_reason(&error)),
        fleet: overview
            .map(|overview| to_fleet_info_with_lost_workers(&overview))
            .map_err(|error| to_unavailable_reason(&error)),
        remote,
        current_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Ok(print_findings_and_fail_on_problem(&run_fleet_checks(&diagnostics), arguments.json))
}

fn to_unavailable_reason(error: &FleetError) -> UnavailableReason {
    let advice = error.hint().unwrap_or_else(|| "read the database's record".to_owned());
    UnavailableReason { message: error.to_string(), advice }
}

fn to_fleet_info_with_lost_workers(overview: &FleetOverview) -> FleetInfo {
    let FleetOverview { fleet, items, workers, .. } = overview;
    let has_item =
        |worker: &&WorkerStatus| items.iter().any(|item| item.worker_name.as_ref() == Some(&worker.name));
    let single_line_name = |worker: &WorkerStatus| to_safe_single_line(&worker.name);
    let active_workers = workers.iter().filter(|worker| worker.is_active);
    FleetInfo {
        state_text: describe_fleet_state(fleet),
        items_text: render_item_counts(fleet),
        target_branch: to_safe_single_line(&fleet.target_branch),
        remote_address: to_safe_single_line(&fleet.remote_address),
        active_workers: active_workers
            .map(|worker| (single_line_name(worker), to_safe_single_line(&worker.plimsoll_version)))
            .collect(),
        lost_workers: workers
            .iter()
            .filter(|worker| !worker.is_active)
            .filter(has_item)
            .map(single_line_name)
            .collect(),
    }
}

/// Reads the remote's address and target branch, checks that the branch contains what is recorded as merged, and tests a push with a
/// dry run. Returns `None` outside a repository.
fn inspect_remote_and_test_push_if_in_clone(
    remote_name: &str,
    fleet_name: &str,
    overview: Option<&FleetOverview>,
    plan: Option<&SharedPlan>,
) -> Option<RemoteInfo> {
    let current_folder = environment::current_dir();
    let (repository, _) = layout::find_repository(&current_folder)?;
    let to_inspection_error = |error: CloneRemoteError| InspectionError::new(&error);
    let remote = match CloneRemote::open_with_temporary_copy(repository, remote_name) {
        Ok(remote) => remote,
        Err(error) => {
            return Some(RemoteInfo {
                name: to_safe_single_line(remote_name),
                address: Err(to_inspection_error(error)),
                target_commit: Ok(None),
                push_result: Ok(()),
                unconfirmed_items: Vec::new(),
            });
        }
    };
    let target_branch = overview.and_then(|overview| BranchName::parse(&overview.fleet.target_branch).ok());
    let target_tip = target_branch.map_or(Ok(None), |target| remote.fetch_branch_tip(&target));
    // A dry run of what a worker pushes. Items are counted from 1, so no fleet uses this branch.
    let probe_branch = BranchName::parse(&format!("plimsoll-items/{fleet_name}/0/0")).ok();
    let push_result = probe_branch
        .zip(git::head_commit(repository))
        .map_or(Ok(()), |(branch, commit)| remote.dry_run_push_to_branch(&branch, &commit));
    // Without the branch nothing can be confirmed, which is a finding of its own.
    let unconfirmed_items = match (overview.zip(plan), &target_tip) {
        (Some((overview, plan)), Ok(Some(_))) => find_unconfirmed_item_numbers(&remote, overview, plan),
        _ => Ok(Vec::new()),
    };
    let (target_tip, unconfirmed_items) = match unconfirmed_items {
        Ok(unconfirmed_items) => (target_tip, unconfirmed_items),
        Err(error) => (Err(error), Vec::new()),
    };
    Some(RemoteInfo {
        name: to_safe_single_line(remote_name),
        address: Ok(to_safe_single_line(&remote.address())),
        target_commit: target_tip.map(|tip| tip.map(String::from)).map_err(to_inspection_error),
        push_result: push_result.map_err(to_inspection_error),
        unconfirmed_items,
    })
}

/// Returns the numbers of the items that are recorded as merged although the target branch does not contain them.
pub(super) fn find_unconfirmed_item_numbers(
    remote: &CloneRemote,
    overview: &FleetOverview,
    plan: &SharedPlan,
) -> Result<Vec<usize>, CloneRemoteError> {
    let is_merged = |(_, item): &(usize, &ItemStatus)| item.stage == "merged";
    let items = overview.items.iter().enumerate().filter(is_merged);
    let items_with_commits: Vec<(usize, Vec<String>)> =
        items.map(|(index, item)| (index, item.attempted_merge_commits.clone())).collect();
    let missing_items =
        remote.find_items_missing_from_branch(&overview.fleet.name, plan, &items_with_commits)?;
    Ok(missing_items.into_iter().map(|index| index + 1).collect())
}
