//! Limits of a run: iterations, cost, tokens, deadline, daily budget, and a percentage of the usage quotas.

use plimsoll_domain::cost::Cost;
use plimsoll_domain::limits::{QuotaWindow, RunLimits};
use plimsoll_domain::text::{count_with_noun, format_tokens};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{RunState, RunStatus, Timestamp, Verdict};

/// Returns a stop or pause verdict if a limit of the run is reached.
pub fn stop_or_pause_for_reached_limit(state: &RunState, now: &Timestamp) -> Option<Verdict> {
    if let Some(verdict) = stop_if_budget_spent_or_deadline_passed(state, now) {
        return Some(verdict);
    }
    if state.iteration >= state.options.max_iterations {
        let iterations_text = count_with_noun(state.iteration as usize, "iteration");
        return Some(Verdict::Stop {
            status: RunStatus::MaxIterations,
            reason: format!("{iterations_text} done"),
        });
    }
    pause_or_stop_for_full_quota(state, now).or_else(|| pause_or_stop_for_spent_daily_budget(state, now))
}

/// Returns a stop verdict if the cost or token budget is spent or the deadline has passed. These limits also apply
/// to a session that does not count as an iteration.
pub fn stop_if_budget_spent_or_deadline_passed(state: &RunState, now: &Timestamp) -> Option<Verdict> {
    let stop_verdict = |status, reason| Some(Verdict::Stop { status, reason });
    if let Some(reason) = spent_budget_reason(state) {
        return stop_verdict(RunStatus::Budget, reason);
    }
    if let Some(deadline) = passed_deadline(state, now) {
        return stop_verdict(RunStatus::Deadline, format!("the deadline was {deadline}"));
    }
    None
}

/// Adds a session's cost and tokens to the run's totals. `date` is the day on which the session ran.
pub fn add_session_cost(state: &mut RunState, cost: Cost, tokens: u64, date: &str) {
    let spending = &mut state.spending;
    spending.cost_usd += cost.usd;
    spending.add_cost_basis(cost.basis);
    spending.cost_of_last_day.add_cost(date, cost);
    spending.tokens = spending.tokens.saturating_add(tokens);
}

/// Returns the reason to stop if the cost or token budget is spent.
fn spent_budget_reason(state: &RunState) -> Option<String> {
    let RunLimits { max_cost_usd, max_tokens, .. } = state.options.limits;
    if let Some(limit) = max_cost_usd.filter(|max_usd| state.spending.cost_usd >= *max_usd) {
        let spent_text =
            state.spending.cost_basis().format_usd_spent_of_limit(state.spending.cost_usd, limit);
        return Some(format!("{spent_text} spent"));
    }
    let limit = max_tokens.filter(|max_tokens_total| state.spending.tokens >= *max_tokens_total)?;
    Some(format!("{} of {} tokens used", format_tokens(state.spending.tokens), format_tokens(limit)))
}

/// Returns the deadline if it has passed.
pub fn passed_deadline<'a>(state: &'a RunState, now: &Timestamp) -> Option<&'a Timestamp> {
    state.options.limits.deadline.as_ref().filter(|deadline| now >= *deadline)
}

/// Returns true if a quota for which the client reports no reset time has reached the limit, and the cost and token
/// budgets are not spent.
pub fn has_full_quota_without_reset_and_budget_left(state: &RunState) -> bool {
    let max_percent = state.options.limits.stop_at_limit_percent.map(f64::from);
    let is_full_without_reset = |window: &QuotaWindow| {
        window.resets_at.is_none()
            && max_percent.is_some_and(|percent_limit| window.used_percent >= percent_limit)
    };
    spent_budget_reason(state).is_none()
        && [&state.spending.quota.five_hour, &state.spending.quota.seven_day]
            .into_iter()
            .flatten()
            .any(is_full_without_reset)
}

fn pause_or_stop_for_full_quota(state: &RunState, now: &Timestamp) -> Option<Verdict> {
    let max_percent = f64::from(state.options.limits.stop_at_limit_percent?);
    let quota_windows =
        [("five-hour", &state.spending.quota.five_hour), ("weekly", &state.spending.quota.seven_day)];
    let has_not_reset_yet = |window: &QuotaWindow| window.resets_at.as_ref().is_none_or(|reset| now < reset);
    let full_window_with_latest_reset = quota_windows
        .into_iter()
        .filter_map(|(name, window)| Some((name, window.as_ref()?)))
        .filter(|(_, window)| window.used_percent >= max_percent && has_not_reset_yet(window))
        // If both quotas are full, the run waits for the later reset.
        .max_by(|(_, left), (_, right)| left.resets_at.cmp(&right.resets_at));
    let (name, window) = full_window_with_latest_reset?;
    let reason = format!(
        "{:.0}% of the {name} quota is used, and the run stops at {max_percent:.0}%",
        window.used_percent
    );
    match &window.resets_at {
        Some(reset) if is_after_deadline(state, reset) => {
            let reason = format!("{reason}; it resets at {reset}, after the deadline");
            Some(Verdict::Stop { status: RunStatus::Deadline, reason })
        }
        Some(reset) => {
            Some(Verdict::Pause { kind: PauseKind::Quota, pause_end: Some(reset.clone()), reason })
        }
        None => {
            let reason = format!("{reason}; Claude Code reports no reset time to wait for");
            Some(Verdict::Stop { status: RunStatus::Budget, reason })
        }
    }
}

fn is_after_deadline(state: &RunState, time: &Timestamp) -> bool {
    state.options.limits.deadline.as_ref().is_some_and(|deadline| time >= deadline)
}

/// Returns a verdict if all runs together have spent the daily budget: the run pauses until the day ends, or
/// stops if the day ends after the run's deadline.
pub fn pause_or_stop_for_spent_daily_budget(state: &RunState, now: &Timestamp) -> Option<Verdict> {
    let daily_limit = state.options.limits.max_cost_per_day_usd?;
    let today = state.spending.spent_today.as_ref()?;
    if today.usd < daily_limit || *now >= today.day_ends_at {
        return None;
    }
    let (spent_text, ends_at) =
        (today.basis.format_usd_spent_of_limit(today.usd, daily_limit), &today.day_ends_at);
    let reason = format!("{spent_text} a day spent by all runs together");
    if is_after_deadline(state, ends_at) {
        let reason = format!("{reason}; the day ends at {ends_at}, after the deadline");
        return Some(Verdict::Stop { status: RunStatus::Deadline, reason });
    }
    Some(Verdict::Pause { kind: PauseKind::Quota, pause_end: Some(ends_at.clone()), reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::cost::CostBasis;
    use plimsoll_domain::limits::{DayCost, SubscriptionQuotas, TodaysSpending};
    use plimsoll_domain::state::{RunOptions, RunSpending};

    const NOW: &str = "2026-01-07T05:00:00Z";

    fn running_state() -> RunState {
        RunState {
            iteration: 2,
            options: RunOptions { max_iterations: 50, ..RunOptions::default() },
            spending: RunSpending { cost_usd: 4.0, tokens: 1_000_000, ..RunSpending::default() },
            ..RunState::default()
        }
    }

    fn quota_of(five_hour: Option<(f64, &str)>, seven_day: Option<(f64, &str)>) -> SubscriptionQuotas {
        let window = |(percent, resets_at): (f64, &str)| QuotaWindow {
            used_percent: percent,
            resets_at: Some(resets_at.to_owned()).filter(|reset| !reset.is_empty()).map(Timestamp::from),
        };
        SubscriptionQuotas { five_hour: five_hour.map(window), seven_day: seven_day.map(window) }
    }

    #[test]
    fn each_limit_stops_the_run_with_its_own_status() {
        let none = || RunLimits::default();
        for (limits, iteration, marker) in [
            (none(), 2, None),
            (none(), 50, Some("RALPH_STOP|max_iterations|50 iterations done")),
            (
                RunLimits { max_cost_usd: Some(4.0), ..none() },
                2,
                Some("RALPH_STOP|budget|$4.00 of $4.00 spent"),
            ),
            (RunLimits { max_cost_usd: Some(4.01), ..none() }, 2, None),
            (
                RunLimits { max_tokens: Some(900_000), ..none() },
                2,
                Some("RALPH_STOP|budget|1M of 900k tokens used"),
            ),
            (
                RunLimits { deadline: Some(NOW.into()), ..none() },
                2,
                Some("RALPH_STOP|deadline|the deadline was 2026-01-07T05:00:00Z"),
            ),
            (RunLimits { deadline: Some("2026-01-07T05:00:01Z".into()), ..none() }, 2, None),
        ] {
            let state = RunState {
                iteration,
                options: RunOptions { limits: limits.clone(), ..running_state().options },
                ..running_state()
            };
            let actual = stop_or_pause_for_reached_limit(&state, &Timestamp::from(NOW))
                .map(|verdict| verdict.to_marker().to_string());
            assert_eq!(actual.as_deref(), marker, "{limits:?}");
        }
    }

    #[test]
    fn a_full_quota_waits_for_the_later_reset_and_expired_ones_are_ignored() {
        let soon = "2026-01-07T06:00:00Z";
        let later = "2026-01-10T00:00:00Z";
        let past = "2026-01-07T04:00:00Z";
        for (quota, beginning) in [
            (quota_of(Some((79.0, soon)), None), None),
            (
                quota_of(Some((80.0, soon)), None),
                Some("RALPH_PAUSE|2026-01-07T06:00:00Z|80% of the five-hour quota"),
            ),
            (
                quota_of(Some((90.0, soon)), Some((81.0, later))),
                Some("RALPH_PAUSE|2026-01-10T00:00:00Z|81% of the weekly quota"),
            ),
            (quota_of(Some((99.0, past)), None), None),
            (
                quota_of(Some((99.0, "")), None),
                Some(
                    "RALPH_STOP|budget|99% of the five-hour quota is used, and the run stops at 80%; Claude Code reports no reset",
                ),
            ),
        ] {
            let limits = RunLimits { stop_at_limit_percent: Some(80), ..RunLimits::default() };
            let state = RunState {
                options: RunOptions { limits, ..running_state().options },
                spending: RunSpending { quota, ..running_state().spending },
                ..running_state()
            };
            let actual = stop_or_pause_for_reached_limit(&state, &Timestamp::from(NOW))
                .map(|verdict| verdict.to_marker().to_string());
            assert_eq!(actual.is_some(), beginning.is_some(), "{actual:?}");
            assert!(actual.unwrap_or_default().starts_with(beginning.unwrap_or_default()));
        }
    }

    #[test]
    fn a_spent_daily_budget_pauses_until_the_day_ends_and_then_expires() {
        let ends_at = "2026-01-07T23:00:00Z";
        let spent = "$9.50 of $9.50 a day spent by all runs together";
        let pause = format!("RALPH_PAUSE|{ends_at}|{spent}");
        let stop = format!("RALPH_STOP|deadline|{spent}; the day ends at {ends_at}, after the deadline");
        for (usd, now, deadline, marker) in [
            (9.49, NOW, None, None),
            (9.5, NOW, None, Some(&pause)),
            (9.5, ends_at, None, None),
            (9.5, NOW, Some(ends_at), Some(&stop)),
            (9.5, NOW, Some("2026-01-08T23:00:00Z"), Some(&pause)),
        ] {
            let limits = RunLimits {
                max_cost_per_day_usd: Some(9.5),
                deadline: deadline.map(Timestamp::from),
                ..RunLimits::default()
            };
            let state = RunState {
                options: RunOptions { limits, ..running_state().options },
                spending: RunSpending {
                    spent_today: Some(TodaysSpending {
                        usd,
                        day_ends_at: ends_at.into(),
                        ..TodaysSpending::default()
                    }),
                    ..running_state().spending
                },
                ..running_state()
            };
            let actual = stop_or_pause_for_reached_limit(&state, &Timestamp::from(now))
                .map(|verdict| verdict.to_marker().to_string());
            assert_eq!(actual.as_ref(), marker, "{usd} {now} {deadline:?}");
            let options = RunOptions { max_iterations: 50, ..RunOptions::default() };
            let unlimited = RunState { options, ..state };
            assert_eq!(stop_or_pause_for_reached_limit(&unlimited, &Timestamp::from(NOW)), None);
        }
    }

    #[test]
    fn the_daily_cost_restarts_with_the_next_day() {
        let mut state = RunState::default();
        for (usd, day, expected) in
            [(1.0, "2026-01-07", "1.00"), (0.5, "2026-01-07", "1.50"), (2.0, "2026-01-08", "2.00")]
        {
            add_session_cost(&mut state, Cost { usd, basis: CostBasis::Reported }, 10, day);
            assert_eq!(format!("{:.2}", state.spending.cost_of_last_day.cost_on_day(day).usd), expected);
        }
        let (yesterday, all) =
            (state.spending.cost_of_last_day.cost_on_day("2026-01-07").usd, state.spending.cost_usd);
        assert_eq!(format!("{yesterday:.2} {all:.2}"), "0.00 3.50");
    }

    #[test]
    fn estimated_costs_count_and_the_reason_says_how_certain_they_are() {
        for (basis, prefix) in [(CostBasis::Estimated, "about"), (CostBasis::AtMost, "at most")] {
            let mut state = RunState::default();
            state.options.max_iterations = 50;
            state.options.limits.max_cost_usd = Some(0.3);
            for usd in [0.2, 0.15] {
                add_session_cost(&mut state, Cost { usd, basis }, 10, "2026-01-07");
            }
            // A reported session does not make the sum more certain.
            add_session_cost(&mut state, Cost { usd: 0.1, basis: CostBasis::Reported }, 10, "2026-01-07");
            let marker = stop_or_pause_for_reached_limit(&state, &Timestamp::from(NOW))
                .map(|verdict| verdict.to_marker().to_string());
            assert_eq!(marker, Some(format!("RALPH_STOP|budget|{prefix} $0.45 of $0.30 spent")));
            let DayCost { usd, basis: of_day, .. } = state.spending.cost_of_last_day.clone();
            assert_eq!(of_day, basis);
            state.options.limits = RunLimits { max_cost_per_day_usd: Some(0.4), ..RunLimits::default() };
            let ends_at = Timestamp::from("2026-01-08T00:00:00Z");
            state.spending.spent_today = Some(TodaysSpending { usd, basis, day_ends_at: ends_at });
            let paused = stop_or_pause_for_reached_limit(&state, &Timestamp::from(NOW))
                .map(|verdict| verdict.to_marker().to_string());
            let expected = format!("{prefix} $0.45 of $0.40 a day spent by all runs together");
            assert!(paused.as_ref().is_some_and(|paused| paused.ends_with(&expected)), "{paused:?}");
        }
    }
}
