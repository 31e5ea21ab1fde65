//! `plimsoll prompt`: writes PROMPT.md again, and with `--checkpoint` for the session after a checkpoint.

use super::gate;
use clap::Args;
use plimsoll_domain::state::Phase;
use plimsoll_domain::{RunState, Verdict};
use plimsoll_flows::run::{foreign, lifecycle};
use plimsoll_store::{Project, state_file};
use plimsoll_terminal::console::{fail, say, say_error};
use std::process::ExitCode;

/// For which session PROMPT.md is written.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct PromptArguments {
    /// For scripts that handle checkpoints themselves: judge the session that ended, and plan the next one
    #[arg(long)]
    checkpoint: bool,
}

impl PromptArguments {
    /// True if the session that ended is judged and the next one planned, as the gate does.
    pub(crate) fn plans_next_session(&self) -> bool {
        self.checkpoint
    }
}

const HELP: &str = "\
Regenerates the block above your text from the run's state; your text stays as it is, byte for byte. `plimsoll run` does
this before each session; in a loop of your own, call it yourself.

With --checkpoint, call it after a session that left a checkpoint, in the place of `plimsoll gate`: it judges the session as
the gate does and plans the next one, so that the hooks also protect the session that resumes.

Exit codes:
  0  PROMPT.md is written
  1  it is not, or the run has ended or is paused";

/// Writes it for the current iteration or, with `--checkpoint`, for the next one.
pub(crate) fn prompt(arguments: &PromptArguments) -> ExitCode {
    let project = Project::of_command();
    let state = match state_file::load(&project, None) {
        Ok(Some(state)) => state,
        Ok(None) if arguments.checkpoint => return write_for_foreign_loop(&project),
        Ok(None) => return fail_without_run(&project),
        Err(error) => return fail(error),
    };
    let is_planned = state.iteration_record.phase == Phase::Planned || state.lifecycle.is_over();
    if !arguments.checkpoint || is_planned {
        return write_prompt(&project, &state);
    }
    if gate::is_inside_session() {
        // A Stop hook of the loop calls it while its session is still at work, which is too early to judge that session.
        say_error(
            &"this session has not ended, so the next one is not planned yet: run `plimsoll gate` in the loop after it",
        );
        return write_prompt(&project, &state);
    }
    plan_next_session(&project, &state)
}

fn write_prompt(project: &Project, state: &RunState) -> ExitCode {
    match plimsoll_flows::run::prompt::write(project, state) {
        Ok(_) => {
            say(format!("wrote {} for iteration {}", project.relative(&project.prompt()), state.iteration));
            ExitCode::SUCCESS
        }
        Err(error) => fail(error),
    }
}

fn fail_without_run(project: &Project) -> ExitCode {
    let no_run = || format!("there is no run in {}", project.root().display());
    fail(crate::foreign_state::words(project).unwrap_or_else(no_run))
}

/// Judges the session that has ended, and plans the next one. Planning alone would leave out what the session cost, and the
/// limits would not end a loop that only ever calls this.
fn plan_next_session(project: &Project, state: &RunState) -> ExitCode {
    if gate::is_run_active(project) {
        return fail(gate::RUN_IS_ACTIVE);
    }
    match gate::judge(project, None) {
        Ok(Some(Verdict::Continue { .. })) => {}
        Ok(Some(verdict)) => {
            gate::restore_prompt(project);
            return fail(verdict.marker());
        }
        Ok(None) => return fail_without_run(project),
        Err(error) => return fail(error),
    }
    match lifecycle::plan(project, &state.run_id, None) {
        Ok(planned) if planned.lifecycle.is_over() => fail("the run has ended: `plimsoll status` says how"),
        Ok(planned) => {
            let file = project.relative(&project.prompt());
            let resumed = &planned.context_checkpoint.handoff_file;
            let from = if planned.iteration_record.resuming && !resumed.is_empty() {
                format!(", which resumes from {resumed}")
            } else {
                String::new()
            };
            say(format!("wrote {file} for iteration {}{from}", planned.iteration));
            ExitCode::SUCCESS
        }
        Err(error) => fail(error),
    }
}

/// The state is one that the loop's own scripts keep: they plan, and only the checkpoint's section is written.
fn write_for_foreign_loop(project: &Project) -> ExitCode {
    match foreign::write_checkpoint_prompt(project) {
        Ok(Some(handoff)) => {
            let file = project.relative(&project.prompt());
            say(format!("wrote {file} for the session that resumes from {handoff}"));
            ExitCode::SUCCESS
        }
        Ok(None) => fail_without_run(project),
        Err(error) => fail(error),
    }
}
