//! Runs the verify commands before a session, so that the session is not blamed for commands that already
//! failed.

use crate::checkpoint::facts;
use crate::run::finish::checks::pause_interrupted_run_if_open;
use crate::run::lifecycle::StartError;
use crate::run::protect;
use crate::run::verify::{head_and_whether_tracked_files_changed, run_verify_commands_until_canceled};
use crate::run_context::RunContext;
use plimsoll_domain::journal::{JournalEvent, VerifyCommandsRan};
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_domain::{RunState, Verdict};
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::ticks;
use plimsoll_store::Project;

/// The result of running the commands before a session.
#[derive(Debug)]
pub enum BaselineResult {
    /// The outcomes of the commands; empty if the run was canceled in the meantime.
    Outcomes(Vec<VerifyOutcome>),
    /// The commands were interrupted, and the run is paused.
    Paused(Verdict),
}

/// Returns the verify commands whose result is unknown before the next session. Returns none if the run has
/// ended, or if no open item can be worked on because each waits for an answer.
pub fn baseline_commands_to_run_if_work_remains(project: &Project, run: &RunState) -> Vec<String> {
    let commands = match run.lifecycle.has_ended() {
        true => Vec::new(),
        // All of them, even those with a known result, to check that they do not change protected files.
        false if protect::should_test_whether_commands_change_protected(project, run) => {
            run.options.verify_commands.clone()
        }
        false => ticks::tick_baseline_commands_without_outcome(run),
    };
    // The plan is read only if there is a command to run.
    let has_open_items = !commands.is_empty()
        && (run.options.todo_file.is_none()
            || facts::load_plan(project, run).is_some_and(|todo| !todo.unparked_open_items().is_empty()));
    if has_open_items { commands } else { Vec::new() }
}

/// Renders the notice that the user sees before the commands run.
pub fn render_baseline_start_notice(run: &RunState, commands: &[String]) -> String {
    let commands: Vec<String> =
        commands.iter().map(|command| format!("`{}`", to_safe_single_line(command))).collect();
    let hint =
        if run.options.protected_paths.is_empty() { " (--verify-each promise skips this)" } else { "" };
    format!("checking what passes before the first session: {}{hint}", commands.join(", "))
}

/// Runs the commands and records their outcomes. If they are interrupted, the run is paused, nothing is
/// recorded, and the next `plimsoll run` runs them again. Returns an error if they change protected files,
/// because then no session could complete the run.
pub fn run_baseline_or_pause_if_interrupted(
    context: &RunContext<'_>,
    run: &RunState,
    commands: &[String],
    should_cancel: &dyn Fn() -> bool,
) -> Result<BaselineResult, StartError> {
    let checks_protected_files = protect::should_test_whether_commands_change_protected(context.project, run);
    let outcomes =
        run_verify_commands_until_canceled(context.project, context.settings, run, commands, should_cancel);
    if outcomes.len() < commands.len() {
        // A run that was canceled in the meantime needs no outcomes.
        let pause_verdict = pause_interrupted_run_if_open(context)?;
        return Ok(pause_verdict.map_or_else(|| BaselineResult::Outcomes(Vec::new()), BaselineResult::Paused));
    }
    // Read before the state is locked, because no lock is held while git runs.
    let verified_tree = head_and_whether_tracked_files_changed(context.project);
    context.update_state(|state| {
        ticks::record_conclusive_outcomes_and_add_seconds(state, &outcomes);
        ticks::record_last_conclusive_verify_runs(state, &outcomes, &verified_tree);
    })?;
    let verifications = outcomes.iter().map(VerifyOutcome::to_verify_result).collect();
    context.journal_run_event(
        run,
        JournalEvent::VerifyCommandsRan(VerifyCommandsRan { results: verifications }),
    )?;
    if checks_protected_files {
        protect::changes_to_undo_or_error_if_made_by_user(context.project, run)?;
        // A command that did not start, or was ended early, may still change protected files the next time.
        let conclusive_outcomes = outcomes.iter().filter(|outcome| !outcome.is_inconclusive);
        protect::record_harmless_verify_commands(
            context,
            run,
            conclusive_outcomes.map(|outcome| outcome.command.clone()),
        )?;
    }
    Ok(BaselineResult::Outcomes(outcomes))
}
