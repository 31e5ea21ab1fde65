//! What all runs of the user spend on a day: added up from their ledgers.

use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use plimsoll_domain::cost::{Cost, CostBasis};
use plimsoll_domain::limits::SpentToday;
use plimsoll_domain::{RunState, Verdict};
use plimsoll_policy::bounds;
use plimsoll_store::{Project, clock, ledger};

/// Adds what a session used to the run's limits and to that of the day. Returns its cost; a session of which nothing is known makes the
/// sum uncertain.
pub(super) fn add_session(context: &RunContext<'_>, state: &mut RunState, ended: &SessionResult) -> f64 {
    let cost = ended.cost.unwrap_or(Cost { usd: 0.0, basis: CostBasis::Estimated });
    bounds::add_session(state, cost, ended.tokens, &clock::day(clock::now()));
    if state.options.limits.max_cost_per_day_usd.is_some() {
        state.spent.spent_today = Some(spent_today(context.project, state));
    }
    cost.usd
}

/// What all runs have spent today, this one among them.
pub(crate) fn spent_today(project: &Project, state: &RunState) -> SpentToday {
    let now = clock::now();
    let day = clock::day(now);
    let others = ledger::spent_on(project, &day, &state.run_id);
    let Cost { usd, basis } = others + state.spent.cost_of_day.on(&day);
    SpentToday { usd, basis, ends_at: clock::stamp(clock::end_of_day(now)) }
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
