//! What a machine that joins has to know of a fleet.

use super::Fleet;
use crate::database::Parameter;
use crate::fault::FleetError;
use crate::rows::{Parsed, moment, number};
use plimsoll_domain::board::Moment;
use plimsoll_domain::git_names::{BranchName, CommitId, InvalidRepoPath, RepoPath};
use plimsoll_policy::workers::LEASE;
use postgres::types::Type;
use postgres::{Error, Row};

const PLAN: &str = "
    select created, repo, target, verify, objective_hash, began_at, plan_file, plan_is_tracked, below, promise, ended,
      array(select text from plimsoll.item where plan = $1 order by place) as items
    from plimsoll.plan where id = $1";
const NOTE: &str = "
    insert into plimsoll.event (at, plan, worker, kind, detail) values (plimsoll.moment(), $1, $2, $3, $4)";
const OTHER_VERSIONS: &str = "
    select distinct machine, version from plimsoll.worker
    where plan = $1 and version <> $2 and seen > plimsoll.moment() - $3 order by machine, version limit 10";

/// A fleet's plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SharedPlan {
    /// When it was created, by the database's clock: an earlier fleet of its name has another moment.
    pub(crate) created: Moment,
    /// The git remote, without what lets somebody in.
    pub(crate) repo: String,
    pub(crate) target: BranchName,
    pub(crate) verify: Vec<String>,
    pub(crate) objective_hash: String,
    pub(crate) began_at: CommitId,
    /// From the repository's root on.
    pub(crate) plan_file: String,
    pub(crate) plan_is_tracked: bool,
    /// The project's folder, from the repository's root on.
    pub(crate) below: String,
    pub(crate) promise: String,
    pub(crate) ended: Option<String>,
    pub(crate) items: Vec<String>,
}

impl Fleet {
    /// The plan as it is to be worked on.
    pub(crate) fn shared_plan(&mut self) -> Result<SharedPlan, FleetError> {
        let found =
            self.database.read("read the plan", PLAN, &[(&self.plan, Type::INT8)], shared_plan)?.pop();
        found.ok_or_else(|| FleetError::NoPlan(self.name.clone()))
    }

    /// Adds a line about a machine to the journal.
    pub(crate) fn note_machine(&mut self, machine: &str, kind: &str, detail: &str) -> Result<(), FleetError> {
        let parameters: [Parameter<'_>; 4] =
            [(&self.plan, Type::INT8), (&machine, Type::TEXT), (&kind, Type::TEXT), (&detail, Type::TEXT)];
        self.database.query("write the journal", NOTE, &parameters).map(drop)
    }

    /// Machines that work with another version, each with it.
    pub(crate) fn other_versions(&mut self) -> Result<Vec<String>, FleetError> {
        let (version, lease) = (env!("CARGO_PKG_VERSION"), number(LEASE));
        let parameters: [Parameter<'_>; 3] =
            [(&self.plan, Type::INT8), (&version, Type::TEXT), (&lease, Type::INT8)];
        let words = |row: &Row| {
            Ok(format!("{} ({})", row.try_get::<_, &str>("machine")?, row.try_get::<_, &str>("version")?))
        };
        self.database.read("look at the other machines", OTHER_VERSIONS, &parameters, words)
    }
}

/// A folder of the repository, or nothing for its root.
struct PathOrRoot(String);

impl TryFrom<String> for PathOrRoot {
    type Error = InvalidRepoPath;

    fn try_from(text: String) -> Result<PathOrRoot, InvalidRepoPath> {
        if !text.is_empty() {
            RepoPath::parse(&text)?;
        }
        Ok(PathOrRoot(text))
    }
}

fn shared_plan(row: &Row) -> Result<SharedPlan, Error> {
    Ok(SharedPlan {
        created: moment(row.try_get("created")?),
        repo: row.try_get("repo")?,
        target: row.try_get::<_, Parsed<BranchName>>("target")?.0,
        verify: row.try_get("verify")?,
        objective_hash: row.try_get("objective_hash")?,
        began_at: row.try_get::<_, Parsed<CommitId>>("began_at")?.0,
        plan_file: row.try_get::<_, Parsed<RepoPath>>("plan_file")?.0.into(),
        plan_is_tracked: row.try_get("plan_is_tracked")?,
        below: row.try_get::<_, Parsed<PathOrRoot>>("below")?.0.0,
        promise: row.try_get("promise")?,
        ended: row.try_get("ended")?,
        items: row.try_get("items")?,
    })
}
