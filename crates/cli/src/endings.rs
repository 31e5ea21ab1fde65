//! What the command says of each way in which a run ends: `plimsoll status`, the report, and `plimsoll run` as it leaves.
//!
//! One file, so that a new ending has all its words in one place, and does not compile until they are written.

use plimsoll_domain::breaker::BreakerCause;
use plimsoll_domain::fatal::FatalKind;
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
    match status {
        Status::Completed => ("good", "✓", "Done."),
        Status::Running if !is_live => ("wait", "‖", "Interrupted."),
        Status::Running => ("going", "▸", "Still running."),
        Status::Paused => ("wait", "‖", "Paused."),
        Status::Blocked => ("wait", "?", "It needs an answer."),
        Status::MaxIterations => ("wait", "■", "Out of sessions."),
        Status::Budget => ("wait", "■", "Out of budget."),
        Status::Deadline => ("wait", "■", "Out of time."),
        Status::CircuitBreaker => ("bad", "✕", "Stuck."),
        Status::FatalError => ("bad", "✕", "It could not continue."),
        Status::Cancelled => ("wait", "■", "Cancelled."),
    }
}

/// The words for this run; none while it is running or paused.
pub(crate) fn ending_words(state: &RunState) -> Option<EndingWords> {
    Some(match state.lifecycle.status() {
        Status::Running | Status::Paused => return None,
        Status::Completed => completed(state),
        Status::Blocked => blocked(state),
        Status::MaxIterations => max_iterations(state),
        Status::Budget => budget(state),
        Status::Deadline => deadline(state),
        Status::CircuitBreaker => breaker(state),
        Status::FatalError => fatal(state),
        Status::Cancelled => cancelled(),
    })
}

/// An ending after which the run can continue, so.
fn resumable(state: &RunState, heading: &'static str, steps: Vec<PlainStep>, way_on: &str) -> EndingWords {
    EndingWords {
        heading,
        reason: reason(state),
        next: way_on.to_owned(),
        way_on: Some(way_on.to_owned()),
        options: Some("--resume".to_owned()),
        steps,
    }
}

/// Why it stopped or paused, as the last verdict says.
pub(crate) fn reason(state: &RunState) -> Option<String> {
    let reason = match state.lifecycle.last_verdict()? {
        Verdict::Stop { reason, .. } | Verdict::Pause { reason, .. } => reason,
        Verdict::Continue { .. } => return None,
    };
    Some(clip(&one_line(reason), 400))
}

fn completed(state: &RunState) -> EndingWords {
    EndingWords {
        heading: "completed",
        reason: reason(state),
        next: "nothing: the run is done; see git log and plimsoll report".to_owned(),
        way_on: None,
        options: None,
        steps: vec![step("Nothing is left to do. Review what was done:", "git log --stat")],
    }
}

fn cancelled() -> EndingWords {
    let words = "It was cancelled and cannot be resumed. For the open items, start a new run:";
    EndingWords {
        heading: "cancelled with `plimsoll stop`",
        reason: None,
        next: "start a new run with: plimsoll run".to_owned(),
        way_on: None,
        options: None,
        steps: vec![step(words, "plimsoll run")],
    }
}

fn blocked(state: &RunState) -> EndingWords {
    if crate::questions::waiting(state).is_some() {
        let words = "Answer the questions of its sessions, then:";
        return EndingWords {
            next: format!("answer and continue: {RESUME} --answer 1 'your answer'"),
            ..resumable(state, "blocked: it needs your answer", vec![step(words, RESUME)], RESUME)
        };
    }
    let words = "Answer in PROMPT.md what blocks it (the agent's message is above), then:";
    EndingWords {
        next: format!("answer what blocks it, then: {RESUME}"),
        ..resumable(state, "blocked: the agent cannot continue", vec![step(words, RESUME)], RESUME)
    }
}

fn max_iterations(state: &RunState) -> EndingWords {
    let most = state.options.max_iterations;
    let more = most.saturating_add(10.max(2 * state.items.todo_items.len() as u32));
    let steps =
        vec![step("All its sessions are used. Allow more:", &format!("{RESUME} --max-iterations {more}"))];
    let way_on = "plimsoll run --resume --max-iterations N, with a larger N";
    EndingWords {
        options: Some(format!("--resume --max-iterations {}", most.saturating_add(10))),
        ..resumable(state, "out of sessions (max_iterations)", steps, way_on)
    }
}

fn deadline(state: &RunState) -> EndingWords {
    let steps = vec![step("Its deadline has passed. Set a later one:", &format!("{RESUME} --deadline 8h"))];
    let way_on = "plimsoll run --resume --deadline TIME, with a later one";
    // How much later, only the user can say.
    EndingWords { options: None, ..resumable(state, "out of time (deadline)", steps, way_on) }
}

fn fatal(state: &RunState) -> EndingWords {
    EndingWords {
        next: format!("fix the cause, then: {RESUME}"),
        ..resumable(state, "a fatal error (fatal_error)", repair(state), RESUME)
    }
}

/// The kind of the fatal error says what to fix.
fn repair(state: &RunState) -> Vec<PlainStep> {
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
            FatalKind::Other => {
                step("No session can succeed until this is fixed. Find out what is wrong:", "plimsoll doctor")
            }
        }
    };
    vec![first, step("Then continue:", RESUME)]
}

fn budget(state: &RunState) -> EndingWords {
    let (heading, steps, way_on) = if plimsoll_policy::bounds::stops_for_quota(state) {
        (
            "out of quota (budget)",
            vec![step("The allowed share of the quota is used. When the quota has room again:", RESUME)],
            "plimsoll run --resume, when the quota has room again (or with a larger --stop-at-limit PERCENT)",
        )
    } else {
        (
            "out of money or tokens (budget)",
            larger_budget(state),
            "plimsoll run --resume --max-cost USD (or --max-tokens N), with more",
        )
    };
    // More of what, only the user can say.
    EndingWords { options: None, ..resumable(state, heading, steps, way_on) }
}

fn larger_budget(state: &RunState) -> Vec<PlainStep> {
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
        _ => vec![step("Its budget is used. Set a larger one:", RESUME)],
    }
}

fn breaker(state: &RunState) -> EndingWords {
    let opened = state.outcomes.breaker.opened.as_ref();
    let evidence =
        opened.map(|opened| format!("{}: {}", opened.cause.word(), clip(&one_line(&opened.evidence), 400)));
    let refused = is_stopped_by_refusals(state);
    let allow = allowing(state, &state.outcomes.denied_tools, "--resume --reset-breaker");
    let usual = "fix what stopped it, then: plimsoll run --resume --reset-breaker";
    let way_on = allow.filter(|_| refused).unwrap_or_else(|| usual.to_owned());
    EndingWords {
        reason: evidence.or(reason(state)),
        options: (!refused).then(|| "--resume --reset-breaker".to_owned()),
        ..resumable(state, "stuck (circuit_breaker)", out_of_the_breaker(state), &way_on)
    }
}

fn out_of_the_breaker(state: &RunState) -> Vec<PlainStep> {
    let on = "plimsoll run --resume --reset-breaker";
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
        Some(BreakerCause::NoProgress) | None => {
            "No more progress. Describe the current item more clearly, or split it, then:"
        }
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
