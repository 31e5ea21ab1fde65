//! Who works on what in a parallel run, and how results come together. An item is merged exactly once or set aside with its
//! reason, and whoever comes back too late changes nothing.
//!
//! - A claim gives an item to a worker for a time and raises its epoch. Everything later is said with that epoch: what an
//!   earlier worker says is fenced.
//! - Work is offered once its branch is safe. Only the holder of the merger's lease lands it, and it writes the commit that it
//!   is about to land down *before* it moves the target, which moves only from the commit that it has seen.
//! - An item has landed when one of those commits is in the target ([`settle`]). Neither a lease nor a stage says so: a merger
//!   that was stopped in the middle may move the target long after another has taken over.
//!
//! Everything here changes the board that it is given, under the lock or in the transaction of whoever keeps it.

pub mod queue;

use plimsoll_domain::board::{Aside, BoardItem, BoardState, Lease, Moment, Stage};
use plimsoll_domain::item_area::overlap;
use plimsoll_domain::text::{clip, one_line};

/// How long a worker holds an item without a word from it. Renewed at a sixth of it, it takes several lost renewals.
pub const LEASE: Moment = 90_000;
/// How often an item's work may fail to be merged before it is set aside.
pub const TRIES: u32 = 3;
/// How much of a question is kept.
const QUESTION: usize = 500;

/// An item that a worker has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Its place on the board.
    pub item: usize,
    /// What everything about it is said with.
    pub epoch: u64,
}

/// What there is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlook {
    /// An item can be claimed.
    Free,
    /// Somebody works, or something waits to be merged; or a pause ends at this moment.
    Busy,
    /// Every item is merged.
    Done,
    /// What is left is set aside, or needs what is.
    Stuck,
}

/// Somebody said something with an epoch that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("somebody else has taken it over meanwhile")]
pub struct Fenced;

/// Gives the first item that can be worked on.
pub fn claim(board: &mut BoardState, worker: &str, now: Moment) -> Option<Claim> {
    let item = first_free(board, now)?;
    let row = &mut board.items[item];
    row.epoch += 1;
    row.stage = Stage::Leased { lease: Lease { holder: worker.to_owned(), until: now + LEASE } };
    Some(Claim { item, epoch: row.epoch })
}

fn first_free(board: &BoardState, now: Moment) -> Option<usize> {
    if now < board.paused_until {
        return None;
    }
    let contested = contested_files(board);
    let is_free = |row: &BoardItem| {
        is_open(row, now)
            && row.needs.iter().all(|need| is_merged(board, *need))
            && !taken(board, now).any(|(_, other)| overlap(&row.areas, &other.areas))
            && !will_write_again(board, now).any(|other| {
                overlap(&conflicting_files(row, &contested), &conflicting_files(other, &contested))
            })
    };
    board.items.iter().position(is_free)
}

/// The items on which somebody works, and those whose work is about to be merged: who began beside one of them in a file in
/// which work conflicts would conflict, too. What waits for an item that was sent back is not among them, because that item
/// has to begin.
fn will_write_again(board: &BoardState, now: Moment) -> impl Iterator<Item = &BoardItem> {
    let will_write = move |(place, row): &(usize, &BoardItem)| match &row.stage {
        Stage::Leased { lease } => lease.holds(now),
        Stage::Offered { .. } => !waits_for_retry(board, *place),
        Stage::Open | Stage::Merged | Stage::Aside { .. } => false,
    };
    board.items.iter().enumerate().filter(will_write).map(|(_, row)| row)
}

/// Returns the files in which the work on an item conflicted, and those of the contested files that it writes: all of them
/// as long as its work is unknown.
fn conflicting_files(row: &BoardItem, contested: &[String]) -> Vec<String> {
    let writes = |file: &&String| row.writes.is_empty() || row.writes.contains(file);
    row.conflicts.iter().chain(contested.iter().filter(writes)).cloned().collect()
}

/// Returns the files in which work conflicted and that most of the items write whose work is known, such as a changelog. An
/// item that has not begun will probably write them, too. A file that only a few items write stops nobody else.
fn contested_files(board: &BoardState) -> Vec<String> {
    let known = board.items.iter().filter(|row| !row.writes.is_empty()).count();
    let is_written_by_most = |file: &&String| {
        let writers = board.items.iter().filter(|row| row.writes.contains(file)).count();
        writers >= 2 && 2 * writers >= known
    };
    let mut files: Vec<String> =
        board.items.iter().flat_map(|row| &row.conflicts).filter(is_written_by_most).cloned().collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// True for offered work that changes a file in which the work of another item conflicted, until that item's next attempt is
/// merged: landed before, it would make that attempt conflict again. Who was sent back for the same file goes first.
fn waits_for_retry(board: &BoardState, item: usize) -> bool {
    let row = &board.items[item];
    let is_retried = |(place, other): (usize, &BoardItem)| {
        place != item
            && matches!(other.stage, Stage::Open | Stage::Leased { .. })
            && overlap(&other.conflicts, &row.writes)
            && !overlap(&other.conflicts, &row.conflicts)
    };
    matches!(row.stage, Stage::Offered { .. }) && board.items.iter().enumerate().any(is_retried)
}

/// The items that somebody works on.
fn taken(board: &BoardState, now: Moment) -> impl Iterator<Item = (usize, &BoardItem)> {
    let at_work = move |row: &BoardItem| matches!(&row.stage, Stage::Leased { lease } if lease.holds(now));
    board.items.iter().enumerate().filter(move |(_, row)| at_work(row))
}

fn is_open(row: &BoardItem, now: Moment) -> bool {
    match &row.stage {
        Stage::Open => true,
        Stage::Leased { lease } => !lease.holds(now),
        Stage::Offered { .. } | Stage::Merged | Stage::Aside { .. } => false,
    }
}

// What a plan names and does not have holds nothing up: `plimsoll plan` complains of it.
fn is_merged(board: &BoardState, need: usize) -> bool {
    board.items.get(need).is_none_or(|row| row.stage == Stage::Merged)
}

/// Keeps an item for its worker; a lease that is over, if nobody has begun meanwhile what touches the same paths.
pub fn renew(board: &mut BoardState, claim: Claim, now: Moment) -> Result<(), Fenced> {
    let areas = held(board, claim)?.areas.clone();
    let is_taken =
        taken(board, now).any(|(place, other)| place != claim.item && overlap(&areas, &other.areas));
    match &mut held(board, claim)?.stage {
        Stage::Leased { lease } if lease.holds(now) || !is_taken => {
            lease.until = lease.until.max(now + LEASE);
            Ok(())
        }
        Stage::Leased { .. } | Stage::Open | Stage::Offered { .. } | Stage::Merged | Stage::Aside { .. } => {
            Err(Fenced)
        }
    }
}

/// Offers the work on an item, whose branch is safe by now.
pub fn offer(board: &mut BoardState, claim: Claim, commit: &str) -> Result<(), Fenced> {
    held(board, claim)?.stage = Stage::Offered { commit: commit.to_owned() };
    Ok(())
}

/// Gives an item back: its worker ended without having done it.
pub fn give_back(board: &mut BoardState, claim: Claim) -> Result<(), Fenced> {
    held(board, claim)?.stage = Stage::Open;
    Ok(())
}

/// Gives an item back that its worker could not do, with what its next session is told; after some tries it is set aside.
pub fn fail(board: &mut BoardState, claim: Claim, reason: &str) -> Result<(), Fenced> {
    let row = held(board, claim)?;
    row.tries += 1;
    row.note = clip(&one_line(reason), QUESTION);
    row.stage =
        if row.tries < TRIES { Stage::Open } else { Stage::Aside { reason: Aside::Ended(row.note.clone()) } };
    Ok(())
}

/// Sets an item aside that its worker cannot go on with.
pub fn set_aside(board: &mut BoardState, claim: Claim, reason: Aside) -> Result<(), Fenced> {
    let reason = match reason {
        Aside::Question(question) => Aside::Question(clip(&one_line(&question), QUESTION)),
        Aside::Ended(_) | Aside::Tries => reason,
    };
    held(board, claim)?.stage = Stage::Aside { reason };
    Ok(())
}

/// The item of a claim, while it is leased with its epoch: also when the lease is over and nobody has taken it.
fn held(board: &mut BoardState, claim: Claim) -> Result<&mut BoardItem, Fenced> {
    let row = board.items.get_mut(claim.item).ok_or(Fenced)?;
    let is_held = matches!(row.stage, Stage::Leased { .. }) && row.epoch == claim.epoch;
    if is_held { Ok(row) } else { Err(Fenced) }
}

/// Makes one merger of several: the epoch with which it says everything.
pub fn become_merger(board: &mut BoardState, name: &str, now: Moment) -> Option<u64> {
    let is_ours = board.merger.holder == name;
    let holds = board.merger.holds(now);
    if holds && !is_ours {
        return None;
    }
    board.merger_epoch += u64::from(!holds);
    board.merger = Lease { holder: name.to_owned(), until: now + LEASE };
    Some(board.merger_epoch)
}

/// Lets another be the merger at once: this one ends.
pub fn step_down(board: &mut BoardState, merger: u64) -> Result<(), Fenced> {
    if board.merger_epoch != merger {
        return Err(Fenced);
    }
    board.merger.until = 0;
    Ok(())
}

/// Keeps the merger's lease for it, also one that is over and that nobody took.
pub fn renew_merger(board: &mut BoardState, merger: u64, now: Moment) -> Result<(), Fenced> {
    if board.merger_epoch != merger {
        return Err(Fenced);
    }
    board.merger.until = board.merger.until.max(now + LEASE);
    Ok(())
}

/// Counts as merged whatever is in the target by now, also what was landed by a merger that had lost its lease: a worker that
/// is at such an item once more is fenced. Whoever is about to land something asks first, by the target from whose end it
/// lands: a commit that comes in meanwhile moves that end.
pub fn settle(board: &mut BoardState, is_in_target: impl Fn(&str) -> bool) -> Vec<usize> {
    let mut landed = Vec::new();
    for (place, row) in board.items.iter_mut().enumerate() {
        if row.stage != Stage::Merged && row.landings.iter().any(|commit| is_in_target(commit)) {
            row.stage = Stage::Merged;
            landed.push(place);
        }
    }
    landed
}

/// What waits to be merged, in the plan's order.
pub fn offered(board: &BoardState) -> Vec<usize> {
    let is_offered = |row: &BoardItem| matches!(row.stage, Stage::Offered { .. });
    (0..board.items.len()).filter(|place| is_offered(&board.items[*place])).collect()
}

/// Returns what can be merged now: what is offered, without what waits until an item that was sent back is merged.
fn mergeable(board: &BoardState) -> Vec<usize> {
    offered(board).into_iter().filter(|item| !waits_for_retry(board, *item)).collect()
}

/// Returns what is to be merged in this round: everything that is offered if `takes_all`, else what can be merged now.
pub fn items_to_merge(board: &BoardState, takes_all: bool) -> Vec<usize> {
    if takes_all { offered(board) } else { mergeable(board) }
}

/// Records which files the work on an offered item changes.
pub fn note_writes(board: &mut BoardState, item: usize, files: &[String]) {
    if let Some(row) = board.items.get_mut(item).filter(|row| matches!(row.stage, Stage::Offered { .. })) {
        row.writes = files.to_vec();
    }
}

/// Writes down the commit by which an offered item is about to land. Only then may the target move.
pub fn land(board: &mut BoardState, merger: u64, item: usize, commit: &str) -> Result<(), Fenced> {
    let row = landing(board, merger, item)?;
    if !row.landings.iter().any(|known| known == commit) {
        row.landings.push(commit.to_owned());
    }
    Ok(())
}

/// Gives an offered item back to its branch, with what its next session is told; after some tries it is set aside.
pub fn refuse(board: &mut BoardState, merger: u64, item: usize, note: &str) -> Result<(), Fenced> {
    let row = landing(board, merger, item)?;
    row.tries += 1;
    row.note = note.to_owned();
    row.stage = if row.tries < TRIES { Stage::Open } else { Stage::Aside { reason: Aside::Tries } };
    Ok(())
}

/// Gives an offered item back whose work conflicts in these files with what was merged since it began. That is nobody's fault
/// and costs no try: each such conflict needs something that was merged, so there are no more of them than items.
pub fn send_back_conflict(
    board: &mut BoardState,
    merger: u64,
    item: usize,
    note: &str,
    files: &[String],
) -> Result<(), Fenced> {
    let row = landing(board, merger, item)?;
    row.note = note.to_owned();
    row.stage = Stage::Open;
    for file in files {
        if !row.conflicts.contains(file) {
            row.conflicts.push(file.clone());
        }
    }
    Ok(())
}

/// An offered item, if this is the merger.
fn landing(board: &mut BoardState, merger: u64, item: usize) -> Result<&mut BoardItem, Fenced> {
    if board.merger_epoch != merger {
        return Err(Fenced);
    }
    let row = board.items.get_mut(item).ok_or(Fenced)?;
    if matches!(row.stage, Stage::Offered { .. }) { Ok(row) } else { Err(Fenced) }
}

/// Holds everything until a moment; a later end counts.
pub fn pause(board: &mut BoardState, until: Moment) {
    board.paused_until = board.paused_until.max(until);
}

/// Opens an item again that waited for an answer, or that the user wants tried once more.
pub fn reopen(board: &mut BoardState, item: usize) -> bool {
    let Some(row) = board.items.get_mut(item) else { return false };
    let is_aside = matches!(row.stage, Stage::Aside { .. });
    if is_aside {
        row.stage = Stage::Open;
        row.tries = 0;
    }
    is_aside
}

/// What there is to do now.
pub fn outlook(board: &BoardState, now: Moment) -> Outlook {
    let is_in_hand = |row: &BoardItem| match &row.stage {
        Stage::Leased { lease } => lease.holds(now),
        Stage::Offered { .. } => true,
        Stage::Open | Stage::Merged | Stage::Aside { .. } => false,
    };
    let is_paused = now < board.paused_until;
    let after = board.paused_until.max(now);
    if board.items.iter().all(|row| row.stage == Stage::Merged) {
        Outlook::Done
    } else if first_free(board, now).is_some() {
        Outlook::Free
    } else if board.items.iter().any(is_in_hand) || is_paused && first_free(board, after).is_some() {
        Outlook::Busy
    } else {
        Outlook::Stuck
    }
}

/// A board for the items of a plan: those that are ticked are merged.
pub fn board(items: &[crate::plan::Item]) -> BoardState {
    let needs = |text: &str| {
        let numbers = crate::plan::after::after_numbers(text).into_iter();
        numbers.filter_map(|(_, number)| number.checked_sub(1)).collect()
    };
    let row = |item: &crate::plan::Item| BoardItem {
        text: item.text.clone(),
        needs: needs(&item.text),
        areas: plimsoll_domain::item_area::stated(&item.text),
        stage: if item.done { Stage::Merged } else { Stage::Open },
        ..BoardItem::default()
    };
    BoardState { items: items.iter().map(row).collect(), ..BoardState::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Item;

    fn plan(items: &[&str]) -> BoardState {
        let item = |text: &&str| Item {
            done: text.starts_with("done"),
            text: (*text).to_owned(),
            lines: None,
            model: None,
        };
        board(&items.iter().map(item).collect::<Vec<_>>())
    }

    #[test]
    fn a_worker_gets_the_first_item_that_nothing_holds_up() {
        for (items, claimed) in [
            (&["a", "b"][..], &[0, 1][..]),
            (&["a (after: 2)", "b"], &[1]),
            (&["done", "b (after: 1)"], &[1]),
            // Neither a missing item nor one that is merged holds anything up; a circle holds itself up.
            (&["a (after: 9)"], &[0]),
            (&["a (after: 2)", "b (after: 1)", "c"], &[2]),
            (&["a (area: src)", "b (area: src/x)", "c (area: docs)", "d"], &[0, 2, 3]),
        ] {
            let mut board = plan(items);
            let got: Vec<usize> =
                std::iter::from_fn(|| claim(&mut board, "w", 0)).map(|one| one.item).collect();
            assert_eq!(got, claimed, "{items:?}");
        }
    }

    /// A board after its first four items were worked on at once: the first is merged, the others conflicted in this file.
    fn after_conflicts(items: usize, writers: usize) -> BoardState {
        let texts: Vec<String> = (0..items).map(|number| format!("item {number}")).collect();
        let mut board = plan(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let merger = become_merger(&mut board, "m", 0).expect("nobody else");
        for item in 0..4 {
            let taken = claim(&mut board, "w", 0).expect("an item");
            offer(&mut board, taken, "c").expect("mine");
            let file = if item < writers { "CHANGELOG.md".to_owned() } else { format!("src/{item}.rs") };
            note_writes(&mut board, item, &[file]);
        }
        board.items[0].stage = Stage::Merged;
        for item in 1..4 {
            if item < writers {
                let files = ["CHANGELOG.md".to_owned()];
                send_back_conflict(&mut board, merger, item, "conflict", &files).expect("offered");
            } else {
                board.items[item].stage = Stage::Merged;
            }
        }
        board
    }

    #[test]
    fn items_that_write_the_same_file_are_worked_on_one_after_the_other() {
        let mut board = after_conflicts(12, 4);
        let mut sessions = 4;
        let merger = become_merger(&mut board, "m", 0).expect("it goes on");
        while let Some(taken) = claim(&mut board, "w", 0) {
            sessions += 1;
            assert_eq!(claim(&mut board, "other", 0), None, "one at a time: {board:?}");
            offer(&mut board, taken, "c").expect("mine");
            assert_eq!(claim(&mut board, "other", 0), None, "not before the work is merged");
            note_writes(&mut board, taken.item, &["CHANGELOG.md".to_owned()]);
            assert_eq!(claim(&mut board, "other", 0), None, "also once it is known to write the file");
            assert_eq!(mergeable(&board), [taken.item]);
            land(&mut board, merger, taken.item, "l").expect("offered");
            board.items[taken.item].stage = Stage::Merged;
        }
        assert_eq!((outlook(&board, 0), sessions), (Outlook::Done, 15));
        assert!(board.items.iter().all(|row| row.tries == 0));
    }

    #[test]
    fn a_conflict_between_two_items_stops_nobody_else() {
        // Two of four wrote the file, so it may be one that everybody writes; of five it is not.
        let mut board = after_conflicts(8, 2);
        board.items.push(BoardItem {
            writes: vec!["src/9.rs".into()],
            stage: Stage::Merged,
            ..BoardItem::default()
        });
        let claimed: Vec<usize> =
            std::iter::from_fn(|| claim(&mut board, "w", 0)).map(|taken| taken.item).collect();
        assert_eq!(claimed, [1, 4, 5, 6, 7]);
    }

    /// Whatever conflicts with what, everything is merged in the end: nothing waits for something that waits for it.
    #[test]
    fn no_order_of_conflicts_brings_the_work_to_a_halt() {
        for seed in 0..400_u64 {
            let mut random = seed * 2 + 1;
            let mut next = move |below: usize| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                usize::try_from(random >> 33).expect("31 bits") % below
            };
            let count = 2 + next(9);
            let texts: Vec<String> = (0..count).map(|number| format!("item {number}")).collect();
            let mut board = plan(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            let merger = become_merger(&mut board, "m", 0).expect("nobody else");
            // Each item writes one or two of three files, always the same.
            let files: Vec<Vec<String>> =
                (0..count).map(|_| (0..=next(2)).map(|_| format!("{}.rs", next(3))).collect()).collect();
            let (mut landed, mut began): (Vec<usize>, Vec<usize>) = (Vec::new(), vec![0; count]);
            let (mut at_work, mut sessions) = (Vec::new(), 0);
            while outlook(&board, 0) != Outlook::Done {
                let can_merge = mergeable(&board);
                let can_claim = at_work.len() < 4 && outlook(&board, 0) == Outlook::Free;
                assert!(can_claim || !can_merge.is_empty() || !at_work.is_empty(), "seed {seed}: {board:?}");
                match next(3) {
                    0 if can_claim => {
                        let taken = claim(&mut board, "w", 0).expect("an item is free");
                        began[taken.item] = landed.len();
                        at_work.push(taken);
                        sessions += 1;
                    }
                    1 if !at_work.is_empty() => {
                        let taken = at_work.remove(next(at_work.len()));
                        offer(&mut board, taken, "c").expect("mine");
                    }
                    2 if !can_merge.is_empty() => {
                        let item = can_merge[next(can_merge.len())];
                        note_writes(&mut board, item, &files[item]);
                        let since = &landed[began[item]..];
                        let conflicts: Vec<String> = files[item]
                            .iter()
                            .filter(|file| since.iter().any(|other: &usize| files[*other].contains(file)))
                            .cloned()
                            .collect();
                        if !mergeable(&board).contains(&item) {
                            continue;
                        }
                        if conflicts.is_empty() {
                            board.items[item].stage = Stage::Merged;
                            landed.push(item);
                        } else {
                            send_back_conflict(&mut board, merger, item, "no", &conflicts).expect("offered");
                        }
                    }
                    _ => {}
                }
            }
            // Without areas each of the others could come back once for every item that is merged before it.
            assert!(sessions <= 3 * count, "seed {seed}: {sessions} sessions for {count} items");
        }
    }

    #[test]
    fn what_writes_a_contested_file_is_merged_after_the_item_that_was_sent_back() {
        let mut board = plan(&["a", "b", "c", "d"]);
        let merger = become_merger(&mut board, "m", 0).expect("nobody else");
        for item in 0..3 {
            let taken = claim(&mut board, "w", 0).expect("an item");
            offer(&mut board, taken, "c").expect("mine");
            note_writes(&mut board, item, &[if item == 2 { "b.rs" } else { "a.rs" }.to_owned()]);
        }
        send_back_conflict(&mut board, merger, 0, "conflict", &["a.rs".to_owned()]).expect("offered");
        assert_eq!((mergeable(&board), offered(&board)), (vec![2], vec![1, 2]));
        // What waits for it does not stop it.
        let retry = claim(&mut board, "w", 0).expect("the item that was sent back");
        assert_eq!(retry.item, 0);
        assert_eq!(mergeable(&board), [2], "also while somebody works on it");
        offer(&mut board, retry, "c2").expect("mine");
        assert_eq!(mergeable(&board), [0, 1, 2]);
        // The user's answer may take a night.
        let mut asked = board.clone();
        asked.items[0].stage = Stage::Aside { reason: Aside::Question("which?".into()) };
        assert_eq!(mergeable(&asked), [1, 2]);
        // Two that were sent back for the same file do not wait for each other.
        send_back_conflict(&mut board, merger, 1, "conflict", &["a.rs".to_owned()]).expect("offered");
        assert_eq!(mergeable(&board), [0, 2]);
        assert_eq!(
            claim(&mut board, "w", 0),
            None,
            "b waits until a is merged, and d will probably write it, too"
        );
        assert_eq!(send_back_conflict(&mut board, merger + 1, 0, "late", &[]), Err(Fenced));
    }

    #[test]
    fn who_comes_back_too_late_changes_nothing() {
        let mut board = plan(&["a"]);
        let first = claim(&mut board, "one", 0).expect("an item");
        assert_eq!(claim(&mut board, "two", LEASE - 1), None);
        let second = claim(&mut board, "two", LEASE).expect("the lease is over");
        let before = board.clone();
        for late in [
            renew(&mut board, first, LEASE),
            offer(&mut board, first, "c1"),
            give_back(&mut board, first),
            set_aside(&mut board, first, Aside::Tries),
        ] {
            assert_eq!(late, Err(Fenced));
        }
        assert_eq!(board, before);
        assert_eq!(offer(&mut board, second, "c2"), Ok(()));
        assert_eq!(offer(&mut board, second, "c3"), Err(Fenced), "it is offered");
    }

    #[test]
    fn a_lease_that_is_over_and_that_nobody_took_is_still_its_workers() {
        let mut board = plan(&["a"]);
        let mine = claim(&mut board, "one", 0).expect("an item");
        assert_eq!(renew(&mut board, mine, 10 * LEASE), Ok(()));
        assert_eq!(claim(&mut board, "two", 10 * LEASE + 1), None);
        assert_eq!(offer(&mut board, mine, "c"), Ok(()));
    }

    #[test]
    fn one_merger_lands_and_the_one_before_it_is_fenced() {
        let mut board = plan(&["a", "b (after: 1)"]);
        let mine = claim(&mut board, "w", 0).expect("an item");
        offer(&mut board, mine, "c").expect("mine");
        let first = become_merger(&mut board, "m1", 0).expect("nobody else");
        assert_eq!(become_merger(&mut board, "m2", LEASE - 1), None);
        assert_eq!(become_merger(&mut board, "m1", 1), Some(first), "it goes on");
        assert_eq!(renew_merger(&mut board, first, 1), Ok(()));
        assert_eq!(land(&mut board, first, 0, "l1"), Ok(()));
        let second = become_merger(&mut board, "m2", 2 * LEASE).expect("the lease is over");
        assert_eq!(land(&mut board, first, 0, "l2"), Err(Fenced));
        assert_eq!(renew_merger(&mut board, first, 2 * LEASE), Err(Fenced));
        assert_eq!(step_down(&mut board, first), Err(Fenced));
        assert_eq!(refuse(&mut board, first, 0, "no"), Err(Fenced));
        assert_eq!(settle(&mut board, |_| false), [0; 0]);
        // The second finds that it conflicts; then the first moves the target after all.
        assert_eq!(refuse(&mut board, second, 0, "conflict"), Ok(()));
        let again = claim(&mut board, "w", 2 * LEASE).expect("open again");
        assert_eq!(settle(&mut board, |commit| commit == "l1"), [0]);
        assert_eq!(offer(&mut board, again, "c2"), Err(Fenced), "it has landed");
        assert_eq!(step_down(&mut board, second), Ok(()));
        assert_eq!(become_merger(&mut board, "m1", 2 * LEASE), Some(second + 1), "it is free");
        assert_eq!(claim(&mut board, "w", 2 * LEASE).map(|one| one.item), Some(1));
    }

    #[test]
    fn work_that_cannot_be_merged_comes_back_with_its_reason_and_is_set_aside_in_the_end() {
        let mut board = plan(&["a", "b (after: 1)"]);
        for round in 1..=TRIES {
            let mine = claim(&mut board, "w", 0).expect("open");
            assert_eq!(mine.epoch, u64::from(round));
            offer(&mut board, mine, "c").expect("mine");
            assert_eq!(outlook(&board, 0), Outlook::Busy);
            let merger = become_merger(&mut board, "m", 0).expect("nobody else");
            refuse(&mut board, merger, 0, "red").expect("the merger");
        }
        assert_eq!(board.items[0].stage, Stage::Aside { reason: Aside::Tries });
        assert_eq!((board.items[0].note.as_str(), outlook(&board, 0)), ("red", Outlook::Stuck));
        assert!(reopen(&mut board, 0) && !reopen(&mut board, 1));
        assert_eq!(outlook(&board, 0), Outlook::Free);
    }

    #[test]
    fn an_item_that_no_run_can_do_is_set_aside_with_the_last_reason() {
        let mut board = plan(&["a"]);
        for round in 1..=TRIES {
            let mine = claim(&mut board, "w", 0).expect("open");
            assert_eq!(fail(&mut board, mine, &format!("stuck\n{round}")), Ok(()));
            assert_eq!(fail(&mut board, mine, "late"), Err(Fenced));
        }
        assert_eq!(board.items[0].stage, Stage::Aside { reason: Aside::Ended("stuck 3".into()) });
    }

    #[test]
    fn a_pause_holds_for_all_and_costs_nobody_a_try() {
        let mut board = plan(&["a"]);
        pause(&mut board, 5_000);
        pause(&mut board, 4_000);
        assert_eq!((claim(&mut board, "w", 4_999), outlook(&board, 4_999)), (None, Outlook::Busy));
        assert!(claim(&mut board, "w", 5_000).is_some());
        assert_eq!(board.items[0].tries, 0);
    }

    #[test]
    fn a_board_is_done_when_everything_is_merged() {
        let mut board = plan(&["done a", "b"]);
        let mine = claim(&mut board, "w", 0).expect("open");
        offer(&mut board, mine, "c").expect("mine");
        let merger = become_merger(&mut board, "m", 0).expect("nobody else");
        assert_eq!(land(&mut board, merger, 0, "l"), Err(Fenced), "it is not offered");
        assert_eq!(land(&mut board, merger, 1, "l"), Ok(()));
        assert_eq!(settle(&mut board, |commit| commit == "l"), [1]);
        assert_eq!(outlook(&board, 0), Outlook::Done);
        let text = serde_json::to_string(&board).expect("JSON");
        assert_eq!(serde_json::from_str::<BoardState>(&text).expect("a board"), board);
    }
}
