//! Runs commands before a session to learn which of them pass, so that a session is not blamed for what
//! already failed.

use crate::checkpoint::facts;
use crate::run::finish::checks::pause_interrupted_run_if_open;
use crate::run::lifecycle::StartError;
use crate::run::protect;
use crate::run::verify::{read_head_and_uncommitted_flag, run_verify_commands};
use crate::run_context::RunContext;
use plimsoll_domain::journal::{JournalEvent, VerifyCommandsRan};
use plimsoll_domain::text::to_single_line;
use plimsoll_domain::{RunState, Verdict};
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::ticks;
use plimsoll_store::Project;

/// The result of running the commands before a session.
#[derive(Debug)]
pub enum BaselineResult {
    /// The outcomes of the commands.
    Outcomes(Vec<VerifyOutcome>),
    /// The commands were given up, and the run is paused.
    Paused(Verdict),
}

/// Returns the commands whose result is not known before the next session; none if every item waits for an
/// answer, or if the run has ended.
pub fn commands_to_check(project: &Project, run: &RunState) -> Vec<String> {
    let commands = match run.lifecycle.is_over() {
        true => Vec::new(),
        // Run regardless of their result: they must not change the protected files.
        false if protect::has_unchecked_verify_command(project, run) => run.options.verify_commands.clone(),
        false => ticks::commands_without_known_outcome(run),
    };
    // The plan is read only if there is a command to run.
    let has_work = !commands.is_empty()
        && (run.options.todo_file.is_none()
            || facts::load_plan(project, run).is_some_and(|todo| !todo.unparked_open_items().is_empty()));
    if has_work { commands } else { Vec::new() }
}

/// Renders the notice that the user sees before the commands run.
pub fn render_notice(run: &RunState, commands: &[String]) -> String {
    let commands: Vec<String> =
        commands.iter().map(|command| format!("`{}`", to_single_line(command))).collect();
    let hint =
        if run.options.protected_paths.is_empty() { " (--verify-each promise skips this)" } else { "" };
    format!("checking what passes before the first session: {}{hint}", commands.join(", "))
}

/// Runs the commands whose result is not known before the next session of the run. If they are given up, or
/// after a kill, nothing is recorded, and the next `plimsoll run` runs them again. Fails if they change
/// protected files: then no session could complete the run.
pub fn run_baseline(
    context: &RunContext<'_>,
    run: &RunState,
    commands: &[String],
    should_give_up: &dyn Fn() -> bool,
) -> Result<BaselineResult, StartError> {
    let checks_protected = protect::has_unchecked_verify_command(context.project, run);
    let outcomes = run_verify_commands(context.project, context.settings, run, commands, should_give_up);
    if outcomes.len() < commands.len() {
        // A run that was canceled meanwhile needs no result.
        let paused = pause_interrupted_run_if_open(context)?;
        return Ok(paused.map_or_else(|| BaselineResult::Outcomes(Vec::new()), BaselineResult::Paused));
    }
    // Before the state's lock is taken: no lock is held while git runs.
    let tree = read_head_and_uncommitted_flag(context.project);
    context.update_state(|state| {
        ticks::record_verify_outcomes(state, &outcomes);
        ticks::record_verify_runs(state, &outcomes, &tree);
    })?;
    let verifications = outcomes.iter().map(VerifyOutcome::to_verification).collect();
    context.record_run_event(
        run,
        JournalEvent::VerifyCommandsRan(VerifyCommandsRan { results: verifications }),
    )?;
    if checks_protected {
        protect::changes_for_next_session(context.project, run)?;
        // A command that did not start, or ended too early, may still change them the next time.
        let decided_outcomes = outcomes.iter().filter(|outcome| !outcome.is_undecided);
        protect::record_harmless_verify_commands(
            context,
            run,
            decided_outcomes.map(|outcome| outcome.command.clone()),
        )?;
    }
    Ok(BaselineResult::Outcomes(outcomes))
}
