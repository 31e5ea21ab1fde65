//! The command that allows a run's sessions what the client has refused.

use plimsoll_domain::RunState;

/// The whole command that continues with a run and allows its sessions these tools, quoted for a shell. None if there is
/// none, or where allowing would not help: the user's own arguments forbid one of them.
pub fn allowing(state: &RunState, tools: &[String], options: &str) -> Option<String> {
    let arguments = plimsoll_policy::allow::allowing(&state.options.client_arguments, tools)?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let arguments = shlex::try_join(words).ok()?;
    Some(format!("plimsoll run {options} -- {arguments}"))
}
