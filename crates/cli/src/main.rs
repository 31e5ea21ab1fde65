//! `plimsoll`: the command. One file per subcommand; everything it does is in `flows`.

mod amounts;
mod checkpoint;
mod completions;
mod console;
mod context;
mod demo;
mod doctor;
mod explain;
mod export;
mod foreign;
mod gate;
mod init;
mod linear;
mod log;
mod manual;
mod memory;
mod monitor;
mod place;
mod plan;
mod progress;
mod prompt;
mod query;
mod report;
mod run;
mod schema;
mod standard_input;
mod start;
mod status;
mod statusline;
mod stop;
mod turns;
mod web_page;
mod whole_screen;
mod whose;
mod with_context;

use clap::{Parser, Subcommand};
use console::say;
use protocol::foreign_words::visible;
use std::process::ExitCode;

/// The load line for Claude Code: know how full the context window is, checkpoint before it overflows, resume
/// without losing work.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, propagate_version = true, max_term_width = 100, after_help = FIRST_STEPS)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

const FIRST_STEPS: &str = "\
First steps:
  plimsoll init                                put the hooks into this project
  plimsoll run --objective 'Do fix_plan.md.' -- --allowedTools Bash Edit Write
  plimsoll status                              where the run stands
  plimsoll run --help                          every command has such a page";

const UNINSTALL: &str = "\
Examples:
  plimsoll uninstall --dry-run    what would change
  plimsoll uninstall              after `plimsoll init`; after `init --user` or `--local` with that option

What was recorded (.claude/plimsoll/, .claude/handoffs/, …) stays and is named.";

const SCHEMA: &str = "\
Examples:
  plimsoll schema > plimsoll.schema.json    for an editor that checks .claude/plimsoll.json";

const PROMPT: &str = "\
The generated block is made anew from the run's state; your own text below it stays byte for byte. `plimsoll run` does
it by itself before each session; a loop of your own does it with this.";

const MONITOR: &str = "\
With the JSON of a hook on standard input: what the monitor decides for that session, and it is announced and noted.
Without: a look at the run's session, which writes nothing. Nothing is printed where there is nothing to say.

Exit codes:
  0   no run, or below L3
  1   L3 in a run: end the session
  70  a fault of our own";

const STOP: &str = "\
A run that is stopped so cannot be resumed. To pause one that can: Ctrl-C in the terminal of `plimsoll run`.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Look whether all is well: programs, client, settings, other loops, disk, window, hooks, run
    Doctor(doctor::DoctorArguments),
    /// Put Plimsoll's hooks into the settings of this project (or yours)
    Init(init::InitArguments),
    /// Take Plimsoll's hooks out again, and nothing else
    #[command(after_help = UNINSTALL)]
    Uninstall(init::PlaceArguments),
    /// Work through a task unattended, one fresh session after another
    Run(run::RunArguments),
    /// Prepare a run for a shell loop and print its environment for `eval`
    Start(start::StartArguments),
    /// Show where the run stands
    Status(status::StatusArguments),
    /// Choose how the status line looks, or see why it shows what it shows
    #[command(name = "statusline")]
    StatusLine(statusline::StatusLineArguments),
    /// Print the JSON Schema of the settings
    #[command(after_help = SCHEMA)]
    Schema,
    /// See what the open items will probably take, and an order that saves a session
    Plan(plan::PlanArguments),
    /// Deliver a run's notes to Linear, or look whether they would arrive
    Linear(linear::LinearArguments),
    /// Read the journal: what happened, line by line
    Log(log::LogArguments),
    /// Write the night as one page: what was done, the load line, what it cost, what to do next
    Report(report::ReportArguments),
    /// Tell why it last acted: what it did, with the figures behind it
    Explain(explain::ExplainArguments),
    /// Ask state, journal, turns or memory with a jq program
    Query(query::QueryArguments),
    /// Read the turn log: every response of the model with its tool calls and results
    Turns(turns::TurnsArguments),
    /// Read and write the agent's working memory: registers and heap
    Memory(memory::MemoryArguments),
    /// Show the frames of the working memory
    Frame(memory::FrameArguments),
    /// Show how full the session's context window is
    Context(context::ContextArguments),
    /// Run another hook or script with the fill of the context window in its environment
    WithContext(with_context::WithContextArguments),
    /// Write a handoff now
    Checkpoint(checkpoint::CheckpointArguments),
    /// Write PROMPT.md again for the present iteration
    #[command(after_help = PROMPT)]
    Prompt,
    /// For shell glue: the monitor's decision as a bare marker line
    #[command(after_help = MONITOR)]
    Monitor,
    /// For shell glue: judge the session that has ended (exit 0 stop, 1 continue, 75 pause)
    Gate(gate::GateArguments),
    /// Cancel the run for good
    #[command(after_help = STOP)]
    Stop,
    /// See a whole run with the real client and a scripted model: no key, no network
    Demo(demo::DemoArguments),
    /// Print the script that lets a shell complete our command lines
    Completions(completions::CompletionsArguments),
    /// Print a manual page
    Manual(manual::ManualArguments),
}

/// As every system that we run on numbers it.
const SIGXFSZ: i32 = 25;

fn main() -> ExitCode {
    let verb = match Command::try_parse() {
        Ok(command) => command.verb,
        Err(error) => return misread(&error),
    };
    if let Some(code) = place::check(&verb) {
        return code;
    }
    // A file that grows beyond a limit (`ulimit -f`) is an error with a name, as on a full disk, and no end by a signal.
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
    // What these say of a run is the user's word: they keep its ledger. Hooks and every other command only claim.
    if matches!(verb, Verb::Run(_) | Verb::Start(_) | Verb::Gate(_) | Verb::Stop) {
        store::ledger::keep();
    }
    match verb {
        Verb::Doctor(arguments) => doctor::doctor(&arguments),
        Verb::Explain(arguments) => explain::explain(&arguments),
        Verb::Init(arguments) => init::init(&arguments),
        Verb::Uninstall(arguments) => init::uninstall(&arguments),
        Verb::Run(arguments) => run::run(&arguments),
        Verb::Start(arguments) => start::start(&arguments),
        Verb::Status(arguments) => status::status(&arguments),
        Verb::StatusLine(arguments) => statusline::statusline(&arguments),
        Verb::Schema => schema::schema(),
        Verb::Plan(arguments) => plan::show(&arguments),
        Verb::Linear(arguments) => linear::linear(&arguments),
        Verb::Log(arguments) => log::log(&arguments),
        Verb::Report(arguments) => report::report(&arguments),
        Verb::Query(arguments) => query::query(&arguments),
        Verb::Turns(arguments) => turns::turns(&arguments),
        Verb::Memory(arguments) => memory::memory(&arguments),
        Verb::Frame(arguments) => memory::frame(&arguments),
        Verb::Context(arguments) => context::context(&arguments),
        Verb::WithContext(arguments) => with_context::with_context(&arguments),
        Verb::Checkpoint(arguments) => checkpoint::checkpoint(&arguments),
        Verb::Prompt => prompt::prompt(),
        Verb::Monitor => monitor::monitor(),
        Verb::Gate(arguments) => gate::gate(&arguments),
        Verb::Stop => stop::stop(),
        Verb::Demo(arguments) => demo::demo(&arguments),
        Verb::Completions(arguments) => completions::completions(&arguments),
        Verb::Manual(arguments) => manual::manual(&arguments),
    }
}

/// Prints the help that was asked for, or what is wrong with a command line. clap paints both, and lets the escape
/// characters of an argument pass (a shell completes the name of a file): then it is told without colours.
fn misread(error: &clap::Error) -> ExitCode {
    let is_plain = |word: std::ffi::OsString| {
        let word = word.to_string_lossy();
        visible(&word) == word
    };
    if std::env::args_os().all(is_plain) {
        // A reader that has gone away is a normal end.
        let _ = error.print();
    } else {
        console::note(error.render().to_string().trim_end());
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Says what went wrong: exit code 1, or another where a verb has its own.
fn fail(error: impl std::fmt::Display, code: u8) -> ExitCode {
    say_error(&error);
    ExitCode::from(code)
}

/// Says what the disk refused, and what to do about it.
fn refused(error: &store::StoreError) -> ExitCode {
    fail(format!("{error}\nhint: {}", error.hint()), 1)
}

fn say_error(error: &impl std::fmt::Display) {
    console::complain(error);
}

/// The user's answer to a yes-or-no question: only `y` and `yes` agree.
fn agrees() -> bool {
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}
