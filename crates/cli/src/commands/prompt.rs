//! `plimsoll prompt`: writes PROMPT.md again, and with `--checkpoint` for the session after a checkpoint.

use super::gate;
use clap::Args;
use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::{RunState, Verdict};
use plimsoll_flows::run::{lifecycle, shell_loop};
use plimsoll_store::{Project, state_file};
use plimsoll_terminal::console::{self, fail, print_text, print_warning};
use std::process::ExitCode;

/// Arguments of `plimsoll prompt`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct PromptArguments {
    /// Also judge the session that ended, and plan the next one
    #[arg(long)]
    checkpoint: bool,
}

impl PromptArguments {
    /// Returns true if the command judges the session that ended and plans the next one, as the gate does.
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

/// Writes PROMPT.md for the current iteration or, with `--checkpoint`, for the next one.
pub(crate) fn write_prompt_or_judge_session_and_plan_next(arguments: &PromptArguments) -> ExitCode {
    let project = Project::find_upwards_from_current_dir();
    let state = match state_file::load_state(&project, None) {
        Ok(Some(state)) => state,
        Ok(None) if arguments.checkpoint => return write_resume_prompt_for_foreign_loop(&project),
        Ok(None) => return fail_without_run(&project),
        Err(error) => return fail(error),
    };
    let is_planned = state.iteration_record.phase == IterationPhase::Planned || state.lifecycle.has_ended();
    if !arguments.checkpoint || is_planned {
        return write_prompt_file_and_print_path(&project, &state);
    }
    if gate::is_inside_session() {
        // A Stop hook of the loop calls this while its session is still running, which is too early to judge that session.
        print_warning(
            &"this session has not ended, so the next one is not planned yet: run `plimsoll gate` in the loop after it",
        );
        return write_prompt_file_and_print_path(&project, &state);
    }
    judge_session_and_plan_next_on_continue(&project, &state)
}

fn write_prompt_file_and_print_path(project: &Project, state: &RunState) -> ExitCode {
    match plimsoll_flows::run::prompt::write_prompt(project, state) {
        Ok(_) => {
            print_text(format!(
                "wrote {} for session {}",
                project.relative_to_root(&project.prompt_path()),
                state.iteration
            ));
            ExitCode::SUCCESS
        }
        Err(error) => fail(error),
    }
}

fn fail_without_run(project: &Project) -> ExitCode {
    let no_run = || format!("there is no run in {}", project.root().display());
    fail(crate::foreign_state::describe_foreign_state(project).unwrap_or_else(no_run))
}

/// Judges the session that has ended, and plans the next one. Planning alone would not count the session's cost, so the
/// limits would never end a loop that only calls this command.
fn judge_session_and_plan_next_on_continue(project: &Project, state: &RunState) -> ExitCode {
    if gate::is_run_active(project) {
        return fail(gate::ACTIVE_RUN_MESSAGE);
    }
    match gate::judge_current_iteration(project, None) {
        Ok(Some(Verdict::Continue { .. })) => {}
        Ok(Some(verdict)) => {
            gate::restore_prompt_file(project);
            return fail(format!("no session is due: {}", console::describe_marker(&verdict.to_marker())));
        }
        Ok(None) => return fail_without_run(project),
        Err(error) => return fail(error),
    }
    match lifecycle::plan_iteration_or_end_if_all_parked(project, &state.run_id, None) {
        Ok(planned_state) if planned_state.lifecycle.has_ended() => {
            fail("the run has ended: `plimsoll status` says how")
        }
        Ok(planned_state) => {
            let prompt_path = project.relative_to_root(&project.prompt_path());
            let handoff = &planned_state.context_checkpoint.handoff_file;
            let resume_text = if planned_state.iteration_record.resumes_checkpoint && !handoff.is_empty() {
                format!(", which resumes from {handoff}")
            } else {
                String::new()
            };
            print_text(format!("wrote {prompt_path} for session {}{resume_text}", planned_state.iteration));
            ExitCode::SUCCESS
        }
        Err(error) => fail(error),
    }
}

/// Writes only the checkpoint section of the prompt, for a loop whose own scripts keep the state and plan the sessions.
fn write_resume_prompt_for_foreign_loop(project: &Project) -> ExitCode {
    match shell_loop::write_prompt_and_return_pending_handoff_path(project) {
        Ok(Some(handoff)) => {
            let prompt_path = project.relative_to_root(&project.prompt_path());
            print_text(format!("wrote {prompt_path} for the session that resumes from {handoff}"));
            ExitCode::SUCCESS
        }
        Ok(None) => fail_without_run(project),
        Err(error) => fail(error),
    }
}
