//! What several workers would do with a plan: which items side by side, in how much time, and what the rest waits for. The
//! board itself is asked, with a worker's work taking as long as its item's estimate.

use super::{Claim, claim};
use plimsoll_domain::board::{Board, Stage};
use std::cmp::Reverse;

/// What one worker does with one item, in tokens of work from the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The item's place on the board.
    pub item: usize,
    /// The worker, from 0.
    pub worker: usize,
    /// When it begins.
    pub from: u64,
    /// When it ends.
    pub to: u64,
}

/// A plan as some workers would do it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// By their beginnings.
    pub slots: Vec<Slot>,
    /// Until the last item is done.
    pub length: u64,
    /// What one worker would take.
    pub alone: u64,
    /// The items that decide how long it takes: each begins when the one before it ends.
    pub critical: Vec<usize>,
    /// Open items that no worker ever gets, because they wait for each other or for such an item.
    pub never: Vec<usize>,
}

/// The schedule of a board for so many workers; `work` has the estimate of each item.
pub fn schedule(board: &Board, work: &[u64], workers: usize) -> Schedule {
    let mut board = board.clone();
    let takes = |item: usize| work.get(item).copied().unwrap_or_default().max(1);
    let mut idle: Vec<usize> = (0..workers.max(1)).rev().collect();
    let mut busy: Vec<(Slot, Claim)> = Vec::new();
    let mut slots = Vec::new();
    let mut now = 0;
    loop {
        while let Some(worker) = idle.pop() {
            // No lease ends here: a moment of the board is none of the schedule's.
            let Some(claim) = claim(&mut board, &worker.to_string(), 0) else {
                idle.push(worker);
                break;
            };
            let to = now + takes(claim.item);
            busy.push((Slot { item: claim.item, worker, from: now, to }, claim));
        }
        // The first to end; of two, the first in the plan.
        let Some(place) = (0..busy.len()).min_by_key(|place| (busy[*place].0.to, busy[*place].0.item)) else {
            break;
        };
        let (slot, claim) = busy.swap_remove(place);
        now = slot.to;
        board.items[claim.item].stage = Stage::Merged;
        idle.push(slot.worker);
        idle.sort_unstable_by(|one, other| other.cmp(one));
        slots.push(slot);
    }
    slots.sort_by_key(|slot| (slot.from, slot.worker));
    let is_never = |item: &usize| matches!(board.items[*item].stage, Stage::Open | Stage::Leased { .. });
    Schedule {
        length: slots.iter().map(|slot| slot.to).max().unwrap_or_default(),
        alone: slots.iter().map(|slot| slot.to - slot.from).sum(),
        critical: critical(&slots),
        never: (0..board.items.len()).filter(is_never).collect(),
        slots,
    }
}

/// From the end: what ended when the item began, its own worker's before another's.
fn critical(slots: &[Slot]) -> Vec<usize> {
    let mut path = Vec::new();
    let mut next = slots.iter().max_by_key(|slot| (slot.to, Reverse(slot.item)));
    while let Some(slot) = next {
        path.push(slot.item);
        let before = slots.iter().filter(|other| other.to == slot.from);
        next = before.min_by_key(|other| other.worker != slot.worker);
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Item;

    fn board(items: &[&str]) -> Board {
        let item = |text: &&str| Item {
            text: (*text).to_owned(),
            done: text.starts_with("done"),
            lines: None,
            model: None,
        };
        super::super::board(&items.iter().map(item).collect::<Vec<_>>())
    }

    #[test]
    fn workers_share_what_waits_for_nothing() {
        for (items, work, workers, length, critical, never) in [
            (&["a", "b", "c"][..], &[3, 2, 1][..], 2, 3, &[0][..], &[][..]),
            (&["a", "b", "c"], &[3, 2, 1], 1, 6, &[0, 1, 2], &[]),
            (&["a", "b (after: 1)", "c (after: 2)"], &[1, 1, 1], 3, 3, &[0, 1, 2], &[]),
            (&["a (area: src)", "b (area: src/x)", "c"], &[2, 2, 2], 3, 4, &[0, 1], &[]),
            (&["done a", "b (after: 1)", "c"], &[9, 2, 2], 2, 2, &[1], &[]),
            (&["a (after: 2)", "b (after: 1)", "c (after: 1)", "d"], &[1, 1, 1, 5], 2, 5, &[3], &[0, 1, 2]),
            (&["done a"], &[1], 2, 0, &[], &[]),
        ] {
            let found = schedule(&board(items), work, workers);
            assert_eq!(
                (found.length, &found.critical[..], &found.never[..]),
                (length, critical, never),
                "{items:?}"
            );
            let open: u64 = (0..items.len())
                .filter(|item| !items[*item].starts_with("done") && !never.contains(item))
                .map(|item| work[item])
                .sum();
            assert_eq!(found.alone, open, "{items:?}");
        }
    }

    #[test]
    fn no_worker_does_two_things_at_once_and_no_number_of_workers_is_slower_than_one() {
        let texts: Vec<String> =
            (1..40).map(|n| if n % 3 == 0 { format!("x (after: {})", n / 2) } else { "x".into() }).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let work: Vec<u64> = (0..texts.len() as u64).map(|n| 1 + n * 7 % 11).collect();
        for workers in 1..8 {
            let found = schedule(&board(&texts), &work, workers);
            for (place, one) in found.slots.iter().enumerate() {
                let clash = |other: &Slot| other.worker == one.worker && other.from < one.to;
                assert!(!found.slots[place + 1..].iter().any(clash), "{workers} {one:?}");
            }
            assert!(found.length <= found.alone && found.length * workers as u64 >= found.alone, "{workers}");
            assert_eq!(found.slots.len(), texts.len());
        }
    }
}
