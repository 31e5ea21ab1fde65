//! `plimsoll doctor --fleet NAME`: inspects a fleet's database, remote and members, and prints the findings of
//! `plimsoll_policy::doctor`. Writes neither to the database nor to the remote.

use super::clone_remote::{CloneRemote, CloneRemoteError};
use super::fleet_text::{describe_fleet_state, render_item_counts};
use super::{CommandError, connect_and_run_with_timeout};
use crate::database_error::FleetError;
use crate::fleet::Fleet;
use crate::fleet::database_inspection::inspect_server_schema_and_rights;
use crate::fleet::fleet_status::{FleetStatus, ItemStatus, WorkerStatus};
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
    let database_info = connect_and_run_with_timeout("look at the database", |mut database| {
        inspect_server_schema_and_rights(&mut database)
    });
    let name = arguments.name.clone();
    let status_items_and_workers = connect_and_run_with_timeout("look at the fleet", move |database| {
        let mut fleet = Fleet::open(database, &name)?;
        Ok((fleet.read_status()?, fleet.read_item_statuses()?, fleet.read_worker_statuses()?))
    });
    let fleet_info = status_items_and_workers
        .map(|(fleet, items, workers)| to_fleet_info_with_lost_workers(&fleet, &items, &workers));
    let target_branch = fleet_info.as_ref().ok().map(|fleet| fleet.target_branch.clone());
    let diagnostics = FleetDiagnostics {
        name: to_safe_single_line(&arguments.name),
        database: database_info.map_err(|error| to_unavailable_reason(&error)),
        fleet: fleet_info.map_err(|error| to_unavailable_reason(&error)),
        remote: inspect_remote_and_test_push_if_in_clone(
            &arguments.remote,
            &arguments.name,
            target_branch.as_deref(),
        ),
        current_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Ok(print_findings_and_fail_on_problem(&run_fleet_checks(&diagnostics), arguments.json))
}

fn to_unavailable_reason(error: &FleetError) -> UnavailableReason {
    let advice = error.hint().unwrap_or_else(|| "look at what the database says".to_owned());
    UnavailableReason { message: error.to_string(), advice }
}

fn to_fleet_info_with_lost_workers(
    fleet: &FleetStatus,
    items: &[ItemStatus],
    workers: &[WorkerStatus],
) -> FleetInfo {
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

/// Reads the remote's address and target branch, and tests a push with a dry run. Returns `None` outside a repository.
fn inspect_remote_and_test_push_if_in_clone(
    remote_name: &str,
    fleet_name: &str,
    target_branch_name: Option<&str>,
) -> Option<RemoteInfo> {
    let current_folder = environment::current_dir();
    let (repository, _) = layout::find_repository(&current_folder)?;
    let to_inspection_error = |error: CloneRemoteError| InspectionError::new(&error);
    let remote = match CloneRemote::open_with_temporary_copy(repository, remote_name) {
        Ok(remote) => remote,
        Err(error) => {
            let (name, address) = (to_safe_single_line(remote_name), Err(to_inspection_error(error)));
            return Some(RemoteInfo { name, address, target_commit: Ok(None), push_result: Ok(()) });
        }
    };
    let target_branch = target_branch_name.and_then(|target| BranchName::parse(target).ok());
    let target_tip = target_branch.map_or(Ok(None), |target| remote.fetch_branch_tip(&target));
    // A dry run of what a worker pushes. Items are counted from 1, so no fleet uses this branch.
    let probe_branch = BranchName::parse(&format!("plimsoll-items/{fleet_name}/0/0")).ok();
    let push_result = probe_branch
        .zip(git::head_commit(repository))
        .map_or(Ok(()), |(branch, commit)| remote.dry_run_push_to_branch(&branch, &commit));
    Some(RemoteInfo {
        name: to_safe_single_line(remote_name),
        address: Ok(to_safe_single_line(&remote.address())),
        target_commit: target_tip.map(|tip| tip.map(String::from)).map_err(to_inspection_error),
        push_result: push_result.map_err(to_inspection_error),
    })
}
