//! What the user does now: one to three steps, with commands to copy.

use super::contents::{Report, Step};
use crate::branch;
use crate::changed_checks;
use crate::endings::{PlainStep, RESUME, ending_words, step};
use crate::questions;
use crate::render::redact::RedactedText;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{RunState, Status};
use plimsoll_policy::run_activity::RunActivity;

/// What the steps depend on beside the state.
pub(super) struct Scene<'a> {
    pub(super) state: &'a RunState,
    /// What it does.
    pub(super) activity: RunActivity,
    /// False for an earlier run, which cannot be resumed.
    pub(super) is_present: bool,
    /// Until when it waits, for people.
    pub(super) until: Option<String>,
    /// Why the work on the first item that is set aside was not merged, if that is why.
    pub(super) refusal: Option<&'a str>,
}

/// The steps, the most urgent first.
pub(super) fn steps(scene: &Scene<'_>) -> Vec<Step> {
    let ours = if scene.is_present { present(scene) } else { earlier(scene) };
    let step = |words: RedactedText, command: Option<String>| Step {
        words,
        // A command that is cut is none.
        command: command.map(|command| RedactedText::line(&command, 2_000)),
    };
    let ours = ours.into_iter().map(|(words, command)| step(RedactedText::ours(&words, 400), command));
    // It names an item.
    let set_aside = set_aside(scene).map(|words| step(RedactedText::line(&words, 600), None));
    let asked =
        questions(scene).into_iter().map(|(words, command)| step(RedactedText::line(&words, 400), command));
    // Before the step that merges: a check that was weakened passes, too.
    let checks = changed_checks::sentence(scene.state).map(|words| {
        let command = changed_checks::command(scene.state);
        let look = if command.is_some() { ". Look at the changes:" } else { "" };
        step(RedactedText::line(&format!("{words}{look}"), 800), command)
    });
    let branch = branch::merge_step(scene.state)
        .map(|(words, command)| step(RedactedText::line(&words, 400), command));
    asked.chain(ours).chain(checks).chain(branch).chain(set_aside).collect()
}

fn earlier(scene: &Scene<'_>) -> Vec<PlainStep> {
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

fn present(scene: &Scene<'_>) -> Vec<PlainStep> {
    if let Some(ending) = ending_words(scene.state) {
        return ending.steps;
    }
    let until = scene.until.as_ref().map(|until| format!(" until {until}")).unwrap_or_default();
    match &scene.activity {
        // Its words are the ending's, above.
        RunActivity::Over => Vec::new(),
        RunActivity::Working | RunActivity::Retrying => {
            vec![step("Nothing: it continues by itself.", "plimsoll status --watch")]
        }
        RunActivity::Stopping => {
            vec![step("Nothing: it stops when its sessions have ended. To continue later:", RESUME)]
        }
        RunActivity::Waiting { .. } => vec![step(
            format!("Nothing: it waits{until}, then continues by itself."),
            "plimsoll status --watch",
        )],
        RunActivity::Unattended { .. } => vec![step(
            format!("The run is paused{until} and no process is waiting. Run this to wait and continue:"),
            RESUME,
        )],
        RunActivity::Exiting(kind) | RunActivity::Stopped(kind) => stopped(*kind),
        RunActivity::LeftClient(_)
        | RunActivity::LeftItems(_)
        | RunActivity::Killed
        | RunActivity::Unobserved => {
            vec![step("No `plimsoll run` is active any more. Continue:", RESUME)]
        }
    }
}

fn stopped(kind: PauseKind) -> Vec<PlainStep> {
    match kind {
        PauseKind::Thrash => vec![step(
            "Its sessions fill the window before anything gets done. Split the current item in fix_plan.md, or load less at the start; then:",
            RESUME,
        )],
        PauseKind::Fault => vec![
            step("Something on this machine failed. Find out what:", "plimsoll doctor"),
            step("Fix it, then:", RESUME),
        ],
        PauseKind::Interrupted => vec![step("You interrupted it. Continue:", RESUME)],
        PauseKind::Limit | PauseKind::Overload | PauseKind::Quota => vec![step("Continue:", RESUME)],
    }
}

/// How many questions are named.
const QUESTIONS: usize = 3;

/// The questions that the user can still answer, with the commands for it.
fn questions(scene: &Scene<'_>) -> Vec<PlainStep> {
    let is_for_good = scene.state.lifecycle.status().is_final();
    if !scene.is_present || is_for_good {
        return Vec::new();
    }
    let parked = &scene.state.items.parked;
    let words = |(number, open)| {
        let words = format!("A session asks: {}", questions::line(number, open));
        step(words, &questions::command(number))
    };
    let more = parked.len().saturating_sub(QUESTIONS);
    let more = (more > 0)
        .then(|| step(format!("{} more wait for your answer:", counted(more, "item")), "plimsoll status"));
    (1..).zip(parked).take(QUESTIONS).map(words).chain(more).collect()
}

fn set_aside(scene: &Scene<'_>) -> Option<String> {
    let state = scene.state;
    let number = state.items.set_aside.len();
    if number == 0 || state.lifecycle.status() == Status::Cancelled {
        return None;
    }
    let first = state.items.set_aside.first().map(|item| clip(item, 80)).unwrap_or_default();
    let first = if number == 1 { format!(" (“{first}”)") } else { format!(" (“{first}” first)") };
    let them = if number == 1 { "it" } else { "them" };
    let items = counted(number, "item") + &first;
    // A clearer description does not help work that could not be merged.
    Some(match scene.refusal {
        Some(reason) => format!("Set aside: {items}. It was not merged: {}.", clip(&one_line(reason), 400)),
        None => format!(
            "Set aside after no progress: {items}. Describe {them} more clearly in fix_plan.md, or split {them}."
        ),
    })
}

/// A handoff that has not been resumed comes first if the user must decide.
pub(super) fn with_handoff(report: &mut Report) {
    if matches!(report.status, Status::Completed | Status::Running) {
        return;
    }
    if let Some(handoff) = report.handoffs.iter().find(|handoff| handoff.is_waiting) {
        let words = RedactedText::ours("Read the handoff of the work in progress (it is below, too):", 200);
        let command = RedactedText::line(
            &format!("less {}", shlex::try_quote(handoff.path.text()).unwrap_or_default()),
            200,
        );
        report.steps.insert(0, Step { words, command: Some(command) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use plimsoll_domain::changed_check::ChangedCheck;
    use plimsoll_domain::limits::Limits;
    use plimsoll_domain::state::{Items, Lifecycle, RunOptions, Spent};
    use plimsoll_policy::run_activity::{ActivityEvidence, run_activity};

    fn of(state: &RunState, at_work: bool, is_present: bool) -> Vec<Step> {
        let activity = run_activity(&ActivityEvidence::from_state(state, at_work));
        steps(&Scene { state, activity, is_present, until: None, refusal: None })
    }

    #[test]
    fn an_item_that_could_not_be_merged_is_set_aside_with_the_reason() {
        let mut state = RunState {
            items: Items { set_aside: vec!["Fix the parser".into()], ..Items::default() },
            ..RunState::default()
        };
        let told = |state: &RunState, refusal| {
            let activity = RunActivity::Killed;
            set_aside(&Scene { state, activity, is_present: true, until: None, refusal }).unwrap()
        };
        let unclear = told(&state, None);
        assert!(unclear.contains("Describe it more clearly"), "{unclear}");
        let refused = told(&state, Some("it conflicts\nin a.rs"));
        assert_eq!(refused, "Set aside: 1 item (“Fix the parser”). It was not merged: it conflicts in a.rs.");
        state.items.set_aside.push("Add tests".into());
        let refused = told(&state, Some("it conflicts"));
        assert_eq!(refused, "Set aside: 2 items (“Fix the parser” first). It was not merged: it conflicts.");
    }

    #[test]
    fn checks_that_the_run_changed_are_named_with_the_command_that_shows_them() {
        let mut state = RunState::default();
        let names_check = |state: &RunState| {
            let steps = of(state, false, true).into_iter();
            steps
                .map(|step| {
                    (step.words.text().to_owned(), step.command.map(|command| command.text().to_owned()))
                })
                .find(|(words, _)| words.contains("changed in this run"))
        };
        assert_eq!(names_check(&state), None);
        let changed = ChangedCheck { path: "check.sh".into(), added: 1, removed: 1, is_deleted: false };
        state.outcomes.changed_checks = vec![changed];
        state.at_start.head = Some("0123456789abcdef".into());
        let words = "1 file that checks the work changed in this run: check.sh (+1 -1). Look at the changes:";
        let command = "git diff 0123456 -- check.sh";
        assert_eq!(names_check(&state), Some((words.to_owned(), Some(command.to_owned()))));
    }

    #[test]
    fn every_command_to_copy_is_understood() {
        for status in Status::ALL.iter().copied() {
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
}
