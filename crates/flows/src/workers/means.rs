//! What one item's run may use of what the whole plan may use.

use plimsoll_domain::text::counted;
use plimsoll_domain::workers::Workers;
use plimsoll_domain::{RunState, Status};

/// Less than this begins no session.
pub(super) const LEAST_USD: f64 = 0.01;

/// What there is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Means {
    /// It may use so much, in all its sessions together.
    Enough { cost_usd: Option<f64>, tokens: Option<u64>, sessions: u32 },
    /// The rest is others' until they end.
    Later,
    /// All runs of the user together may spend nothing more today.
    Tomorrow(String),
    /// Nothing is left.
    None(Status, String),
}

/// What an item's run may use, while the runs of other items are at work. Each has a share that nobody else can use, so that all
/// together never spend more than the plan may, nor more than is left of what all runs of the user may spend `today`.
pub(super) fn means(
    run: &RunState,
    now: &Workers,
    item: usize,
    others: &[usize],
    workers: usize,
    today: Option<f64>,
) -> Means {
    let (used, own) = (now.used(), now.works[item].now);
    let left = run.options.max_iterations.saturating_sub(used.sessions);
    if left == 0 {
        return Means::None(Status::MaxIterations, counted(used.sessions as usize, "session") + " used");
    }
    let tokens = match run.options.limits.max_tokens {
        Some(most) if used.tokens >= most => {
            return Means::None(Status::Budget, format!("{} of {most} tokens used", used.tokens));
        }
        most => most.map(|most| most - used.tokens + own.tokens),
    };
    let sessions = left + own.sessions;
    let most = run.options.limits.max_cost_usd;
    let of_plan = most.map(|most| most - used.cost_usd);
    let Some(left) = of_plan.into_iter().chain(today).reduce(f64::min) else {
        return Means::Enough { cost_usd: None, tokens, sessions };
    };
    let reserved = |other: &usize| {
        let work = &now.works[*other];
        (work.allowance_usd.unwrap_or_default() - work.now.cost_usd).max(0.0)
    };
    let free = left - others.iter().map(reserved).sum::<f64>();
    let share = free / workers.saturating_sub(others.len()).max(1) as f64;
    // A rest that is too small to be shared is the last one's.
    let share = if share < LEAST_USD && others.is_empty() { free } else { share };
    match () {
        () if share >= LEAST_USD => Means::Enough { cost_usd: Some(own.cost_usd + share), tokens, sessions },
        () if !others.is_empty() => Means::Later,
        () if of_plan == Some(left) => {
            let most = most.unwrap_or_default();
            let spent = used.cost_basis.format_usd(used.cost_usd);
            Means::None(Status::Budget, format!("{spent} of ${most:.2} spent"))
        }
        () => {
            let most = run.options.limits.max_cost_per_day_usd.unwrap_or_default();
            Means::Tomorrow(format!("${:.2} of ${most:.2} a day spent by all runs together", most - left))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::limits::Limits;
    use plimsoll_domain::state::RunOptions;
    use plimsoll_domain::workers::{Used, Work};

    fn run(max_cost_usd: Option<f64>, max_tokens: Option<u64>) -> RunState {
        let limits = Limits { max_cost_usd, max_tokens, ..Limits::default() };
        RunState {
            options: RunOptions { max_iterations: 10, limits, ..RunOptions::default() },
            ..RunState::default()
        }
    }

    fn work(cost_usd: f64, allowance_usd: f64) -> Work {
        Work {
            now: Used { cost_usd, tokens: 100, sessions: 2, ..Used::default() },
            allowance_usd: Some(allowance_usd),
            ..Work::default()
        }
    }

    #[test]
    fn all_shares_together_are_never_more_than_the_plan_may_spend() {
        let mut now = Workers { works: vec![Work::default(); 4], ..Workers::default() };
        let mut shares = Vec::new();
        for item in 0..4 {
            let others: Vec<usize> = (0..item).collect();
            let Means::Enough { cost_usd: Some(share), .. } =
                means(&run(Some(8.0), None), &now, item, &others, 4, None)
            else {
                panic!("there is enough")
            };
            now.works[item].allowance_usd = Some(share);
            shares.push(share);
        }
        assert_eq!(shares, [2.0; 4]);
        // One has used its share up, and others have not: what the second leaves is for it.
        now.works[0].now.cost_usd = 2.0;
        assert_eq!(means(&run(Some(8.0), None), &now, 0, &[1, 2, 3], 4, None), Means::Later);
        now.works[1].now.cost_usd = 0.5;
        let more = means(&run(Some(8.0), None), &now, 0, &[2, 3], 3, None);
        assert!(
            matches!(more, Means::Enough { cost_usd: Some(most), .. } if (most - 3.5).abs() < 1e-9),
            "{more:?}"
        );
    }

    #[test]
    fn what_is_used_up_ends_the_run_with_its_reason() {
        let now = Workers { works: vec![work(3.0, 3.0), work(1.0, 1.0)], ..Workers::default() };
        let spent = |run: &RunState, others: &[usize]| means(run, &now, 0, others, 2, None);
        assert_eq!(
            spent(&run(Some(4.0), None), &[]),
            Means::None(Status::Budget, "$4.00 of $4.00 spent".to_owned())
        );
        assert_eq!(
            spent(&run(None, Some(200)), &[]),
            Means::None(Status::Budget, "200 of 200 tokens used".to_owned())
        );
        assert_eq!(
            spent(&run(None, Some(250)), &[]),
            Means::Enough { cost_usd: None, tokens: Some(150), sessions: 8 }
        );
        let few = RunState {
            options: RunOptions { max_iterations: 4, ..RunOptions::default() },
            ..RunState::default()
        };
        assert_eq!(spent(&few, &[]), Means::None(Status::MaxIterations, "4 sessions used".to_owned()));
    }

    #[test]
    fn what_is_left_of_the_day_is_shared_as_the_plans_money_is_and_waits_for_the_next() {
        let now = Workers { works: vec![work(1.0, 1.0), work(0.5, 1.0)], ..Workers::default() };
        let limits =
            |max_cost_usd| Limits { max_cost_usd, max_cost_per_day_usd: Some(20.0), ..Limits::default() };
        let run = |max_cost_usd| RunState {
            options: RunOptions { max_iterations: 10, limits: limits(max_cost_usd), ..RunOptions::default() },
            ..RunState::default()
        };
        let table: [(_, f64, &[usize], _); 6] = [
            // Half a dollar of the other's allowance is not spent yet.
            (None, 2.5, &[1], Ok(3.0)),
            (Some(10.0), 2.5, &[1], Ok(3.0)),
            (Some(3.0), 2.5, &[1], Ok(2.0)),
            (None, 0.5, &[1], Err(Means::Later)),
            (
                None,
                0.001,
                &[],
                Err(Means::Tomorrow("$20.00 of $20.00 a day spent by all runs together".to_owned())),
            ),
            (Some(1.5), 0.001, &[], Err(Means::None(Status::Budget, "$1.50 of $1.50 spent".to_owned()))),
        ];
        for (of_plan, today, others, expected) in table {
            let found = match means(&run(of_plan), &now, 0, others, 2, Some(today)) {
                Means::Enough { cost_usd: Some(most), .. } => Ok((most * 100.0).round() / 100.0),
                other => Err(other),
            };
            assert_eq!(found, expected, "{of_plan:?} {today} {others:?}");
        }
    }
}
