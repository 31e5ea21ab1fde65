//! `plimsoll with-context`: runs another hook or script with the context usage in its environment.

use crate::target_session::TargetSession;
use clap::Args;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::context::{
    measure_context_variables_for_hook, wait_and_measure_context_variables_for_tool,
};
use plimsoll_store::{Project, disk};
use plimsoll_terminal::console::{fail, fail_with};
use std::process::ExitCode;

/// Limit for the payload of a hook; the client sends nothing larger.
const MAX_PAYLOAD_BYTES: u64 = 64 * 1024 * 1024;
/// The program to run.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct WithContextArguments {
    /// The program and its arguments; no shell is used
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD", value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<String>,
}

const EXAMPLE: &str = "The payload of Claude Code's hook is read from standard input and passed on byte for byte. Without a payload, in a tool
that an agent calls, the agent's own session is used. These variables are set if they are known:
  CLAUDE_CONTEXT_PERCENT      used % of the window, as the client shows it
  CLAUDE_CONTEXT_TOKENS_USED  input tokens of the last request
  CLAUDE_CONTEXT_TOKENS_MAX   the window in tokens
Standard output, standard error and exit code are the program's.

Examples:
  plimsoll with-context -- ./my-hook.sh < payload.json

In .claude/settings.json:
  {\"type\": \"command\", \"command\": \"plimsoll with-context -- ./my-hook.sh\"}";

/// Returns the context variables of the payload's session. If there is no payload and an agent called the
/// command, returns those of the agent's session.
fn context_variables_of_payload_or_agent_session(payload: &[u8]) -> Vec<(&'static str, Option<String>)> {
    let has_payload = payload.iter().any(|byte| !byte.is_ascii_whitespace());
    if has_payload || !TargetSession::is_called_inside_session() {
        return measure_context_variables_for_hook(payload);
    }
    let project = Project::find_upwards_from_current_dir();
    let record =
        TargetSession::find_current_or_run_or_latest(&project).ok().flatten().map(|target| target.record);
    record.map_or_else(
        || measure_context_variables_for_hook(payload),
        |record| wait_and_measure_context_variables_for_tool(&project, &record),
    )
}

/// Runs the program. Exits with its exit code, with 128 plus the number of the signal that ended it, or with
/// 127 if it could not be started.
pub(crate) fn run_with_context_variables(arguments: &WithContextArguments) -> ExitCode {
    // The whole payload is read before the program starts, because it names the session.
    let payload = match disk::read_stdin_up_to(MAX_PAYLOAD_BYTES) {
        Ok(payload) => payload,
        Err(error) => return fail(format!("cannot read standard input: {error}")),
    };
    match plimsoll_launcher::run_with_stdin_and_return_shell_exit_code(
        &arguments.command,
        &payload,
        &context_variables_of_payload_or_agent_session(&payload),
    ) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            fail_with(format!("cannot run {}: {error}", arguments.command[0]), ExitStatus::ProgramNotFound)
        }
    }
}
