//! The command that resumes a run and allows tools that the client has refused.

use plimsoll_domain::RunState;

/// Returns the command, quoted for a shell, that resumes a run and allows its sessions these tools. Returns `None` if the user's
/// arguments forbid one of the tools, because allowing it would then not help.
pub fn render_resume_command_if_tools_can_be_allowed(
    state: &RunState,
    tools: &[String],
    resume_options: &str,
) -> Option<String> {
    let client_arguments = plimsoll_policy::tool_permissions::add_unlisted_refused_tools_to_allowed(
        &state.options.client_arguments,
        tools,
    )?;
    let argument_strs: Vec<&str> = client_arguments.iter().map(String::as_str).collect();
    let quoted_arguments = shlex::try_join(argument_strs).ok()?;
    Some(format!("plimsoll run {resume_options} -- {quoted_arguments}"))
}
