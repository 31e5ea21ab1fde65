//! The parts of a fleet's plan that a joining machine needs.

use super::Fleet;
use crate::database::Parameter;
use crate::database_error::FleetError;
use crate::rows::{ParsedColumn, from_i64_or_zero};
use plimsoll_domain::board::BoardMillis;
use plimsoll_domain::git_names::{BranchName, CommitId, InvalidRepoPath, RepoPath};
use plimsoll_flows::workers::PlanOnTarget;
use postgres::types::Type;
use postgres::{Error, Row};

const READ_SHARED_PLAN: &str = "
    select created, repo, target, verify, objective_hash, began_at, plan_file, plan_is_tracked, below, promise, ended,
      array(select text from {fleet}.item order by place) as items
    from {fleet}.plan";
const READ_OTHER_VERSIONS: &str = "
    select distinct machine, version from {fleet}.worker
    where version <> $1 and {fleet}.is_there(seen) order by machine, version limit 10";

/// The plan of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SharedPlan {
    /// Creation time by the database's clock. It differs from that of an earlier fleet with the same name.
    pub(crate) created_at: BoardMillis,
    /// Address of the git remote, without credentials.
    pub(crate) remote_address: String,
    pub(crate) target_branch: BranchName,
    pub(crate) verify_commands: Vec<String>,
    pub(crate) objective_hash: String,
    pub(crate) start_commit: CommitId,
    /// Relative to the repository's root.
    pub(crate) plan_file: String,
    pub(crate) is_plan_tracked: bool,
    /// The project's folder, relative to the repository's root.
    pub(crate) project_folder: String,
    pub(crate) promise_word: String,
    pub(crate) end_reason: Option<String>,
    pub(crate) item_texts: Vec<String>,
}

impl SharedPlan {
    /// Returns the plan as the target branch has it, or `None` if git does not track it.
    pub(crate) fn plan_on_target(&self) -> Option<PlanOnTarget> {
        let file = RepoPath::parse(&self.plan_file).ok().filter(|_| self.is_plan_tracked)?;
        Some(PlanOnTarget { file, item_texts: self.item_texts.clone() })
    }
}

impl Fleet {
    /// Reads the fleet's plan.
    pub(crate) fn read_shared_plan(&mut self) -> Result<SharedPlan, FleetError> {
        let plan = self.query_and_map("read the plan", READ_SHARED_PLAN, &[], shared_plan_from_row)?.pop();
        plan.ok_or_else(|| FleetError::FleetNotFound(self.name.to_string()))
    }

    /// Reads at most 10 active machines that run another version of Plimsoll, each as `NAME (VERSION)`.
    pub(crate) fn describe_active_machines_of_other_versions(&mut self) -> Result<Vec<String>, FleetError> {
        let parameters: [Parameter<'_>; 1] = [(&env!("CARGO_PKG_VERSION"), Type::TEXT)];
        let format_machine_and_version = |row: &Row| {
            Ok(format!("{} ({})", row.try_get::<_, &str>("machine")?, row.try_get::<_, &str>("version")?))
        };
        self.query_and_map(
            "look at the other machines",
            READ_OTHER_VERSIONS,
            &parameters,
            format_machine_and_version,
        )
    }
}

/// A folder of the repository; empty for the root.
struct RepoFolderOrRoot(String);

impl TryFrom<String> for RepoFolderOrRoot {
    type Error = InvalidRepoPath;

    fn try_from(text: String) -> Result<RepoFolderOrRoot, InvalidRepoPath> {
        if !text.is_empty() {
            RepoPath::parse(&text)?;
        }
        Ok(RepoFolderOrRoot(text))
    }
}

fn shared_plan_from_row(row: &Row) -> Result<SharedPlan, Error> {
    Ok(SharedPlan {
        created_at: from_i64_or_zero(row.try_get("created")?),
        remote_address: row.try_get("repo")?,
        target_branch: row.try_get::<_, ParsedColumn<BranchName>>("target")?.0,
        verify_commands: row.try_get("verify")?,
        objective_hash: row.try_get("objective_hash")?,
        start_commit: row.try_get::<_, ParsedColumn<CommitId>>("began_at")?.0,
        plan_file: row.try_get::<_, ParsedColumn<RepoPath>>("plan_file")?.0.into(),
        is_plan_tracked: row.try_get("plan_is_tracked")?,
        project_folder: row.try_get::<_, ParsedColumn<RepoFolderOrRoot>>("below")?.0.0,
        promise_word: row.try_get("promise")?,
        end_reason: row.try_get("ended")?,
        item_texts: row.try_get("items")?,
    })
}
