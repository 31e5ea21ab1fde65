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

#[cfg(test)]
mod interleavings;
pub mod queue;
pub mod schedule;

use plimsoll_domain::board::{Aside, Board, BoardItem, Lease, Moment, Stage};
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
pub fn claim(board: &mut Board, worker: &str, now: Moment) -> Option<Claim> {
    let item = first_free(board, now)?;
    let row = &mut board.items[item];
    row.epoch += 1;
    row.stage = Stage::Leased { lease: Lease { holder: worker.to_owned(), until: now + LEASE } };
    Some(Claim { item, epoch: row.epoch })
}

fn first_free(board: &Board, now: Moment) -> Option<usize> {
    if now < board.paused_until {
        return None;
    }
    let is_free = |row: &BoardItem| {
        is_open(row, now)
            && row.needs.iter().all(|need| is_merged(board, *need))
            && !taken(board, now).any(|(_, other)| overlap(&row.areas, &other.areas))
    };
    board.items.iter().position(is_free)
}

/// The items that somebody works on.
fn taken(board: &Board, now: Moment) -> impl Iterator<Item = (usize, &BoardItem)> {
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
fn is_merged(board: &Board, need: usize) -> bool {
    board.items.get(need).is_none_or(|row| row.stage == Stage::Merged)
}

/// Keeps an item for its worker; a lease that is over, if nobody has begun meanwhile what touches the same paths.
pub fn renew(board: &mut Board, claim: Claim, now: Moment) -> Result<(), Fenced> {
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
pub fn offer(board: &mut Board, claim: Claim, commit: &str) -> Result<(), Fenced> {
    held(board, claim)?.stage = Stage::Offered { commit: commit.to_owned() };
    Ok(())
}

/// Gives an item back: its worker ended without having done it.
pub fn give_back(board: &mut Board, claim: Claim) -> Result<(), Fenced> {
    held(board, claim)?.stage = Stage::Open;
    Ok(())
}

/// Gives an item back that its worker could not do, with what its next session is told; after some tries it is set aside.
pub fn fail(board: &mut Board, claim: Claim, reason: &str) -> Result<(), Fenced> {
    let row = held(board, claim)?;
    row.tries += 1;
    row.note = clip(&one_line(reason), QUESTION);
    row.stage =
        if row.tries < TRIES { Stage::Open } else { Stage::Aside { reason: Aside::Ended(row.note.clone()) } };
    Ok(())
}

/// Sets an item aside that its worker cannot go on with.
pub fn set_aside(board: &mut Board, claim: Claim, reason: Aside) -> Result<(), Fenced> {
    let reason = match reason {
        Aside::Question(question) => Aside::Question(clip(&one_line(&question), QUESTION)),
        Aside::Ended(_) | Aside::Tries => reason,
    };
    held(board, claim)?.stage = Stage::Aside { reason };
    Ok(())
}

/// The item of a claim, while it is leased with its epoch: also when the lease is over and nobody has taken it.
fn held(board: &mut Board, claim: Claim) -> Result<&mut BoardItem, Fenced> {
    let row = board.items.get_mut(claim.item).ok_or(Fenced)?;
    let is_held = matches!(row.stage, Stage::Leased { .. }) && row.epoch == claim.epoch;
    if is_held { Ok(row) } else { Err(Fenced) }
}

/// Makes one merger of several: the epoch with which it says everything.
pub fn become_merger(board: &mut Board, name: &str, now: Moment) -> Option<u64> {
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
pub fn step_down(board: &mut Board, merger: u64) -> Result<(), Fenced> {
    if board.merger_epoch != merger {
        return Err(Fenced);
    }
    board.merger.until = 0;
    Ok(())
}

/// Keeps the merger's lease for it, also one that is over and that nobody took.
pub fn renew_merger(board: &mut Board, merger: u64, now: Moment) -> Result<(), Fenced> {
    if board.merger_epoch != merger {
        return Err(Fenced);
    }
    board.merger.until = board.merger.until.max(now + LEASE);
    Ok(())
}

/// Counts as merged whatever is in the target by now, also what was landed by a merger that had lost its lease: a worker that
/// is at such an item once more is fenced. Whoever is about to land something asks first, by the target from whose end it
/// lands: a commit that comes in meanwhile moves that end.
pub fn settle(board: &mut Board, is_in_target: impl Fn(&str) -> bool) -> Vec<usize> {
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
pub fn offered(board: &Board) -> Vec<usize> {
    let is_offered = |row: &BoardItem| matches!(row.stage, Stage::Offered { .. });
    (0..board.items.len()).filter(|place| is_offered(&board.items[*place])).collect()
}

/// Writes down the commit by which an offered item is about to land. Only then may the target move.
pub fn land(board: &mut Board, merger: u64, item: usize, commit: &str) -> Result<(), Fenced> {
    let row = landing(board, merger, item)?;
    if !row.landings.iter().any(|known| known == commit) {
        row.landings.push(commit.to_owned());
    }
    Ok(())
}

/// Counts an offered item as merged that has no change of its own, and whose check passes without one.
pub fn nothing_to_do(board: &mut Board, merger: u64, item: usize) -> Result<(), Fenced> {
    landing(board, merger, item)?.stage = Stage::Merged;
    Ok(())
}

/// Gives an offered item back to its branch, with what its next session is told; after some tries it is set aside.
pub fn refuse(board: &mut Board, merger: u64, item: usize, note: &str) -> Result<(), Fenced> {
    let row = landing(board, merger, item)?;
    row.tries += 1;
    row.note = note.to_owned();
    row.stage = if row.tries < TRIES { Stage::Open } else { Stage::Aside { reason: Aside::Tries } };
    Ok(())
}

/// An offered item, if this is the merger.
fn landing(board: &mut Board, merger: u64, item: usize) -> Result<&mut BoardItem, Fenced> {
    if board.merger_epoch != merger {
        return Err(Fenced);
    }
    let row = board.items.get_mut(item).ok_or(Fenced)?;
    if matches!(row.stage, Stage::Offered { .. }) { Ok(row) } else { Err(Fenced) }
}

/// Holds everything until a moment; a later end counts.
pub fn pause(board: &mut Board, until: Moment) {
    board.paused_until = board.paused_until.max(until);
}

/// Opens an item again that waited for an answer, or that the user wants tried once more.
pub fn reopen(board: &mut Board, item: usize) -> bool {
    let Some(row) = board.items.get_mut(item) else { return false };
    let is_aside = matches!(row.stage, Stage::Aside { .. });
    if is_aside {
        row.stage = Stage::Open;
        row.tries = 0;
    }
    is_aside
}

/// What there is to do now.
pub fn outlook(board: &Board, now: Moment) -> Outlook {
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
pub fn board(items: &[crate::plan::Item]) -> Board {
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
    Board { items: items.iter().map(row).collect(), ..Board::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Item;

    fn plan(items: &[&str]) -> Board {
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
        assert_eq!(nothing_to_do(&mut board, merger, 0), Err(Fenced), "it is not offered");
        assert_eq!(nothing_to_do(&mut board, merger, 1), Ok(()));
        assert_eq!(outlook(&board, 0), Outlook::Done);
        let text = serde_json::to_string(&board).expect("JSON");
        assert_eq!(serde_json::from_str::<Board>(&text).expect("a board"), board);
    }
}
