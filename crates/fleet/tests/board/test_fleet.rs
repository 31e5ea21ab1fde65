//! A fleet whose operations take the name of a member instead of its token. The tests of the whole program include this file, too.

use plimsoll_domain::workers::{ItemOutcome, ItemResult, MemberToken};
use plimsoll_fleet::{Fleet, FleetError, Member, WorkerReport};
use plimsoll_flows::workers::connection::RejectedItem;
use plimsoll_policy::workers::Claim;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// A fleet that knows which member made each claim and which member became the merger.
pub(crate) struct TestFleet {
    fleet: Fleet,
    claimants: HashMap<(usize, u64), Member>,
    mergers: HashMap<u64, Member>,
    last_merger: Option<Member>,
}

/// Returns the member with this name and the token that all tests use for it.
pub(crate) fn member(name: &str) -> Member {
    Member::new(name, &MemberToken::from(format!("the secret token of the member {name}")))
}

impl TestFleet {
    pub(crate) fn new(fleet: Fleet) -> TestFleet {
        TestFleet { fleet, claimants: HashMap::new(), mergers: HashMap::new(), last_merger: None }
    }

    pub(crate) fn into_fleet(self) -> Fleet {
        self.fleet
    }

    /// Claims an item for the first worker of a member.
    pub(crate) fn claim_next_item(&mut self, member_name: &str) -> Result<Option<Claim>, FleetError> {
        let claim = self.fleet.claim_next_item(&member(member_name), 1, &[])?;
        if let Some(claim) = claim {
            self.claimants.insert((claim.item_index, claim.epoch), member(member_name));
        }
        Ok(claim)
    }

    /// Returns the member that made a claim; nobody can use the claim of an unknown member.
    fn claimant(&self, claim: Claim) -> Member {
        let claimant = self.claimants.get(&(claim.item_index, claim.epoch)).cloned();
        claimant.unwrap_or_else(|| member("nobody"))
    }

    pub(crate) fn renew_claim_unless_stale_or_overlapping(&mut self, claim: Claim) -> Result<(), FleetError> {
        let member = self.claimant(claim);
        self.fleet.renew_claim_unless_stale_or_overlapping(&member, claim)
    }

    pub(crate) fn record_outcome(
        &mut self,
        claim: Claim,
        start: &str,
        outcome: ItemOutcome,
    ) -> Result<(), FleetError> {
        let (item, epoch, start_commit_id) = (claim.item_index, claim.epoch, start.to_owned());
        self.store_result_unless_outcome_taken_by_other(&ItemResult {
            item,
            epoch,
            // Work has a base as well; which one does not matter here.
            base_commit_id: start_commit_id.clone(),
            start_commit_id,
            outcome,
            ..ItemResult::default()
        })
    }

    pub(crate) fn store_result_unless_outcome_taken_by_other(
        &mut self,
        result: &ItemResult,
    ) -> Result<(), FleetError> {
        let member = self.claimant(Claim { item_index: result.item, epoch: result.epoch });
        self.fleet.store_result_unless_outcome_taken_by_other(&member, result)
    }

    pub(crate) fn offer_commit(&mut self, claim: Claim, commit: &str) -> Result<(), FleetError> {
        self.record_outcome(claim, commit, ItemOutcome::Offered)
    }

    pub(crate) fn give_back(&mut self, claim: Claim) -> Result<(), FleetError> {
        self.record_outcome(claim, "", ItemOutcome::Released)
    }

    pub(crate) fn fail(&mut self, claim: Claim, reason: &str) -> Result<(), FleetError> {
        self.record_outcome(claim, "", ItemOutcome::Failed(reason.to_owned()))
    }

    pub(crate) fn set_aside_with_question(&mut self, claim: Claim, question: &str) -> Result<(), FleetError> {
        self.record_outcome(claim, "", ItemOutcome::WaitsForAnswer(question.to_owned()))
    }

    pub(crate) fn acquire_or_renew_merger_lease(
        &mut self,
        member_name: &str,
    ) -> Result<Option<u64>, FleetError> {
        let epoch = self.fleet.acquire_or_renew_merger_lease(&member(member_name))?;
        if let Some(epoch) = epoch {
            self.mergers.insert(epoch, member(member_name));
            self.last_merger = Some(member(member_name));
        }
        Ok(epoch)
    }

    fn merger(&self, merger_epoch: u64) -> Member {
        self.mergers.get(&merger_epoch).cloned().unwrap_or_else(|| member("nobody"))
    }

    pub(crate) fn record_merge_candidate_commit(
        &mut self,
        merger_epoch: u64,
        item: usize,
        commit: &str,
    ) -> Result<(), FleetError> {
        let member = self.merger(merger_epoch);
        self.fleet.record_merge_candidate_commit(&member, merger_epoch, item, commit)
    }

    pub(crate) fn reopen_or_set_aside_rejected_item(
        &mut self,
        rejected_item: &RejectedItem,
    ) -> Result<(), FleetError> {
        let member = self.merger(rejected_item.merger_epoch);
        self.fleet.reopen_or_set_aside_rejected_item(&member, rejected_item)
    }

    /// Marks items as merged if one of their commits is in the target branch, as the merger does.
    pub(crate) fn mark_landed_merged(
        &mut self,
        is_in_target: impl Fn(&str) -> bool,
    ) -> Result<Vec<usize>, FleetError> {
        let landed_commit = |(item, commits): (usize, Vec<String>)| {
            Some((item, commits.into_iter().find(|commit| is_in_target(commit))?))
        };
        let candidates = self.fleet.read_candidate_commits_of_unmerged_items()?.into_iter();
        let landed_items: Vec<(usize, String)> = candidates.filter_map(landed_commit).collect();
        let merger = self.last_merger.clone().unwrap_or_else(|| member("nobody"));
        self.fleet.mark_items_with_commits_as_merged(&merger, &landed_items)
    }

    pub(crate) fn pause_claims_for_at_least(&mut self, duration: Duration) -> Result<(), FleetError> {
        self.fleet.pause_claims_for_at_least(&member("limited"), duration)
    }

    /// Reports the first worker of a member.
    pub(crate) fn record_worker_report(
        &mut self,
        member_name: &str,
        report: &WorkerReport,
    ) -> Result<(), FleetError> {
        let report = WorkerReport { worker_number: 1, ..report.clone() };
        self.fleet.record_worker_report(&member(member_name), &report)
    }
}

impl Deref for TestFleet {
    type Target = Fleet;

    fn deref(&self) -> &Fleet {
        &self.fleet
    }
}

impl DerefMut for TestFleet {
    fn deref_mut(&mut self) -> &mut Fleet {
        &mut self.fleet
    }
}
