//! Estimates the remaining work of a run, from the items that it has finished. The measured items are resampled, as in
//! [`crate::forecast`], because a few large items would distort a mean.
//!
//! Limits: an item that is half done counts as a whole one, and pauses and verify commands between sessions are not included.

use crate::forecast::DeterministicRng;
use plimsoll_domain::RunState;
use plimsoll_domain::board::ItemStage;
use plimsoll_domain::remaining_work::{EstimateRange, RemainingWork};
use plimsoll_domain::run_figures::ItemCounts;
use plimsoll_domain::state::HistoryEntry;
use plimsoll_domain::workers::WorkersState;

/// With fewer measured items there is no estimate: one may be unusual.
const MIN_MEASURED_ITEMS: usize = 2;
/// The number of simulations of the remaining work. Their lowest and highest results are the range.
const SIMULATION_COUNT: usize = 41;
/// The maximum number of items that a simulation draws; its sums are scaled up for longer plans.
const MAX_DRAWN_ITEMS: usize = 200;

/// The usage of a finished item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredItemUsage {
    /// A fraction if several items shared a session.
    pub sessions: f64,
    /// `None` if the time was not measured.
    pub seconds: Option<f64>,
    pub cost_usd: f64,
}

/// Estimates the remaining work of a run with one session at a time. Returns `None` if no item remains or too few were measured.
pub fn estimate_remaining_work_of_sequential_run(
    state: &RunState,
    items: &ItemCounts,
) -> Option<RemainingWork> {
    estimate_remaining_work(&usage_of_finished_items(&state.context_history), items.remaining())
}

/// Estimates the remaining work of a parallel run. `seconds_of_work` is the time that all workers together took for the merged items;
/// `None` if it is unknown.
pub fn estimate_remaining_work_of_parallel_run(
    workers_state: &WorkersState,
    items: &ItemCounts,
    seconds_of_work: Option<u64>,
) -> Option<RemainingWork> {
    let merged_items: Vec<_> = workers_state
        .board
        .items
        .iter()
        .zip(&workers_state.item_progress)
        .filter(|(board_item, _)| board_item.stage == ItemStage::Merged)
        .map(|(_, progress)| {
            let mut usage = progress.earlier_usage;
            usage += progress.current_usage;
            usage
        })
        // Items that were ticked before the run, or merged by another machine, have no usage here.
        .filter(|usage| usage.sessions > 0)
        .collect();
    let seconds_per_item = seconds_of_work.map(|seconds| seconds as f64 / merged_items.len().max(1) as f64);
    let measured_items: Vec<MeasuredItemUsage> = merged_items
        .iter()
        .map(|usage| MeasuredItemUsage {
            sessions: f64::from(usage.sessions),
            seconds: seconds_per_item,
            cost_usd: usage.cost_usd,
        })
        .collect();
    estimate_remaining_work(&measured_items, items.remaining())
}

/// Returns the usage of each item that the sessions have finished. Items of the same session share its usage equally; the
/// sessions before the one that ticks an item belong to it.
fn usage_of_finished_items(history: &[HistoryEntry]) -> Vec<MeasuredItemUsage> {
    let mut measured_items = Vec::new();
    let (mut sessions, mut seconds, mut cost_usd) = (0.0, 0.0, 0.0);
    for entry in history {
        sessions += 1.0;
        seconds += entry.duration_seconds as f64;
        cost_usd += entry.cost_usd;
        let item_count = entry.ticked_item_count;
        if item_count == 0 {
            continue;
        }
        let item_count = f64::from(item_count);
        let usage = MeasuredItemUsage {
            sessions: sessions / item_count,
            seconds: (seconds > 0.0).then_some(seconds / item_count),
            cost_usd: cost_usd / item_count,
        };
        measured_items.extend(std::iter::repeat_n(usage, item_count as usize));
        (sessions, seconds, cost_usd) = (0.0, 0.0, 0.0);
    }
    measured_items
}

/// Estimates what this many items need, from the usage of measured ones.
pub fn estimate_remaining_work(
    measured_items: &[MeasuredItemUsage],
    remaining_items: usize,
) -> Option<RemainingWork> {
    if remaining_items == 0 || measured_items.len() < MIN_MEASURED_ITEMS {
        return None;
    }
    let drawn_count = remaining_items.min(MAX_DRAWN_ITEMS);
    let scale = remaining_items as f64 / drawn_count as f64;
    let mut rng = DeterministicRng::new();
    let sums: Vec<MeasuredItemUsage> = (0..SIMULATION_COUNT)
        .map(|_| {
            let mut sum = MeasuredItemUsage { sessions: 0.0, seconds: Some(0.0), cost_usd: 0.0 };
            for _ in 0..drawn_count {
                let item = measured_items[rng.next_below(measured_items.len())];
                sum.sessions += item.sessions * scale;
                sum.seconds = sum.seconds.zip(item.seconds).map(|(sum, seconds)| sum + seconds * scale);
                sum.cost_usd += item.cost_usd * scale;
            }
            sum
        })
        .collect();
    let sessions = range_of(sums.iter().map(|sum| sum.sessions));
    let seconds: Option<Vec<f64>> = sums.iter().map(|sum| sum.seconds).collect();
    let cost_usd = range_of(sums.iter().map(|sum| sum.cost_usd));
    Some(RemainingWork {
        items: remaining_items,
        sessions: EstimateRange {
            low: round_up_sessions(sessions.low),
            high: round_up_sessions(sessions.high),
        },
        minutes: seconds.map(|seconds| {
            let seconds = range_of(seconds.into_iter());
            EstimateRange {
                low: (seconds.low / 60.0).round() as u64,
                high: (seconds.high / 60.0).round() as u64,
            }
        }),
        cost_usd: (cost_usd.high > 0.0).then_some(cost_usd),
    })
}

/// Rounds up to whole sessions. Fractions of shared sessions do not add up exactly.
fn round_up_sessions(sessions: f64) -> u64 {
    (sessions - 1e-6).ceil().max(1.0) as u64
}

fn range_of(values: impl Iterator<Item = f64>) -> EstimateRange<f64> {
    values.fold(EstimateRange { low: f64::INFINITY, high: 0.0 }, |range, value| EstimateRange {
        low: range.low.min(value),
        high: range.high.max(value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::board::{BoardItem, BoardState};
    use plimsoll_domain::workers::{ItemProgress, WorkUsage};

    fn session(ticked_item_count: u32, duration_seconds: u64, cost_usd: f64) -> HistoryEntry {
        HistoryEntry { ticked_item_count, duration_seconds, cost_usd, ..HistoryEntry::default() }
    }

    fn rendered_estimate(history: &[HistoryEntry], remaining_items: usize) -> Option<String> {
        Some(estimate_remaining_work(&usage_of_finished_items(history), remaining_items)?.render())
    }

    #[test]
    fn the_rest_follows_from_the_items_that_were_finished() {
        let equal = [session(1, 300, 0.5), session(1, 300, 0.5)];
        let unequal = [session(1, 300, 0.4), session(0, 200, 0.3), session(1, 400, 0.3)];
        let shared = [session(3, 180, 0.3), session(3, 180, 0.3)];
        for (history, remaining_items, expected) in [
            (&[][..], 3, None),
            (&equal[..1], 3, None),
            (&[session(0, 900, 1.0), session(0, 900, 1.0)][..], 3, None),
            (&equal, 0, None),
            (&equal, 3, Some("about 3 items, 3 sessions, 15 min, $1.50 left")),
            (&unequal, 1, Some("about 1 item, 1–2 sessions, 5–10 min, $0.40–$0.60 left")),
            (&shared, 6, Some("about 6 items, 2 sessions, 6 min, $0.60 left")),
            (&shared, 1, Some("about 1 item, 1 session, 1 min, $0.10 left")),
            (&equal, 1_000, Some("about 1000 items, 1000 sessions, 83–84 h, $500.00 left")),
            (&[session(1, 0, 0.0), session(1, 0, 0.0)], 2, Some("about 2 items, 2 sessions left")),
        ] {
            assert_eq!(rendered_estimate(history, remaining_items).as_deref(), expected, "{history:?}");
        }
    }

    #[test]
    fn merged_items_of_a_parallel_run_are_measured_with_the_time_of_all_workers() {
        let item = |stage| BoardItem { stage, ..BoardItem::default() };
        let progress = |sessions, cost_usd| ItemProgress {
            current_usage: WorkUsage { sessions, cost_usd, ..WorkUsage::default() },
            ..ItemProgress::default()
        };
        let workers_state = WorkersState {
            board: BoardState {
                items: vec![
                    item(ItemStage::Merged),
                    item(ItemStage::Merged),
                    item(ItemStage::Merged),
                    item(ItemStage::Open),
                ],
                ..BoardState::default()
            },
            // The third item was merged before this run.
            item_progress: vec![progress(1, 0.5), progress(1, 0.5), progress(0, 0.0), progress(0, 0.0)],
            ..WorkersState::default()
        };
        let items = ItemCounts { total: 4, done: 3, open: 1, ..ItemCounts::default() };
        let render = |seconds| {
            estimate_remaining_work_of_parallel_run(&workers_state, &items, seconds).map(|rest| rest.render())
        };
        assert_eq!(render(Some(600)).as_deref(), Some("about 1 item, 1 session, 5 min, $0.50 left"));
        assert_eq!(render(None).as_deref(), Some("about 1 item, 1 session, $0.50 left"));
        let all_parked = ItemCounts { parked: 1, ..items };
        assert_eq!(estimate_remaining_work_of_parallel_run(&workers_state, &all_parked, None), None);
    }
}
