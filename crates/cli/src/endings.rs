//! What the command says of each way in which a run ends: `plimsoll status`, the report, and `plimsoll run` as it leaves.
//!
//! The table of the statuses has the words for all; here is what figures of the run change in them.

use plimsoll_domain::breaker::BreakerCause;
use plimsoll_domain::fatal::FatalKind;
use plimsoll_domain::status::{Mood, Over, StatusTraits};
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::{RunState, Status, Verdict};
use plimsoll_terminal::allowed_tools::allowing;

/// What continues with a run, unless it needs more.
pub(crate) const RESUME: &str = "plimsoll run --resume";

/// The words for a run that is over.
#[derive(Debug)]
pub(crate) struct EndingWords {
    /// The heading of `plimsoll status`.
    pub(crate) heading: &'static str,
    /// Why it ended, perhaps in others' words.
    pub(crate) reason: Option<String>,
    /// What the user does next, in one line.
    pub(crate) next: String,
    /// What opens the run again; none if nothing does.
    pub(crate) way_on: Option<String>,
    /// The options that resume it if refused tools are allowed, too; none where only the user can say more.
    options: Option<String>,
    /// What the user does now, with commands to copy.
    pub(crate) steps: Vec<PlainStep>,
}

/// What to do, and the command for it.
pub(crate) type PlainStep = (String, Option<String>);

/// One step; an empty command is none.
pub(crate) fn step(words: impl Into<String>, command: &str) -> PlainStep {
    (words.into(), Some(command.to_owned()).filter(|command| !command.is_empty()))
}

/// A run's colour, sign and sentence on the report: each is enough alone.
pub(crate) fn badge(status: Status, is_live: bool) -> (&'static str, &'static str, &'static str) {
    if status == Status::Running && !is_live {
        return (Mood::Wait.word(), "‖", "Interrupted.");
    }
    let StatusTraits { mood, sign, sentence, .. } = status.traits();
    (mood.word(), sign, sentence)
}

/// The words for this run; none while it is running or paused.
pub(crate) fn ending_words(state: &RunState) -> Option<EndingWords> {
    let status = state.lifecycle.status();
    let over = status.traits().over.as_ref()?;
    let usual = EndingWords {
        heading: over.heading,
        reason: reason(state),
        next: over.next.or(over.way_on).unwrap_or_default().to_owned(),
        way_on: over.way_on.map(str::to_owned),
        options: over.options.map(str::to_owned),
        steps: vec![step(over.advice, over.command)],
    };
    Some(match status {
        Status::Blocked => blocked(state, usual),
        Status::MaxIterations => max_iterations(state, over, usual),
        Status::Budget => budget(state, over, usual),
        Status::CircuitBreaker => breaker(state, over, usual),
        Status::FatalError => EndingWords { steps: repair(state, over), ..usual },
        // Its last verdict is about an earlier session.
        Status::Cancelled => EndingWords { reason: None, ..usual },
        // The table says it all.
        _ => usual,
    })
}

/// Why it stopped or paused, as the last verdict says.
pub(crate) fn reason(state: &RunState) -> Option<String> {
    let reason = match state.lifecycle.last_verdict()? {
        Verdict::Stop { reason, .. } | Verdict::Pause { reason, .. } => reason,
        Verdict::Continue { .. } => return None,
    };
    Some(clip(&one_line(reason), 400))
}

fn blocked(state: &RunState, usual: EndingWords) -> EndingWords {
    if crate::questions::waiting(state).is_none() {
        return usual;
    }
    EndingWords {
        heading: "blocked: it needs your answer",
        next: format!("answer and continue: {RESUME} --answer 1 'your answer'"),
        steps: vec![step("Answer the questions of its sessions, then:", RESUME)],
        ..usual
    }
}

fn max_iterations(state: &RunState, over: &Over, usual: EndingWords) -> EndingWords {
    let most = state.options.max_iterations;
    let more = most.saturating_add(10.max(2 * state.items.todo_items.len() as u32));
    EndingWords {
        options: Some(format!("--resume --max-iterations {}", most.saturating_add(10))),
        steps: vec![step(over.advice, &format!("{} --max-iterations {more}", over.command))],
        ..usual
    }
}

/// The kind of the fatal error says what to fix.
fn repair(state: &RunState, over: &Over) -> Vec<PlainStep> {
    let kind = match state.lifecycle.last_verdict() {
        Some(Verdict::Stop { reason, .. }) => FatalKind::of(reason),
        Some(Verdict::Pause { .. } | Verdict::Continue { .. }) | None => FatalKind::Other,
    };
    let first = if state.outcomes.protected_needs_user {
        step("No session can restore the protected files that the message names: restore them.", "")
    } else {
        match kind {
            FatalKind::Hooks => step("Our hooks did not run. Find out why:", "plimsoll doctor"),
            FatalKind::Billing => {
                step("The account has no credit left: add credit in its billing settings.", "")
            }
            FatalKind::Credentials => {
                step("The client could not log in. Start it, and log in again with /login:", "claude")
            }
            FatalKind::Model => step(
                "The model is not available. Name another one after `--`:",
                "plimsoll run --resume -- --model opus",
            ),
            FatalKind::Other => step(over.advice, over.command),
        }
    };
    vec![first, step("Then continue:", RESUME)]
}

fn budget(state: &RunState, over: &Over, usual: EndingWords) -> EndingWords {
    if !plimsoll_policy::bounds::stops_for_quota(state) {
        return EndingWords { steps: larger_budget(state, over), ..usual };
    }
    let way_on =
        "plimsoll run --resume, when the quota has room again (or with a larger --stop-at-limit PERCENT)";
    let advice = "The allowed share of the quota is used. When the quota has room again:";
    EndingWords {
        heading: "out of quota (budget)",
        next: way_on.to_owned(),
        way_on: Some(way_on.to_owned()),
        steps: vec![step(advice, RESUME)],
        ..usual
    }
}

fn larger_budget(state: &RunState, over: &Over) -> Vec<PlainStep> {
    let spent = |used: f64, most: f64| used >= most;
    match (state.options.limits.max_cost_usd, state.options.limits.max_tokens) {
        (Some(most), _) if spent(state.spent.cost_usd, most) => {
            let more = (2.0 * most).max(state.spent.cost_usd + most).ceil();
            vec![step(
                "Its cost limit is reached. Set a higher total:",
                &format!("{RESUME} --max-cost {more}"),
            )]
        }
        (_, Some(most)) => {
            let more = (most.max(state.spent.tokens) + most).div_ceil(1_000_000);
            vec![step(
                "Its token limit is reached. Set a higher total:",
                &format!("{RESUME} --max-tokens {more}M"),
            )]
        }
        _ => vec![step(over.advice, over.command)],
    }
}

fn breaker(state: &RunState, over: &Over, usual: EndingWords) -> EndingWords {
    let opened = state.outcomes.breaker.opened.as_ref();
    let evidence =
        opened.map(|opened| format!("{}: {}", opened.cause.word(), clip(&one_line(&opened.evidence), 400)));
    let with_evidence =
        EndingWords { reason: evidence.or(reason(state)), steps: out_of_the_breaker(state, over), ..usual };
    if !is_stopped_by_refusals(state) {
        return with_evidence;
    }
    let allow = allowing(state, &state.outcomes.denied_tools, "--resume --reset-breaker");
    let way_on = allow.or_else(|| with_evidence.way_on.clone());
    EndingWords { next: way_on.clone().unwrap_or_default(), way_on, options: None, ..with_evidence }
}

fn out_of_the_breaker(state: &RunState, over: &Over) -> Vec<PlainStep> {
    let on = over.command;
    let cause = state.outcomes.breaker.opened.as_ref().map(|opened| opened.cause);
    let advice = match cause {
        Some(BreakerCause::PermissionDenied) => {
            "The client refused a tool repeatedly. Allow it after `--` (the evidence names it):"
        }
        Some(BreakerCause::SameError) => {
            "The same error came repeatedly. Fix its cause (see the evidence), then:"
        }
        Some(BreakerCause::Refused) => {
            "It promised completion and was not done. See which check refused it; fix the check or the item, then:"
        }
        Some(BreakerCause::EmptyReply) => "Its sessions said and did nothing. Check PROMPT.md, then:",
        Some(BreakerCause::QuickFailure) => "Its sessions failed at once. Try the client by hand, then:",
        Some(BreakerCause::NoProgress) | None => over.advice,
    };
    let tools = &state.outcomes.denied_tools;
    let allow = allowing(state, tools, "--resume --reset-breaker")
        .unwrap_or_else(|| format!("{on} -- --allowedTools Bash Edit Write"));
    vec![step(advice, if cause == Some(BreakerCause::PermissionDenied) { &allow } else { on })]
}

/// True if the circuit breaker opened because the client refused tools.
fn is_stopped_by_refusals(state: &RunState) -> bool {
    let opened = state.outcomes.breaker.opened.as_ref().map(|opened| opened.cause);
    state.lifecycle.status() == Status::CircuitBreaker && opened == Some(BreakerCause::PermissionDenied)
}

/// The command that continues and allows the tools that the client refused, where they are not what stopped the run: what
/// the user has not allowed stays so unless they say otherwise.
pub(crate) fn beside_way_on(state: &RunState) -> Option<String> {
    let options = match ending_words(state) {
        Some(ending) => ending.options?,
        None => "--resume".to_owned(),
    };
    let command = allowing(state, &state.outcomes.denied_tools, &options)?;
    let tools = one_line(&state.outcomes.denied_tools.join(", "));
    Some(format!("to continue and allow what the client refused ({tools}): {command}"))
}

/// What opens a run again, with the whole command where refused tools have stopped it.
pub(crate) fn way_on(state: &RunState) -> String {
    ending_words(state).and_then(|ending| ending.way_on).unwrap_or_else(|| RESUME.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::limits::Limits;
    use plimsoll_domain::state::{Lifecycle, Outcomes, RunOptions, Spent};

    fn first(state: &RunState) -> PlainStep {
        ending_words(state).unwrap().steps.remove(0)
    }

    #[test]
    fn what_was_refused_is_allowed_by_a_command_that_goes_on() {
        let of = |status: Status| RunState {
            lifecycle: Lifecycle::of(status),
            options: RunOptions {
                max_iterations: 1,
                client_arguments: vec!["--allowedTools".into(), "Read".into()],
                ..RunOptions::default()
            },
            outcomes: Outcomes { denied_tools: vec!["Bash".into(), "Read".into()], ..Outcomes::default() },
            ..RunState::default()
        };
        let start = "to continue and allow what the client refused (Bash, Read): plimsoll run --resume";
        for (status, options) in [
            (Status::Paused, ""),
            (Status::MaxIterations, " --max-iterations 11"),
            (Status::CircuitBreaker, " --reset-breaker"),
        ] {
            let expected = format!("{start}{options} -- --allowedTools Read Bash");
            assert_eq!(beside_way_on(&of(status)), Some(expected));
        }
        assert_eq!(beside_way_on(&of(Status::Budget)), None);
        let allowed = RunState {
            outcomes: Outcomes { denied_tools: vec!["Read".into()], ..of(Status::Paused).outcomes },
            ..of(Status::Paused)
        };
        assert_eq!(beside_way_on(&allowed), None, "it is allowed by now");
    }

    #[test]
    fn what_is_used_up_is_asked_for_with_a_figure_that_is_enough() {
        let limits = Limits { max_cost_usd: Some(20.0), ..Limits::default() };
        let state = RunState {
            lifecycle: Lifecycle::of(Status::Budget),
            spent: Spent { cost_usd: 21.5, ..Spent::default() },
            options: RunOptions { limits, ..RunOptions::default() },
            ..RunState::default()
        };
        assert_eq!(first(&state).1.unwrap(), "plimsoll run --resume --max-cost 42");
        let limits = Limits { max_tokens: Some(5_000_000), ..Limits::default() };
        let state = RunState {
            lifecycle: Lifecycle::of(Status::Budget),
            spent: Spent { tokens: 5_100_000, ..Spent::default() },
            options: RunOptions { limits, ..RunOptions::default() },
            ..RunState::default()
        };
        assert_eq!(first(&state).1.unwrap(), "plimsoll run --resume --max-tokens 11M");
    }

    #[test]
    fn a_fatal_error_names_what_to_fix() {
        for (reason, word) in [
            ("Invalid API key · Please run /login", "log in"),
            ("Credit balance is too low", "credit"),
            ("our hooks did not run in this session", "hooks"),
            ("there is no such model", "model"),
            ("it is so", "No session"),
        ] {
            let verdict = Verdict::Stop { status: Status::FatalError, reason: reason.to_owned() };
            let state = RunState { lifecycle: Lifecycle::after(&verdict), ..RunState::default() };
            assert!(first(&state).0.contains(word), "{reason}");
        }
    }
}
