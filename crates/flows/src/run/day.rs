//! What all runs of the user spend on a day: added up from their ledgers.

use plimsoll_domain::limits::SpentToday;
use plimsoll_domain::{RunState, Verdict};
use plimsoll_policy::bounds;
use plimsoll_store::{Project, clock, ledger};

/// Counts what a session used, in the run's limits and in that of the day; answers with its price.
pub(super) fn add_session(project: &Project, state: &mut RunState, cost_usd: f64, tokens: u64) -> f64 {
    let cost_usd = bounds::add_session(state, cost_usd, tokens, &clock::day(clock::now()));
    if state.options.limits.max_cost_per_day_usd.is_some() {
        state.spent.spent_today = Some(spent_today(project, state));
    }
    cost_usd
}

/// What all runs have spent today, this one among them.
pub(crate) fn spent_today(project: &Project, state: &RunState) -> SpentToday {
    let now = clock::now();
    let day = clock::day(now);
    let others = ledger::spent_on(project, &day, &state.run_id);
    let usd = others + state.spent.cost_of_day.on(&day);
    SpentToday { usd, ends_at: clock::stamp(clock::end_of_day(now)) }
}

/// What may still be spent today; none without a limit for that.
pub(crate) fn left(project: &Project, state: &RunState) -> Option<f64> {
    let most = state.options.limits.max_cost_per_day_usd?;
    Some(most - spent_today(project, state).usd)
}

/// The pause of a run that may spend nothing more today, as the ledgers are now. One whose deadline comes first ends at that.
pub(crate) fn is_spent(project: &Project, run: &RunState) -> Option<Verdict> {
    run.options.limits.max_cost_per_day_usd?;
    let mut state = run.clone();
    state.spent.spent_today = Some(spent_today(project, run));
    state.options.limits.deadline = None;
    bounds::day(&state, &clock::stamp(clock::now()))
}
