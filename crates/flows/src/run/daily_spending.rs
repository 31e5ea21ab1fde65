//! The spending of all runs of the user on one day, summed from their ledgers.

use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use plimsoll_domain::cost::{Cost, CostBasis};
use plimsoll_domain::limits::TodaysSpending;
use plimsoll_domain::{RunState, Verdict};
use plimsoll_policy::bounds;
use plimsoll_store::{Project, clock, ledger};

/// Adds a session's cost and tokens to the spending of the run and of the day. Returns the cost in USD; an
/// unknown cost counts as 0 and makes the sum an estimate.
pub(super) fn add_session_cost(
    context: &RunContext<'_>,
    state: &mut RunState,
    result: &SessionResult,
) -> f64 {
    let cost = result.cost.unwrap_or(Cost { usd: 0.0, basis: CostBasis::Estimated });
    bounds::add_session_cost(state, cost, result.tokens, &clock::format_local_date(clock::now()));
    if state.options.limits.max_cost_per_day_usd.is_some() {
        state.spending.spent_today = Some(spent_today_by_all_runs(context.project, state));
    }
    cost.usd
}

/// Returns the spending of all runs today, including this run.
pub(crate) fn spent_today_by_all_runs(project: &Project, state: &RunState) -> TodaysSpending {
    let now = clock::now();
    let day = clock::format_local_date(now);
    let other_runs_cost = ledger::cost_of_other_runs_on_day(project, &day, &state.run_id);
    let Cost { usd, basis } = other_runs_cost + state.spending.cost_of_last_day.cost_on_day(&day);
    TodaysSpending { usd, basis, day_ends_at: clock::to_timestamp(clock::end_of_local_day(now)) }
}

/// Returns the remaining budget of today in USD; `None` without a daily limit.
pub(crate) fn remaining_today(project: &Project, state: &RunState) -> Option<f64> {
    let daily_limit = state.options.limits.max_cost_per_day_usd?;
    Some(daily_limit - spent_today_by_all_runs(project, state).usd)
}

/// Returns a pause if all runs together have spent the daily limit, according to the ledgers. The deadline is
/// ignored here: a run whose deadline passes during the pause ends then.
pub(crate) fn daily_limit_pause_ignoring_deadline(project: &Project, run: &RunState) -> Option<Verdict> {
    run.options.limits.max_cost_per_day_usd?;
    let mut state = run.clone();
    state.spending.spent_today = Some(spent_today_by_all_runs(project, run));
    state.options.limits.deadline = None;
    bounds::pause_or_stop_for_spent_daily_budget(&state, &clock::to_timestamp(clock::now()))
}
