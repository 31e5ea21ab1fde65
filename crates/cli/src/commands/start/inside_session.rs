//! `plimsoll start` called from inside a session. A run starts new sessions, which do not inherit this shell's
//! environment, so nothing is prepared. The error contains the command that the user can run in a terminal.

use plimsoll_flows::run::lifecycle;
use plimsoll_flows::run::lifecycle::NewRun;
use plimsoll_policy::todo_list::quote_for_shell;
use plimsoll_store::Project;
use plimsoll_terminal::console::fail;
use std::process::ExitCode;

/// Permissions for unattended work; without them the client denies tools that need the user's approval.
const CLIENT_ARGUMENTS: &str = "-- --permission-mode acceptEdits --allowedTools Bash";

/// Fails with the validation error of the new run, or else with the command that starts it in a terminal.
pub(super) fn check_and_refuse_with_terminal_command(project: &Project, new_run: &NewRun) -> ExitCode {
    if let Err(error) = lifecycle::check_new_run(project, new_run) {
        return fail(error);
    }
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let quoted_root = quote_for_shell(&project.root().to_string_lossy());
    let message = "a run starts its own sessions, and this is inside a session: nothing was started. The user can start the run with this command in a terminal";
    fail(format!("{message}:\ncd {quoted_root} && {}", run_command_line(&arguments)))
}

fn run_command_line(arguments: &[String]) -> String {
    let quoted_arguments: String =
        arguments.iter().map(|argument| format!(" {}", quote_for_shell(argument))).collect();
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
