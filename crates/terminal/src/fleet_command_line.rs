//! The command line of `plimsoll fleet`. `plimsoll` parses it for its help and errors, then executes `plimsoll-fleet`, which parses
//! it again and runs the command. This way `plimsoll` links no database.

use crate::value_parsers;
use clap::{Args, Subcommand, ValueEnum};
use plimsoll_domain::Timestamp;
use plimsoll_domain::promise::PromiseWord;
use plimsoll_policy::shell_loop::DEFAULT_PROMISE;
use std::path::PathBuf;

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
    /// Put the plan of this clone into the database, for workers on several machines
    Create(CreateArguments),
    /// Work on a fleet's plan in this clone: each item in a worktree of its own, merged into the remote's branch
    Join(Box<JoinArguments>),
    /// Show the fleets of the database, or how far one has come
    Status(StatusArguments),
    /// Show what happened in a fleet, one line per event
    Log(LogArguments),
    /// Print a report in Markdown: what was merged, what is set aside and why, the cost of each machine
    Report(NameArgument),
    /// Answer the question of an item that is set aside: it is open again, and keeps its tries
    Answer(AnswerArguments),
    /// Open an item again that was set aside for another reason than a question
    Reopen(ReopenArguments),
    /// Let no worker begin anything new; what is begun is finished and merged, and the members end
    Drain(NameArgument),
    /// Let workers begin new items again after `drain`
    Resume(NameArgument),
    /// Stop a fleet for good: the members end their sessions, and unfinished work stays on its branches
    Stop(ConfirmArguments),
    /// Remove a fleet from the database, with its journal, and name the branches that may remain
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
    /// The task; without it PROMPT.md is the task
    #[arg(long, value_name = "TEXT", conflicts_with = "objective_file")]
    pub objective: Option<String>,
    /// A file with the task
    #[arg(long, value_name = "FILE")]
    pub objective_file: Option<PathBuf>,
    /// The plan, with `- [ ]` lines [default: fix_plan.md]
    #[arg(long, value_name = "FILE")]
    pub todo: Option<String>,
    /// Leave the work on a branch of its own, or push it to the branch that is checked out
    #[arg(long, value_name = "WHERE", default_value = "branch")]
    pub deliver: DeliverTo,
    /// The git remote by which the work travels
    #[arg(long, default_value = "origin")]
    pub remote: String,
    /// The branch on which the work comes together [default: plimsoll/NAME]
    #[arg(long, value_name = "BRANCH")]
    pub branch: Option<String>,
    /// A command that must pass on what is merged; may be given several times
    #[arg(long, value_name = "CMD")]
    pub verify: Vec<String>,
    /// Begin nothing new once all machines together have spent this many US dollars
    #[arg(long, value_name = "USD", value_parser = value_parsers::dollars)]
    pub max_cost: Option<f64>,
    /// Begin nothing new after N sessions on all machines together
    #[arg(long, value_name = "N", value_parser = value_parsers::at_least_one)]
    pub max_iterations: Option<u32>,
    /// The word of the promise
    #[arg(long, default_value = DEFAULT_PROMISE, value_name = "WORD", value_parser = value_parsers::promise_word)]
    pub promise: PromiseWord,
}

/// Where the work of a fleet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeliverTo {
    /// It stays on a branch of its own; the end says how to merge it
    Branch,
    /// The branch that is checked out here is moved forward on the remote, item by item
    Merge,
}

/// Which fleet this machine works for, and with what.
#[derive(Debug, Args)]
#[command(after_help = JOIN)]
pub struct JoinArguments {
    /// The fleet
    pub name: String,
    /// So many items at a time
    #[arg(long, value_name = "N", default_value = "1", value_parser = value_parsers::workers)]
    pub workers: usize,
    /// What this clone calls the fleet's git remote
    #[arg(long, default_value = "origin")]
    pub remote: String,
    /// A file with the task, the one that the fleet was created with; without it PROMPT.md is the task
    #[arg(long, value_name = "FILE")]
    pub objective_file: Option<PathBuf>,
    /// The client [default: claude]
    #[arg(long, value_name = "PATH")]
    pub client: Option<String>,
    /// A command that prepares each worktree, such as `npm ci`
    #[arg(long, value_name = "CMD")]
    pub setup: Option<String>,
    /// Run the plan's --verify commands and --setup in a sandbox on this machine: no network, HOME hidden, only the project and a
    /// cache writable (Linux, with bubblewrap)
    #[arg(long)]
    pub verify_sandbox: bool,
    /// Stop with exit code 6 when the database or the remote has been away for this long; until then sessions go on, and what they
    /// did is told later
    #[arg(
        long = "database-patience",
        value_name = "DURATION",
        default_value = "30m",
        value_parser = value_parsers::seconds_from_minutes_or_duration
    )]
    pub database_timeout_seconds: u64,
    /// Wait for the next day when all your runs on this machine together have spent this many US dollars today
    #[arg(long, value_name = "USD", value_parser = value_parsers::dollars)]
    pub max_cost_per_day: Option<f64>,
    /// End on this machine at a time (07:00, "2026-01-07 07:00") or after a duration (8h, 90m)
    #[arg(long, value_name = "TIME|DURATION", value_parser = value_parsers::deadline)]
    pub deadline: Option<Timestamp>,
    /// Wait for the reset once this share of the five-hour or weekly quota is used (if the client reports it)
    #[arg(long, value_name = "PERCENT", value_parser = value_parsers::percent)]
    pub stop_at_limit: Option<u8>,
    /// End a client that is silent for this long (30m, 90s; 0 for never) [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::seconds_from_minutes_or_duration)]
    pub idle_timeout: Option<u64>,
    /// The same while a tool runs, such as a long build (3h; 0 for never) [default: 2h]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::seconds_from_minutes_or_duration)]
    pub tool_timeout: Option<u64>,
    /// Do not wait during pauses: exit with 6 instead
    #[arg(long)]
    pub no_wait: bool,
    /// Print each step as it happens, one JSON object per line, as in the journal
    #[arg(long)]
    pub json: bool,
    /// Arguments for the client, such as `--model opus --allowedTools Bash Edit Write`
    #[arg(last = true, value_name = "CLIENT ARGS")]
    pub client_arguments: Vec<String>,
}

const JOIN: &str = "\
The plan's --verify commands come from the database: join only fleets of people whose commands you would run.
Ctrl-C once: sessions finish, what is done is offered, the rest is given back. Twice: now.

Exit codes: as `plimsoll run` has them; 0 also when the fleet drains, 6 when the database was away for too long.";

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
}

/// Which fleet, and whether to ask first.
#[derive(Debug, Args)]
pub struct ConfirmArguments {
    /// The fleet
    pub name: String,
    /// Do it without asking; without a terminal nobody is asked
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

Task and plan are those of this clone. Everything must be committed and pushed: the machines that join have what is on the
remote. The database gets items, branches and commands, and neither the task nor any code.";

/// Joins the words of an answer; a single `-` reads standard input.
pub fn read_answer_text(text: &[String]) -> Result<String, crate::standard_input::InputError> {
    match text {
        [word] => crate::standard_input::text_or_stdin_if_dash(word),
        words => Ok(words.join(" ")),
    }
}
