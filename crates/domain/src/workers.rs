//! What a parallel run keeps beside its state, outside the project: the board, where its work comes together, and how far each
//! item's own run is.

use crate::board::{BoardState, Stage};
use crate::cost::CostBasis;
use crate::format::Format;
use crate::git_names::{BranchName, CommitId, InvalidBranchName, InvalidCommitId};
use serde::{Deserialize, Serialize};

/// Where a fleet's database is: for the process that is a member, not for what sessions wrote.
pub const DATABASE_VARIABLE: &str = "PLIMSOLL_DATABASE_URL";

/// Everything that a parallel run decides by.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Workers {
    /// The format of the file.
    pub format: Format,
    /// Who works on what.
    pub board: BoardState,
    /// The branch into which everything is merged.
    pub target: String,
    /// The commit at which it began.
    pub began_at: String,
    /// The branch that was checked out then.
    pub users_branch: String,
    /// The plan, from the project's folder on.
    pub plan: String,
    /// True if git follows the plan: then its ticks are committed.
    pub plan_is_tracked: bool,
    /// Verify commands that have passed on the target: from then on they must.
    pub passed: Vec<String>,
    /// True while the board is paused because of what all runs of the user may spend on a day: a resume may allow more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_next_day: bool,
    /// Why no new item starts any more, while the sessions that are running come to their end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// One for each item of the board.
    pub works: Vec<Work>,
    /// What else a machine keeps whose board is shared with others: `board` is then what it has last seen of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<Member>,
}

/// A text in a record that git must not be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It stands for a commit.
    #[error(transparent)]
    Commit(#[from] InvalidCommitId),
    /// It stands for a branch.
    #[error(transparent)]
    Branch(#[from] InvalidBranchName),
}

/// A machine that works on the plan of a fleet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    /// The fleet's name.
    pub fleet: String,
    /// This machine's own name in it, with which its workers' names begin.
    pub name: String,
    /// What the clone calls the remote.
    pub remote: String,
    /// What the shared board has still to be told, in its order.
    pub outbox: Vec<ItemResult>,
    /// What each worker has cost in runs that are over, from the first worker on, in US dollars.
    pub spent_usd: Vec<f64>,
    /// Nothing is begun here before, by this machine's clock: what this machine's user may spend on a day holds up nobody else.
    #[serde(skip_serializing_if = "is_zero")]
    pub paused_until: u64,
}

/// What serde asks with.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What has become of an item here: it is told once the branch is on the remote, and again until it is heard.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemResult {
    /// The item's place on the board.
    pub item: usize,
    /// With which it was claimed.
    pub epoch: u64,
    /// The end of its commits, where the next attempt begins; empty for the target's end.
    pub start: String,
    /// Its own commits are those beyond this one.
    pub beyond: String,
    /// What its run has used.
    pub used: Used,
    /// What has become of it.
    pub outcome: ItemOutcome,
}

/// What has become of an item.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemOutcome {
    /// Its work is done.
    Offered,
    /// Its run could not do it, for this reason.
    Failed(String),
    /// It waits for the user's answer to this question.
    Asked(String),
    /// Nobody works on it any more.
    GivenBack,
    /// It is somebody else's by now: its branch is kept, and that is all.
    #[default]
    Kept,
}

/// What is known of an item's work beside its place on the board.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// The commit at which its branch begins; empty for the target's end.
    pub start: String,
    /// Its own commits are those beyond this one.
    pub beyond: String,
    /// The run of an earlier attempt, which had come to its end in the worktree when the present one began there: until that has a
    /// state of its own, this is what lies there, and it says nothing of the present attempt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub earlier_run: String,
    /// The worker, from 1; 0 before the first.
    pub worker: usize,
    /// True if the worker waits: for the end of a limit, for money, or for its turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_waiting: bool,
    /// With which epoch this machine took it last, where others take items, too.
    #[serde(skip_serializing_if = "is_zero")]
    pub epoch: u64,
    /// The process of its run.
    pub pid: Option<u32>,
    /// When that began, in the system's ticks since boot.
    pub process_started: u64,
    /// What its present run may spend, in US dollars.
    pub allowance_usd: Option<f64>,
    /// What its present run has used.
    pub now: Used,
    /// What its earlier runs have used, and its present one in earlier attempts.
    pub before: Used,
    /// What the present run had used in those: it went on where it was.
    #[serde(skip_serializing_if = "Used::is_nothing")]
    pub counted: Used,
    /// The last question that a fleet's sessions asked of it, with the user's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<(String, String)>,
}

impl Work {
    /// The commit at which its branch begins; none for the target's end.
    pub fn start_commit(&self) -> Option<Result<CommitId, InvalidCommitId>> {
        (!self.start.is_empty()).then(|| CommitId::parse(&self.start))
    }
}

/// What an item's sessions have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Used {
    /// Dollars.
    pub cost_usd: f64,
    /// How far that can be relied on.
    #[serde(skip_serializing_if = "CostBasis::is_reported")]
    pub cost_basis: CostBasis,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// Sessions.
    pub sessions: u32,
}

impl Used {
    fn is_nothing(&self) -> bool {
        *self == Used::default()
    }

    /// What was used beyond this.
    pub fn beyond(self, before: Used) -> Used {
        Used {
            cost_usd: (self.cost_usd - before.cost_usd).max(0.0),
            cost_basis: self.cost_basis,
            tokens: self.tokens.saturating_sub(before.tokens),
            sessions: self.sessions.saturating_sub(before.sessions),
        }
    }
}

impl std::ops::AddAssign for Used {
    fn add_assign(&mut self, more: Used) {
        self.cost_usd += more.cost_usd;
        self.cost_basis = self.cost_basis.max(more.cost_basis);
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.sessions = self.sessions.saturating_add(more.sessions);
    }
}

impl Workers {
    /// Fails on the first text that is no commit or branch: git is told nothing else.
    pub fn check_names(&self) -> Result<(), InvalidName> {
        let commits = self.works.iter().flat_map(|work| [&work.start, &work.beyond]);
        let offered = self.board.items.iter().filter_map(|row| match &row.stage {
            Stage::Offered { commit } => Some(commit),
            Stage::Open | Stage::Leased { .. } | Stage::Merged | Stage::Aside { .. } => None,
        });
        let landings = self.board.items.iter().flat_map(|row| &row.landings);
        let all = commits.chain(offered).chain(landings).chain([&self.began_at]);
        // An empty one stands for the target's end.
        for commit in all.filter(|commit| !commit.is_empty()) {
            CommitId::parse(commit)?;
        }
        Ok(self.target_branch().map(drop)?)
    }

    /// The branch into which everything is merged.
    pub fn target_branch(&self) -> Result<BranchName, InvalidBranchName> {
        BranchName::parse(&self.target)
    }

    /// The branch of one attempt at an item.
    pub fn attempt_branch(&self, item: usize, epoch: u64) -> Result<BranchName, InvalidBranchName> {
        BranchName::parse(&self.branch(item, epoch))
    }

    /// Returns true if a worker of this machine holds an item.
    pub fn is_held_here(&self, item: usize) -> bool {
        let Some(Stage::Leased { lease }) = self.board.items.get(item).map(|row| &row.stage) else {
            return false;
        };
        let is_ours = |member: &Member| {
            lease.holder.strip_prefix(member.name.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        self.member.as_ref().is_none_or(is_ours)
    }

    /// What all items have used together.
    pub fn used(&self) -> Used {
        let mut sum = Used::default();
        self.works.iter().for_each(|work| {
            sum += work.before;
            sum += work.now;
        });
        sum
    }

    /// The branch of one attempt at an item. Not below the target's name: git keeps no branch below another.
    pub fn branch(&self, item: usize, epoch: u64) -> String {
        let of_run = || self.target.strip_prefix("plimsoll/").unwrap_or(&self.target);
        let name = self.member.as_ref().map_or_else(of_run, |member| &member.fleet);
        format!("plimsoll-items/{name}/{}/{epoch}", item + 1)
    }
}

impl Workers {
    /// Keeps what has become of an item for the shared board, if there is one.
    pub fn tell(&mut self, item: usize, epoch: u64, outcome: ItemOutcome) {
        let Some(member) = &mut self.member else { return };
        let work = &self.works[item];
        // Without a commit of its own the next attempt begins at the target's end as it is then.
        let is_bare = work.start == work.beyond && outcome != ItemOutcome::Offered;
        let place = |commit: &String| if is_bare { String::new() } else { commit.clone() };
        let (start, beyond, used) = (place(&work.start), place(&work.beyond), work.now);
        member.outbox.push(ItemResult { item, epoch, start, beyond, used, outcome });
    }

    /// Keeps which verify commands have passed on the target.
    pub fn note_passed(&mut self, commands: &[String]) {
        for command in commands {
            if !self.passed.contains(command) {
                self.passed.push(command.clone());
            }
        }
    }

    /// What a worker of this machine has cost from its beginning on, in US dollars.
    pub fn cost_of_worker(&self, worker: usize) -> f64 {
        let over = self.member.as_ref().and_then(|member| member.spent_usd.get(worker.wrapping_sub(1)));
        let at_work = self.works.iter().filter(|work| work.worker == worker);
        over.copied().unwrap_or_default() + at_work.map(|work| work.now.cost_usd).sum::<f64>()
    }

    /// Counts what an item's run has used among its earlier ones, and its worker's: another begins, or this one goes on in another
    /// attempt.
    pub fn count_before(&mut self, item: usize, goes_on: bool) {
        let work = &mut self.works[item];
        let now = std::mem::take(&mut work.now);
        work.before += now;
        match goes_on {
            true => work.counted += now,
            false => work.counted = Used::default(),
        }
        if let (Some(member), Some(worker)) = (&mut self.member, work.worker.checked_sub(1)) {
            if member.spent_usd.len() <= worker {
                member.spent_usd.resize(worker + 1, 0.0);
            }
            member.spent_usd[worker] += now.cost_usd;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_has_cost_never_becomes_less_whoever_takes_up_its_items() {
        let used = |cost_usd| Used { cost_usd, ..Used::default() };
        let cents =
            |known: &Workers| [1, 2].map(|worker| (known.cost_of_worker(worker) * 100.0).round() as u32);
        let member = Some(Member { fleet: "night".into(), ..Member::default() });
        let mut known = Workers { works: vec![Work::default(); 2], member, ..Workers::default() };
        (known.works[0].worker, known.works[0].now) = (2, used(1.0));
        (known.works[1].worker, known.works[1].now) = (1, used(0.5));
        assert_eq!(cents(&known), [50, 100]);
        known.count_before(0, true);
        assert_eq!(used(1.5).beyond(known.works[0].counted), used(0.5));
        known.works[0].worker = 1;
        known.works[0].now = used(0.25);
        assert_eq!(cents(&known), [75, 100]);
        assert_eq!(known.branch(0, 2), "plimsoll-items/night/1/2");
        (known.works[0].start, known.works[0].beyond) = ("a".into(), "b".into());
        known.tell(0, 2, ItemOutcome::Offered);
        let text = serde_json::to_string(&known).expect("JSON");
        assert_eq!(serde_json::from_str::<Workers>(&text).expect("a record"), known);
    }

    #[test]
    fn a_record_is_read_back_and_an_item_has_a_branch_for_each_attempt() {
        let text = include_str!("workers/sample.json");
        let known: Workers = serde_json::from_str(text).expect("a record");
        assert_eq!(known.branch(1, 3), "plimsoll-items/fix_plan-1a2b3c4d/2/3");
        assert_eq!(known.used(), Used { cost_usd: 0.75, tokens: 3_000, sessions: 3, ..Used::default() });
        let again: Workers =
            serde_json::from_str(&serde_json::to_string(&known).expect("JSON")).expect("same");
        assert_eq!(again, known);
        let sample: serde_json::Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(serde_json::to_value(&known).expect("JSON"), sample);
    }
}
