//! What the run may use: iterations, money, tokens, time, and the user's share of the client's quotas.

use plimsoll_domain::cost::Cost;
use plimsoll_domain::limits::{Limits, QuotaWindow};
use plimsoll_domain::text::{counted, tokens};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{RunState, Status, Timestamp, Verdict};

/// The bound that is reached, if one is.
pub fn reached(state: &RunState, now: &Timestamp) -> Option<Verdict> {
    if let Some(verdict) = spent(state, now) {
        return Some(verdict);
    }
    if state.iteration >= state.options.max_iterations {
        let done = counted(state.iteration as usize, "iteration");
        return Some(Verdict::Stop { status: Status::MaxIterations, reason: format!("{done} done") });
    }
    quota(state, now).or_else(|| day(state, now))
}

/// Money, tokens or time are used up: so they are also where a session is not counted.
pub fn spent(state: &RunState, now: &Timestamp) -> Option<Verdict> {
    let stop = |status, reason| Some(Verdict::Stop { status, reason });
    if let Some(reason) = budget(state) {
        return stop(Status::Budget, reason);
    }
    if let Some(deadline) = passed(state, now) {
        return stop(Status::Deadline, format!("the deadline was {deadline}"));
    }
    None
}

/// Adds what a session used on a day.
pub fn add_session(state: &mut RunState, cost: Cost, tokens: u64, day: &str) {
    let spent = &mut state.spent;
    spent.cost_usd += cost.usd;
    spent.add_cost_basis(cost.basis);
    spent.cost_of_day.add(day, cost);
    spent.tokens = spent.tokens.saturating_add(tokens);
}

/// The money or the tokens that are used up, in words.
fn budget(state: &RunState) -> Option<String> {
    let Limits { max_cost_usd, max_tokens, .. } = state.options.limits;
    if let Some(most) = max_cost_usd.filter(|most| state.spent.cost_usd >= *most) {
        let spent = state.spent.cost_basis().format_usd(state.spent.cost_usd);
        return Some(format!("{spent} of ${most:.2} spent"));
    }
    let most = max_tokens.filter(|most| state.spent.tokens >= *most)?;
    Some(format!("{} of {} tokens used", tokens(state.spent.tokens), tokens(most)))
}

/// The deadline, if it has passed.
pub fn passed<'a>(state: &'a RunState, now: &Timestamp) -> Option<&'a Timestamp> {
    state.options.limits.deadline.as_ref().filter(|deadline| now >= *deadline)
}

/// Is it neither money nor tokens, but a share of a quota that names no reset?
pub fn stops_for_quota(state: &RunState) -> bool {
    let share = state.options.limits.stop_at_limit_percent.map(f64::from);
    let is_undated = |window: &QuotaWindow| {
        window.resets_at.is_none() && share.is_some_and(|share| window.percent >= share)
    };
    budget(state).is_none()
        && [&state.spent.quota.five_hour, &state.spent.quota.seven_day].into_iter().flatten().any(is_undated)
}

fn quota(state: &RunState, now: &Timestamp) -> Option<Verdict> {
    let share = f64::from(state.options.limits.stop_at_limit_percent?);
    let windows = [("five-hour", &state.spent.quota.five_hour), ("weekly", &state.spent.quota.seven_day)];
    let is_over = |window: &QuotaWindow| window.resets_at.as_ref().is_none_or(|reset| now < reset);
    let full = windows
        .into_iter()
        .filter_map(|(name, window)| Some((name, window.as_ref()?)))
        .filter(|(_, window)| window.percent >= share && is_over(window))
        // Where both are used up, the later reset counts.
        .max_by(|(_, one), (_, other)| one.resets_at.cmp(&other.resets_at));
    let (name, window) = full?;
    let reason =
        format!("{:.0}% of the {name} quota is used, and the run stops at {share:.0}%", window.percent);
    match &window.resets_at {
        Some(reset) if is_after_deadline(state, reset) => {
            let reason = format!("{reason}; it resets at {reset}, after the deadline");
            Some(Verdict::Stop { status: Status::Deadline, reason })
        }
        Some(reset) => Some(Verdict::Pause { kind: PauseKind::Quota, until: Some(reset.clone()), reason }),
        None => {
            let reason = format!("{reason}; the client reports no reset time to wait for");
            Some(Verdict::Stop { status: Status::Budget, reason })
        }
    }
}

fn is_after_deadline(state: &RunState, moment: &Timestamp) -> bool {
    state.options.limits.deadline.as_ref().is_some_and(|deadline| moment >= deadline)
}

/// What all runs may spend on a day is spent: the run waits for the next day.
pub fn day(state: &RunState, now: &Timestamp) -> Option<Verdict> {
    let most = state.options.limits.max_cost_per_day_usd?;
    let today = state.spent.spent_today.as_ref()?;
    if today.usd < most || *now >= today.ends_at {
        return None;
    }
    let (spent, ends_at) = (today.basis.format_usd(today.usd), &today.ends_at);
    let reason = format!("{spent} of ${most:.2} a day spent by all runs together");
    if is_after_deadline(state, ends_at) {
        let reason = format!("{reason}; the day ends at {ends_at}, after the deadline");
        return Some(Verdict::Stop { status: Status::Deadline, reason });
    }
    Some(Verdict::Pause { kind: PauseKind::Quota, until: Some(ends_at.clone()), reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::cost::CostBasis;
    use plimsoll_domain::limits::{DayCost, Quota, SpentToday};
    use plimsoll_domain::state::{RunOptions, Spent};

    const NOW: &str = "2026-01-07T05:00:00Z";

    fn state() -> RunState {
        RunState {
            iteration: 2,
            options: RunOptions { max_iterations: 50, ..RunOptions::default() },
            spent: Spent { cost_usd: 4.0, tokens: 1_000_000, ..Spent::default() },
            ..RunState::default()
        }
    }

    fn quota(five_hour: Option<(f64, &str)>, seven_day: Option<(f64, &str)>) -> Quota {
        let window = |(percent, resets_at): (f64, &str)| QuotaWindow {
            percent,
            resets_at: Some(resets_at.to_owned()).filter(|reset| !reset.is_empty()).map(Timestamp::from),
        };
        Quota { five_hour: five_hour.map(window), seven_day: seven_day.map(window) }
    }

    #[test]
    fn each_bound_ends_the_run_with_its_own_word() {
        let none = || Limits::default();
        for (limits, iteration, marker) in [
            (none(), 2, None),
            (none(), 50, Some("RALPH_STOP|max_iterations|50 iterations done")),
            (Limits { max_cost_usd: Some(4.0), ..none() }, 2, Some("RALPH_STOP|budget|$4.00 of $4.00 spent")),
            (Limits { max_cost_usd: Some(4.01), ..none() }, 2, None),
            (
                Limits { max_tokens: Some(900_000), ..none() },
                2,
                Some("RALPH_STOP|budget|1M of 900k tokens used"),
            ),
            (
                Limits { deadline: Some(NOW.into()), ..none() },
                2,
                Some("RALPH_STOP|deadline|the deadline was 2026-01-07T05:00:00Z"),
            ),
            (Limits { deadline: Some("2026-01-07T05:00:01Z".into()), ..none() }, 2, None),
        ] {
            let state = RunState {
                iteration,
                options: RunOptions { limits: limits.clone(), ..state().options },
                ..state()
            };
            let said = reached(&state, &Timestamp::from(NOW)).map(|verdict| verdict.marker().to_string());
            assert_eq!(said.as_deref(), marker, "{limits:?}");
        }
    }

    #[test]
    fn a_share_of_the_quota_waits_for_the_later_reset_and_an_old_figure_counts_for_nothing() {
        let soon = "2026-01-07T06:00:00Z";
        let later = "2026-01-10T00:00:00Z";
        let past = "2026-01-07T04:00:00Z";
        for (quota, beginning) in [
            (quota(Some((79.0, soon)), None), None),
            (
                quota(Some((80.0, soon)), None),
                Some("RALPH_PAUSE|2026-01-07T06:00:00Z|80% of the five-hour quota"),
            ),
            (
                quota(Some((90.0, soon)), Some((81.0, later))),
                Some("RALPH_PAUSE|2026-01-10T00:00:00Z|81% of the weekly quota"),
            ),
            (quota(Some((99.0, past)), None), None),
            (
                quota(Some((99.0, "")), None),
                Some(
                    "RALPH_STOP|budget|99% of the five-hour quota is used, and the run stops at 80%; the client reports no reset",
                ),
            ),
        ] {
            let limits = Limits { stop_at_limit_percent: Some(80), ..Limits::default() };
            let state = RunState {
                options: RunOptions { limits, ..state().options },
                spent: Spent { quota, ..state().spent },
                ..state()
            };
            let said = reached(&state, &Timestamp::from(NOW)).map(|verdict| verdict.marker().to_string());
            assert_eq!(said.is_some(), beginning.is_some(), "{said:?}");
            assert!(said.unwrap_or_default().starts_with(beginning.unwrap_or_default()));
        }
    }

    #[test]
    fn what_a_day_may_cost_waits_for_the_next_day_and_yesterdays_figure_counts_for_nothing() {
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
            let limits = Limits {
                max_cost_per_day_usd: Some(9.5),
                deadline: deadline.map(Timestamp::from),
                ..Limits::default()
            };
            let state = RunState {
                options: RunOptions { limits, ..state().options },
                spent: Spent {
                    spent_today: Some(SpentToday { usd, ends_at: ends_at.into(), ..SpentToday::default() }),
                    ..state().spent
                },
                ..state()
            };
            let said = reached(&state, &Timestamp::from(now)).map(|verdict| verdict.marker().to_string());
            assert_eq!(said.as_ref(), marker, "{usd} {now} {deadline:?}");
            let options = RunOptions { max_iterations: 50, ..RunOptions::default() };
            let unlimited = RunState { options, ..state };
            assert_eq!(reached(&unlimited, &Timestamp::from(NOW)), None);
        }
    }

    #[test]
    fn the_cost_of_a_day_begins_anew_with_the_next() {
        let mut state = RunState::default();
        for (usd, day, of_day) in
            [(1.0, "2026-01-07", "1.00"), (0.5, "2026-01-07", "1.50"), (2.0, "2026-01-08", "2.00")]
        {
            add_session(&mut state, Cost { usd, basis: CostBasis::Reported }, 10, day);
            assert_eq!(format!("{:.2}", state.spent.cost_of_day.on(day).usd), of_day);
        }
        let (yesterday, all) = (state.spent.cost_of_day.on("2026-01-07").usd, state.spent.cost_usd);
        assert_eq!(format!("{yesterday:.2} {all:.2}"), "0.00 3.50");
    }

    #[test]
    fn an_estimated_session_reaches_the_bounds_and_the_reason_says_how_sure_it_is() {
        for (basis, words) in [(CostBasis::Estimated, "about"), (CostBasis::AtMost, "at most")] {
            let mut state = RunState::default();
            state.options.max_iterations = 50;
            state.options.limits.max_cost_usd = Some(0.3);
            for usd in [0.2, 0.15] {
                add_session(&mut state, Cost { usd, basis }, 10, "2026-01-07");
            }
            // A reported session makes the sum no surer.
            add_session(&mut state, Cost { usd: 0.1, basis: CostBasis::Reported }, 10, "2026-01-07");
            let marker = reached(&state, &Timestamp::from(NOW)).map(|verdict| verdict.marker().to_string());
            assert_eq!(marker, Some(format!("RALPH_STOP|budget|{words} $0.45 of $0.30 spent")));
            let DayCost { usd, basis: of_day, .. } = state.spent.cost_of_day.clone();
            assert_eq!(of_day, basis);
            state.options.limits = Limits { max_cost_per_day_usd: Some(0.4), ..Limits::default() };
            let ends_at = Timestamp::from("2026-01-08T00:00:00Z");
            state.spent.spent_today = Some(SpentToday { usd, basis, ends_at });
            let paused = reached(&state, &Timestamp::from(NOW)).map(|verdict| verdict.marker().to_string());
            let expected = format!("{words} $0.45 of $0.40 a day spent by all runs together");
            assert!(paused.as_ref().is_some_and(|paused| paused.ends_with(&expected)), "{paused:?}");
        }
    }
}
