//! Checks which of the items that the board lists as merged are in the target branch. The database cannot check
//! that, and each member of the fleet may record an item as merged. This machine therefore builds only on items
//! that it has found in the target itself: no other item is ticked, no item that depends on it is begun here, and
//! the run does not count as completed.
//!
//! An item is checked in the thread that also delivers results, because the check needs the remote. Until then, and
//! while a git host may answer from a replica that lags behind, the item counts as work in progress. An item that
//! is still missing after that counts as set aside. Work that has begun goes on, even if an item on which it
//! depends turns out to be missing, for example after a resume: the verify commands decide whether it is merged.

use super::FleetBoard;
use crate::workers::error::BoardError;
use crate::workers::pending_items::quote_item_with_number;
use crate::workers::unchecked_item::unchecked_item_stage;
use plimsoll_domain::board::{ItemStage, SetAsideReason};
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::workers::WorkersState;
use plimsoll_launcher::remote_repository::RemoteError;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How often items are checked, depending on the most urgent one.
const UNCHECKED_INTERVAL: Duration = Duration::from_secs(1);
const MISSING_INTERVAL: Duration = Duration::from_secs(5);
const UNCONFIRMED_INTERVAL: Duration = Duration::from_secs(60);

/// The result of the check of an item that the board lists as merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MergeCheck {
    /// It was not checked yet.
    Unchecked,
    /// The target did not contain it at this time; it is checked again.
    Missing { since: Instant },
    /// The target does not contain it.
    Unconfirmed,
    /// The target contains it.
    Confirmed,
}

/// The checks of all items that the board lists as merged.
#[derive(Debug, Default)]
pub(super) struct MergeChecks {
    checks_by_item: BTreeMap<usize, MergeCheck>,
    last_check_at: Option<Instant>,
    /// Unconfirmed items that the user and the board do not know yet.
    items_to_announce: BTreeSet<usize>,
    items_to_report: BTreeSet<usize>,
}

impl MergeChecks {
    /// Replaces the items that the board lists as merged. An item that it lists as open again is forgotten.
    pub(super) fn set_listed_items(&mut self, listed_items: impl Iterator<Item = usize>) {
        let earlier_checks = std::mem::take(&mut self.checks_by_item);
        self.checks_by_item = listed_items
            .map(|item| (item, earlier_checks.get(&item).copied().unwrap_or(MergeCheck::Unchecked)))
            .collect();
        self.items_to_announce.retain(|item| self.checks_by_item.contains_key(item));
        self.items_to_report.retain(|item| self.checks_by_item.contains_key(item));
    }

    /// Records that this machine has found an item in the target.
    pub(super) fn confirm_item(&mut self, item: usize) {
        self.checks_by_item.insert(item, MergeCheck::Confirmed);
        self.items_to_announce.remove(&item);
        self.items_to_report.remove(&item);
    }

    /// Returns true if the board lists the item as merged.
    pub(super) fn is_listed(&self, item: usize) -> bool {
        self.checks_by_item.contains_key(&item)
    }

    /// Returns the items that are listed as merged and that this machine has not found in the target.
    pub(super) fn items_not_confirmed(&self) -> Vec<usize> {
        self.items_with_check(|check| check != MergeCheck::Confirmed)
    }

    /// Returns true while it is not decided for each item whether the target contains it.
    pub(super) fn has_undecided_items(&self) -> bool {
        !self.items_with_check(is_undecided).is_empty()
    }

    fn items_with_check(&self, is_included: impl Fn(MergeCheck) -> bool) -> Vec<usize> {
        let is_included = |(_, check): &(&usize, &MergeCheck)| is_included(**check);
        self.checks_by_item.iter().filter(is_included).map(|(item, _)| *item).collect()
    }

    /// Returns an unconfirmed item that the user does not know yet, and counts it as announced.
    pub(super) fn take_item_to_announce(&mut self) -> Option<usize> {
        self.items_to_announce.pop_first()
    }

    pub(super) fn has_items_to_announce(&self) -> bool {
        !self.items_to_announce.is_empty()
    }

    /// Returns true if items are to be checked now.
    fn is_due(&self, now: Instant) -> bool {
        let has_item = |is_included: fn(MergeCheck) -> bool| !self.items_with_check(is_included).is_empty();
        let interval = if has_item(|check| check == MergeCheck::Unchecked) {
            UNCHECKED_INTERVAL
        } else if has_item(is_undecided) {
            MISSING_INTERVAL
        } else if has_item(|check| check == MergeCheck::Unconfirmed) {
            UNCONFIRMED_INTERVAL
        } else {
            return false;
        };
        self.last_check_at.is_none_or(|checked_at| now.saturating_duration_since(checked_at) >= interval)
    }

    /// Records the result of a check of these items. An item that is no longer listed is ignored.
    fn record_results(
        &mut self,
        checked_items: &[usize],
        missing_items: &BTreeSet<usize>,
        now: Instant,
        grace_period: Duration,
    ) {
        for item in checked_items {
            let Some(check) = self.checks_by_item.get_mut(item) else { continue };
            let earlier_check =
                std::mem::replace(check, next_check(*check, missing_items.contains(item), now, grace_period));
            if *check == MergeCheck::Confirmed {
                self.items_to_announce.remove(item);
                self.items_to_report.remove(item);
            } else if *check == MergeCheck::Unconfirmed && earlier_check != MergeCheck::Unconfirmed {
                self.items_to_announce.insert(*item);
                self.items_to_report.insert(*item);
            }
        }
    }

    /// Sets the stages of the listed items in this machine's record.
    pub(super) fn write_stages(&self, workers_state: &mut WorkersState) {
        let reason = unconfirmed_reason(workers_state);
        for (item, check) in &self.checks_by_item {
            if let Some(board_item) = workers_state.board.items.get_mut(*item) {
                board_item.stage = stage_of_listed_item(*check, &reason);
            }
        }
    }
}

fn is_undecided(check: MergeCheck) -> bool {
    match check {
        MergeCheck::Unchecked | MergeCheck::Missing { .. } => true,
        MergeCheck::Unconfirmed | MergeCheck::Confirmed => false,
    }
}

/// Returns what is known about an item after a check. A confirmed item stays confirmed, because the target only
/// moves forward.
fn next_check(check: MergeCheck, is_missing: bool, now: Instant, grace_period: Duration) -> MergeCheck {
    match check {
        MergeCheck::Confirmed => MergeCheck::Confirmed,
        _ if !is_missing => MergeCheck::Confirmed,
        MergeCheck::Unchecked => MergeCheck::Missing { since: now },
        MergeCheck::Missing { since } if now.saturating_duration_since(since) < grace_period => check,
        MergeCheck::Missing { .. } | MergeCheck::Unconfirmed => MergeCheck::Unconfirmed,
    }
}

/// Returns the stage that an item has in this machine's record if the board lists it as merged.
fn stage_of_listed_item(check: MergeCheck, unconfirmed_reason: &str) -> ItemStage {
    match check {
        MergeCheck::Unchecked | MergeCheck::Missing { .. } => unchecked_item_stage(),
        MergeCheck::Unconfirmed => {
            ItemStage::SetAside { reason: SetAsideReason::RunEnded(unconfirmed_reason.to_owned()) }
        }
        MergeCheck::Confirmed => ItemStage::Merged,
    }
}

fn unconfirmed_reason(workers_state: &WorkersState) -> String {
    let branch = &workers_state.target_branch_name;
    let fleet_name = workers_state.fleet_member.as_ref().map_or("", |member| &member.fleet);
    format!(
        "the fleet's database says that it is merged, but the branch {branch} does not contain it; see plimsoll doctor --fleet {fleet_name}"
    )
}

/// Returns a message about an unconfirmed item.
pub(super) fn message_about_unconfirmed_item(workers_state: &WorkersState, item: usize) -> String {
    let text = workers_state.board.items.get(item).map_or("", |board_item| &board_item.text);
    format!("item {}: {}", quote_item_with_number(item + 1, text), unconfirmed_reason(workers_state))
}

/// Checks the items that the board lists as merged, if some are to be checked now. Returns true if it has checked.
pub(super) fn check_listed_items_if_due(board: &FleetBoard, should_cancel: &dyn Fn() -> bool) -> bool {
    let is_due = board.lock_cached_state().merge_checks.is_due(Instant::now());
    if is_due {
        check_listed_items(board, should_cancel);
    }
    is_due
}

/// Fetches the target and checks which of the items that the board lists as merged it contains. If the board or
/// the remote cannot be reached, the outage is recorded, and the items are checked again later.
pub(super) fn check_listed_items(board: &FleetBoard, should_cancel: &dyn Fn() -> bool) {
    let items = board.lock_cached_state().merge_checks.items_not_confirmed();
    if items.is_empty() {
        return;
    }
    let missing_items = read_commits_and_find_missing_items(board, &items, should_cancel);
    board.lock_cached_state().merge_checks.last_check_at = Some(Instant::now());
    if let Some(missing_items) = missing_items {
        board.record_merge_check_results(&items, &missing_items);
    }
    report_unconfirmed_items(board);
}

impl FleetBoard {
    /// Checks the items that the board lists as merged once, so that a resumed run does not begin as if none of them
    /// were. If that fails, the thread that delivers results checks them.
    pub(in super::super::super) fn check_items_listed_as_merged(&self, should_cancel: &dyn Fn() -> bool) {
        check_listed_items(self, should_cancel);
    }

    /// Returns the items that the board lists as merged, that are not confirmed, and that the target contains.
    pub(super) fn find_listed_items_in_target(
        &self,
        is_in_target: &dyn Fn(usize, &str) -> bool,
        should_cancel: &dyn Fn() -> bool,
    ) -> Result<Vec<usize>, BoardError> {
        let items = self.lock_cached_state().merge_checks.items_not_confirmed();
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let mut items_and_commits = self.call_board_with_retry(should_cancel, |connection| {
            connection.read_merge_commits_of_merged_items(&items)
        })?;
        items_and_commits.retain(|(item, commits)| commits.iter().any(|commit| is_in_target(*item, commit)));
        Ok(items_and_commits.into_iter().map(|(item, _)| item).collect())
    }

    /// Returns a message about an item that is recorded as merged and missing from the target, once for each item.
    pub(super) fn take_message_about_unconfirmed_item(&self) -> Option<String> {
        let item = self.lock_cached_state().merge_checks.take_item_to_announce()?;
        Some(message_about_unconfirmed_item(&self.workers_file.workers_state(), item))
    }

    /// Records the result of a check of these items, also in this machine's record.
    pub(super) fn record_merge_check_results(&self, items: &[usize], missing_items: &BTreeSet<usize>) {
        let mut cached_state = self.lock_cached_state();
        let merge_checks = &mut cached_state.merge_checks;
        merge_checks.record_results(items, missing_items, Instant::now(), self.replica_grace_period);
        self.workers_file.update_in_memory(|workers| merge_checks.write_stages(workers));
    }

    /// Sets how long an item may be missing from the target before that counts.
    #[cfg(test)]
    pub(in super::super) fn with_replica_grace_period(mut self, grace_period: Duration) -> FleetBoard {
        self.replica_grace_period = grace_period;
        self
    }
}

/// Returns those of the items that are missing from the target, or `None` after an error. The board is read before
/// the target is fetched, because an item is merged before the board lists it.
fn read_commits_and_find_missing_items(
    board: &FleetBoard,
    items: &[usize],
    should_cancel: &dyn Fn() -> bool,
) -> Option<BTreeSet<usize>> {
    let start_commit = match CommitId::parse(&board.workers_file.workers_state().start_commit_id) {
        Ok(start_commit) => start_commit,
        Err(error) => {
            board.record_permanent_error(error.to_string());
            return None;
        }
    };
    let items_and_commits =
        board.call_board(|connection| connection.read_merge_commits_of_merged_items(items)).ok()?;
    let check_result =
        board.target.find_items_missing_from_target(&start_commit, &items_and_commits, should_cancel);
    match check_result {
        Ok(missing_items) => {
            board.target.record_outage(None);
            Some(add_items_without_answer(items, &items_and_commits, missing_items))
        }
        Err(RemoteError::Canceled) => None,
        Err(error) => {
            board.target.record_outage(Some(error.to_string()));
            None
        }
    }
}

/// Adds the items about which the board has returned nothing to the missing ones. Such an item was reopened, and the
/// next refresh forgets it, or the board has no such item.
fn add_items_without_answer(
    items: &[usize],
    items_and_commits: &[(usize, Vec<String>)],
    missing_items: Vec<usize>,
) -> BTreeSet<usize> {
    let answered_items: BTreeSet<usize> = items_and_commits.iter().map(|(item, _)| *item).collect();
    let without_answer = items.iter().copied().filter(|item| !answered_items.contains(item));
    without_answer.chain(missing_items).collect()
}

/// Writes the unconfirmed items into the fleet's journal, each of them once.
fn report_unconfirmed_items(board: &FleetBoard) {
    let items_to_report = board.lock_cached_state().merge_checks.items_to_report.clone();
    for item in items_to_report {
        match board.call_board(|connection| connection.report_unconfirmed_merge(item)) {
            Ok(()) | Err(BoardError::StaleEpoch | BoardError::Permanent(_)) => {
                board.lock_cached_state().merge_checks.items_to_report.remove(&item);
            }
            Err(BoardError::Unreachable(_)) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE_PERIOD: Duration = Duration::from_secs(30);

    #[test]
    fn an_item_is_unconfirmed_only_after_the_grace_period() {
        let (now, second) = (Instant::now() + Duration::from_secs(3_600), Duration::from_secs(1));
        let missing = |age: u32| MergeCheck::Missing { since: now - age * second };
        for (check, is_missing, expected) in [
            (MergeCheck::Unchecked, false, MergeCheck::Confirmed),
            (MergeCheck::Unchecked, true, missing(0)),
            (missing(0), true, missing(0)),
            (missing(29), true, missing(29)),
            (missing(30), true, MergeCheck::Unconfirmed),
            (missing(300), true, MergeCheck::Unconfirmed),
            (missing(300), false, MergeCheck::Confirmed),
            (MergeCheck::Unconfirmed, true, MergeCheck::Unconfirmed),
            (MergeCheck::Unconfirmed, false, MergeCheck::Confirmed),
            // The target only moves forward.
            (MergeCheck::Confirmed, true, MergeCheck::Confirmed),
            (MergeCheck::Confirmed, false, MergeCheck::Confirmed),
        ] {
            assert_eq!(next_check(check, is_missing, now, GRACE_PERIOD), expected, "{check:?} {is_missing}");
        }
    }

    #[test]
    fn the_most_urgent_item_decides_when_to_check() {
        let now = Instant::now() + Duration::from_secs(3_600);
        let missing = MergeCheck::Missing { since: now };
        let cases: [(&[MergeCheck], Option<u64>); 6] = [
            (&[], None),
            (&[MergeCheck::Confirmed], None),
            (&[MergeCheck::Confirmed, MergeCheck::Unconfirmed], Some(60)),
            (&[MergeCheck::Unconfirmed, missing], Some(5)),
            (&[MergeCheck::Unconfirmed, missing, MergeCheck::Unchecked], Some(1)),
            (&[MergeCheck::Unchecked, MergeCheck::Confirmed], Some(1)),
        ];
        for (checks, expected_interval) in cases {
            let checks_by_item: BTreeMap<usize, MergeCheck> = checks.iter().copied().enumerate().collect();
            let is_due_after = |seconds: Option<u64>| {
                let last_check_at = seconds.map(|seconds| now - Duration::from_secs(seconds));
                let checks_by_item = checks_by_item.clone();
                MergeChecks { checks_by_item, last_check_at, ..MergeChecks::default() }.is_due(now)
            };
            assert_eq!(is_due_after(None), expected_interval.is_some(), "{checks:?}");
            for seconds in 0..70 {
                let expected = expected_interval.is_some_and(|interval| seconds >= interval);
                assert_eq!(is_due_after(Some(seconds)), expected, "{checks:?} after {seconds} s");
            }
        }
    }

    #[test]
    fn an_unconfirmed_item_is_announced_once_until_it_is_forgotten() {
        let (now, missing_items) = (Instant::now(), BTreeSet::from([0, 1, 2]));
        let mut checks = MergeChecks::default();
        checks.set_listed_items(0..3);
        for _ in 0..3 {
            // Item 7 is not listed, so its result is ignored.
            checks.record_results(&[0, 1, 7], &missing_items, now, Duration::ZERO);
        }
        assert_eq!((checks.take_item_to_announce(), checks.items_to_report.len()), (Some(0), 2));
        assert!(!checks.is_listed(7) && checks.has_undecided_items());
        assert_eq!(checks.items_not_confirmed(), [0, 1, 2]);
        checks.set_listed_items([0, 2].into_iter());
        assert_eq!(checks.take_item_to_announce(), None);
        assert_eq!(checks.items_to_report, BTreeSet::from([0]));
        checks.confirm_item(0);
        checks.record_results(&[0, 2], &BTreeSet::from([0]), now, Duration::ZERO);
        assert!(checks.items_to_report.is_empty() && checks.items_not_confirmed().is_empty());
        assert!(checks.is_listed(0) && !checks.has_undecided_items());
    }
}
