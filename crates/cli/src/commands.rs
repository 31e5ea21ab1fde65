//! The command line: every subcommand with its help, and the module that implements it.

mod checkpoint;
mod context;
#[cfg(test)]
mod counts;
mod demo;
mod doctor;
mod fleet;
mod gate;
mod generate;
mod handoffs;
mod init;
mod linear;
mod log;
mod memory;
mod monitor;
mod plan;
mod prompt;
mod prune;
mod query;
mod report;
mod run;
mod sessions;
mod start;
mod status;
mod statusline;
mod stop;
mod turns;
mod usage;
mod with_context;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_policy::client::is_session_option;
use plimsoll_terminal::command_line::{fail_if_runs_are_unsupported, is_help};
use plimsoll_terminal::fleet_command_line::FleetArguments;
use plimsoll_terminal::help_layout::{help_width, with_help_width, wrap_row};
use plimsoll_terminal::project_choice::fail_if_project_state_ignored_warn_if_parent;
use std::process::ExitCode;

/// The load line for Claude Code: know how full the context window is, checkpoint before it overflows, resume
/// without losing work.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, propagate_version = true, after_help = FIRST_STEPS)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

const FIRST_STEPS: &str = "\
First steps:
  plimsoll init         set up the hooks, for you or for this project
  plimsoll run --objective 'Do fix_plan.md.' -- --allowedTools Bash Edit Write
  plimsoll status       the run, and how full the context window is

`plimsoll COMMAND --help` shows the options of a command.
`plimsoll help --all` also lists the commands that scripts use.";

const VERSION_HELP: &str = "Print the version; with --json also target and commit";

const UNINSTALL_HELP: &str = "\
Examples:
  plimsoll uninstall --dry-run    show what would change
  plimsoll uninstall              your own hooks; see --local and --project

Recorded files (.claude/plimsoll/, .claude/handoffs/, …) stay; the command lists them.";

const HANDOFFS_HELP: &str = "\
A session of yours leaves a handoff at 85% of its context window, before a compaction, and with `/handoff`. It is unread,
then offered (to a session at its start), then read (a session has opened it). A handoff of a run is read by the run's next
session. Inside Claude Code `/handoff continue` continues from the newest.

A `?` stands for a handoff of which your state folder does not say that a session of yours wrote it: it may have come with a clone.
`/handoff continue` shows such a file and does not follow it.";

const MONITOR_HELP: &str = "\
With a hook's JSON on standard input: decides for that session, announces the decision and records it. Without: looks
at the run's session and writes nothing. Before that session has begun, only CLAUDE_CONTEXT_PERCENT can tell how full it is.
Prints nothing if there is nothing to say.

Exit codes:
  0   no run, or below L3
  1   L3 in a run: end the session
  70  an internal error";

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Work through a plan unattended, one fresh session after another
    Run(Box<run::RunArguments>),
    /// Prepare a run for a shell loop, and print its environment
    Start(start::StartArguments),
    /// Judge the session that ended: exit 0 stop, 1 continue, 75 pause
    Gate(gate::GateArguments),
    /// Cancel the run; it cannot be resumed
    Stop(stop::StopArguments),
    /// Show the run, its open questions, and the context usage
    Status(status::StatusArguments),
    /// Show what happened, one line per event, or why (--why)
    Log(log::LogArguments),
    /// Write a page about the run: what was done, and what it cost
    Report(report::ReportArguments),
    /// Show tokens and cost of all sessions, by day, project and model
    Usage(usage::UsageArguments),
    /// List the sessions of all projects, and how to resume them
    Sessions(sessions::SessionsArguments),
    /// List the handoffs, and which of them no session has opened
    #[command(after_help = HANDOFFS_HELP)]
    Handoffs(handoffs::HandoffsArguments),
    /// Estimate what the open items will take
    Plan(plan::PlanArguments),
    /// Read the turn log: every model response, tool call and result
    Turns(turns::TurnsArguments),
    /// Set up the hooks, for this project or for you
    Init(init::InitArguments),
    /// Remove the hooks, and nothing else
    #[command(after_help = UNINSTALL_HELP)]
    Uninstall(init::SettingsFileArguments),
    /// Check the installation: programs, settings, hooks, disk, the run
    Doctor(doctor::DoctorArguments),
    /// Configure the status line, or see why it shows what it shows
    #[command(name = "statusline")]
    StatusLine(statusline::StatusLineArguments),
    /// Tell the module inside Claude Code what follows from the usage
    Context(context::ContextArguments),
    /// Write a checkpoint now
    Checkpoint(checkpoint::CheckpointArguments),
    /// Read and write the agent's working memory
    Memory(memory::MemoryArguments),
    /// Print what follows from the context usage, as a marker line
    #[command(after_help = MONITOR_HELP)]
    Monitor,
    /// Write PROMPT.md again for the current iteration
    Prompt(prompt::PromptArguments),
    /// Run another program with the context usage in its environment
    WithContext(with_context::WithContextArguments),
    /// Query state, journal, turns or memory with a jq program
    Query(query::QueryArguments),
    /// Remove old sessions, handoffs and output of runs
    Prune(prune::PruneArguments),
    /// Let several machines work on one plan
    Fleet(FleetArguments),
    /// Deliver a run's notes to Linear, or check the connection
    Linear(linear::LinearArguments),
    /// Watch a complete run: real Claude Code, scripted model, no key
    Demo(demo::DemoArguments),
    /// Print the settings' schema, shell completions, or a manual page
    Generate(generate::GenerateArguments),
}

/// Headings of the main help, each with the names of its commands.
type CommandGroups = [(&'static str, &'static [&'static str])];

/// The commands that `plimsoll --help` lists. The test in `counts` limits their number.
const MAIN_COMMAND_GROUPS: &CommandGroups = &[
    ("Set up", &["init", "doctor", "statusline", "uninstall"]),
    ("Run", &["plan", "run", "fleet", "stop"]),
    ("See", &["status", "log", "report", "usage"]),
    ("Records", &["sessions", "handoffs", "turns", "memory", "prune"]),
    ("Learn", &["demo", "help"]),
];

/// The commands that only `plimsoll help --all` lists, below those of [`MAIN_COMMAND_GROUPS`].
const SCRIPT_GROUPS: &CommandGroups = &[
    ("For loops of your own", &["start", "gate", "monitor", "prompt"]),
    ("For scripts and the agent", &["checkpoint", "context", "with-context", "query", "generate"]),
    ("For Linear", &["linear"]),
];

impl CommandLine {
    /// Parses the arguments of this process.
    pub(crate) fn parse_process_arguments() -> Result<CommandLine, clap::Error> {
        let mut arguments: Vec<_> = std::env::args_os().collect();
        // clap's own `help` takes no options.
        if arguments.iter().skip(1).eq(["help", "--all"]) {
            arguments = vec!["plimsoll".into(), "--help".into()];
            return CommandLine::parse(help_definition(help_width(), CommandList::All), arguments);
        }
        match CommandLine::parse(command_line_definition(), arguments.clone()) {
            // Only the help needs the terminal's width, which takes time.
            Err(error) if is_help(&error) => {
                CommandLine::parse(help_definition(help_width(), CommandList::Main), arguments)
            }
            result => result,
        }
    }

    fn parse(
        mut definition: clap::Command,
        arguments: Vec<std::ffi::OsString>,
    ) -> Result<CommandLine, clap::Error> {
        let matches = definition.try_get_matches_from_mut(arguments).map_err(add_suggestion)?;
        CommandLine::from_arg_matches(&matches).map_err(|error| error.format(&mut definition))
    }
}

/// Returns the definition of the command line as `plimsoll` parses it, hidden commands included.
pub fn command_line_definition() -> clap::Command {
    let mut definition = <CommandLine as CommandFactory>::command();
    definition.build();
    definition.mut_arg("version", |version| version.help(VERSION_HELP))
}

/// Which commands the main help lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommandList {
    Main,
    All,
}

/// Returns the definition of the command line with its help laid out for this width. Main help lists the commands below their
/// headings, which clap itself supports only for options.
fn help_definition(width: usize, list: CommandList) -> clap::Command {
    let definition = with_help_width(command_line_definition(), width);
    let mut command_list = render_command_list(&definition, MAIN_COMMAND_GROUPS, width);
    if list == CommandList::All {
        command_list += &render_command_list(&definition, SCRIPT_GROUPS, width);
    }
    let after_help = if list == CommandList::Main { "{after-help}" } else { "" };
    definition.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{command_list}Options:\n{{options}}{after_help}"
    ))
}

/// Names that users of other tools may type, each with a tip about the equivalent here. clap would only suggest similarly
/// spelled names.
const TIPS_FOR_OTHER_NAMES: [(&[&str], &str); 7] = [
    (
        &["cost", "costs", "ccusage", "stats"],
        "`plimsoll usage` shows the tokens and the cost of all sessions",
    ),
    (
        &["daily", "blocks", "weekly", "monthly"],
        "`plimsoll usage daily` and `plimsoll usage blocks` list the usage",
    ),
    (&["session", "projects"], "`plimsoll sessions` lists the sessions of all projects"),
    (&["resume", "continue"], "`plimsoll run --resume` continues a run"),
    (
        &["update", "upgrade"],
        "install the new programs over the old ones, then run `plimsoll init` and `plimsoll doctor`",
    ),
    (
        &["config", "settings", "set"],
        "your settings are in `~/.config/plimsoll/settings.json`; `plimsoll doctor` shows which apply",
    ),
    (&["--global"], "`plimsoll init --user` installs the hooks for all your projects"),
];

/// Replaces clap's suggestion in an error with a better tip, where there is one: the equivalent of another tool's command, or that
/// options of Claude Code go after ` -- `.
fn add_suggestion(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let word = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand].into_iter().find_map(|kind| {
        if let Some(ContextValue::String(word)) = error.get(kind) { Some(word.clone()) } else { None }
    });
    let has_word =
        |(words, _): &&(&[&str], &str)| word.as_ref().is_some_and(|word| words.contains(&word.as_str()));
    if let Some((_, tip)) = TIPS_FOR_OTHER_NAMES.iter().find(has_word) {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*tip).into()]));
        return error;
    }
    let is_client_option = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if is_session_option(word));
    if error.kind() == ErrorKind::UnknownArgument && is_client_option {
        // clap suggests an option of ours with a similar name, which is not what the user wants.
        error.remove(ContextKind::SuggestedArg);
        let tip = "options of Claude Code go after ` -- `, as in `plimsoll run -- --model opus`".to_owned();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Renders the list of commands below their headings.
fn render_command_list(definition: &clap::Command, groups: &CommandGroups, width: usize) -> String {
    let about = |name: &str| {
        let command = definition.find_subcommand(name);
        command.and_then(|command| command.get_about()).map(ToString::to_string).unwrap_or_default()
    };
    let render_row =
        |name: &&str| wrap_row(&format!("  {name:<12}  {}", about(name)), width).join("\n") + "\n";
    let render_group = |(heading, names): &(&str, &[&str])| {
        format!("{heading}:\n{}\n", names.iter().map(render_row).collect::<String>())
    };
    groups.iter().map(render_group).collect()
}

impl CliCommand {
    /// Prints an error and returns an exit code if this command begins a run and this system does not support runs.
    pub(crate) fn fail_if_unsupported(&self) -> Option<ExitCode> {
        let command = match self {
            CliCommand::Run(_) => "plimsoll run",
            CliCommand::Start(_) => "plimsoll start",
            CliCommand::Fleet(_) => "plimsoll fleet",
            CliCommand::Demo(_) => "plimsoll demo",
            _ => return None,
        };
        fail_if_runs_are_unsupported(command)
    }

    /// Returns an exit code if this command uses the project and must not continue, because the state here belongs to
    /// another owner. Also mentions a state in a parent folder that is not this project's.
    pub(crate) fn refuse_foreign_state(&self) -> Option<ExitCode> {
        if !self.needs_project() {
            return None;
        }
        fail_if_project_state_ignored_warn_if_parent(
            if matches!(self, CliCommand::Gate(_) | CliCommand::Monitor) {
                ExitStatus::InternalError
            } else {
                ExitStatus::Failure
            },
        )
    }

    fn needs_project(&self) -> bool {
        match self {
            CliCommand::Start(_)
            | CliCommand::Run(_)
            | CliCommand::Status(_)
            | CliCommand::Stop(_)
            | CliCommand::Checkpoint(_)
            | CliCommand::Handoffs(_)
            | CliCommand::Prompt(_)
            | CliCommand::Monitor
            | CliCommand::Gate(_)
            | CliCommand::Log(_)
            | CliCommand::Report(_)
            | CliCommand::Plan(_)
            | CliCommand::Prune(_)
            | CliCommand::Doctor(_) => true,
            CliCommand::Init(_)
            | CliCommand::Uninstall(_)
            | CliCommand::StatusLine(_)
            | CliCommand::Query(_)
            | CliCommand::Turns(_)
            | CliCommand::Usage(_)
            | CliCommand::Sessions(_)
            | CliCommand::Memory(_)
            | CliCommand::WithContext(_)
            | CliCommand::Context(_)
            | CliCommand::Generate(_)
            // `plimsoll-linear` and `plimsoll-fleet` check this themselves.
            | CliCommand::Linear(_)
            | CliCommand::Fleet(_)
            | CliCommand::Demo(_) => false,
        }
    }

    /// Runs the command and returns its exit code.
    pub(crate) fn run(self) -> ExitCode {
        match self {
            CliCommand::Doctor(arguments) => doctor::run_doctor(&arguments),
            CliCommand::Init(arguments) => init::install_hooks_or_team_files(&arguments),
            CliCommand::Uninstall(arguments) => init::uninstall_hooks(&arguments),
            CliCommand::Run(arguments) => run::start_or_resume_run(&arguments),
            CliCommand::Start(arguments) => start::prepare_run_and_print_exports(&arguments),
            CliCommand::Status(arguments) => status::status(&arguments),
            CliCommand::Usage(arguments) => usage::print_usage(&arguments),
            CliCommand::Sessions(arguments) => sessions::print_sessions(&arguments),
            CliCommand::StatusLine(arguments) => statusline::statusline(&arguments),
            CliCommand::Generate(arguments) => generate::print_generated_file(&arguments),
            CliCommand::Plan(arguments) => plan::fix_draft_or_estimate_plan(&arguments),
            CliCommand::Linear(arguments) => linear::exec_linear_program(&arguments),
            CliCommand::Fleet(_) => fleet::exec_fleet_program(),
            CliCommand::Log(arguments) => log::print_log_explanation_or_receipt(&arguments),
            CliCommand::Report(arguments) => report::write_report(&arguments),
            CliCommand::Query(arguments) => query::run_query(&arguments),
            CliCommand::Prune(arguments) => prune::run_prune(&arguments),
            CliCommand::Turns(arguments) => turns::run_turns_command(&arguments),
            CliCommand::Memory(arguments) => memory::run_memory_command(&arguments),
            CliCommand::Handoffs(arguments) => handoffs::print_handoffs(&arguments),
            CliCommand::WithContext(arguments) => with_context::run_with_context_variables(&arguments),
            CliCommand::Context(arguments) => context::print_context_for_module(&arguments),
            CliCommand::Checkpoint(arguments) => checkpoint::write_and_print_checkpoint(&arguments),
            CliCommand::Prompt(arguments) => prompt::write_prompt_or_judge_session_and_plan_next(&arguments),
            CliCommand::Monitor => monitor::run_post_tool_hook_or_print_warning(),
            CliCommand::Gate(arguments) => gate::run_stop_hook_or_judge_and_plan_next(&arguments),
            CliCommand::Stop(arguments) => stop::confirm_and_cancel_run(&arguments),
            CliCommand::Demo(arguments) => demo::run_demo_command(&arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_of_the_help() {
        let mut definition = <CommandLine as CommandFactory>::command();
        definition.build();
        let visible_commands = definition.get_subcommands().filter(|command| !command.is_hide_set());
        let mut command_names: Vec<&str> = visible_commands.map(clap::Command::get_name).collect();
        let groups = MAIN_COMMAND_GROUPS.iter().chain(SCRIPT_GROUPS);
        let mut grouped_names: Vec<&str> = groups.flat_map(|(_, names)| names.iter().copied()).collect();
        command_names.sort_unstable();
        grouped_names.sort_unstable();
        assert_eq!(grouped_names, command_names);
    }

    /// The error texts of Rust's own number parsers do not help a user.
    #[test]
    fn errors_for_invalid_numbers_contain_no_parser_wording() {
        fn collect_value_errors(
            root: &clap::Command,
            path: &[String],
            command: &clap::Command,
            errors: &mut Vec<String>,
        ) {
            for argument in command.get_arguments().filter(|argument| argument.get_action().takes_values()) {
                for value in ["x", "0", "-1", "99999999999999999999999"] {
                    let argument_word = match argument.get_long() {
                        Some(long) => format!("--{long}={value}"),
                        None => value.to_owned(),
                    };
                    let words =
                        ["plimsoll".to_owned()].into_iter().chain(path.to_owned()).chain([argument_word]);
                    let Err(error) = root.clone().try_get_matches_from(words) else { continue };
                    if error.kind() == clap::error::ErrorKind::ValueValidation {
                        errors.push(format!("{}: {}", path.join(" "), error.render()));
                    }
                }
            }
            for subcommand in command.get_subcommands() {
                let path = [path, &[subcommand.get_name().to_owned()]].concat();
                collect_value_errors(root, &path, subcommand, errors);
            }
        }
        let definition = command_line_definition();
        let mut errors = Vec::new();
        collect_value_errors(&definition, &[], &definition, &mut errors);
        const INTERNAL: [&str; 5] =
            ["invalid digit", "too large to fit", "too small to fit", " is not in ", "expected "];
        let mut internal_errors = errors.clone();
        internal_errors.retain(|message| INTERNAL.iter().any(|words| message.contains(words)));
        assert!(internal_errors.is_empty(), "{}", internal_errors.join("\n"));
        assert!(errors.len() > 60, "{}", errors.len());
    }

    #[test]
    fn a_command_of_another_tool_gets_a_tip() {
        let render_error = |words: &[&str]| {
            let words = ["plimsoll"].iter().chain(words);
            add_suggestion(command_line_definition().try_get_matches_from(words).unwrap_err())
                .render()
                .to_string()
        };
        insta::assert_snapshot!(render_error(&["resume"]), @"
        error: unrecognized subcommand 'resume'

          tip: `plimsoll run --resume` continues a run

        Usage: plimsoll <COMMAND>

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(render_error(&["update"]), @"
        error: unrecognized subcommand 'update'

          tip: install the new programs over the old ones, then run `plimsoll init` and `plimsoll doctor`

        Usage: plimsoll <COMMAND>

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(render_error(&["config", "get"]), @"
        error: unrecognized subcommand 'config'

          tip: your settings are in `~/.config/plimsoll/settings.json`; `plimsoll doctor` shows which apply

        Usage: plimsoll <COMMAND>

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(render_error(&["init", "--global"]), @"
        error: unexpected argument '--global' found

          tip: `plimsoll init --user` installs the hooks for all your projects

        Usage: plimsoll init --local

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(render_error(&["statsu"]), @"
        error: unrecognized subcommand 'statsu'

          tip: some similar subcommands exist: 'statusline', 'start', 'status'

        Usage: plimsoll <COMMAND>

        For more information, try '--help'.
        ");
    }

    #[test]
    fn a_client_option_before_the_dashes_gets_a_tip() {
        let render_error = |words: &[&str]| {
            let words = ["plimsoll"].iter().chain(words);
            let error = <CommandLine as CommandFactory>::command().try_get_matches_from(words).unwrap_err();
            add_suggestion(error).render().to_string()
        };
        insta::assert_snapshot!(render_error(&["run", "--model", "opus"]), @"
        error: unexpected argument '--model' found

          tip: options of Claude Code go after ` -- `, as in `plimsoll run -- --model opus`

        Usage: plimsoll run [OPTIONS] [OBJECTIVE] [-- <CLAUDE ARGS>...]

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(render_error(&["run", "do it", "--allowedTools", "Bash"]), @"
        error: unexpected argument '--allowedTools' found

          tip: options of Claude Code go after ` -- `, as in `plimsoll run -- --model opus`

        Usage: plimsoll run <OBJECTIVE> [-- <CLAUDE ARGS>...]

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(render_error(&["run", "--permission-mode=acceptEdits"]), @"
        error: unexpected argument '--permission-mode' found

          tip: options of Claude Code go after ` -- `, as in `plimsoll run -- --model opus`

        Usage: plimsoll run --promise <WORD> [OBJECTIVE] [-- <CLAUDE ARGS>...]

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(render_error(&["start", "--dangerously-skip-permissions"]), @"
        error: unexpected argument '--dangerously-skip-permissions' found

          tip: options of Claude Code go after ` -- `, as in `plimsoll run -- --model opus`

        Usage: plimsoll start [OPTIONS]

        For more information, try '--help'.
        ");
        // A typing error in one of our own options keeps clap's suggestion.
        insta::assert_snapshot!(render_error(&["run", "--worker", "3"]), @"
        error: unexpected argument '--worker' found

          tip: a similar argument exists: '--workers'
          tip: to pass '--worker' as a value, use '-- --worker'

        Usage: plimsoll run --workers <N> [OBJECTIVE] [-- <CLAUDE ARGS>...]

        For more information, try '--help'.
        ");
    }
}
