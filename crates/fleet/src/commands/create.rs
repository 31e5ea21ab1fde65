//! `plimsoll fleet create`: puts the plan of a clone into the database. Everything that machines will need is on the remote before
//! the fleet is there: a kill between the two leaves a branch, with which the same command goes on.

use super::clone_remote::{CloneError, CloneRemote};
use super::{CommandError, ask};
use crate::fault::FleetError;
use crate::fleet::Fleet;
use crate::fleet::plan::{NewPlan, objective_hash, prepare};
use plimsoll_domain::git_names::{BranchName, CommitId};
use plimsoll_domain::state::Deliver;
use plimsoll_domain::text::{counted, one_line};
use plimsoll_flows::run::lifecycle::{NewRun, Shared, StartError, to_share};
use plimsoll_flows::workers::ground::{self, Ground, Unfit};
use plimsoll_launcher::branch::BranchError;
use plimsoll_launcher::git;
use plimsoll_launcher::remote_repository::RemoteError;
use plimsoll_policy::plan::Item;
use plimsoll_store::{Project, StoreError, disk, environment};
use plimsoll_terminal::console::{say, say_error};
use plimsoll_terminal::fleet_line::{CreateArguments, DeliverTo};
use plimsoll_terminal::place;
use std::path::PathBuf;
use std::process::ExitCode;

/// A name is a part of branches' names and of paths.
const LONGEST_NAME: usize = 60;

/// Why no fleet was created.
#[derive(Debug, thiserror::Error)]
pub(super) enum CreateError {
    #[error(
        "`{0}` cannot be the name of a fleet: at most {LONGEST_NAME} letters, digits, `-`, `_` and `.`, the first a letter or digit"
    )]
    BadName(String),
    #[error("{0}")]
    NotHere(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the objective file {0} is missing")]
    NoObjective(PathBuf),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Unfit(#[from] Unfit),
    #[error(transparent)]
    Branch(#[from] BranchError),
    #[error(transparent)]
    Remote(#[from] CloneError),
    #[error(
        "--branch belongs to --deliver branch: with merge the work goes onto the branch that is checked out"
    )]
    BranchOfMerge,
    #[error(
        "the plan {0} is not committed, and the machines that join have only what is: git add {0}, commit and push it"
    )]
    PlanNotCommitted(String),
    #[error("the branch `{branch}` is not on {remote}: git push {remote} {branch}")]
    NotThere { branch: String, remote: String },
    #[error(
        "{commit}, the commit that is checked out, is not on `{branch}` of {remote}: git push {remote} {branch}"
    )]
    NotPushed { commit: String, branch: String, remote: String },
    #[error("`{branch}` of {remote} has commits that are not here: git pull, then run this again")]
    Behind { branch: String, remote: String },
    #[error(
        "there is a branch `{branch}` on {remote} already, at {commit}: choose another name, or --branch"
    )]
    TargetThere { branch: String, remote: String, commit: String },
    #[error(
        "branches of items of an earlier fleet `{0}` are on {1} (plimsoll-items/{0}/…), where those of this one would be: merge or remove them, or choose another name"
    )]
    ItemsThere(String, String),
}

impl CreateError {
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            CreateError::Remote(CloneError::Remote(RemoteError::Rejected(_) | RemoteError::Away(_))) => Some(
                "nothing was put into the database; see that git push works here, and repeat this".to_owned(),
            ),
            CreateError::Store(error) => Some(error.hint().to_owned()),
            _ => None,
        }
    }
}

/// Creates it.
pub(super) fn create(arguments: &CreateArguments) -> Result<ExitCode, CommandError> {
    let start = Start::look(arguments)?;
    // Before the remote is touched: whoever has no database has nothing to undo.
    let name = arguments.name.clone();
    ask("prepare the tables", move |mut database| prepare(&mut database, &name))?;
    start.push()?;
    let items = items(&start.shared);
    let plan = start.plan(arguments);
    let created = ask("create the fleet", move |database| Fleet::create(database, &plan, &items).map(drop));
    if let Err(error) = created {
        return Err(start.complain(error).into());
    }
    start.say_what_now(arguments);
    Ok(ExitCode::SUCCESS)
}

fn items(shared: &Shared) -> Vec<Item> {
    let item = |item: &plimsoll_domain::todo::Item| Item {
        text: item.text.clone(),
        done: item.done,
        lines: None,
        model: None,
    };
    shared.todo.items.iter().map(item).collect()
}

/// Where a fleet begins, with everything about it in order.
struct Start {
    name: String,
    project: Project,
    shared: Shared,
    ground: Ground,
    remote: CloneRemote,
    /// As the user calls it.
    remote_name: String,
    /// The branch on which the work comes together.
    target: BranchName,
    deliver: DeliverTo,
    /// True if that branch has still to be made.
    is_to_push: bool,
}

impl Start {
    fn look(arguments: &CreateArguments) -> Result<Start, CreateError> {
        check_name(&arguments.name)?;
        if arguments.deliver == DeliverTo::Merge && arguments.branch.is_some() {
            return Err(CreateError::BranchOfMerge);
        }
        if let Some(passed_over) = Project::passed_over() {
            if passed_over.is_here() {
                return Err(CreateError::NotHere(passed_over.to_string()));
            }
            say_error(&passed_over);
        }
        let project = place::of_new_run(arguments.todo.as_deref());
        let shared = to_share(&project, &task(arguments)?)?;
        let ground = ground::check(&project)?;
        if !git::is_tracked(project.root(), &shared.plan) {
            return Err(CreateError::PlanNotCommitted(one_line(&shared.plan)));
        }
        let remote = CloneRemote::open(&ground.repository, &arguments.remote)?;
        let remote_name = one_line(&arguments.remote);
        check_pushed(&ground, &remote, &remote_name, arguments.deliver)?;
        if remote.has_below(&format!("plimsoll-items/{}", arguments.name))? {
            return Err(CreateError::ItemsThere(arguments.name.clone(), remote_name));
        }
        let usual = || format!("plimsoll/{}", arguments.name);
        let (target, is_to_push) = match arguments.deliver {
            DeliverTo::Merge => (branch_name(&ground.branch)?, false),
            DeliverTo::Branch => {
                let target = arguments.branch.clone().unwrap_or_else(usual);
                let target = branch_name(&target)?;
                let is_to_push = is_to_push(&ground, &remote, &remote_name, &target)?;
                (target, is_to_push)
            }
        };
        let deliver = arguments.deliver;
        let name = arguments.name.clone();
        Ok(Start { name, project, shared, ground, remote, remote_name, target, deliver, is_to_push })
    }

    /// Makes the branch on which the work comes together; with `merge` it is only asked whether it may be pushed to.
    fn push(&self) -> Result<(), CreateError> {
        let commit = &self.ground.commit;
        match self.deliver {
            DeliverTo::Branch if self.is_to_push => self.remote.make(&self.target, commit)?,
            DeliverTo::Branch => {}
            DeliverTo::Merge => {
                // As a worker would push its branch; none of that name ever is, for items are counted from 1.
                let probe = branch_name(&format!("plimsoll-items/{}/0/0", self.name))?;
                self.remote.may_make(&probe, commit)?;
            }
        }
        Ok(())
    }

    fn plan(&self, arguments: &CreateArguments) -> NewPlan {
        let below = self.ground.below.to_string_lossy().into_owned();
        let plan_file = self.ground.below.join(&self.shared.plan).to_string_lossy().into_owned();
        NewPlan {
            name: arguments.name.clone(),
            repo: self.remote.address(),
            target: self.target.to_string(),
            verify: arguments.verify.clone(),
            deliver: match self.deliver {
                DeliverTo::Branch => Deliver::Branch,
                DeliverTo::Merge => Deliver::Merge,
            },
            objective_hash: objective_hash(&self.shared.task),
            max_cost: arguments.max_cost,
            began_at: self.ground.commit.to_string(),
            plan_file,
            plan_is_tracked: true,
            below,
            promise: arguments.promise.to_string(),
            max_sessions: arguments.max_iterations,
        }
    }

    /// The branch is there, and the fleet is not: the user is told before the error.
    fn complain(&self, error: FleetError) -> FleetError {
        if self.is_to_push {
            say_error(&format!(
                "the branch `{}` is on {} by now; repeat this command to go on with it",
                one_line(self.target.as_str()),
                self.remote_name
            ));
        }
        error
    }

    fn say_what_now(&self, arguments: &CreateArguments) {
        let name = &arguments.name;
        let open = self.shared.todo.open().len();
        say(format!(
            "the fleet `{name}` is created: {}, from {}",
            counted(open, "open item"),
            short(&self.ground.commit)
        ));
        say(format!("its work comes together on {} of {}", one_line(self.target.as_str()), self.remote_name));
        if !git::is_tracked(self.project.root(), "PROMPT.md") {
            say(
                "the task is not in the repository: give it to each machine, as PROMPT.md or with --objective-file",
            );
        }
        say(format!("in a clone on each machine: plimsoll fleet join {name} --workers N -- CLIENT ARGS"));
    }
}

fn check_name(name: &str) -> Result<(), CreateError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let begins_well = name.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    // git takes no such parts of a branch's name.
    let is_of_git = name.contains("..") || name.ends_with('.') || name.ends_with(".lock");
    if begins_well && !is_of_git && name.len() <= LONGEST_NAME && name.chars().all(is_plain) {
        Ok(())
    } else {
        Err(CreateError::BadName(one_line(name)))
    }
}

fn task(arguments: &CreateArguments) -> Result<NewRun, CreateError> {
    let objective = match &arguments.objective_file {
        Some(file) => {
            let path = environment::current_dir().join(file);
            Some(disk::read_text(&path)?.ok_or(CreateError::NoObjective(path))?)
        }
        None => arguments.objective.clone(),
    };
    Ok(NewRun { objective, todo: arguments.todo.clone(), ..NewRun::default() })
}

/// The commit that is checked out is on the remote's branch; with `merge` it is that branch's end, so that the plan is the one there.
fn check_pushed(
    ground: &Ground,
    remote: &CloneRemote,
    name: &str,
    deliver: DeliverTo,
) -> Result<(), CreateError> {
    let commit = &ground.commit;
    let (branch, remote_name) = (one_line(&ground.branch), name.to_owned());
    let Some(tip) = remote.tip(&branch_name(&ground.branch)?)? else {
        return Err(CreateError::NotThere { branch, remote: remote_name });
    };
    match (remote.contains(&tip, commit), deliver) {
        (false, _) => Err(CreateError::NotPushed { commit: short(commit), branch, remote: remote_name }),
        (true, DeliverTo::Merge) if tip != *commit => {
            Err(CreateError::Behind { branch, remote: remote_name })
        }
        (true, _) => Ok(()),
    }
}

/// False if a kill has left the branch just as it would be made.
fn is_to_push(
    ground: &Ground,
    remote: &CloneRemote,
    name: &str,
    target: &BranchName,
) -> Result<bool, CreateError> {
    match remote.tip(target)? {
        None => Ok(true),
        Some(tip) if tip == ground.commit => Ok(false),
        Some(tip) => Err(CreateError::TargetThere {
            branch: one_line(target.as_str()),
            remote: name.to_owned(),
            commit: short(&tip),
        }),
    }
}

fn branch_name(name: &str) -> Result<BranchName, CreateError> {
    BranchName::parse(name).map_err(|error| BranchError::BadName(error.0).into())
}

fn short(commit: &CommitId) -> String {
    commit.as_str().chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_part_of_a_branch_and_of_a_path() {
        for name in ["night", "2026-01-07", "a.b_c-D"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let long = "a".repeat(LONGEST_NAME + 1);
        for name in ["", "-x", ".x", "a/b", "a b", "a..b", "a.", "a.lock", "größer", "a\nb", &long] {
            assert!(matches!(check_name(name), Err(CreateError::BadName(_))), "{name}");
        }
    }
}
