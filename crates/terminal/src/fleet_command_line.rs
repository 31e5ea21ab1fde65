//! The command line of `plimsoll fleet`. `plimsoll` parses it for its help and errors, then executes `plimsoll-fleet`, which parses
//! it again and runs the command. This way `plimsoll` links no database.

use crate::value_parsers;
use clap::{Args, Subcommand, ValueEnum};
use plimsoll_domain::Timestamp;
use plimsoll_domain::promise::PromiseWord;
use plimsoll_policy::shell_loop::DEFAULT_PROMISE;
use std::path::PathBuf;

/// Headings of the options of `create` and `join`.
const TASK: &str = "Task";
const CHECKS: &str = "Checks";
const REPOSITORY: &str = "Repository";
const WORKERS: &str = "Workers";
const SESSIONS: &str = "Sessions";
const LIMITS: &str = "Limits";
const SCRIPTS: &str = "Scripts";

/// What is asked of a fleet.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FleetArguments {
    /// The verb.
    #[command(subcommand)]
    pub command: FleetCommand,
}

/// What can be done with fleets.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Put this clone's plan into the database
    Create(CreateArguments),
    /// Work on a fleet's plan in this clone
    ///
    /// Each item gets a worktree of its own. Finished work is merged into the fleet's branch on the remote.
    Join(Box<JoinArguments>),
    /// List the fleets, or show the items and workers of one
    Status(StatusArguments),
    /// Show what happened in a fleet, one line per event
    Log(LogArguments),
    /// Print a report of items, problems and cost, in Markdown
    Report(NameArgument),
    /// Answer an item's question, which opens the item again
    Answer(AnswerArguments),
    /// Open an item again that was set aside
    ///
    /// Also opens an item that is recorded as merged although the branch does not contain it.
    Reopen(ReopenArguments),
    /// Start no new items; finish and merge what was begun
    Drain(NameArgument),
    /// Let workers start new items again after `drain`
    Resume(NameArgument),
    /// Stop a fleet for good; unfinished work stays on its branches
    Stop(ConfirmArguments),
    /// Remove a fleet and its journal from the database
    Forget(ConfirmArguments),
    /// Check database, role, remote and members, as `plimsoll doctor --fleet NAME` does
    #[command(hide = true)]
    Check(CheckArguments),
}

/// What several machines work on.
#[derive(Debug, Args)]
#[command(after_help = CREATE)]
pub struct CreateArguments {
    /// The fleet's name: letters, digits, `-`, `_` and `.`
    pub name: String,
    /// The task [default: what PROMPT.md says]
    #[arg(long, value_name = "TEXT", conflicts_with = "objective_file", help_heading = TASK)]
    pub objective: Option<String>,
    /// A file with the task
    #[arg(long, value_name = "FILE", help_heading = TASK)]
    pub objective_file: Option<PathBuf>,
    /// The plan, with `- [ ]` lines [default: fix_plan.md]
    #[arg(long, value_name = "FILE", help_heading = TASK)]
    pub todo: Option<String>,
    /// Where work is merged
    #[arg(long, value_name = "WHERE", default_value = "branch", help_heading = REPOSITORY)]
    pub deliver: DeliverTo,
    /// The git remote that all machines use
    #[arg(long, default_value = "origin", help_heading = REPOSITORY)]
    pub remote: String,
    /// The branch of the merged work [default: plimsoll/NAME]
    #[arg(long, value_name = "BRANCH", help_heading = REPOSITORY)]
    pub branch: Option<String>,
    /// A command that must pass on merged work; repeatable
    #[arg(long, value_name = "CMD", value_parser = value_parsers::verify_command, help_heading = CHECKS)]
    pub verify: Vec<String>,
    /// Start nothing new once all machines have spent this much
    #[arg(long, value_name = "USD", help_heading = LIMITS, value_parser = value_parsers::dollars)]
    pub max_cost: Option<f64>,
    /// Start nothing new after N sessions on all machines
    #[arg(long, value_name = "N", help_heading = LIMITS, value_parser = value_parsers::at_least_one)]
    pub max_iterations: Option<u32>,
    /// The word of the promise
    #[arg(long, help_heading = CHECKS, default_value = DEFAULT_PROMISE, value_name = "WORD", value_parser = value_parsers::promise_word)]
    pub promise: PromiseWord,
}

/// Where the work of a fleet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeliverTo {
    /// A branch of its own; the end says how to merge it
    Branch,
    /// The branch that is checked out here, on the remote
    Merge,
}

/// Which fleet this machine works for, and with what.
#[derive(Debug, Args)]
#[command(after_help = JOIN)]
pub struct JoinArguments {
    /// The fleet
    pub name: String,
    /// How many items to work on at a time
    #[arg(long, value_name = "N", help_heading = WORKERS, default_value = "1", value_parser = value_parsers::workers)]
    pub workers: usize,
    /// The name of the fleet's git remote in this clone
    #[arg(long, default_value = "origin", help_heading = WORKERS)]
    pub remote: String,
    /// The file with the fleet's task [default: PROMPT.md]
    #[arg(long, value_name = "FILE", help_heading = WORKERS)]
    pub objective_file: Option<PathBuf>,
    /// The path of Claude Code [default: claude]
    #[arg(long, value_name = "PATH", help_heading = SESSIONS)]
    pub client: Option<String>,
    /// A command that prepares each worktree, such as `npm ci`
    #[arg(long, value_name = "CMD", help_heading = WORKERS)]
    pub setup: Option<String>,
    /// Run the fleet's commands and --setup in a sandbox
    ///
    /// They see no network and an empty HOME, and write only to the project and a cache (Linux, with bubblewrap).
    #[arg(long, help_heading = WORKERS)]
    pub verify_sandbox: bool,
    /// How long the database may be unreachable
    ///
    /// This also applies to the remote. Sessions continue meanwhile, and their results are recorded later. After this time,
    /// `join` exits with 6.
    #[arg(
        help_heading = LIMITS,
        long = "database-patience",
        value_name = "DURATION",
        default_value = "30m",
        value_parser = value_parsers::seconds_from_minutes_or_duration
    )]
    pub database_timeout_seconds: u64,
    /// Wait for tomorrow after spending this much here today
    #[arg(long, help_heading = LIMITS, value_name = "USD", value_parser = value_parsers::dollars)]
    pub max_cost_per_day: Option<f64>,
    /// End here at a time (07:00) or after a duration (8h, 90m)
    ///
    /// A time may have a date: "2026-01-07 07:00".
    #[arg(long, help_heading = LIMITS, value_name = "TIME|DURATION", value_parser = value_parsers::deadline)]
    pub deadline: Option<Timestamp>,
    /// Wait for the reset at this share of the 5-hour or weekly quota
    ///
    /// Only if Claude Code reports how much is used.
    #[arg(long, help_heading = LIMITS, value_name = "PERCENT", value_parser = value_parsers::percent)]
    pub stop_at_limit: Option<u8>,
    /// End Claude Code after this much silence (0: never) [default: 30m]
    #[arg(long, help_heading = SESSIONS, value_name = "DURATION", value_parser = value_parsers::seconds_from_minutes_or_duration)]
    pub idle_timeout: Option<u64>,
    /// The limit while a tool runs, such as a build [default: 2h]
    #[arg(long, help_heading = SESSIONS, value_name = "DURATION", value_parser = value_parsers::seconds_from_minutes_or_duration)]
    pub tool_timeout: Option<u64>,
    /// Do not wait during pauses: exit with 6 instead
    #[arg(long, help_heading = SCRIPTS)]
    pub no_wait: bool,
    /// Print each step as one JSON object per line, as in the journal
    #[arg(long, help_heading = SCRIPTS)]
    pub json: bool,
    /// Arguments for Claude Code, such as `--model opus --allowedTools Bash`
    #[arg(last = true, value_name = "CLAUDE ARGS")]
    pub client_arguments: Vec<String>,
}

const JOIN: &str = "\
The plan's --verify commands come from the database: join only fleets of people whose commands you would run.

Press Ctrl-C once to let the sessions finish, and twice to end them now. Unfinished items are given back.

Exit codes:
  0    every item is merged, or the fleet drains
  1    could not join now; a later attempt may succeed
  2    wrong usage
  3    a limit: cost, sessions, deadline
  4    the circuit breaker is open
  5    cannot join: no such fleet, another task, no client, no clone of the repository
  6    paused, or the database was unreachable for too long
  7    blocked: everything open waits for your answer
  9    the fleet was stopped
  130  ended by you; the same command continues";

/// Which fleet, and how to show it.
#[derive(Debug, Args)]
pub struct StatusArguments {
    /// The fleet [default: all, in a line each]
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How much of a fleet's journal.
#[derive(Debug, Args)]
pub struct LogArguments {
    /// The fleet
    pub name: String,
    /// Print new lines as they come, until the fleet is over
    #[arg(short, long)]
    pub follow: bool,
    /// Only the newest N lines
    #[arg(short = 'n', long, value_name = "N", value_parser = value_parsers::whole_number::<usize>)]
    pub lines: Option<usize>,
    /// Print each line as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Which fleet.
#[derive(Debug, Args)]
pub struct NameArgument {
    /// The fleet
    pub name: String,
}

/// Which question, and the answer.
#[derive(Debug, Args)]
pub struct AnswerArguments {
    /// The fleet
    pub name: String,
    /// The item's number, as `plimsoll fleet status NAME` shows it
    pub item: usize,
    /// The answer; `-` reads standard input
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub text: Vec<String>,
}

/// Which item.
#[derive(Debug, Args)]
pub struct ReopenArguments {
    /// The fleet
    pub name: String,
    /// The item's number, as `plimsoll fleet status NAME` shows it
    pub item: usize,
    /// The name of the fleet's git remote in this clone
    #[arg(long, default_value = "origin")]
    pub remote: String,
}

/// Which fleet, and whether to ask first.
#[derive(Debug, Args)]
pub struct ConfirmArguments {
    /// The fleet
    pub name: String,
    /// Do it without asking; needed without a terminal
    #[arg(long)]
    pub yes: bool,
}

/// What is checked.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The fleet
    pub name: String,
    /// The git remote, in a clone
    #[arg(long, default_value = "origin")]
    pub remote: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll fleet create night --verify 'npm test' --max-cost 40
  plimsoll fleet status             every fleet in the database
  plimsoll fleet join night --workers 3 -- --allowedTools Bash Edit Write
  plimsoll fleet status night       its items and workers
  plimsoll fleet log night -f

The database is PLIMSOLL_DATABASE_URL, or what libpq's variables, service files and ~/.pgpass say. docs/fleet.md says more.";

const CREATE: &str = "\
Examples:
  plimsoll fleet create night --verify 'npm test'
    merges the work on the branch plimsoll/night
  plimsoll fleet create night --deliver merge --max-cost 40
    merges the work on the branch that is checked out

Task and plan are those of this clone. Commit and push everything first: the machines that join have only what is on the remote.
The database gets items, branches and commands, but neither the task nor any code.";

/// Joins the words of an answer; a single `-` reads standard input.
pub fn read_answer_text(text: &[String]) -> Result<String, crate::standard_input::InputError> {
    match text {
        [word] => crate::standard_input::text_or_stdin_if_dash(word),
        words => Ok(words.join(" ")),
    }
}
