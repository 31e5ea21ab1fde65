//! `plimsoll doctor --fleet NAME`: gathers what is known of a fleet's database, remote and members. Nothing is written, neither to
//! the database nor to the remote; `plimsoll_policy::doctor` judges.

use super::clone_remote::{CloneError, CloneRemote};
use super::words::{items, state};
use super::{CommandError, ask};
use crate::fault::FleetError;
use crate::fleet::Fleet;
use crate::fleet::examined::examine;
use crate::fleet::standing::{ItemStanding, Standing, WorkerStanding};
use plimsoll_domain::git_names::BranchName;
use plimsoll_domain::text::one_line;
use plimsoll_launcher::git;
use plimsoll_policy::doctor::{FleetFacts, MemberFacts, ReadFailure, RemoteFacts, Unknown, examine_fleet};
use plimsoll_store::{environment, layout};
use plimsoll_terminal::finding_page::show_findings;
use plimsoll_terminal::fleet_line::CheckArguments;
use std::process::ExitCode;

/// Looks: exit code 0 where all will work, 1 where something will not.
pub(super) fn check(arguments: &CheckArguments) -> Result<ExitCode, CommandError> {
    let database = ask("look at the database", |mut database| examine(&mut database));
    let name = arguments.name.clone();
    let fleet = ask("look at the fleet", move |database| {
        let mut fleet = Fleet::open(database, &name)?;
        Ok((fleet.standing()?, fleet.items()?, fleet.workers()?))
    });
    let fleet = fleet.map(|(fleet, items, workers)| member_facts(&fleet, &items, &workers));
    let target = fleet.as_ref().ok().map(|fleet| fleet.target.clone());
    let facts = FleetFacts {
        name: one_line(&arguments.name),
        database: database.map_err(|error| unknown(&error)),
        fleet: fleet.map_err(|error| unknown(&error)),
        remote: remote_facts(&arguments.remote, &arguments.name, target.as_deref()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Ok(show_findings(&examine_fleet(&facts), arguments.json))
}

fn unknown(error: &FleetError) -> Unknown {
    let todo = error.hint().unwrap_or_else(|| "look at what the database says".to_owned());
    Unknown { what: error.to_string(), todo }
}

fn member_facts(fleet: &Standing, rows: &[ItemStanding], workers: &[WorkerStanding]) -> MemberFacts {
    let has_item =
        |worker: &&WorkerStanding| rows.iter().any(|row| row.worker.as_ref() == Some(&worker.name));
    let name = |worker: &WorkerStanding| one_line(&worker.name);
    let there = workers.iter().filter(|worker| worker.is_there);
    MemberFacts {
        state: state(fleet),
        items: items(fleet),
        target: one_line(&fleet.target),
        repo: one_line(&fleet.repo),
        there: there.map(|worker| (name(worker), one_line(&worker.version))).collect(),
        lost: workers.iter().filter(|worker| !worker.is_there).filter(has_item).map(name).collect(),
    }
}

/// None outside of a repository.
fn remote_facts(name: &str, fleet: &str, target: Option<&str>) -> Option<RemoteFacts> {
    let here = environment::current_dir();
    let (repository, _) = layout::repository(&here)?;
    let failure = |error: CloneError| ReadFailure::new(&error);
    let remote = match CloneRemote::open(repository, name) {
        Ok(remote) => remote,
        Err(error) => {
            let (name, address) = (one_line(name), Err(failure(error)));
            return Some(RemoteFacts { name, address, target: Ok(None), push: Ok(()) });
        }
    };
    let target = target.and_then(|target| BranchName::parse(target).ok());
    let tip = target.map_or(Ok(None), |target| remote.tip(&target));
    // As a worker would push its branch; none of that name ever is, for items are counted from 1.
    let branch = BranchName::parse(&format!("plimsoll-items/{fleet}/0/0")).ok();
    let push = branch
        .zip(git::head(repository))
        .map_or(Ok(()), |(branch, commit)| remote.may_make(&branch, &commit));
    Some(RemoteFacts {
        name: one_line(name),
        address: Ok(one_line(&remote.address())),
        target: tip.map(|tip| tip.map(String::from)).map_err(failure),
        push: push.map_err(failure),
    })
}
