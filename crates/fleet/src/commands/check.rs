//! `plimsoll doctor --fleet NAME`: gathers facts about a fleet's database, remote and members, and prints the findings of
//! `plimsoll_policy::doctor`. Writes neither to the database nor to the remote.

use super::clone_remote::{CloneError, CloneRemote};
use super::fleet_text::{render_item_counts, render_state};
use super::{CommandError, run_on_database};
use crate::database_fault::FleetError;
use crate::fleet::Fleet;
use crate::fleet::database_facts::read_database_facts;
use crate::fleet::fleet_status::{FleetStatus, ItemStatus, WorkerStatus};
use plimsoll_domain::git_names::BranchName;
use plimsoll_domain::text::to_single_line;
use plimsoll_launcher::git;
use plimsoll_policy::doctor::{
    FleetFacts, MemberFacts, ReadFailure, RemoteFacts, UnknownReason, examine_fleet,
};
use plimsoll_store::{environment, layout};
use plimsoll_terminal::finding_page::print_findings_with_exit_code;
use plimsoll_terminal::fleet_command_line::CheckArguments;
use std::process::ExitCode;

/// Prints the findings. Returns exit code 1 if one of them is a problem.
pub(super) fn check_fleet(arguments: &CheckArguments) -> Result<ExitCode, CommandError> {
    let database = run_on_database("look at the database", |mut database| read_database_facts(&mut database));
    let name = arguments.name.clone();
    let fleet = run_on_database("look at the fleet", move |database| {
        let mut fleet = Fleet::open(database, &name)?;
        Ok((fleet.read_status()?, fleet.read_items()?, fleet.read_workers()?))
    });
    let fleet = fleet.map(|(fleet, items, workers)| to_member_facts(&fleet, &items, &workers));
    let target = fleet.as_ref().ok().map(|fleet| fleet.target_branch.clone());
    let facts = FleetFacts {
        name: to_single_line(&arguments.name),
        database: database.map_err(|error| unknown_reason(&error)),
        fleet: fleet.map_err(|error| unknown_reason(&error)),
        remote: probe_remote_if_in_repository(&arguments.remote, &arguments.name, target.as_deref()),
        own_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Ok(print_findings_with_exit_code(&examine_fleet(&facts), arguments.json))
}

fn unknown_reason(error: &FleetError) -> UnknownReason {
    let advice = error.hint().unwrap_or_else(|| "look at what the database says".to_owned());
    UnknownReason { message: error.to_string(), advice }
}

fn to_member_facts(fleet: &FleetStatus, items: &[ItemStatus], workers: &[WorkerStatus]) -> MemberFacts {
    let has_item =
        |worker: &&WorkerStatus| items.iter().any(|item| item.worker_name.as_ref() == Some(&worker.name));
    let name = |worker: &WorkerStatus| to_single_line(&worker.name);
    let active_workers = workers.iter().filter(|worker| worker.is_active);
    MemberFacts {
        state_text: render_state(fleet),
        items_text: render_item_counts(fleet),
        target_branch: to_single_line(&fleet.target_branch),
        remote_address: to_single_line(&fleet.remote_address),
        active_workers: active_workers
            .map(|worker| (name(worker), to_single_line(&worker.plimsoll_version)))
            .collect(),
        lost_workers: workers.iter().filter(|worker| !worker.is_active).filter(has_item).map(name).collect(),
    }
}

/// Checks the remote. Returns `None` outside a repository.
fn probe_remote_if_in_repository(
    remote_name: &str,
    fleet_name: &str,
    target_name: Option<&str>,
) -> Option<RemoteFacts> {
    let current_folder = environment::current_dir();
    let (repository, _) = layout::find_repository(&current_folder)?;
    let to_failure = |error: CloneError| ReadFailure::new(&error);
    let remote = match CloneRemote::open(repository, remote_name) {
        Ok(remote) => remote,
        Err(error) => {
            let (name, address) = (to_single_line(remote_name), Err(to_failure(error)));
            return Some(RemoteFacts { name, address, target_commit: Ok(None), push_result: Ok(()) });
        }
    };
    let target_branch = target_name.and_then(|target| BranchName::parse(target).ok());
    let target_tip = target_branch.map_or(Ok(None), |target| remote.fetch_branch_tip(&target));
    // A dry run of what a worker pushes. Items are counted from 1, so no fleet uses this branch.
    let branch = BranchName::parse(&format!("plimsoll-items/{fleet_name}/0/0")).ok();
    let push_result = branch
        .zip(git::head_commit(repository))
        .map_or(Ok(()), |(branch, commit)| remote.check_can_create_branch(&branch, &commit));
    Some(RemoteFacts {
        name: to_single_line(remote_name),
        address: Ok(to_single_line(&remote.address())),
        target_commit: target_tip.map(|tip| tip.map(String::from)).map_err(to_failure),
        push_result: push_result.map_err(to_failure),
    })
}
