//! Texts about the ending of a run, for `plimsoll status`, the report, and `plimsoll run` when it exits.
//!
//! The status table has the fixed texts; this module adapts them to the run's state.

use plimsoll_domain::breaker::BreakerCause;
use plimsoll_domain::fatal_error::FatalErrorKind;
use plimsoll_domain::status::{EndedRunTexts, RunStatusTraits, StatusStyle, stop_reason_for_people};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_domain::{RunState, RunStatus, Verdict};
use plimsoll_terminal::allowed_tools::render_resume_command_if_tools_can_be_allowed;

/// The command that resumes a run, without further options.
pub(crate) const RESUME_COMMAND: &str = "plimsoll run --resume";

/// The texts for a run that has ended.
#[derive(Debug)]
pub(crate) struct EndingText {
    /// Heading of `plimsoll status`.
    pub(crate) heading: &'static str,
    /// Why the run ended; may quote the client or a model.
    pub(crate) reason: Option<String>,
    /// The user's next step, in one line.
    pub(crate) next_step: String,
    /// The command that resumes the run; `None` if it cannot be resumed.
    pub(crate) resume_command: Option<String>,
    /// The options of a command that resumes the run and also allows refused tools; `None` if such a command
    /// would not be enough.
    resume_options: Option<String>,
    /// Instructions for the user, with commands to copy.
    pub(crate) steps: Vec<AdviceStep>,
}

/// An instruction, and the command for it.
pub(crate) type AdviceStep = (String, Option<String>);

/// Returns a step; an empty command becomes `None`.
pub(crate) fn advice_step(text: impl Into<String>, command: &str) -> AdviceStep {
    (text.into(), Some(command.to_owned()).filter(|command| !command.is_empty()))
}

/// Returns the CSS class, symbol and sentence of a status in the report. Each of them identifies the status.
pub(crate) fn status_css_class_symbol_and_sentence(
    status: RunStatus,
    is_live: bool,
) -> (&'static str, &'static str, &'static str) {
    if status == RunStatus::Running && !is_live {
        return (StatusStyle::Waiting.css_class(), "‖", "Interrupted.");
    }
    let RunStatusTraits { style: status_style, symbol, sentence, .. } = status.traits();
    (status_style.css_class(), symbol, sentence)
}

/// Returns the texts for the ending of this run; `None` while it is running or paused.
pub(crate) fn ending_text(state: &RunState) -> Option<EndingText> {
    let status = state.lifecycle.status();
    let ended_texts = status.traits().ended_texts.as_ref()?;
    let default_text = EndingText {
        heading: ended_texts.heading,
        reason: last_stop_or_pause_reason(state),
        next_step: ended_texts.next_step.or(ended_texts.how_to_resume).unwrap_or_default().to_owned(),
        resume_command: ended_texts.how_to_resume.map(str::to_owned),
        resume_options: ended_texts.resume_options.map(str::to_owned),
        steps: vec![advice_step(ended_texts.advice, ended_texts.command)],
    };
    Some(match status {
        RunStatus::Blocked => blocked_by_questions_or_default_text(state, default_text),
        RunStatus::MaxIterations => out_of_sessions_text_with_larger_limit(state, ended_texts, default_text),
        RunStatus::Budget => out_of_quota_or_larger_budget_text(state, ended_texts, default_text),
        RunStatus::CircuitBreaker => circuit_breaker_text_with_evidence(state, ended_texts, default_text),
        RunStatus::FatalError => EndingText { steps: fatal_error_steps(state, ended_texts), ..default_text },
        // The last verdict of a canceled run is about an earlier session.
        RunStatus::Canceled => EndingText { reason: None, ..default_text },
        // The default texts need no change.
        _ => default_text,
    })
}

/// Returns why the run stopped or paused, according to its last verdict.
pub(crate) fn last_stop_or_pause_reason(state: &RunState) -> Option<String> {
    let reason = match state.lifecycle.last_verdict()? {
        Verdict::Stop { status, reason } => stop_reason_for_people(*status, reason),
        Verdict::Pause { reason, .. } => reason.clone(),
        Verdict::Continue { .. } => return None,
    };
    Some(truncate_end(&to_safe_single_line(&reason), 400))
}

fn blocked_by_questions_or_default_text(state: &RunState, default_text: EndingText) -> EndingText {
    if crate::questions::waiting_item_count_text(state).is_none() {
        return default_text;
    }
    EndingText {
        heading: "blocked: it needs your answer",
        next_step: format!("answer and continue: {RESUME_COMMAND} --answer 1 'your answer'"),
        steps: vec![advice_step("Answer the questions of its sessions, then:", RESUME_COMMAND)],
        ..default_text
    }
}

fn out_of_sessions_text_with_larger_limit(
    state: &RunState,
    ended_texts: &EndedRunTexts,
    default_text: EndingText,
) -> EndingText {
    let max_iterations = state.options.max_iterations;
    let suggested_max = max_iterations.saturating_add(10.max(2 * state.plan_items.todo_items.len() as u32));
    EndingText {
        resume_options: Some(format!("--resume --max-iterations {}", max_iterations.saturating_add(10))),
        steps: vec![advice_step(
            ended_texts.advice,
            &format!("{} --max-iterations {suggested_max}", ended_texts.command),
        )],
        ..default_text
    }
}

/// Returns the steps that fix this kind of fatal error and resume the run.
fn fatal_error_steps(state: &RunState, ended_texts: &EndedRunTexts) -> Vec<AdviceStep> {
    let kind = match state.lifecycle.last_verdict() {
        Some(Verdict::Stop { reason, .. }) => FatalErrorKind::from_message(reason),
        Some(Verdict::Pause { .. } | Verdict::Continue { .. }) | None => FatalErrorKind::Other,
    };
    let first_step = if state.outcomes.protected_needs_user {
        advice_step("No session can restore the protected files that the message names: restore them.", "")
    } else {
        match kind {
            FatalErrorKind::Hooks => advice_step("Our hooks did not run. Find out why:", "plimsoll doctor"),
            FatalErrorKind::Billing => {
                advice_step("The account has no credit left: add credit in its billing settings.", "")
            }
            FatalErrorKind::SpendLimit => advice_step(
                "A spend limit is reached, and Claude Code does not report when it resets: raise it, or ask the administrator who set it.",
                "",
            ),
            FatalErrorKind::Credentials => {
                advice_step("Claude Code could not log in. Start it, and log in again with /login:", "claude")
            }
            FatalErrorKind::Model => advice_step(
                "The model is not available. Name another one after `--`:",
                "plimsoll run --resume -- --model opus",
            ),
            FatalErrorKind::Other => advice_step(ended_texts.advice, ended_texts.command),
        }
    };
    vec![first_step, advice_step("Then continue:", RESUME_COMMAND)]
}

fn out_of_quota_or_larger_budget_text(
    state: &RunState,
    ended_texts: &EndedRunTexts,
    default_text: EndingText,
) -> EndingText {
    if !plimsoll_policy::bounds::has_full_quota_without_reset_and_budget_left(state) {
        return EndingText { steps: larger_budget_steps(state, ended_texts), ..default_text };
    }
    let resume_command =
        "plimsoll run --resume, when the quota has room again (or with a larger --stop-at-limit PERCENT)";
    let advice = "The allowed share of the quota is used. When the quota has room again:";
    EndingText {
        heading: "out of quota (budget)",
        next_step: resume_command.to_owned(),
        resume_command: Some(resume_command.to_owned()),
        steps: vec![advice_step(advice, RESUME_COMMAND)],
        ..default_text
    }
}

fn larger_budget_steps(state: &RunState, ended_texts: &EndedRunTexts) -> Vec<AdviceStep> {
    let is_used_up = |used: f64, limit: f64| used >= limit;
    match (state.options.limits.max_cost_usd, state.options.limits.max_tokens) {
        (Some(limit), _) if is_used_up(state.spending.cost_usd, limit) => {
            let suggested_limit = (2.0 * limit).max(state.spending.cost_usd + limit).ceil();
            vec![advice_step(
                "Its cost limit is reached. Set a higher total:",
                &format!("{RESUME_COMMAND} --max-cost {suggested_limit}"),
            )]
        }
        (_, Some(limit)) => {
            let suggested_millions = (limit.max(state.spending.tokens) + limit).div_ceil(1_000_000);
            vec![advice_step(
                "Its token limit is reached. Set a higher total:",
                &format!("{RESUME_COMMAND} --max-tokens {suggested_millions}M"),
            )]
        }
        _ => vec![advice_step(ended_texts.advice, ended_texts.command)],
    }
}

fn circuit_breaker_text_with_evidence(
    state: &RunState,
    ended_texts: &EndedRunTexts,
    default_text: EndingText,
) -> EndingText {
    let trip = state.outcomes.breaker.trip.as_ref();
    let evidence = trip.map(|trip| {
        format!("{}: {}", trip.cause.as_str(), truncate_end(&to_safe_single_line(&trip.evidence), 400))
    });
    let text_with_evidence = EndingText {
        reason: evidence.or(last_stop_or_pause_reason(state)),
        steps: circuit_breaker_steps(state, ended_texts),
        ..default_text
    };
    if !is_stopped_by_refusals(state) {
        return text_with_evidence;
    }
    let allow_command = render_resume_command_if_tools_can_be_allowed(
        state,
        &state.outcomes.denied_tools,
        "--resume --reset-breaker",
    );
    let resume_command = allow_command.or_else(|| text_with_evidence.resume_command.clone());
    EndingText {
        next_step: resume_command.clone().unwrap_or_default(),
        resume_command,
        resume_options: None,
        ..text_with_evidence
    }
}

fn circuit_breaker_steps(state: &RunState, ended_texts: &EndedRunTexts) -> Vec<AdviceStep> {
    let resume_command = ended_texts.command;
    let cause = state.outcomes.breaker.trip.as_ref().map(|trip| trip.cause);
    let advice = match cause {
        Some(BreakerCause::PermissionDenied) => {
            "Claude Code refused a tool repeatedly. Allow it after `--` (the evidence names it):"
        }
        Some(BreakerCause::SameError) => {
            "The same error came repeatedly. Fix its cause (see the evidence), then:"
        }
        Some(BreakerCause::RefusedPromises) => {
            "It claimed completion but was not done. See which check refused it; fix the check or the item, then:"
        }
        Some(BreakerCause::EmptyReply) => "Its sessions did nothing. Check PROMPT.md, then:",
        Some(BreakerCause::QuickFailure) => "Its sessions failed at once. Try Claude Code by hand, then:",
        Some(BreakerCause::NoProgress) | None => ended_texts.advice,
    };
    let tools = &state.outcomes.denied_tools;
    let allow_command =
        render_resume_command_if_tools_can_be_allowed(state, tools, "--resume --reset-breaker")
            .unwrap_or_else(|| format!("{resume_command} -- --allowedTools Bash Edit Write"));
    vec![advice_step(
        advice,
        if cause == Some(BreakerCause::PermissionDenied) { &allow_command } else { resume_command },
    )]
}

/// Returns true if the circuit breaker opened because the client refused tools.
fn is_stopped_by_refusals(state: &RunState) -> bool {
    let cause = state.outcomes.breaker.trip.as_ref().map(|trip| trip.cause);
    state.lifecycle.status() == RunStatus::CircuitBreaker && cause == Some(BreakerCause::PermissionDenied)
}

/// Returns a hint with a command that resumes the run and allows the tools that the client refused. Nothing is
/// allowed without the user's decision.
pub(crate) fn hint_to_resume_and_allow_refused_tools(state: &RunState) -> Option<String> {
    let options = match ending_text(state) {
        Some(ending) => ending.resume_options?,
        None => "--resume".to_owned(),
    };
    let command =
        render_resume_command_if_tools_can_be_allowed(state, &state.outcomes.denied_tools, &options)?;
    let tools = to_safe_single_line(&state.outcomes.denied_tools.join(", "));
    Some(format!("to continue and allow what Claude Code refused ({tools}): {command}"))
}

/// Returns the command that resumes the run. It also allows the refused tools if they stopped the run.
pub(crate) fn resume_command(state: &RunState) -> String {
    ending_text(state).and_then(|ending| ending.resume_command).unwrap_or_else(|| RESUME_COMMAND.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::limits::RunLimits;
    use plimsoll_domain::state::{Lifecycle, RunOptions, RunSpending, SessionOutcomes};

    fn first_step(state: &RunState) -> AdviceStep {
        ending_text(state).unwrap().steps.remove(0)
    }

    #[test]
    fn the_hint_allows_refused_tools_and_continues() {
        let state_with_refused_tools = |status: RunStatus| RunState {
            lifecycle: Lifecycle::with_status(status),
            options: RunOptions {
                max_iterations: 1,
                client_arguments: vec!["--allowedTools".into(), "Read".into()],
                ..RunOptions::default()
            },
            outcomes: SessionOutcomes {
                denied_tools: vec!["Bash".into(), "Read".into()],
                ..SessionOutcomes::default()
            },
            ..RunState::default()
        };
        let start = "to continue and allow what Claude Code refused (Bash, Read): plimsoll run --resume";
        for (status, options) in [
            (RunStatus::Paused, ""),
            (RunStatus::MaxIterations, " --max-iterations 11"),
            (RunStatus::CircuitBreaker, " --reset-breaker"),
        ] {
            let expected = format!("{start}{options} -- --allowedTools Read Bash");
            assert_eq!(
                hint_to_resume_and_allow_refused_tools(&state_with_refused_tools(status)),
                Some(expected)
            );
        }
        assert_eq!(
            hint_to_resume_and_allow_refused_tools(&state_with_refused_tools(RunStatus::Budget)),
            None
        );
        let allowed = RunState {
            outcomes: SessionOutcomes {
                denied_tools: vec!["Read".into()],
                ..state_with_refused_tools(RunStatus::Paused).outcomes
            },
            ..state_with_refused_tools(RunStatus::Paused)
        };
        assert_eq!(hint_to_resume_and_allow_refused_tools(&allowed), None, "it is allowed by now");
    }

    #[test]
    fn a_used_up_budget_names_a_sufficient_new_total() {
        let limits = RunLimits { max_cost_usd: Some(20.0), ..RunLimits::default() };
        let state = RunState {
            lifecycle: Lifecycle::with_status(RunStatus::Budget),
            spending: RunSpending { cost_usd: 21.5, ..RunSpending::default() },
            options: RunOptions { limits, ..RunOptions::default() },
            ..RunState::default()
        };
        assert_eq!(first_step(&state).1.unwrap(), "plimsoll run --resume --max-cost 42");
        let limits = RunLimits { max_tokens: Some(5_000_000), ..RunLimits::default() };
        let state = RunState {
            lifecycle: Lifecycle::with_status(RunStatus::Budget),
            spending: RunSpending { tokens: 5_100_000, ..RunSpending::default() },
            options: RunOptions { limits, ..RunOptions::default() },
            ..RunState::default()
        };
        assert_eq!(first_step(&state).1.unwrap(), "plimsoll run --resume --max-tokens 11M");
    }

    #[test]
    fn a_fatal_error_names_what_to_fix() {
        for (reason, word) in [
            ("Invalid API key · Please run /login", "log in"),
            ("Credit balance is too low", "credit"),
            ("spend limit without a reset time: You've hit your individual spend limit", "raise it"),
            ("our hooks did not run in this session", "hooks"),
            ("there is no such model", "model"),
            ("it is so", "No session"),
        ] {
            let verdict = Verdict::Stop { status: RunStatus::FatalError, reason: reason.to_owned() };
            let state = RunState { lifecycle: Lifecycle::from_verdict(&verdict), ..RunState::default() };
            assert!(first_step(&state).0.contains(word), "{reason}");
        }
    }
}
