//! Which commands pass before a session: what fails already is not held against it.

use crate::checkpoint::facts;
use crate::run::finish::checks::pause;
use crate::run::lifecycle::StartError;
use crate::run::protect;
use crate::run::verify::{verified_tree, verify};
use crate::run_context::RunContext;
use plimsoll_domain::journal::{JournalEvent, Verified};
use plimsoll_domain::text::one_line;
use plimsoll_domain::{RunState, Verdict};
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::ticks;
use plimsoll_store::Project;

/// What came of running the commands before a session.
#[derive(Debug)]
pub enum Known {
    /// What they said.
    Said(Vec<VerifyOutcome>),
    /// They were given up, and the run is paused.
    Paused(Verdict),
}

/// The commands of which the run does not know whether they pass, if a session comes next: none if everything waits for an
/// answer, or if the run is over.
pub fn unknown(project: &Project, run: &RunState) -> Vec<String> {
    let commands = match run.lifecycle.is_over() {
        true => Vec::new(),
        // Whatever they say: they must leave the protected files as they are.
        false if protect::has_unchecked_verify(project, run) => run.options.verify.clone(),
        false => ticks::unknown(run),
    };
    // The plan is read only if there is something to learn.
    let has_work = !commands.is_empty()
        && (run.options.todo_file.is_none()
            || facts::todo(project, run).is_some_and(|todo| !todo.free().is_empty()));
    if has_work { commands } else { Vec::new() }
}

/// What the user is told before they run.
pub fn words(run: &RunState, commands: &[String]) -> String {
    let commands: Vec<String> = commands.iter().map(|command| format!("`{}`", one_line(command))).collect();
    let tip = if run.options.protect.is_empty() { " (--verify-each promise skips this)" } else { "" };
    format!("checking what passes before the first session: {}{tip}", commands.join(", "))
}

/// Runs commands of which the run does not know whether they pass, before its next session. Given up, or after a kill,
/// nothing is noted, and the next `plimsoll run` runs them again. Fails if they change protected files: then no session could complete
/// the run.
pub fn learn(
    context: &RunContext<'_>,
    run: &RunState,
    commands: &[String],
    give_up: &dyn Fn() -> bool,
) -> Result<Known, StartError> {
    let must_leave_protected = protect::has_unchecked_verify(context.project, run);
    let said = verify(context.project, context.settings, run, commands, give_up);
    if said.len() < commands.len() {
        // A run that is over, because it was cancelled meanwhile, has nothing to learn for.
        let paused = pause(context)?;
        return Ok(paused.map_or_else(|| Known::Said(Vec::new()), Known::Paused));
    }
    // git is asked before the lock is taken.
    let tree = verified_tree(context.project);
    context.update(|state| {
        ticks::note(state, &said);
        ticks::record_verify_runs(state, &said, &tree);
    })?;
    let verify = said.iter().map(VerifyOutcome::fact).collect();
    context.note_of_run(run, JournalEvent::Verified(Verified { verify }))?;
    if must_leave_protected {
        protect::changes_left(context.project, run)?;
        // One that was not begun, or ended too early, may change them the next time.
        let ended = said.iter().filter(|outcome| !outcome.is_undecided);
        protect::mark_verify_harmless(context, run, ended.map(|outcome| outcome.command.clone()))?;
    }
    Ok(Known::Said(said))
}
