//! `plimsoll turns`: every turn of this project's sessions, from Plimsoll's turn log.

mod erase;
mod export;
mod grep;
mod list;
mod show;
mod stats;
mod turn_filter;
mod turn_row;
mod verify;

use clap::{Args, Subcommand};
use plimsoll_domain::SessionId;
use plimsoll_flows::turns::TurnsError;
use plimsoll_flows::turns::capture;
use plimsoll_flows::turns::capture::CaptureLimits;
use plimsoll_flows::turns::catch_up;
use plimsoll_store::{Project, TurnLog};
use plimsoll_terminal::console::{fail, fail_with_store_error, print_nothing_to_show, print_warning};
use std::path::PathBuf;
use std::process::ExitCode;
use turn_filter::TurnFilter;

/// The arguments of `plimsoll turns`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TurnsArguments {
    #[command(subcommand)]
    subcommand: Option<TurnsSubcommand>,
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
enum TurnsSubcommand {
    /// List the turns, newest at the end
    List(list::ListArguments),
    /// Show one turn, as `list` names it
    Show(show::ShowArguments),
    /// List turns that contain a text
    Grep(grep::GrepArguments),
    /// Count turns, failures, tools and tokens, and what filled the window
    Stats(stats::StatsArguments),
    /// Check that the log is unchanged; exit with 1 if it is not
    Verify(verify::VerifyArguments),
    /// Read from the transcripts what the log does not contain yet
    Sync(SyncArguments),
    /// Export a session to share: web page, OpenTelemetry, JSON lines
    Export(export::ExportArguments),
    /// Delete the contents of turns permanently; their numbers stay
    Erase(erase::EraseArguments),
}

/// The transcripts to read.
#[derive(Debug, Args)]
struct SyncArguments {
    /// Transcripts without Plimsoll's hooks [default: this project's]
    transcripts: Vec<PathBuf>,
}

/// Runs the subcommand.
pub(crate) fn run_turns_command(arguments: &TurnsArguments) -> ExitCode {
    let project = Project::find_upwards_from_current_dir();
    let result = match &arguments.subcommand {
        None => list::list_last_turns(&project, &list::ListArguments::default()),
        Some(TurnsSubcommand::List(arguments)) => list::list_last_turns(&project, arguments),
        Some(TurnsSubcommand::Show(arguments)) => show::show_turn(&project, arguments),
        Some(TurnsSubcommand::Grep(arguments)) => grep::grep(&project, arguments),
        Some(TurnsSubcommand::Stats(arguments)) => stats::print_stats(&project, arguments),
        Some(TurnsSubcommand::Verify(arguments)) => {
            verify::verify_logs_and_report_interrupted_erasures(&project, arguments)
        }
        Some(TurnsSubcommand::Sync(arguments)) => record_new_turns_and_print_count(&project, arguments),
        Some(TurnsSubcommand::Export(arguments)) => Ok(export::export_session(arguments)),
        Some(TurnsSubcommand::Erase(arguments)) => {
            erase::erase_requested_turns_or_all_secrets(&project, arguments)
        }
    };
    result.unwrap_or_else(|error| match error {
        TurnsError::Store(error) => fail_with_store_error(&error),
        error => fail(error),
    })
}

fn print_no_recorded_turns(project: &Project) -> ExitCode {
    print_nothing_to_show(format!(
        "No turn has been recorded in {}: install the hooks with `plimsoll init`, or read a transcript with `plimsoll turns sync FILE`.",
        project.root().display()
    ))
}

/// Records the missing turns of all sessions before the log is read. Prints an error as a warning, and does not fail.
fn record_missing_turns_or_print_warning(project: &Project) {
    if let Err(error) =
        catch_up::record_missing_turns_of_all_sessions(project, CaptureLimits::FOR_USER_COMMAND_OR_RUN)
    {
        print_warning(&format!("the newest turns may be missing: {error}"));
    }
}

fn record_new_turns_and_print_count(
    project: &Project,
    arguments: &SyncArguments,
) -> Result<ExitCode, TurnsError> {
    let mut new_turn_count = 0;
    if arguments.transcripts.is_empty() {
        new_turn_count +=
            catch_up::record_missing_turns_of_all_sessions(project, CaptureLimits::FOR_USER_COMMAND_OR_RUN)?;
    }
    for path in &arguments.transcripts {
        let session_name =
            path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match TurnLog::for_session_where_started_or_current(project, &SessionId::from(session_name.as_str()))
        {
            Some(log) if plimsoll_store::disk::file_size(path).is_some() => {
                new_turn_count += capture::capture_transcript_with_subagents(&log, path)?;
            }
            _ => {
                let path = path.display();
                let message = format!("{path} is not a transcript: expected a file SESSION.jsonl");
                return Err(TurnsError::InvalidInput(message));
            }
        }
    }
    plimsoll_terminal::console::print_text(plimsoll_domain::text::count_with_noun(
        usize::try_from(new_turn_count).unwrap_or(usize::MAX),
        "new turn",
    ));
    Ok(ExitCode::SUCCESS)
}
