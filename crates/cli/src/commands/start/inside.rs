//! `plimsoll start` in a session's own shell. A run works in fresh sessions: what this one exports they never see, and
//! it would not be started. So nothing is prepared here, and the user is given the command for a terminal.

use plimsoll_flows::run::lifecycle;
use plimsoll_flows::run::lifecycle::NewRun;
use plimsoll_policy::todo_list::shell_word;
use plimsoll_store::Project;
use plimsoll_terminal::console::fail;
use std::process::ExitCode;

/// What the client may do unattended; without it, it refuses the tools that it would ask for.
const CLIENT_ARGUMENTS: &str = "-- --permission-mode acceptEdits --allowedTools Bash";

/// Says what is in the way of such a run, else the command that starts it.
pub(super) fn refuse(project: &Project, new: &NewRun) -> ExitCode {
    if let Err(error) = lifecycle::check(project, new) {
        return fail(error);
    }
    let given: Vec<String> = std::env::args().skip(2).collect();
    let folder = shell_word(&project.root().to_string_lossy());
    let words = "a run starts its own sessions, and this is inside a session: nothing was started. The user can start the run with this command in a terminal";
    fail(format!("{words}:\ncd {folder} && {}", command(&given)))
}

fn command(given: &[String]) -> String {
    let given: String = given.iter().map(|word| format!(" {}", shell_word(word))).collect();
    format!("plimsoll run{given} {CLIENT_ARGUMENTS}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_every_option_as_one_word() {
        let given = ["--objective", "It's a $task", "--name", "x"].map(str::to_owned);
        assert_eq!(
            command(&given),
            r"plimsoll run --objective 'It'\''s a $task' --name x -- --permission-mode acceptEdits --allowedTools Bash"
        );
    }
}
