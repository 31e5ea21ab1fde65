//! What the user does now: one to three steps, with commands to copy.

use super::contents::{Report, Step};
use crate::render::redact::{RedactedText, Redactor};
use plimsoll_domain::breaker::BreakerCause;
use plimsoll_domain::text::counted;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{RunState, Status, Verdict};

/// What the steps depend on beside the state.
pub(super) struct Scene<'a> {
    pub(super) state: &'a RunState,
    /// True while a `plimsoll run` works or waits.
    pub(super) at_work: bool,
    /// False for an earlier run, which cannot be resumed.
    pub(super) is_present: bool,
    /// Until when it waits, for people.
    pub(super) until: Option<String>,
}

/// The steps, the most urgent first.
pub(super) fn steps(scene: &Scene<'_>, cleaner: &Redactor) -> Vec<Step> {
    let ours = if scene.is_present { present(scene) } else { earlier(scene) };
    let step = |words: RedactedText, command: Option<String>| Step {
        words,
        // A command that is cut is none.
        command: command.map(|command| cleaner.line(&command, 2_000)),
    };
    let ours = ours.into_iter().map(|(words, command)| step(cleaner.ours(&words, 400), command));
    // It names an item.
    let set_aside = set_aside(scene.state).map(|words| step(cleaner.line(&words, 400), None));
    ours.chain(set_aside).collect()
}

type Plain = (String, Option<String>);

fn step(words: impl Into<String>, command: &str) -> Plain {
    (words.into(), Some(command.to_owned()).filter(|command| !command.is_empty()))
}

const RESUME: &str = "plimsoll run --resume";

fn earlier(scene: &Scene<'_>) -> Vec<Plain> {
    let open = scene.state.items.todo_items.len();
    if scene.state.lifecycle.status() == Status::Completed || open == 0 {
        return vec![step("Nothing: this run is over, and another has begun since.", "plimsoll report")];
    }
    let words = format!(
        "This run cannot be resumed: another has begun since. Check whether that one has {} too.",
        if open == 1 { "its open item".to_owned() } else { format!("its {open} open items") }
    );
    vec![step(words, "plimsoll status")]
}

fn present(scene: &Scene<'_>) -> Vec<Plain> {
    let state = scene.state;
    match state.lifecycle.status() {
        Status::Completed => vec![step("Nothing is left to do. Review what was done:", "git log --stat")],
        Status::Running if scene.at_work => {
            vec![step("Nothing: it continues by itself.", "plimsoll status --watch")]
        }
        Status::Running => vec![step("No `plimsoll run` is active any more. Continue:", RESUME)],
        Status::Paused => paused(scene),
        Status::Blocked => {
            vec![step("Answer in PROMPT.md what blocks it (the agent's message is above), then:", RESUME)]
        }
        Status::FatalError => fatal(state),
        Status::CircuitBreaker => breaker(state),
        Status::MaxIterations => {
            let more =
                state.options.max_iterations.saturating_add(10.max(2 * state.items.todo_items.len() as u32));
            vec![step("All its sessions are used. Allow more:", &format!("{RESUME} --max-iterations {more}"))]
        }
        Status::Budget => budget(state),
        Status::Deadline => {
            vec![step("Its deadline has passed. Set a later one:", &format!("{RESUME} --deadline 8h"))]
        }
        Status::Cancelled => {
            vec![step(
                "It was cancelled and cannot be resumed. For the open items, start a new run:",
                "plimsoll run",
            )]
        }
    }
}

fn paused(scene: &Scene<'_>) -> Vec<Plain> {
    let kind = match scene.state.lifecycle.last_verdict() {
        Some(Verdict::Pause { kind, .. }) => *kind,
        _ => PauseKind::Interrupted,
    };
    let until = scene.until.as_ref().map(|until| format!(" until {until}")).unwrap_or_default();
    match kind {
        kind if kind.passes() && scene.at_work => {
            vec![step(
                format!("Nothing: it waits{until}, then continues by itself."),
                "plimsoll status --watch",
            )]
        }
        kind if kind.passes() => {
            vec![step(
                format!("The run is paused{until} and no process is waiting. Run this to wait and continue:"),
                RESUME,
            )]
        }
        PauseKind::Thrash => vec![step(
            "Its sessions fill the window before anything gets done. Split the current item in fix_plan.md, or load less at the start; then:",
            RESUME,
        )],
        PauseKind::Fault => vec![
            step("Something on this machine failed. Find out what:", "plimsoll doctor"),
            step("Fix it, then:", RESUME),
        ],
        _ => vec![step("You interrupted it. Continue:", RESUME)],
    }
}

/// The message of a fatal error says what to fix.
fn fatal(state: &RunState) -> Vec<Plain> {
    let reason = match state.lifecycle.last_verdict() {
        Some(Verdict::Stop { reason, .. }) => reason.to_lowercase(),
        _ => String::new(),
    };
    let speaks_of = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    let first = if speaks_of(&["hook", "guard"]) {
        step("Our hooks did not run. Find out why:", "plimsoll doctor")
    } else if speaks_of(&["billing", "credit", "balance"]) {
        step("The account has no credit left: add credit in its billing settings.", "")
    } else if speaks_of(&["log", "auth", "key", "401", "403", "credential", "token"]) {
        step("The client could not log in. Start it, and log in again with /login:", "claude")
    } else if speaks_of(&["model"]) {
        step(
            "The model is not available. Name another one after `--`:",
            "plimsoll run --resume -- --model opus",
        )
    } else {
        step("No session can succeed until this is fixed. Find out what is wrong:", "plimsoll doctor")
    };
    vec![first, step("Then continue:", RESUME)]
}

fn budget(state: &RunState) -> Vec<Plain> {
    if plimsoll_policy::bounds::stops_for_quota(state) {
        return vec![step("The allowed share of the quota is used. When the quota has room again:", RESUME)];
    }
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

fn breaker(state: &RunState) -> Vec<Plain> {
    let on = "plimsoll run --resume --reset-breaker";
    let cause = state.outcomes.breaker.opened.as_ref().map(|opened| opened.cause);
    let mend = match cause {
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
    let allow = crate::commands::run::allowing(state, tools, "--resume --reset-breaker")
        .unwrap_or_else(|| format!("{on} -- --allowedTools Bash Edit Write"));
    vec![step(mend, if cause == Some(BreakerCause::PermissionDenied) { &allow } else { on })]
}

fn set_aside(state: &RunState) -> Option<String> {
    let number = state.items.set_aside.len();
    if number == 0 || state.lifecycle.status() == Status::Cancelled {
        return None;
    }
    let first =
        state.items.set_aside.first().map(|item| plimsoll_domain::text::clip(item, 80)).unwrap_or_default();
    let first = if number == 1 { format!(" (“{first}”)") } else { format!(" (“{first}” first)") };
    let them = if number == 1 { "it" } else { "them" };
    let items = counted(number, "item") + &first;
    Some(format!(
        "Set aside after no progress: {items}. Describe {them} more clearly in fix_plan.md, or split {them}."
    ))
}

/// A handoff that has not been resumed comes first if the user must decide.
pub(super) fn with_handoff(report: &mut Report, cleaner: &Redactor) {
    if matches!(report.status, Status::Completed | Status::Running) {
        return;
    }
    if let Some(handoff) = report.handoffs.iter().find(|handoff| handoff.is_waiting) {
        let words = cleaner.ours("Read the handoff of the work in progress (it is below, too):", 200);
        let command =
            cleaner.line(&format!("less {}", shlex::try_quote(handoff.path.text()).unwrap_or_default()), 200);
        report.steps.insert(0, Step { words, command: Some(command) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use plimsoll_domain::limits::Limits;
    use plimsoll_domain::state::{Items, Lifecycle, RunOptions, Spent};

    fn of(state: &RunState, at_work: bool, is_present: bool) -> Vec<Step> {
        let scene = Scene { state, at_work, is_present, until: None };
        steps(&scene, &Redactor)
    }

    #[test]
    fn every_command_to_copy_is_understood() {
        let all = [
            Status::Running,
            Status::Paused,
            Status::Completed,
            Status::Blocked,
            Status::MaxIterations,
            Status::Budget,
            Status::Deadline,
            Status::CircuitBreaker,
            Status::FatalError,
            Status::Cancelled,
        ];
        for status in all {
            let limits = Limits { max_cost_usd: Some(20.0), ..Limits::default() };
            let state = RunState {
                lifecycle: Lifecycle::of(status),
                spent: Spent { cost_usd: 21.5, ..Spent::default() },
                options: RunOptions { limits, ..RunOptions::default() },
                items: Items { set_aside: vec!["x".into()], ..Items::default() },
                ..RunState::default()
            };
            for (at_work, is_present) in [(true, true), (false, true), (false, false)] {
                let steps = of(&state, at_work, is_present);
                assert!((1..=3).contains(&steps.len()), "{status}: {steps:?}");
                for command in steps.iter().filter_map(|step| step.command.as_ref()) {
                    let words = shlex::split(command.text()).unwrap();
                    let is_ours = words.first().is_some_and(|word| word == "plimsoll");
                    assert!(
                        !is_ours || crate::commands::Command::try_parse_from(words).is_ok(),
                        "{status}: {command:?}"
                    );
                }
            }
        }
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
        assert_eq!(
            of(&state, false, true)[0].command.as_ref().unwrap().text(),
            "plimsoll run --resume --max-cost 42"
        );
        let limits = Limits { max_tokens: Some(5_000_000), ..Limits::default() };
        let state = RunState {
            lifecycle: Lifecycle::of(Status::Budget),
            spent: Spent { tokens: 5_100_000, ..Spent::default() },
            options: RunOptions { limits, ..RunOptions::default() },
            ..RunState::default()
        };
        assert_eq!(
            of(&state, false, true)[0].command.as_ref().unwrap().text(),
            "plimsoll run --resume --max-tokens 11M"
        );
    }

    #[test]
    fn a_fatal_error_names_what_to_mend() {
        for (reason, word) in [
            ("Invalid API key · Please run /login", "log in"),
            ("Credit balance is too low", "credit"),
            ("our hooks did not run in this session", "hooks"),
            ("there is no such model", "model"),
            ("it is so", "No session"),
        ] {
            let verdict = Verdict::Stop { status: Status::FatalError, reason: reason.to_owned() };
            let state = RunState { lifecycle: Lifecycle::after(&verdict), ..RunState::default() };
            assert!(of(&state, false, true)[0].words.text().contains(word), "{reason}");
        }
    }
}
