//! The command line: every subcommand with its help, and the file that carries it out.

mod checkpoint;
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
mod start;
mod status;
mod statusline;
mod stop;
mod turns;
mod with_context;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_policy::client::is_option;
use plimsoll_terminal::fleet_line::FleetArguments;
use plimsoll_terminal::place::refuse_foreign_place;
use std::process::ExitCode;

/// The load line for Claude Code: know how full the context window is, checkpoint before it overflows, resume
/// without losing work.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, propagate_version = true, max_term_width = 100, after_help = FIRST_STEPS)]
pub(crate) struct Command {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const FIRST_STEPS: &str = "\
First steps:
  plimsoll init         set up the hooks, for you or for this project
  plimsoll run --objective 'Do fix_plan.md.' -- --allowedTools Bash Edit Write
  plimsoll status       the run, and how full the context window is

`plimsoll COMMAND --help` shows the options of a command.
`plimsoll help --all` also lists the commands that scripts use.";

const VERSION: &str = "Print the version; with --json also target and commit";

const UNINSTALL: &str = "\
Examples:
  plimsoll uninstall --dry-run    show what would change
  plimsoll uninstall              your own hooks; see --local and --project

Recorded files (.claude/plimsoll/, .claude/handoffs/, …) stay; the command lists them.";

const HANDOFFS: &str = "\
A session of yours leaves a handoff at 85% of its context window, before a compaction, and with `/handoff`. It is unread,
then offered (to a session at its start), then read (a session has opened it). A handoff of a run is read by the run's next
session. Inside Claude Code `/handoff continue` continues from the newest.

A `?` stands for a handoff of which your state folder does not say that a session of yours wrote it: it may have come with a clone.
`/handoff continue` shows such a file and does not follow it.";

const MONITOR: &str = "\
With a hook's JSON on standard input: decides for that session, announces the decision and records it. Without: looks
at the run's session and writes nothing. Before that session has begun, only CLAUDE_CONTEXT_PERCENT can tell how full it is.
Prints nothing if there is nothing to say.

Exit codes:
  0   no run, or below L3
  1   L3 in a run: end the session
  70  an internal error";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
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
    /// List the handoffs, and which of them no session has opened
    #[command(after_help = HANDOFFS)]
    Handoffs(handoffs::HandoffsArguments),
    /// Estimate what the open items will take
    Plan(plan::PlanArguments),
    /// Read the turn log: every model response, tool call and result
    Turns(turns::TurnsArguments),
    /// Set up the hooks, for this project or for you
    Init(init::InitArguments),
    /// Remove the hooks, and nothing else
    #[command(after_help = UNINSTALL)]
    Uninstall(init::PlaceArguments),
    /// Check the installation: programs, settings, hooks, disk, the run
    Doctor(doctor::DoctorArguments),
    /// Configure the status line, or see why it shows what it shows
    #[command(name = "statusline")]
    StatusLine(statusline::StatusLineArguments),
    /// Write a checkpoint now
    Checkpoint(checkpoint::CheckpointArguments),
    /// Read and write the agent's working memory
    Memory(memory::MemoryArguments),
    /// Print what follows from the context usage, as a marker line
    #[command(after_help = MONITOR)]
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
    /// Watch a complete run: real client, scripted model, no API key
    Demo(demo::DemoArguments),
    /// Print the settings' schema, shell completions, or a manual page
    Generate(generate::GenerateArguments),
}

/// Headings of the help, each with its commands.
type Groups = [(&'static str, &'static [&'static str])];

/// The commands that `plimsoll --help` lists. `counts` limits how many they are.
const GROUPS: &Groups = &[
    ("Set up", &["init", "doctor", "statusline", "uninstall"]),
    ("Run", &["plan", "run", "stop"]),
    ("See", &["status", "log", "report"]),
    ("Records", &["handoffs", "turns", "memory", "prune"]),
    ("Learn", &["demo", "help"]),
];

/// The commands that only `plimsoll help --all` lists, below the others.
const SCRIPT_GROUPS: &Groups = &[
    ("For loops of your own", &["start", "gate", "monitor", "prompt"]),
    ("For scripts and the agent", &["checkpoint", "with-context", "query", "generate"]),
    ("For several machines and Linear", &["fleet", "linear"]),
];

impl Command {
    /// Reads the command line that this process was started with.
    pub(crate) fn of_process() -> Result<Command, clap::Error> {
        let mut words: Vec<_> = std::env::args_os().collect();
        let mut line = definition();
        // clap's own `help` takes no options.
        if words.iter().skip(1).eq(["help", "--all"]) {
            line = list_all_commands(line);
            words = vec!["plimsoll".into(), "--help".into()];
        }
        let matches = line.try_get_matches_from_mut(words).map_err(with_suggestion)?;
        Command::from_arg_matches(&matches).map_err(|error| error.format(&mut line))
    }
}

/// Returns the definition of the command line as `plimsoll` parses it, hidden commands included.
pub fn definition() -> clap::Command {
    grouped(<Command as CommandFactory>::command())
}

/// Words by which users of other tools look for something, and where it is here. clap would suggest what is spelled alike.
const ELSEWHERE: [(&[&str], &str); 4] = [
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

/// The error of a command line, with what the user probably looks for: the place of an option that is Claude Code's and stands
/// before ` -- `, or a command of another name.
fn with_suggestion(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let word = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand].into_iter().find_map(|kind| {
        if let Some(ContextValue::String(word)) = error.get(kind) { Some(word.clone()) } else { None }
    });
    let named =
        |(words, _): &&(&[&str], &str)| word.as_ref().is_some_and(|word| words.contains(&word.as_str()));
    if let Some((_, tip)) = ELSEWHERE.iter().find(named) {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*tip).into()]));
        return error;
    }
    let is_clients =
        matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if is_option(word));
    if error.kind() == ErrorKind::UnknownArgument && is_clients {
        // clap suggests an option of ours with a similar name, which is not what the user wants.
        error.remove(ContextKind::SuggestedArg);
        let tip = "options of Claude Code go after ` -- `, as in `plimsoll run -- --model opus`".to_owned();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Sets the template of the main help.
fn grouped(mut line: clap::Command) -> clap::Command {
    line.build();
    line = line.mut_arg("version", |version| version.help(VERSION));
    let list = list_commands(&line, GROUPS);
    line.help_template(main_template(&list) + "{after-help}")
}

/// Makes the main help list every command.
fn list_all_commands(line: clap::Command) -> clap::Command {
    let list = list_commands(&line, GROUPS) + &list_commands(&line, SCRIPT_GROUPS);
    line.help_template(main_template(&list))
}

fn main_template(list: &str) -> String {
    format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}")
}

/// Lists commands below headings, which clap has for options alone.
fn list_commands(line: &clap::Command, groups: &Groups) -> String {
    let about = |name: &str| {
        let command = line.find_subcommand(name);
        command.and_then(|command| command.get_about()).map(ToString::to_string).unwrap_or_default()
    };
    let row = |name: &&str| format!("  {name:<12}  {}\n", about(name));
    let group = |(heading, names): &(&str, &[&str])| {
        format!("{heading}:\n{}\n", names.iter().map(row).collect::<String>())
    };
    groups.iter().map(group).collect()
}

impl Verb {
    /// The exit code of a command that must not continue, because the state of another owner is where we stand. A state upwards that
    /// is not this project's is named.
    pub(crate) fn refuse_foreign_place(&self) -> Option<ExitCode> {
        if !self.asks_for_the_project() {
            return None;
        }
        refuse_foreign_place(if matches!(self, Verb::Gate(_) | Verb::Monitor) {
            ExitStatus::InternalError
        } else {
            ExitStatus::Failure
        })
    }

    fn asks_for_the_project(&self) -> bool {
        match self {
            Verb::Start(_)
            | Verb::Run(_)
            | Verb::Status(_)
            | Verb::Stop(_)
            | Verb::Checkpoint(_)
            | Verb::Handoffs(_)
            | Verb::Prompt(_)
            | Verb::Monitor
            | Verb::Gate(_)
            | Verb::Log(_)
            | Verb::Report(_)
            | Verb::Plan(_)
            | Verb::Prune(_)
            | Verb::Doctor(_) => true,
            Verb::Init(_)
            | Verb::Uninstall(_)
            | Verb::StatusLine(_)
            | Verb::Query(_)
            | Verb::Turns(_)
            | Verb::Memory(_)
            | Verb::WithContext(_)
            | Verb::Generate(_)
            // `plimsoll-linear` and `plimsoll-fleet` do this themselves.
            | Verb::Linear(_)
            | Verb::Fleet(_)
            | Verb::Demo(_) => false,
        }
    }

    /// Does what was asked; the exit code is the command's own.
    pub(crate) fn run(self) -> ExitCode {
        match self {
            Verb::Doctor(arguments) => doctor::doctor(&arguments),
            Verb::Init(arguments) => init::init(&arguments),
            Verb::Uninstall(arguments) => init::uninstall(&arguments),
            Verb::Run(arguments) => run::run(&arguments),
            Verb::Start(arguments) => start::start(&arguments),
            Verb::Status(arguments) => status::status(&arguments),
            Verb::StatusLine(arguments) => statusline::statusline(&arguments),
            Verb::Generate(arguments) => generate::generate(&arguments),
            Verb::Plan(arguments) => plan::show(&arguments),
            Verb::Linear(arguments) => linear::linear(&arguments),
            Verb::Fleet(_) => fleet::become_fleet(),
            Verb::Log(arguments) => log::log(&arguments),
            Verb::Report(arguments) => report::report(&arguments),
            Verb::Query(arguments) => query::query(&arguments),
            Verb::Prune(arguments) => prune::prune(&arguments),
            Verb::Turns(arguments) => turns::turns(&arguments),
            Verb::Memory(arguments) => memory::memory(&arguments),
            Verb::Handoffs(arguments) => handoffs::handoffs(&arguments),
            Verb::WithContext(arguments) => with_context::with_context(&arguments),
            Verb::Checkpoint(arguments) => checkpoint::checkpoint(&arguments),
            Verb::Prompt(arguments) => prompt::prompt(&arguments),
            Verb::Monitor => monitor::monitor(),
            Verb::Gate(arguments) => gate::gate(&arguments),
            Verb::Stop(arguments) => stop::stop(&arguments),
            Verb::Demo(arguments) => demo::demo(&arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_of_the_help() {
        let mut line = <Command as CommandFactory>::command();
        line.build();
        let shown = line.get_subcommands().filter(|command| !command.is_hide_set());
        let mut all: Vec<&str> = shown.map(clap::Command::get_name).collect();
        let groups = GROUPS.iter().chain(SCRIPT_GROUPS);
        let mut grouped: Vec<&str> = groups.flat_map(|(_, names)| names.iter().copied()).collect();
        all.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, all);
    }

    /// The errors of Rust's own number parsers say nothing to a user.
    #[test]
    fn a_value_that_is_no_number_is_answered_with_what_is_expected() {
        fn answers(root: &clap::Command, path: &[String], command: &clap::Command, all: &mut Vec<String>) {
            for argument in command.get_arguments().filter(|argument| argument.get_action().takes_values()) {
                for value in ["x", "0", "-1", "99999999999999999999999"] {
                    let word = match argument.get_long() {
                        Some(long) => format!("--{long}={value}"),
                        None => value.to_owned(),
                    };
                    let words = ["plimsoll".to_owned()].into_iter().chain(path.to_owned()).chain([word]);
                    let Err(error) = root.clone().try_get_matches_from(words) else { continue };
                    if error.kind() == clap::error::ErrorKind::ValueValidation {
                        all.push(format!("{}: {}", path.join(" "), error.render()));
                    }
                }
            }
            for inner in command.get_subcommands() {
                let path = [path, &[inner.get_name().to_owned()]].concat();
                answers(root, &path, inner, all);
            }
        }
        let root = definition();
        let mut all = Vec::new();
        answers(&root, &[], &root, &mut all);
        const INTERNAL: [&str; 5] =
            ["invalid digit", "too large to fit", "too small to fit", " is not in ", "expected "];
        let mut wrong = all.clone();
        wrong.retain(|answer| INTERNAL.iter().any(|words| answer.contains(words)));
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(all.len() > 60, "{}", all.len());
    }

    #[test]
    fn a_word_of_another_tool_is_told_what_it_is_called_here() {
        let error = |words: &[&str]| {
            let words = ["plimsoll"].iter().chain(words);
            with_suggestion(definition().try_get_matches_from(words).unwrap_err()).render().to_string()
        };
        insta::assert_snapshot!(error(&["resume"]), @"
        error: unrecognized subcommand 'resume'

          tip: `plimsoll run --resume` continues a run

        Usage: plimsoll <COMMAND>

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(error(&["update"]), @"
        error: unrecognized subcommand 'update'

          tip: install the new programs over the old ones, then run `plimsoll init` and `plimsoll doctor`

        Usage: plimsoll <COMMAND>

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(error(&["config", "get"]), @"
        error: unrecognized subcommand 'config'

          tip: your settings are in `~/.config/plimsoll/settings.json`; `plimsoll doctor` shows which apply

        Usage: plimsoll <COMMAND>

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(error(&["init", "--global"]), @"
        error: unexpected argument '--global' found

          tip: `plimsoll init --user` installs the hooks for all your projects

        Usage: plimsoll init --local

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(error(&["statsu"]), @"
        error: unrecognized subcommand 'statsu'

          tip: some similar subcommands exist: 'statusline', 'start', 'status'

        Usage: plimsoll <COMMAND>

        For more information, try '--help'.
        ");
    }

    #[test]
    fn an_option_of_claude_code_before_the_dashes_is_told_its_place() {
        let error = |words: &[&str]| {
            let words = ["plimsoll"].iter().chain(words);
            let error = <Command as CommandFactory>::command().try_get_matches_from(words).unwrap_err();
            with_suggestion(error).render().to_string()
        };
        insta::assert_snapshot!(error(&["run", "--model", "opus"]), @"
        error: unexpected argument '--model' found

          tip: options of Claude Code go after ` -- `, as in `plimsoll run -- --model opus`

        Usage: plimsoll run [OPTIONS] [OBJECTIVE] [-- <CLIENT ARGS>...]

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(error(&["run", "do it", "--allowedTools", "Bash"]), @"
        error: unexpected argument '--allowedTools' found

          tip: options of Claude Code go after ` -- `, as in `plimsoll run -- --model opus`

        Usage: plimsoll run <OBJECTIVE> [-- <CLIENT ARGS>...]

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(error(&["run", "--permission-mode=acceptEdits"]), @"
        error: unexpected argument '--permission-mode' found

          tip: options of Claude Code go after ` -- `, as in `plimsoll run -- --model opus`

        Usage: plimsoll run --promise <WORD> [OBJECTIVE] [-- <CLIENT ARGS>...]

        For more information, try '--help'.
        ");
        insta::assert_snapshot!(error(&["start", "--dangerously-skip-permissions"]), @"
        error: unexpected argument '--dangerously-skip-permissions' found

          tip: options of Claude Code go after ` -- `, as in `plimsoll run -- --model opus`

        Usage: plimsoll start [OPTIONS]

        For more information, try '--help'.
        ");
        // A typing error of an option of ours.
        insta::assert_snapshot!(error(&["run", "--worker", "3"]), @"
        error: unexpected argument '--worker' found

          tip: a similar argument exists: '--workers'
          tip: to pass '--worker' as a value, use '-- --worker'

        Usage: plimsoll run --workers <N> [OBJECTIVE] [-- <CLIENT ARGS>...]

        For more information, try '--help'.
        ");
    }

    #[test]
    fn the_help_lists_each_command_on_one_line_and_scripts_commands_only_on_request() {
        // A narrower terminal breaks the lines elsewhere.
        let help = definition().term_width(100).render_help().to_string();
        insta::assert_snapshot!(help, @"
        The load line for Claude Code: know how full the context window is, checkpoint before it overflows,
        resume without losing work

        Usage: plimsoll <COMMAND>

        Set up:
          init          Set up the hooks, for this project or for you
          doctor        Check the installation: programs, settings, hooks, disk, the run
          statusline    Configure the status line, or see why it shows what it shows
          uninstall     Remove the hooks, and nothing else

        Run:
          plan          Estimate what the open items will take
          run           Work through a plan unattended, one fresh session after another
          stop          Cancel the run; it cannot be resumed

        See:
          status        Show the run, its open questions, and the context usage
          log           Show what happened, one line per event, or why (--why)
          report        Write a page about the run: what was done, and what it cost

        Records:
          handoffs      List the handoffs, and which of them no session has opened
          turns         Read the turn log: every model response, tool call and result
          memory        Read and write the agent's working memory
          prune         Remove old sessions, handoffs and output of runs

        Learn:
          demo          Watch a complete run: real client, scripted model, no API key
          help          Print this message or the help of the given subcommand(s)

        Options:
          -h, --help     Print help
          -V, --version  Print the version; with --json also target and commit

        First steps:
          plimsoll init         set up the hooks, for you or for this project
          plimsoll run --objective 'Do fix_plan.md.' -- --allowedTools Bash Edit Write
          plimsoll status       the run, and how full the context window is

        `plimsoll COMMAND --help` shows the options of a command.
        `plimsoll help --all` also lists the commands that scripts use.
        ");
        let all = list_all_commands(definition()).term_width(100).render_help().to_string();
        let is_only_listed_here = |line: &&str| !help.lines().any(|shown| shown == *line);
        let more: Vec<&str> = all.lines().filter(is_only_listed_here).collect();
        insta::assert_snapshot!(more.join("\n"), @"
        For loops of your own:
          start         Prepare a run for a shell loop, and print its environment
          gate          Judge the session that ended: exit 0 stop, 1 continue, 75 pause
          monitor       Print what follows from the context usage, as a marker line
          prompt        Write PROMPT.md again for the current iteration
        For scripts and the agent:
          checkpoint    Write a checkpoint now
          with-context  Run another program with the context usage in its environment
          query         Query state, journal, turns or memory with a jq program
          generate      Print the settings' schema, shell completions, or a manual page
        For several machines and Linear:
          fleet         Let several machines work on one plan
          linear        Deliver a run's notes to Linear, or check the connection
        ");
        let rows = all.lines().filter(|line| line.starts_with("  "));
        assert!(rows.clone().count() > 26 && rows.clone().all(|row| row.chars().count() <= 80), "{all}");
    }
}
