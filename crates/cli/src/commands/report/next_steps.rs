//! The next steps for the user, with commands to copy.

use super::contents::{NextStep, Report};
use crate::branch;
use crate::changed_checks;
use crate::endings::{AdviceStep, RESUME_COMMAND, advice_step, ending_text};
use crate::questions;
use crate::render::redact::RedactedText;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{RunState, RunStatus};
use plimsoll_policy::run_activity::RunActivity;

/// The state of the run and what else determines the next steps.
pub(super) struct NextStepsInput<'a> {
    pub(super) state: &'a RunState,
    /// The current activity of the run.
    pub(super) activity: RunActivity,
    /// False for an earlier run, which cannot be resumed.
    pub(super) is_current: bool,
    /// The end of the current pause, formatted for people.
    pub(super) paused_until: Option<String>,
    /// The reason why the first set-aside item could not be merged, if it was set aside for that.
    pub(super) merge_refusal: Option<&'a str>,
}

/// Returns the steps, most urgent first.
pub(super) fn next_steps(input: &NextStepsInput<'_>) -> Vec<NextStep> {
    let run_steps =
        if input.is_current { steps_for_current_run(input) } else { steps_for_earlier_run(input) };
    let to_step = |description: RedactedText, command: Option<String>| NextStep {
        description,
        // A truncated command would be wrong, so the limit is far above the length of any real command.
        command: command.map(|command| RedactedText::single_line(&command, 2_000)),
    };
    let main_steps = run_steps
        .into_iter()
        .map(|(text, command)| to_step(RedactedText::plimsoll_sentence(&text, 400), command));
    // The text contains an item's name, so it is redacted like other text from outside Plimsoll.
    let set_aside_step = render_set_aside_advice_unless_canceled(input)
        .map(|text| to_step(RedactedText::single_line(&text, 600), None));
    let question_steps = steps_for_answerable_questions(input)
        .into_iter()
        .map(|(text, command)| to_step(RedactedText::single_line(&text, 400), command));
    // Comes before the merge step, because a check that was weakened in this run also passes.
    let check_step = changed_checks::changed_check_files_sentence(input.state).map(|sentence| {
        let command = changed_checks::git_diff_command_for_changed_check_files(input.state);
        let request = if command.is_some() { ". Look at the changes:" } else { "" };
        to_step(RedactedText::single_line(&format!("{sentence}{request}"), 800), command)
    });
    let branch_step = branch::branch_or_merge_command_step(input.state)
        .map(|(text, command)| to_step(RedactedText::single_line(&text, 400), command));
    question_steps.chain(main_steps).chain(check_step).chain(branch_step).chain(set_aside_step).collect()
}

fn steps_for_earlier_run(input: &NextStepsInput<'_>) -> Vec<AdviceStep> {
    let open_count = input.state.plan_items.todo_items.len();
    if input.state.lifecycle.status() == RunStatus::Completed || open_count == 0 {
        return vec![advice_step(
            "Nothing: this run has ended, and another has started since.",
            "plimsoll report",
        )];
    }
    let text = format!(
        "This run cannot be resumed, because another has started since. Check whether that one has {} too.",
        if open_count == 1 { "its open item".to_owned() } else { format!("its {open_count} open items") }
    );
    vec![advice_step(text, "plimsoll status")]
}

fn steps_for_current_run(input: &NextStepsInput<'_>) -> Vec<AdviceStep> {
    if let Some(ending) = ending_text(input.state) {
        return ending.steps;
    }
    let until_text =
        input.paused_until.as_ref().map(|end_time| format!(" until {end_time}")).unwrap_or_default();
    match &input.activity {
        // For a run that has ended, the steps of its ending text were returned above.
        RunActivity::Ended => Vec::new(),
        RunActivity::Working | RunActivity::Retrying => {
            vec![advice_step("Nothing: it continues by itself.", "plimsoll status --watch")]
        }
        RunActivity::Stopping => {
            vec![advice_step(
                "Nothing: it stops when its sessions have ended. To continue later:",
                RESUME_COMMAND,
            )]
        }
        RunActivity::Waiting { .. } => vec![advice_step(
            format!("Nothing: it waits{until_text}, then continues by itself."),
            "plimsoll status --watch",
        )],
        RunActivity::WaitingWithoutRun { .. } => vec![advice_step(
            format!(
                "The run is paused{until_text} and no process is waiting. Run this to wait and continue:"
            ),
            RESUME_COMMAND,
        )],
        RunActivity::Exiting(kind) | RunActivity::Stopped(kind) => steps_for_pause(*kind),
        RunActivity::OrphanedClient(_)
        | RunActivity::OrphanedItemRuns(_)
        | RunActivity::Killed
        | RunActivity::Unobserved => {
            vec![advice_step("No `plimsoll run` is active any more. Continue:", RESUME_COMMAND)]
        }
    }
}

fn steps_for_pause(kind: PauseKind) -> Vec<AdviceStep> {
    match kind {
        PauseKind::Thrash => vec![advice_step(
            "Its sessions fill the window before anything gets done. Split the current item in fix_plan.md, or load less at the start; then:",
            RESUME_COMMAND,
        )],
        PauseKind::Fault => vec![
            advice_step("Something on this machine failed. Find out what:", "plimsoll doctor"),
            advice_step("Fix it, then:", RESUME_COMMAND),
        ],
        PauseKind::Interrupted => vec![advice_step("You interrupted it. Continue:", RESUME_COMMAND)],
        PauseKind::Limit | PauseKind::Overload | PauseKind::Quota => {
            vec![advice_step("Continue:", RESUME_COMMAND)]
        }
    }
}

const MAX_QUESTIONS: usize = 3;

/// Returns a step for each of the first questions that the user can still answer, with the command for it, and one step
/// for the remaining questions. Returns none for an earlier run or if the run can never be reopened.
fn steps_for_answerable_questions(input: &NextStepsInput<'_>) -> Vec<AdviceStep> {
    let has_final_status = input.state.lifecycle.status().is_final();
    if !input.is_current || has_final_status {
        return Vec::new();
    }
    let parked_questions = &input.state.plan_items.parked_questions;
    let to_question_step = |(number, question)| {
        let text = format!("A session asks: {}", questions::question_line(number, question));
        advice_step(text, &questions::answer_command(number))
    };
    let remaining_count = parked_questions.len().saturating_sub(MAX_QUESTIONS);
    let remaining_step = (remaining_count > 0).then(|| {
        advice_step(
            format!("{} more wait for your answer:", count_with_noun(remaining_count, "item")),
            "plimsoll status",
        )
    });
    (1..).zip(parked_questions).take(MAX_QUESTIONS).map(to_question_step).chain(remaining_step).collect()
}

fn render_set_aside_advice_unless_canceled(input: &NextStepsInput<'_>) -> Option<String> {
    let state = input.state;
    let count = state.plan_items.set_aside_items.len();
    if count == 0 || state.lifecycle.status() == RunStatus::Canceled {
        return None;
    }
    let first_item =
        state.plan_items.set_aside_items.first().map(|item| truncate_end(item, 80)).unwrap_or_default();
    let first_item_text =
        if count == 1 { format!(" (“{first_item}”)") } else { format!(" (“{first_item}” first)") };
    let pronoun = if count == 1 { "it" } else { "them" };
    let items = count_with_noun(count, "item") + &first_item_text;
    // If the work could not be merged, a clearer description would not help.
    Some(match input.merge_refusal {
        Some(reason) => {
            format!(
                "Set aside: {items}. It was not merged: {}.",
                truncate_end(&to_safe_single_line(reason), 400)
            )
        }
        None => format!(
            "Set aside after no progress: {items}. Describe {pronoun} more clearly in fix_plan.md, or split {pronoun}."
        ),
    })
}

/// Inserts a first step to read the handoff that no session has resumed yet. Does nothing if the run is completed or running.
pub(super) fn insert_step_to_read_unresumed_handoff(report: &mut Report) {
    if matches!(report.status, RunStatus::Completed | RunStatus::Running) {
        return;
    }
    if let Some(handoff) = report.handoffs.iter().find(|handoff| handoff.is_unresumed) {
        let text = RedactedText::plimsoll_sentence(
            "Read the handoff of the work in progress (it is below, too):",
            200,
        );
        let command = RedactedText::single_line(
            &format!("less {}", shlex::try_quote(handoff.path.text()).unwrap_or_default()),
            200,
        );
        report.next_steps.insert(0, NextStep { description: text, command: Some(command) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use plimsoll_domain::changed_check::ChangedCheckFile;
    use plimsoll_domain::limits::RunLimits;
    use plimsoll_domain::state::{Lifecycle, PlanItems, RunOptions, RunSpending};
    use plimsoll_policy::run_activity::{ActivityEvidence, determine_activity};

    fn steps_for_state(state: &RunState, is_active: bool, is_current: bool) -> Vec<NextStep> {
        let activity =
            determine_activity(&ActivityEvidence::from_state_without_process_checks(state, is_active));
        next_steps(&NextStepsInput { state, activity, is_current, paused_until: None, merge_refusal: None })
    }

    #[test]
    fn an_item_that_could_not_be_merged_is_set_aside_with_the_reason() {
        let mut state = RunState {
            plan_items: PlanItems { set_aside_items: vec!["Fix the parser".into()], ..PlanItems::default() },
            ..RunState::default()
        };
        let render_with_refusal = |state: &RunState, refusal| {
            let activity = RunActivity::Killed;
            render_set_aside_advice_unless_canceled(&NextStepsInput {
                state,
                activity,
                is_current: true,
                paused_until: None,
                merge_refusal: refusal,
            })
            .unwrap()
        };
        let without_refusal = render_with_refusal(&state, None);
        assert!(without_refusal.contains("Describe it more clearly"), "{without_refusal}");
        let with_refusal = render_with_refusal(&state, Some("it conflicts\nin a.rs"));
        assert_eq!(
            with_refusal,
            "Set aside: 1 item (“Fix the parser”). It was not merged: it conflicts in a.rs."
        );
        state.plan_items.set_aside_items.push("Add tests".into());
        let with_refusal = render_with_refusal(&state, Some("it conflicts"));
        assert_eq!(
            with_refusal,
            "Set aside: 2 items (“Fix the parser” first). It was not merged: it conflicts."
        );
    }

    #[test]
    fn changed_checks_are_named_with_the_command_that_shows_them() {
        let mut state = RunState::default();
        let check_step = |state: &RunState| {
            let steps = steps_for_state(state, false, true).into_iter();
            steps
                .map(|step| {
                    (
                        step.description.text().to_owned(),
                        step.command.map(|command| command.text().to_owned()),
                    )
                })
                .find(|(words, _)| words.contains("changed in this run"))
        };
        assert_eq!(check_step(&state), None);
        let changed_check = ChangedCheckFile {
            path: "check.sh".into(),
            added_line_count: 1,
            removed_line_count: 1,
            is_deleted: false,
        };
        state.outcomes.changed_checks = vec![changed_check];
        state.project_at_start.head_commit = Some("0123456789abcdef".into());
        let text = "1 file that checks the work changed in this run: check.sh (+1 -1). Look at the changes:";
        let command = "git diff 0123456 -- check.sh";
        assert_eq!(check_step(&state), Some((text.to_owned(), Some(command.to_owned()))));
    }

    #[test]
    fn every_command_to_copy_parses() {
        for status in RunStatus::ALL.iter().copied() {
            let limits = RunLimits { max_cost_usd: Some(20.0), ..RunLimits::default() };
            let state = RunState {
                lifecycle: Lifecycle::with_status(status),
                spending: RunSpending { cost_usd: 21.5, ..RunSpending::default() },
                options: RunOptions { limits, ..RunOptions::default() },
                plan_items: PlanItems { set_aside_items: vec!["x".into()], ..PlanItems::default() },
                ..RunState::default()
            };
            for (is_active, is_current) in [(true, true), (false, true), (false, false)] {
                let steps = steps_for_state(&state, is_active, is_current);
                assert!((1..=3).contains(&steps.len()), "{status}: {steps:?}");
                for command in steps.iter().filter_map(|step| step.command.as_ref()) {
                    let arguments = shlex::split(command.text()).unwrap();
                    let is_plimsoll_command = arguments.first().is_some_and(|word| word == "plimsoll");
                    assert!(
                        !is_plimsoll_command
                            || crate::commands::CommandLine::try_parse_from(arguments).is_ok(),
                        "{status}: {command:?}"
                    );
                }
            }
        }
    }
}
