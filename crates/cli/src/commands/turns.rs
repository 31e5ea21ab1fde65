//! `plimsoll turns`: every turn of the sessions of this project, from our own log.

mod erase;
mod export;
mod grep;
mod list;
mod row;
mod show;
mod stats;
mod verify;
mod which;

use clap::{Args, Subcommand};
use plimsoll_domain::SessionId;
use plimsoll_flows::turns::TurnsError;
use plimsoll_flows::turns::capture;
use plimsoll_flows::turns::capture::CaptureLimits;
use plimsoll_flows::turns::catch_up;
use plimsoll_store::{Project, TurnLog};
use plimsoll_terminal::console::{fail, nothing_to_show, refused, say_error};
use std::path::PathBuf;
use std::process::ExitCode;
use which::Which;

/// What is asked of the turn log.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TurnsArguments {
    #[command(subcommand)]
    verb: Option<Verb>,
}

const EXAMPLES: &str = "Examples:
  plimsoll turns                                the last 20 turns, all sessions
  plimsoll turns list --failures --since 12h    failures of the last 12 hours
  plimsoll turns list --file src/report.rs      turns that name a file
  plimsoll turns show 4f2a91bc:17               one turn: text, calls, results
  plimsoll turns grep 'connection refused'
  plimsoll turns stats                          what filled the window
  plimsoll turns verify                         check that the log is unchanged";

#[derive(Debug, Subcommand)]
enum Verb {
    /// The turns, newest at the end
    List(list::ListArguments),
    /// One turn: SESSION:NUMBER as `list` shows it, or only a NUMBER of the newest session
    Show(show::ShowArguments),
    /// Turns that contain a text
    Grep(grep::GrepArguments),
    /// Turns, failures, tools, tokens, what filled the window, cost
    Stats(stats::StatsArguments),
    /// Check that the log is unchanged. Exit 0: intact; 1: changed, cut or corrupt
    Verify(verify::VerifyArguments),
    /// Read from the transcripts what the log does not contain yet
    Sync(SyncArguments),
    /// Export a session to share: web page, OpenTelemetry, JSON lines
    Export(export::Export),
    /// Delete the contents of turns permanently; their numbers and the chain stay
    Erase(erase::EraseArguments),
}

/// Which transcripts.
#[derive(Debug, Args)]
struct SyncArguments {
    /// Transcripts of sessions without Plimsoll's hooks [default: those of this project's sessions]
    transcripts: Vec<PathBuf>,
}

/// Does what is asked.
pub(crate) fn turns(arguments: &TurnsArguments) -> ExitCode {
    let project = Project::of_command();
    let done = match &arguments.verb {
        None => list::list(&project, &list::ListArguments::default()),
        Some(Verb::List(arguments)) => list::list(&project, arguments),
        Some(Verb::Show(arguments)) => show::show(&project, arguments),
        Some(Verb::Grep(arguments)) => grep::grep(&project, arguments),
        Some(Verb::Stats(arguments)) => stats::stats(&project, arguments),
        Some(Verb::Verify(arguments)) => verify::verify(&project, arguments),
        Some(Verb::Sync(arguments)) => sync(&project, arguments),
        Some(Verb::Export(arguments)) => Ok(export::run(arguments)),
        Some(Verb::Erase(arguments)) => erase::erase(&project, arguments),
    };
    done.unwrap_or_else(|error| match error {
        TurnsError::Store(error) => refused(&error),
        error => fail(error),
    })
}

fn no_turn_recorded(project: &Project) -> ExitCode {
    nothing_to_show(format!(
        "No turn has been recorded in {}: install the hooks with `plimsoll init`, or read a transcript with `plimsoll turns sync FILE`.",
        project.root().display()
    ))
}

/// Brings the log up to date before it is read; what cannot be read is reported, and the command continues.
fn bring_up_to_date(project: &Project) {
    if let Err(error) = catch_up::sync(project, CaptureLimits::USER) {
        say_error(&format!("the newest turns may be missing: {error}"));
    }
}

fn sync(project: &Project, arguments: &SyncArguments) -> Result<ExitCode, TurnsError> {
    let mut turns = 0;
    if arguments.transcripts.is_empty() {
        turns += catch_up::sync(project, CaptureLimits::USER)?;
    }
    for path in &arguments.transcripts {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match TurnLog::of(project, &SessionId::from(name.as_str())) {
            Some(log) if plimsoll_store::disk::size(path).is_some() => turns += capture::whole(&log, path)?,
            _ => {
                let path = path.display();
                let words = format!("{path} is not a transcript: expected a file SESSION.jsonl");
                return Err(TurnsError::Typed(words));
            }
        }
    }
    plimsoll_terminal::console::say(plimsoll_domain::text::counted(
        usize::try_from(turns).unwrap_or(usize::MAX),
        "new turn",
    ));
    Ok(ExitCode::SUCCESS)
}
