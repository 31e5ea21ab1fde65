//! `plimsoll with-context`: runs another hook or script with the context usage in its environment.

use crate::target_session::TargetSession;
use clap::Args;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::context::{variables, variables_of};
use plimsoll_store::{Project, disk};
use plimsoll_terminal::console::{fail, fail_with};
use std::process::ExitCode;

/// Nothing that the client hands to a hook is larger.
const LONGEST: u64 = 64 * 1024 * 1024;
/// What is run.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct WithContextArguments {
    /// The program and its arguments; no shell is used
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD", value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<String>,
}

const EXAMPLE: &str = "The payload of the client's hook is read from standard input and passed on byte for byte. Without a payload, in a tool
that an agent calls, the agent's own session is used. These variables are set if they are known:
  CLAUDE_CONTEXT_PERCENT      used % of the window, as the client shows it
  CLAUDE_CONTEXT_TOKENS_USED  input tokens of the last request
  CLAUDE_CONTEXT_TOKENS_MAX   the window in tokens
Standard output, standard error and exit code are the program's.

Examples:
  plimsoll with-context -- ./my-hook.sh < payload.json

In .claude/settings.json:
  {\"type\": \"command\", \"command\": \"plimsoll with-context -- ./my-hook.sh\"}";

/// Of the session that the payload names; without one, in a tool of an agent, of the session that it works in.
fn known(payload: &[u8]) -> Vec<(&'static str, Option<String>)> {
    let is_from_a_hook = payload.iter().any(|byte| !byte.is_ascii_whitespace());
    if is_from_a_hook || !TargetSession::is_inside() {
        return variables(payload);
    }
    let project = Project::of_command();
    let record = TargetSession::find(&project).ok().flatten().map(|whose| whose.record);
    record.map_or_else(|| variables(payload), |record| variables_of(&project, &record))
}

/// Runs it; the exit code is its own, 128 and the signal's number where one ended it, 127 where it did not start.
pub(crate) fn with_context(arguments: &WithContextArguments) -> ExitCode {
    // All of it before the program begins: the session that it is about stands in the payload.
    let payload = match disk::read_stdin(LONGEST) {
        Ok(payload) => payload,
        Err(error) => return fail(format!("cannot read standard input: {error}")),
    };
    match plimsoll_launcher::pass_on(&arguments.command, &payload, &known(&payload)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            fail_with(format!("cannot run {}: {error}", arguments.command[0]), ExitStatus::NotFound)
        }
    }
}
