//! `plimsoll start` inside a session's own shell. A run works in fresh sessions, which never see what this
//! shell exports, so nothing is prepared here; the user gets the command for a terminal.

use plimsoll_flows::run::lifecycle;
use plimsoll_flows::run::lifecycle::NewRun;
use plimsoll_policy::todo_list::quote_for_shell;
use plimsoll_store::Project;
use plimsoll_terminal::console::fail;
use std::process::ExitCode;

/// Permissions for unattended work; without them the client refuses the tools it would ask about.
const CLIENT_ARGUMENTS: &str = "-- --permission-mode acceptEdits --allowedTools Bash";

/// Fails with the error that would stop such a run, or else with the command that starts it in a terminal.
pub(super) fn refuse_with_terminal_command(project: &Project, new_run: &NewRun) -> ExitCode {
    if let Err(error) = lifecycle::check_new_run(project, new_run) {
        return fail(error);
    }
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let folder = quote_for_shell(&project.root().to_string_lossy());
    let message = "a run starts its own sessions, and this is inside a session: nothing was started. The user can start the run with this command in a terminal";
    fail(format!("{message}:\ncd {folder} && {}", run_command_line(&arguments)))
}

fn run_command_line(arguments: &[String]) -> String {
    let quoted_arguments: String =
        arguments.iter().map(|word| format!(" {}", quote_for_shell(word))).collect();
    format!("plimsoll run{quoted_arguments} {CLIENT_ARGUMENTS}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_one_word_of_the_command() {
        let arguments = ["--objective", "It's a $task", "--name", "x"].map(str::to_owned);
        assert_eq!(
            run_command_line(&arguments),
            r"plimsoll run --objective 'It'\''s a $task' --name x -- --permission-mode acceptEdits --allowedTools Bash"
        );
    }
}
