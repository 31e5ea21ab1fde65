//! The command that continues a run and allows tools that the client has refused.

use plimsoll_domain::RunState;

/// Returns the command, quoted for a shell, that continues a run and allows its sessions these tools. `None` if allowing them would
/// not help, because the user's own arguments forbid one of them.
pub fn render_resume_command_if_tools_can_be_allowed(
    state: &RunState,
    tools: &[String],
    resume_options: &str,
) -> Option<String> {
    let arguments =
        plimsoll_policy::tool_permissions::add_allowed_tools(&state.options.client_arguments, tools)?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let arguments = shlex::try_join(words).ok()?;
    Some(format!("plimsoll run {resume_options} -- {arguments}"))
}
