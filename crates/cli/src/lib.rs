//! RULE: `plimsoll`, the command. One file per subcommand in `commands`; what several of them do is in `plimsoll_flows`.
//!
//! A command reads its arguments (clap), calls a flow or reads the files, and puts the answer into words. `plimsoll_terminal::console` is the
//! only way to the terminal; `render` makes texts and pages safe to show; `endings` has the words for each way in which a run ends.
//! Facts are gathered first, and pure functions make lines of them, so that the tests need no terminal.
//!
//! Limits: sentences on a terminal change between versions; scripts use `--json`, the markers and the exit codes. A command
//! shows what the files say at that moment, and locks nothing to do so.

mod answers;
mod branch;
mod changed_checks;
mod commands;
mod endings;
mod foreign_state;
mod full_screen;
mod hook_answer;
mod journal_lines;
mod linear_reporter;
mod optional_program;
mod other_plans;
mod plan_checks;
mod questions;
mod record_json;
mod render;
mod reviews;
mod run_status;
mod target_session;
mod task_arguments;

pub use commands::definition;
use commands::{Command, Verb};
use plimsoll_domain::build::Build;
use plimsoll_terminal::command_line::{asks_for_build, misread};
use plimsoll_terminal::{console, signals};
use std::process::ExitCode;

/// Runs the command that this process was started with.
pub fn main() -> ExitCode {
    if asks_for_build() {
        console::say(Build::own("plimsoll").to_json());
        return ExitCode::SUCCESS;
    }
    let verb = match Command::of_process() {
        Ok(command) => command.verb,
        Err(error) => return misread(&error),
    };
    if let Some(code) = verb.refuse_foreign_place() {
        return code;
    }
    signals::survive_file_size_limit();
    // What these say of a run is the user's word: they keep its ledger. Hooks and every other command only claim.
    let plans = |verb: &Verb| matches!(verb, Verb::Prompt(arguments) if arguments.plans_next_session());
    if matches!(verb, Verb::Run(_) | Verb::Start(_) | Verb::Gate(_) | Verb::Stop(_)) || plans(&verb) {
        plimsoll_store::ledger::keep();
    }
    verb.run()
}
