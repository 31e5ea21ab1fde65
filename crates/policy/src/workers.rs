//! Assigns the items of a parallel run to workers and tracks the merging of their work. An item is merged exactly once or set aside
//! with a reason. A worker or merger that has lost its lease to another one cannot change the board.
//!
//! - A claim leases an item to a worker and raises the item's epoch. All later operations carry that epoch, so operations of an
//!   earlier worker are rejected (fencing).
//! - An item becomes ready to merge once its branch is stored safely. Only the holder of the merger's lease merges it. The merger
//!   records the commit *before* it moves the target branch, and moves the target only from the commit that it read last.
//! - An item counts as merged once one of its recorded commits is in the target branch
//!   ([`mark_items_in_target_as_merged`]). Neither a lease nor a stage proves this: a merger that was suspended may move
//!   the target long after another one has taken over.
//!
//! The functions here change only the board that is passed in. The caller holds its lock or runs them in a transaction.

pub mod merge_queue;

use plimsoll_domain::board::{BoardItem, BoardMillis, BoardState, ItemStage, Lease, SetAsideReason};
use plimsoll_domain::item_area::areas_overlap;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};

/// The duration of a lease, in milliseconds. Workers renew after a sixth of it, so a lease expires only after several lost
/// renewals.
pub const LEASE_DURATION_MS: BoardMillis = 90_000;
/// The number of failed attempts after which an item is set aside.
pub const MAX_FAILED_ATTEMPTS: u32 = 3;
/// The maximum number of characters of a worker's question or failure reason on the board. It is small, because every
/// machine of a fleet rereads the whole board.
const MAX_REASON_CHARS: usize = 500;

/// A worker's lease on an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The index of the item on the board.
    pub item_index: usize,
    /// The item's epoch at the time of the claim (fencing token).
    pub epoch: u64,
}

/// The progress of all items, which decides what a scheduler does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoardProgress {
    /// An item can be claimed.
    ItemAvailable,
    /// No item can be claimed now, but one is leased, ready to merge, or claimable after a pause.
    InProgress,
    /// Every item is merged.
    Done,
    /// Every item that is not merged is set aside, or depends on one that is.
    Blocked,
}

/// The epoch of a claim or of a merger's lease is stale, so the operation was rejected (fencing).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("another process has taken it over")]
pub struct StaleEpoch;

/// Leases the first claimable item to a worker and increments the item's epoch. Returns `None` if no item can be claimed now.
pub fn claim_next_item(board: &mut BoardState, worker_name: &str, now: BoardMillis) -> Option<Claim> {
    let item_index = first_claimable_item_index_unless_paused(board, now)?;
    let board_item = &mut board.items[item_index];
    board_item.epoch += 1;
    board_item.stage = ItemStage::Leased {
        lease: Lease { holder: worker_name.to_owned(), expires_at: now + LEASE_DURATION_MS },
    };
    Some(Claim { item_index, epoch: board_item.epoch })
}

/// Returns the index of the first item that is open or whose lease has expired, whose dependencies are merged, and which
/// overlaps neither the areas of leased items nor the conflicting files of leased or unblocked ready items. Returns
/// `None` while claims are paused.
fn first_claimable_item_index_unless_paused(board: &BoardState, now: BoardMillis) -> Option<usize> {
    if now < board.paused_until {
        return None;
    }
    let contested_files = conflict_files_changed_by_half_of_items(board);
    let is_claimable = |board_item: &BoardItem| {
        is_open_or_lease_expired(board_item, now)
            && board_item
                .dependency_indices
                .iter()
                .all(|dependency_index| is_dependency_merged_or_missing(board, *dependency_index))
            && !leased_items(board, now)
                .any(|(_, other)| areas_overlap(&board_item.stated_areas, &other.stated_areas))
            && !leased_or_unblocked_ready_items(board, now).any(|other| {
                areas_overlap(
                    &conflict_files_and_changed_contested_files(board_item, &contested_files),
                    &conflict_files_and_changed_contested_files(other, &contested_files),
                )
            })
    };
    board.items.iter().position(is_claimable)
}

/// Returns the leased items and the items that are ready to merge and need not wait. An item that begins while one of
/// them is unmerged, and changes the same contested file, would conflict as well. Ready items that wait for the retry of
/// another item are not included, because that item must be able to begin.
fn leased_or_unblocked_ready_items(board: &BoardState, now: BoardMillis) -> impl Iterator<Item = &BoardItem> {
    let is_leased_or_unblocked = move |(index, board_item): &(usize, &BoardItem)| match &board_item.stage {
        ItemStage::Leased { lease } => lease.is_active(now),
        ItemStage::ReadyToMerge { .. } => !must_merge_after_retry_of_other_item(board, *index),
        ItemStage::Open | ItemStage::Merged | ItemStage::SetAside { .. } => false,
    };
    board.items.iter().enumerate().filter(is_leased_or_unblocked).map(|(_, board_item)| board_item)
}

/// Returns the files in which the work on an item conflicted, and the contested files that it changes. If its changed files are not
/// recorded yet, all contested files are returned.
fn conflict_files_and_changed_contested_files(
    board_item: &BoardItem,
    contested_files: &[String],
) -> Vec<String> {
    let is_changed_or_unknown =
        |file: &&String| board_item.changed_files.is_empty() || board_item.changed_files.contains(file);
    board_item
        .conflict_files
        .iter()
        .chain(contested_files.iter().filter(is_changed_or_unknown))
        .cloned()
        .collect()
}

/// Returns the files, such as a changelog, in which work conflicted and which are changed by at least two items and by at
/// least half of the items whose changed files are recorded. An item that is not started yet will probably change them,
/// too. A file that only a few items change does not block others.
fn conflict_files_changed_by_half_of_items(board: &BoardState) -> Vec<String> {
    let items_with_changed_files_count =
        board.items.iter().filter(|board_item| !board_item.changed_files.is_empty()).count();
    let is_changed_by_half = |file: &&String| {
        let changing_item_count =
            board.items.iter().filter(|board_item| board_item.changed_files.contains(file)).count();
        changing_item_count >= 2 && 2 * changing_item_count >= items_with_changed_files_count
    };
    let mut files: Vec<String> = board
        .items
        .iter()
        .flat_map(|board_item| &board_item.conflict_files)
        .filter(is_changed_by_half)
        .cloned()
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// Returns true if the item is ready to merge and changes a file in which another item conflicted whose next attempt is
/// not finished yet. If the item were merged first, that attempt would conflict again. An item that conflicted in the
/// same file itself does not wait.
fn must_merge_after_retry_of_other_item(board: &BoardState, item_index: usize) -> bool {
    let board_item = &board.items[item_index];
    let is_blocking_retry = |(index, other): (usize, &BoardItem)| {
        index != item_index
            && matches!(other.stage, ItemStage::Open | ItemStage::Leased { .. })
            && areas_overlap(&other.conflict_files, &board_item.changed_files)
            && !areas_overlap(&other.conflict_files, &board_item.conflict_files)
    };
    matches!(board_item.stage, ItemStage::ReadyToMerge { .. })
        && board.items.iter().enumerate().any(is_blocking_retry)
}

/// Returns the items with a valid lease, each with its index.
fn leased_items(board: &BoardState, now: BoardMillis) -> impl Iterator<Item = (usize, &BoardItem)> {
    let is_leased = move |board_item: &BoardItem| matches!(&board_item.stage, ItemStage::Leased { lease } if lease.is_active(now));
    board.items.iter().enumerate().filter(move |(_, board_item)| is_leased(board_item))
}

fn is_open_or_lease_expired(board_item: &BoardItem, now: BoardMillis) -> bool {
    match &board_item.stage {
        ItemStage::Open => true,
        ItemStage::Leased { lease } => !lease.is_active(now),
        ItemStage::ReadyToMerge { .. } | ItemStage::Merged | ItemStage::SetAside { .. } => false,
    }
}

// A dependency that is not in the plan counts as merged, so that it blocks nothing: `plimsoll plan` reports it.
fn is_dependency_merged_or_missing(board: &BoardState, dependency_index: usize) -> bool {
    board.items.get(dependency_index).is_none_or(|board_item| board_item.stage == ItemStage::Merged)
}

/// Renews the lease of a claim. An expired lease can be renewed unless the item was claimed again or an item with an
/// overlapping area is leased now; otherwise the result is [`StaleEpoch`].
pub fn renew_claim_unless_expired_and_area_taken(
    board: &mut BoardState,
    claim: Claim,
    now: BoardMillis,
) -> Result<(), StaleEpoch> {
    let claimed_areas = leased_item_if_claim_is_current(board, claim)?.stated_areas.clone();
    let overlaps_other_lease = leased_items(board, now).any(|(index, other)| {
        index != claim.item_index && areas_overlap(&claimed_areas, &other.stated_areas)
    });
    match &mut leased_item_if_claim_is_current(board, claim)?.stage {
        ItemStage::Leased { lease } if lease.is_active(now) || !overlaps_other_lease => {
            lease.expires_at = lease.expires_at.max(now + LEASE_DURATION_MS);
            Ok(())
        }
        ItemStage::Leased { .. }
        | ItemStage::Open
        | ItemStage::ReadyToMerge { .. }
        | ItemStage::Merged
        | ItemStage::SetAside { .. } => Err(StaleEpoch),
    }
}

/// Marks a claimed item as ready to merge, with the last commit of its branch. The caller must have stored the branch
/// safely before.
pub fn mark_claimed_item_ready_to_merge(
    board: &mut BoardState,
    claim: Claim,
    commit: &str,
) -> Result<(), StaleEpoch> {
    leased_item_if_claim_is_current(board, claim)?.stage =
        ItemStage::ReadyToMerge { commit: commit.to_owned() };
    Ok(())
}

/// Reopens a claimed item because its worker ended without finishing it. This does not count as a failed attempt.
pub fn reopen_claimed_item(board: &mut BoardState, claim: Claim) -> Result<(), StaleEpoch> {
    leased_item_if_claim_is_current(board, claim)?.stage = ItemStage::Open;
    Ok(())
}

/// Counts a failed attempt of a worker that could not finish its item, and reopens the item with `reason` as a note for
/// the next session. After [`MAX_FAILED_ATTEMPTS`] failed attempts the item is set aside instead.
pub fn reopen_or_set_aside_after_failed_attempt(
    board: &mut BoardState,
    claim: Claim,
    reason: &str,
) -> Result<(), StaleEpoch> {
    let board_item = leased_item_if_claim_is_current(board, claim)?;
    board_item.failed_merge_count += 1;
    board_item.next_session_note = to_reason_line(reason);
    board_item.stage = if board_item.failed_merge_count < MAX_FAILED_ATTEMPTS {
        ItemStage::Open
    } else {
        ItemStage::SetAside { reason: SetAsideReason::RunEnded(board_item.next_session_note.clone()) }
    };
    Ok(())
}

/// Converts a worker's question or failure reason into one short line.
pub fn to_reason_line(reason: &str) -> String {
    truncate_end(&to_safe_single_line(reason), MAX_REASON_CHARS)
}

/// Sets a claimed item aside because its worker cannot continue.
pub fn set_claimed_item_aside(
    board: &mut BoardState,
    claim: Claim,
    reason: SetAsideReason,
) -> Result<(), StaleEpoch> {
    let reason = match reason {
        SetAsideReason::Question(question) => SetAsideReason::Question(to_reason_line(&question)),
        SetAsideReason::RunEnded(_) | SetAsideReason::TooManyFailedMerges => reason,
    };
    leased_item_if_claim_is_current(board, claim)?.stage = ItemStage::SetAside { reason };
    Ok(())
}

/// Returns the item of a claim if it is leased with the claim's epoch, even if the lease has expired. Otherwise the claim is stale.
fn leased_item_if_claim_is_current(
    board: &mut BoardState,
    claim: Claim,
) -> Result<&mut BoardItem, StaleEpoch> {
    let board_item = board.items.get_mut(claim.item_index).ok_or(StaleEpoch)?;
    let is_current = matches!(board_item.stage, ItemStage::Leased { .. }) && board_item.epoch == claim.epoch;
    if is_current { Ok(board_item) } else { Err(StaleEpoch) }
}

/// Acquires or renews the merger's lease for `merger_name` and returns its epoch, which is incremented unless the lease
/// is still active. Returns `None` while another merger has an active lease.
pub fn acquire_or_renew_merger_lease(
    board: &mut BoardState,
    merger_name: &str,
    now: BoardMillis,
) -> Option<u64> {
    let is_same_holder = board.merger_lease.holder == merger_name;
    let is_leased = board.merger_lease.is_active(now);
    if is_leased && !is_same_holder {
        return None;
    }
    board.merger_epoch += u64::from(!is_leased);
    board.merger_lease = Lease { holder: merger_name.to_owned(), expires_at: now + LEASE_DURATION_MS };
    Some(board.merger_epoch)
}

/// Ends the merger's lease, so that another merger can acquire it at once.
pub fn release_merger_lease(board: &mut BoardState, merger_epoch: u64) -> Result<(), StaleEpoch> {
    if board.merger_epoch != merger_epoch {
        return Err(StaleEpoch);
    }
    board.merger_lease.expires_at = 0;
    Ok(())
}

/// Renews the merger's lease, even an expired one if no other merger has acquired it.
pub fn renew_current_merger_lease(
    board: &mut BoardState,
    merger_epoch: u64,
    now: BoardMillis,
) -> Result<(), StaleEpoch> {
    if board.merger_epoch != merger_epoch {
        return Err(StaleEpoch);
    }
    board.merger_lease.expires_at = board.merger_lease.expires_at.max(now + LEASE_DURATION_MS);
    Ok(())
}

/// Marks every item as merged that has a recorded commit in the target branch for this item, and returns the indices of the
/// items that were not marked before. This includes commits that were pushed by a merger without a valid lease.
/// A worker that is working on such an item again can no longer change the board.
///
/// A merger calls this before it merges anything, for the head of the target from which it will push. A commit that
/// arrives in between moves that head, so the push fails.
pub fn mark_items_in_target_as_merged(
    board: &mut BoardState,
    is_in_target: impl Fn(usize, &str) -> bool,
) -> Vec<usize> {
    let mut newly_merged_indices = Vec::new();
    for (index, board_item) in board.items.iter_mut().enumerate() {
        if board_item.stage != ItemStage::Merged
            && board_item.attempted_merge_commits.iter().any(|commit| is_in_target(index, commit))
        {
            board_item.stage = ItemStage::Merged;
            newly_merged_indices.push(index);
        }
    }
    newly_merged_indices
}

/// Returns the indices of the items that are ready to merge, in the plan's order.
pub fn ready_to_merge_items(board: &BoardState) -> Vec<usize> {
    let is_ready = |board_item: &BoardItem| matches!(board_item.stage, ItemStage::ReadyToMerge { .. });
    (0..board.items.len()).filter(|index| is_ready(&board.items[*index])).collect()
}

/// Returns the items that are ready to merge and need not wait for the retry of another item.
fn unblocked_ready_to_merge_items(board: &BoardState) -> Vec<usize> {
    ready_to_merge_items(board)
        .into_iter()
        .filter(|item| !must_merge_after_retry_of_other_item(board, *item))
        .collect()
}

/// Returns the items to merge in this round: all that are ready if `include_waiting`, otherwise only those that need not wait.
pub fn items_to_merge(board: &BoardState, include_waiting: bool) -> Vec<usize> {
    if include_waiting { ready_to_merge_items(board) } else { unblocked_ready_to_merge_items(board) }
}

/// Records the files that the work on an item changes. Does nothing if the item is not ready to merge.
pub fn record_changed_files_if_ready_to_merge(board: &mut BoardState, item_index: usize, files: &[String]) {
    if let Some(board_item) = board
        .items
        .get_mut(item_index)
        .filter(|board_item| matches!(board_item.stage, ItemStage::ReadyToMerge { .. }))
    {
        board_item.changed_files = files.to_vec();
    }
}

/// Records the commit with which an item is about to be merged. The target may move only after this.
pub fn record_merge_candidate_commit(
    board: &mut BoardState,
    merger_epoch: u64,
    item_index: usize,
    commit: &str,
) -> Result<(), StaleEpoch> {
    let board_item = ready_item_if_merger_is_current(board, merger_epoch, item_index)?;
    if !board_item.attempted_merge_commits.iter().any(|recorded| recorded == commit) {
        board_item.attempted_merge_commits.push(commit.to_owned());
    }
    Ok(())
}

/// Counts a failed attempt of an item that was ready to merge, and reopens it with a note for its next session. After
/// [`MAX_FAILED_ATTEMPTS`] failed attempts the item is set aside instead.
pub fn reopen_or_set_aside_rejected_item(
    board: &mut BoardState,
    merger_epoch: u64,
    item_index: usize,
    note: &str,
) -> Result<(), StaleEpoch> {
    let board_item = ready_item_if_merger_is_current(board, merger_epoch, item_index)?;
    board_item.failed_merge_count += 1;
    board_item.next_session_note = note.to_owned();
    board_item.stage = if board_item.failed_merge_count < MAX_FAILED_ATTEMPTS {
        ItemStage::Open
    } else {
        ItemStage::SetAside { reason: SetAsideReason::TooManyFailedMerges }
    };
    Ok(())
}

/// Reopens an item that was ready to merge but conflicts in `files` with work that was merged since it began. This is not
/// counted as a failed attempt: each such conflict needs another item that was merged, so an item cannot conflict more
/// often than there are items.
pub fn reopen_conflicting_item(
    board: &mut BoardState,
    merger_epoch: u64,
    item_index: usize,
    note: &str,
    files: &[String],
) -> Result<(), StaleEpoch> {
    let board_item = ready_item_if_merger_is_current(board, merger_epoch, item_index)?;
    board_item.next_session_note = note.to_owned();
    board_item.stage = ItemStage::Open;
    for file in files {
        if !board_item.conflict_files.contains(file) {
            board_item.conflict_files.push(file.clone());
        }
    }
    Ok(())
}

/// Returns the item if it is ready to merge and `merger_epoch` is the current epoch of the merger's lease.
fn ready_item_if_merger_is_current(
    board: &mut BoardState,
    merger_epoch: u64,
    item_index: usize,
) -> Result<&mut BoardItem, StaleEpoch> {
    if board.merger_epoch != merger_epoch {
        return Err(StaleEpoch);
    }
    let board_item = board.items.get_mut(item_index).ok_or(StaleEpoch)?;
    if matches!(board_item.stage, ItemStage::ReadyToMerge { .. }) { Ok(board_item) } else { Err(StaleEpoch) }
}

/// Pauses all claims until `pause_end`. An earlier call with a later end takes precedence.
pub fn pause_claims_at_least_until(board: &mut BoardState, pause_end: BoardMillis) {
    board.paused_until = board.paused_until.max(pause_end);
}

/// Reopens an item that was set aside, after an answer or at the user's request, and resets its failed attempts. Returns
/// false if it was not set aside.
pub fn reopen_set_aside_item_and_reset_failures(board: &mut BoardState, item_index: usize) -> bool {
    let Some(board_item) = board.items.get_mut(item_index) else { return false };
    let is_set_aside = matches!(board_item.stage, ItemStage::SetAside { .. });
    if is_set_aside {
        board_item.stage = ItemStage::Open;
        board_item.failed_merge_count = 0;
    }
    is_set_aside
}

/// Returns whether all items are merged, one can be claimed, some are in progress, or the remaining ones are blocked.
pub fn classify_board_progress(board: &BoardState, now: BoardMillis) -> BoardProgress {
    let is_in_progress = |board_item: &BoardItem| match &board_item.stage {
        ItemStage::Leased { lease } => lease.is_active(now),
        ItemStage::ReadyToMerge { .. } => true,
        ItemStage::Open | ItemStage::Merged | ItemStage::SetAside { .. } => false,
    };
    let is_paused = now < board.paused_until;
    let pause_end = board.paused_until.max(now);
    if board.items.iter().all(|board_item| board_item.stage == ItemStage::Merged) {
        BoardProgress::Done
    } else if first_claimable_item_index_unless_paused(board, now).is_some() {
        BoardProgress::ItemAvailable
    } else if board.items.iter().any(is_in_progress)
        || is_paused && first_claimable_item_index_unless_paused(board, pause_end).is_some()
    {
        BoardProgress::InProgress
    } else {
        BoardProgress::Blocked
    }
}

/// Creates a board for the items of a plan. Ticked items count as merged.
pub fn create_board_with_done_items_merged(items: &[crate::plan::EstimatedItem]) -> BoardState {
    let parse_dependency_indices = |text: &str| {
        let numbers = crate::plan::dependencies::parse_dependency_ranges_and_numbers(text).into_iter();
        numbers.filter_map(|(_, number)| number.checked_sub(1)).collect()
    };
    let to_board_item = |item: &crate::plan::EstimatedItem| BoardItem {
        text: item.text.clone(),
        dependency_indices: parse_dependency_indices(&item.text),
        stated_areas: plimsoll_domain::item_area::parse_item_areas(&item.text),
        stage: if item.is_done { ItemStage::Merged } else { ItemStage::Open },
        ..BoardItem::default()
    };
    BoardState { items: items.iter().map(to_board_item).collect(), ..BoardState::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::EstimatedItem;

    fn board_of_items(items: &[&str]) -> BoardState {
        let item = |text: &&str| EstimatedItem {
            is_done: text.starts_with("done"),
            text: (*text).to_owned(),
            file_lines: None,
            model: None,
        };
        create_board_with_done_items_merged(&items.iter().map(item).collect::<Vec<_>>())
    }

    #[test]
    fn a_worker_gets_the_first_item_that_nothing_blocks() {
        for (items, expected) in [
            (&["a", "b"][..], &[0, 1][..]),
            (&["a (after: 2)", "b"], &[1]),
            (&["done", "b (after: 1)"], &[1]),
            // Neither a missing nor a merged item blocks others; a cycle blocks itself.
            (&["a (after: 9)"], &[0]),
            (&["a (after: 2)", "b (after: 1)", "c"], &[2]),
            (&["a (area: src)", "b (area: src/x)", "c (area: docs)", "d"], &[0, 2, 3]),
        ] {
            let mut board = board_of_items(items);
            let claimed_items: Vec<usize> = std::iter::from_fn(|| claim_next_item(&mut board, "w", 0))
                .map(|taken| taken.item_index)
                .collect();
            assert_eq!(claimed_items, expected, "{items:?}");
        }
    }

    /// Returns a board after its first four items were worked on in parallel. The first is merged; of the others,
    /// those below `conflict_index_limit` conflicted in the changelog and the rest are merged.
    fn board_after_conflicts(item_count: usize, conflict_index_limit: usize) -> BoardState {
        let texts: Vec<String> = (0..item_count).map(|number| format!("item {number}")).collect();
        let mut board = board_of_items(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let merger = acquire_or_renew_merger_lease(&mut board, "m", 0).expect("nobody else");
        for item in 0..4 {
            let claimed = claim_next_item(&mut board, "w", 0).expect("an item");
            mark_claimed_item_ready_to_merge(&mut board, claimed, "c").expect("mine");
            let file = if item < conflict_index_limit {
                "CHANGELOG.md".to_owned()
            } else {
                format!("src/{item}.rs")
            };
            record_changed_files_if_ready_to_merge(&mut board, item, &[file]);
        }
        board.items[0].stage = ItemStage::Merged;
        for item in 1..4 {
            if item < conflict_index_limit {
                let files = ["CHANGELOG.md".to_owned()];
                reopen_conflicting_item(&mut board, merger, item, "conflict", &files).expect("offered");
            } else {
                board.items[item].stage = ItemStage::Merged;
            }
        }
        board
    }

    #[test]
    fn items_that_write_the_same_contested_file_run_one_after_the_other() {
        let mut board = board_after_conflicts(12, 4);
        let mut sessions = 4;
        let merger = acquire_or_renew_merger_lease(&mut board, "m", 0).expect("it goes on");
        while let Some(taken) = claim_next_item(&mut board, "w", 0) {
            sessions += 1;
            assert_eq!(claim_next_item(&mut board, "other", 0), None, "one at a time: {board:?}");
            mark_claimed_item_ready_to_merge(&mut board, taken, "c").expect("mine");
            assert_eq!(claim_next_item(&mut board, "other", 0), None, "not before the work is merged");
            record_changed_files_if_ready_to_merge(
                &mut board,
                taken.item_index,
                &["CHANGELOG.md".to_owned()],
            );
            assert_eq!(
                claim_next_item(&mut board, "other", 0),
                None,
                "also once it is known to write the file"
            );
            assert_eq!(unblocked_ready_to_merge_items(&board), [taken.item_index]);
            record_merge_candidate_commit(&mut board, merger, taken.item_index, "l").expect("offered");
            board.items[taken.item_index].stage = ItemStage::Merged;
        }
        assert_eq!((classify_board_progress(&board, 0), sessions), (BoardProgress::Done, 15));
        assert!(board.items.iter().all(|row| row.failed_merge_count == 0));
    }

    #[test]
    fn a_conflict_between_two_items_does_not_block_others() {
        // Two of four items wrote the file, which makes it contested; two of five do not.
        let mut board = board_after_conflicts(8, 2);
        board.items.push(BoardItem {
            changed_files: vec!["src/9.rs".into()],
            stage: ItemStage::Merged,
            ..BoardItem::default()
        });
        let claimed: Vec<usize> = std::iter::from_fn(|| claim_next_item(&mut board, "w", 0))
            .map(|taken| taken.item_index)
            .collect();
        assert_eq!(claimed, [1, 4, 5, 6, 7]);
    }

    /// For any pattern of conflicts everything is merged in the end: no two items wait for each other.
    #[test]
    fn no_pattern_of_conflicts_causes_a_deadlock() {
        for seed in 0..400_u64 {
            let mut random = seed * 2 + 1;
            let mut random_below = move |below: usize| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                usize::try_from(random >> 33).expect("31 bits") % below
            };
            let count = 2 + random_below(9);
            let texts: Vec<String> = (0..count).map(|number| format!("item {number}")).collect();
            let mut board = board_of_items(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            let merger = acquire_or_renew_merger_lease(&mut board, "m", 0).expect("nobody else");
            // Each item writes one or two files out of three, the same ones in every attempt.
            let files: Vec<Vec<String>> = (0..count)
                .map(|_| (0..=random_below(2)).map(|_| format!("{}.rs", random_below(3))).collect())
                .collect();
            let (mut landed, mut landed_at_claim): (Vec<usize>, Vec<usize>) = (Vec::new(), vec![0; count]);
            let (mut claims, mut sessions) = (Vec::new(), 0);
            while classify_board_progress(&board, 0) != BoardProgress::Done {
                let can_merge = unblocked_ready_to_merge_items(&board);
                let can_claim =
                    claims.len() < 4 && classify_board_progress(&board, 0) == BoardProgress::ItemAvailable;
                assert!(can_claim || !can_merge.is_empty() || !claims.is_empty(), "seed {seed}: {board:?}");
                match random_below(3) {
                    0 if can_claim => {
                        let taken = claim_next_item(&mut board, "w", 0).expect("an item is free");
                        landed_at_claim[taken.item_index] = landed.len();
                        claims.push(taken);
                        sessions += 1;
                    }
                    1 if !claims.is_empty() => {
                        let taken = claims.remove(random_below(claims.len()));
                        mark_claimed_item_ready_to_merge(&mut board, taken, "c").expect("mine");
                    }
                    2 if !can_merge.is_empty() => {
                        let item = can_merge[random_below(can_merge.len())];
                        record_changed_files_if_ready_to_merge(&mut board, item, &files[item]);
                        let since = &landed[landed_at_claim[item]..];
                        let conflicts: Vec<String> = files[item]
                            .iter()
                            .filter(|file| since.iter().any(|other: &usize| files[*other].contains(file)))
                            .cloned()
                            .collect();
                        if !unblocked_ready_to_merge_items(&board).contains(&item) {
                            continue;
                        }
                        if conflicts.is_empty() {
                            board.items[item].stage = ItemStage::Merged;
                            landed.push(item);
                        } else {
                            reopen_conflicting_item(&mut board, merger, item, "no", &conflicts)
                                .expect("offered");
                        }
                    }
                    _ => {}
                }
            }
            // Without this limit each item could be sent back once for every item that is merged before it.
            assert!(sessions <= 3 * count, "seed {seed}: {sessions} sessions for {count} items");
        }
    }

    #[test]
    fn work_on_a_contested_file_is_merged_after_the_item_that_was_sent_back() {
        let mut board = board_of_items(&["a", "b", "c", "d"]);
        let merger = acquire_or_renew_merger_lease(&mut board, "m", 0).expect("nobody else");
        for item in 0..3 {
            let taken = claim_next_item(&mut board, "w", 0).expect("an item");
            mark_claimed_item_ready_to_merge(&mut board, taken, "c").expect("mine");
            record_changed_files_if_ready_to_merge(
                &mut board,
                item,
                &[if item == 2 { "b.rs" } else { "a.rs" }.to_owned()],
            );
        }
        reopen_conflicting_item(&mut board, merger, 0, "conflict", &["a.rs".to_owned()]).expect("offered");
        assert_eq!(
            (unblocked_ready_to_merge_items(&board), ready_to_merge_items(&board)),
            (vec![2], vec![1, 2])
        );
        // Work that waits for the item does not block it.
        let retry = claim_next_item(&mut board, "w", 0).expect("the item that was sent back");
        assert_eq!(retry.item_index, 0);
        assert_eq!(unblocked_ready_to_merge_items(&board), [2], "also while somebody works on it");
        mark_claimed_item_ready_to_merge(&mut board, retry, "c2").expect("mine");
        assert_eq!(unblocked_ready_to_merge_items(&board), [0, 1, 2]);
        // An answer of the user may take hours, so nothing waits for an item that is set aside.
        let mut with_question = board.clone();
        with_question.items[0].stage =
            ItemStage::SetAside { reason: SetAsideReason::Question("which?".into()) };
        assert_eq!(unblocked_ready_to_merge_items(&with_question), [1, 2]);
        // Two items that were sent back for the same file do not wait for each other.
        reopen_conflicting_item(&mut board, merger, 1, "conflict", &["a.rs".to_owned()]).expect("offered");
        assert_eq!(unblocked_ready_to_merge_items(&board), [0, 2]);
        assert_eq!(
            claim_next_item(&mut board, "w", 0),
            None,
            "b waits until a is merged, and d will probably write it, too"
        );
        assert_eq!(reopen_conflicting_item(&mut board, merger + 1, 0, "late", &[]), Err(StaleEpoch));
    }

    #[test]
    fn a_worker_that_returns_too_late_changes_nothing() {
        let mut board = board_of_items(&["a"]);
        let first = claim_next_item(&mut board, "one", 0).expect("an item");
        assert_eq!(claim_next_item(&mut board, "two", LEASE_DURATION_MS - 1), None);
        let second = claim_next_item(&mut board, "two", LEASE_DURATION_MS).expect("the lease is over");
        let before = board.clone();
        for result in [
            renew_claim_unless_expired_and_area_taken(&mut board, first, LEASE_DURATION_MS),
            mark_claimed_item_ready_to_merge(&mut board, first, "c1"),
            reopen_claimed_item(&mut board, first),
            set_claimed_item_aside(&mut board, first, SetAsideReason::TooManyFailedMerges),
        ] {
            assert_eq!(result, Err(StaleEpoch));
        }
        assert_eq!(board, before);
        assert_eq!(mark_claimed_item_ready_to_merge(&mut board, second, "c2"), Ok(()));
        assert_eq!(
            mark_claimed_item_ready_to_merge(&mut board, second, "c3"),
            Err(StaleEpoch),
            "it is offered"
        );
    }

    #[test]
    fn an_expired_lease_that_nobody_took_can_still_be_renewed() {
        let mut board = board_of_items(&["a"]);
        let own_claim = claim_next_item(&mut board, "one", 0).expect("an item");
        assert_eq!(
            renew_claim_unless_expired_and_area_taken(&mut board, own_claim, 10 * LEASE_DURATION_MS),
            Ok(())
        );
        assert_eq!(claim_next_item(&mut board, "two", 10 * LEASE_DURATION_MS + 1), None);
        assert_eq!(mark_claimed_item_ready_to_merge(&mut board, own_claim, "c"), Ok(()));
    }

    #[test]
    fn one_merger_lands_and_an_earlier_one_is_fenced() {
        let mut board = board_of_items(&["a", "b (after: 1)"]);
        let own_claim = claim_next_item(&mut board, "w", 0).expect("an item");
        mark_claimed_item_ready_to_merge(&mut board, own_claim, "c").expect("mine");
        let first = acquire_or_renew_merger_lease(&mut board, "m1", 0).expect("nobody else");
        assert_eq!(acquire_or_renew_merger_lease(&mut board, "m2", LEASE_DURATION_MS - 1), None);
        assert_eq!(acquire_or_renew_merger_lease(&mut board, "m1", 1), Some(first), "it goes on");
        assert_eq!(renew_current_merger_lease(&mut board, first, 1), Ok(()));
        assert_eq!(record_merge_candidate_commit(&mut board, first, 0, "l1"), Ok(()));
        let second = acquire_or_renew_merger_lease(&mut board, "m2", 2 * LEASE_DURATION_MS)
            .expect("the lease is over");
        assert_eq!(record_merge_candidate_commit(&mut board, first, 0, "l2"), Err(StaleEpoch));
        assert_eq!(renew_current_merger_lease(&mut board, first, 2 * LEASE_DURATION_MS), Err(StaleEpoch));
        assert_eq!(release_merger_lease(&mut board, first), Err(StaleEpoch));
        assert_eq!(reopen_or_set_aside_rejected_item(&mut board, first, 0, "no"), Err(StaleEpoch));
        assert_eq!(mark_items_in_target_as_merged(&mut board, |_, _| false), [0; 0]);
        // The second merger rejects the item as a conflict, then the first one moves the target after all.
        assert_eq!(reopen_or_set_aside_rejected_item(&mut board, second, 0, "conflict"), Ok(()));
        let second_claim = claim_next_item(&mut board, "w", 2 * LEASE_DURATION_MS).expect("open again");
        assert_eq!(mark_items_in_target_as_merged(&mut board, |_, commit| commit == "l1"), [0]);
        assert_eq!(
            mark_claimed_item_ready_to_merge(&mut board, second_claim, "c2"),
            Err(StaleEpoch),
            "it has landed"
        );
        assert_eq!(release_merger_lease(&mut board, second), Ok(()));
        assert_eq!(
            acquire_or_renew_merger_lease(&mut board, "m1", 2 * LEASE_DURATION_MS),
            Some(second + 1),
            "it is free"
        );
        assert_eq!(
            claim_next_item(&mut board, "w", 2 * LEASE_DURATION_MS).map(|one| one.item_index),
            Some(1)
        );
    }

    #[test]
    fn work_that_cannot_be_merged_is_reopened_and_finally_set_aside() {
        let mut board = board_of_items(&["a", "b (after: 1)"]);
        for round in 1..=MAX_FAILED_ATTEMPTS {
            let own_claim = claim_next_item(&mut board, "w", 0).expect("open");
            assert_eq!(own_claim.epoch, u64::from(round));
            mark_claimed_item_ready_to_merge(&mut board, own_claim, "c").expect("mine");
            assert_eq!(classify_board_progress(&board, 0), BoardProgress::InProgress);
            let merger = acquire_or_renew_merger_lease(&mut board, "m", 0).expect("nobody else");
            reopen_or_set_aside_rejected_item(&mut board, merger, 0, "red").expect("the merger");
        }
        assert_eq!(board.items[0].stage, ItemStage::SetAside { reason: SetAsideReason::TooManyFailedMerges });
        assert_eq!(
            (board.items[0].next_session_note.as_str(), classify_board_progress(&board, 0)),
            ("red", BoardProgress::Blocked)
        );
        assert!(
            reopen_set_aside_item_and_reset_failures(&mut board, 0)
                && !reopen_set_aside_item_and_reset_failures(&mut board, 1)
        );
        assert_eq!(classify_board_progress(&board, 0), BoardProgress::ItemAvailable);
    }

    #[test]
    fn an_item_that_keeps_failing_is_set_aside_with_the_last_reason() {
        let mut board = board_of_items(&["a"]);
        for round in 1..=MAX_FAILED_ATTEMPTS {
            let own_claim = claim_next_item(&mut board, "w", 0).expect("open");
            assert_eq!(
                reopen_or_set_aside_after_failed_attempt(&mut board, own_claim, &format!("stuck\n{round}")),
                Ok(())
            );
            assert_eq!(
                reopen_or_set_aside_after_failed_attempt(&mut board, own_claim, "late"),
                Err(StaleEpoch)
            );
        }
        assert_eq!(
            board.items[0].stage,
            ItemStage::SetAside { reason: SetAsideReason::RunEnded("stuck 3".into()) }
        );
    }

    #[test]
    fn a_pause_applies_to_all_workers_and_costs_no_try() {
        let mut board = board_of_items(&["a"]);
        pause_claims_at_least_until(&mut board, 5_000);
        pause_claims_at_least_until(&mut board, 4_000);
        assert_eq!(
            (claim_next_item(&mut board, "w", 4_999), classify_board_progress(&board, 4_999)),
            (None, BoardProgress::InProgress)
        );
        assert!(claim_next_item(&mut board, "w", 5_000).is_some());
        assert_eq!(board.items[0].failed_merge_count, 0);
    }

    #[test]
    fn a_board_is_done_when_all_items_are_merged() {
        let mut board = board_of_items(&["done a", "b"]);
        let own_claim = claim_next_item(&mut board, "w", 0).expect("open");
        mark_claimed_item_ready_to_merge(&mut board, own_claim, "c").expect("mine");
        let merger = acquire_or_renew_merger_lease(&mut board, "m", 0).expect("nobody else");
        assert_eq!(
            record_merge_candidate_commit(&mut board, merger, 0, "l"),
            Err(StaleEpoch),
            "it is not offered"
        );
        assert_eq!(record_merge_candidate_commit(&mut board, merger, 1, "l"), Ok(()));
        assert_eq!(mark_items_in_target_as_merged(&mut board, |_, commit| commit == "l"), [1]);
        assert_eq!(classify_board_progress(&board, 0), BoardProgress::Done);
        let text = serde_json::to_string(&board).expect("JSON");
        assert_eq!(serde_json::from_str::<BoardState>(&text).expect("a board"), board);
    }
}
