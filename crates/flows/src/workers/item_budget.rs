//! Computes what one item's run may use of the limits of the whole plan.

use plimsoll_domain::cost::CostBasis;
use plimsoll_domain::text::count_with_noun;
use plimsoll_domain::workers::WorkersState;
use plimsoll_domain::{RunState, RunStatus};

/// A session is not begun with less money than this.
pub(super) const MIN_SESSION_USD: f64 = 0.01;

/// The budget of an item's run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ItemBudget {
    /// The run may use this much in all its sessions together.
    Enough { cost_usd: Option<f64>, tokens: Option<u64>, sessions: u32 },
    /// The whole remaining budget is reserved for other items until their runs end.
    WaitForOthers,
    /// The daily limit of the user is used up, with the reason.
    WaitForNextDay(String),
    /// A limit of the plan is used up, with the run's status and the reason.
    Exhausted(RunStatus, String),
}

/// Computes the budget of an item's run while the runs of `other_items` are at work. Each run has a share
/// that no other run can use. Together they never spend more than the plan may, nor more than
/// `remaining_today_usd`, what remains of the user's daily limit.
pub(super) fn compute_item_budget(
    run_state: &RunState,
    workers_state: &WorkersState,
    item: usize,
    other_items: &[usize],
    worker_count: usize,
    remaining_today_usd: Option<f64>,
) -> ItemBudget {
    let (total_usage, item_usage) =
        (workers_state.total_usage_of_all_items(), workers_state.item_progress[item].current_usage);
    let remaining_sessions = run_state.options.max_iterations.saturating_sub(total_usage.sessions);
    if remaining_sessions == 0 {
        return ItemBudget::Exhausted(
            RunStatus::MaxIterations,
            count_with_noun(total_usage.sessions as usize, "session") + " used",
        );
    }
    let tokens = match run_state.options.limits.max_tokens {
        Some(max_tokens) if total_usage.tokens >= max_tokens => {
            return ItemBudget::Exhausted(
                RunStatus::Budget,
                format!("{} of {max_tokens} tokens used", total_usage.tokens),
            );
        }
        token_limit => token_limit.map(|max_tokens| max_tokens - total_usage.tokens + item_usage.tokens),
    };
    let sessions = remaining_sessions + item_usage.sessions;
    let max_usd = run_state.options.limits.max_cost_usd;
    let remaining_of_plan_usd = max_usd.map(|max_usd| max_usd - total_usage.cost_usd);
    let Some(remaining_usd) = remaining_of_plan_usd.into_iter().chain(remaining_today_usd).reduce(f64::min)
    else {
        return ItemBudget::Enough { cost_usd: None, tokens, sessions };
    };
    let reserved_usd = |other_item: &usize| {
        let item_progress = &workers_state.item_progress[*other_item];
        (item_progress.allowed_cost_usd.unwrap_or_default() - item_progress.current_usage.cost_usd).max(0.0)
    };
    let unreserved_usd = remaining_usd - other_items.iter().map(reserved_usd).sum::<f64>();
    let share_usd = unreserved_usd / worker_count.saturating_sub(other_items.len()).max(1) as f64;
    // If the remaining budget is too small to be shared and no other item is running, this item gets all of
    // it.
    let share_usd =
        if share_usd < MIN_SESSION_USD && other_items.is_empty() { unreserved_usd } else { share_usd };
    match () {
        () if share_usd >= MIN_SESSION_USD => {
            ItemBudget::Enough { cost_usd: Some(item_usage.cost_usd + share_usd), tokens, sessions }
        }
        () if !other_items.is_empty() => ItemBudget::WaitForOthers,
        () if remaining_of_plan_usd == Some(remaining_usd) => {
            let max_usd = max_usd.unwrap_or_default();
            let spent_text = total_usage.cost_basis.format_usd_spent_of_limit(total_usage.cost_usd, max_usd);
            ItemBudget::Exhausted(RunStatus::Budget, format!("{spent_text} spent"))
        }
        () => {
            let max_usd_per_day = run_state.options.limits.max_cost_per_day_usd.unwrap_or_default();
            let spent_usd = max_usd_per_day - remaining_usd;
            let spent_text = CostBasis::Reported.format_usd_spent_of_limit(spent_usd, max_usd_per_day);
            ItemBudget::WaitForNextDay(format!("{spent_text} a day spent by all runs together"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::limits::RunLimits;
    use plimsoll_domain::state::RunOptions;
    use plimsoll_domain::workers::{ItemProgress, WorkUsage};

    fn sample_run(max_cost_usd: Option<f64>, max_tokens: Option<u64>) -> RunState {
        let run_limits = RunLimits { max_cost_usd, max_tokens, ..RunLimits::default() };
        RunState {
            options: RunOptions { max_iterations: 10, limits: run_limits, ..RunOptions::default() },
            ..RunState::default()
        }
    }

    fn sample_progress(cost_usd: f64, allowance_usd: f64) -> ItemProgress {
        ItemProgress {
            current_usage: WorkUsage { cost_usd, tokens: 100, sessions: 2, ..WorkUsage::default() },
            allowed_cost_usd: Some(allowance_usd),
            ..ItemProgress::default()
        }
    }

    #[test]
    fn shares_together_never_exceed_the_limit_of_the_plan() {
        let mut workers_state =
            WorkersState { item_progress: vec![ItemProgress::default(); 4], ..WorkersState::default() };
        let mut shares = Vec::new();
        for item in 0..4 {
            let other_items: Vec<usize> = (0..item).collect();
            let ItemBudget::Enough { cost_usd: Some(share), .. } = compute_item_budget(
                &sample_run(Some(8.0), None),
                &workers_state,
                item,
                &other_items,
                4,
                None,
            ) else {
                panic!("there is enough")
            };
            workers_state.item_progress[item].allowed_cost_usd = Some(share);
            shares.push(share);
        }
        assert_eq!(shares, [2.0; 4]);
        // The first item has used its share up. What the second one leaves is then for it.
        workers_state.item_progress[0].current_usage.cost_usd = 2.0;
        assert_eq!(
            compute_item_budget(&sample_run(Some(8.0), None), &workers_state, 0, &[1, 2, 3], 4, None),
            ItemBudget::WaitForOthers
        );
        workers_state.item_progress[1].current_usage.cost_usd = 0.5;
        let larger_budget =
            compute_item_budget(&sample_run(Some(8.0), None), &workers_state, 0, &[2, 3], 3, None);
        assert!(
            matches!(larger_budget, ItemBudget::Enough { cost_usd: Some(budget_usd), .. } if (budget_usd - 3.5).abs() < 1e-9),
            "{larger_budget:?}"
        );
    }

    #[test]
    fn an_exhausted_limit_ends_the_run_with_its_reason() {
        let workers_state = WorkersState {
            item_progress: vec![sample_progress(3.0, 3.0), sample_progress(1.0, 1.0)],
            ..WorkersState::default()
        };
        let budget = |run: &RunState, other_items: &[usize]| {
            compute_item_budget(run, &workers_state, 0, other_items, 2, None)
        };
        assert_eq!(
            budget(&sample_run(Some(4.0), None), &[]),
            ItemBudget::Exhausted(RunStatus::Budget, "$4.00 of $4.00 spent".to_owned())
        );
        assert_eq!(
            budget(&sample_run(None, Some(200)), &[]),
            ItemBudget::Exhausted(RunStatus::Budget, "200 of 200 tokens used".to_owned())
        );
        assert_eq!(
            budget(&sample_run(None, Some(250)), &[]),
            ItemBudget::Enough { cost_usd: None, tokens: Some(150), sessions: 8 }
        );
        let run_with_few_sessions = RunState {
            options: RunOptions { max_iterations: 4, ..RunOptions::default() },
            ..RunState::default()
        };
        assert_eq!(
            budget(&run_with_few_sessions, &[]),
            ItemBudget::Exhausted(RunStatus::MaxIterations, "4 sessions used".to_owned())
        );
    }

    #[test]
    fn the_rest_of_the_daily_limit_is_shared_and_then_waits_for_the_next_day() {
        let workers_state = WorkersState {
            item_progress: vec![sample_progress(1.0, 1.0), sample_progress(0.5, 1.0)],
            ..WorkersState::default()
        };
        let limits = |max_cost_usd| RunLimits {
            max_cost_usd,
            max_cost_per_day_usd: Some(20.0),
            ..RunLimits::default()
        };
        let run = |max_cost_usd| RunState {
            options: RunOptions { max_iterations: 10, limits: limits(max_cost_usd), ..RunOptions::default() },
            ..RunState::default()
        };
        let table: [(_, f64, &[usize], _); 6] = [
            // Half a dollar of the other item's allowance is not spent yet.
            (None, 2.5, &[1], Ok(3.0)),
            (Some(10.0), 2.5, &[1], Ok(3.0)),
            (Some(3.0), 2.5, &[1], Ok(2.0)),
            (None, 0.5, &[1], Err(ItemBudget::WaitForOthers)),
            (
                None,
                0.001,
                &[],
                Err(ItemBudget::WaitForNextDay(
                    "$20.00 of $20.00 a day spent by all runs together".to_owned(),
                )),
            ),
            (
                Some(1.5),
                0.001,
                &[],
                Err(ItemBudget::Exhausted(RunStatus::Budget, "$1.50 of $1.50 spent".to_owned())),
            ),
        ];
        for (plan_limit_usd, left_today_usd, other_items, expected) in table {
            let share = match compute_item_budget(
                &run(plan_limit_usd),
                &workers_state,
                0,
                other_items,
                2,
                Some(left_today_usd),
            ) {
                ItemBudget::Enough { cost_usd: Some(budget_usd), .. } => {
                    Ok((budget_usd * 100.0).round() / 100.0)
                }
                budget => Err(budget),
            };
            assert_eq!(share, expected, "{plan_limit_usd:?} {left_today_usd} {other_items:?}");
        }
    }
}
