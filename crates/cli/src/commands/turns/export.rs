//! `plimsoll turns export`: exports a session for people and other programs. All data comes from Plimsoll's turn
//! log, so the client's transcript is not needed.

mod exported_session;
mod html;
mod jsonl;
mod otel;
mod redact;

use clap::{Args, ValueEnum};
use exported_session::ExportedSession;
use plimsoll_flows::turns;
use plimsoll_flows::turns::capture::CaptureLimits;
use plimsoll_flows::turns::catch_up;
use plimsoll_store::{Durability, Project, StoreError, TurnLog, disk};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, print_error, print_warning};
pub(crate) use redact::{Redactor, SecretLocation};
use std::path::PathBuf;
use std::process::ExitCode;

/// The session to export, and the format.
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// The format
    #[arg(long, value_enum)]
    format: ExportFormat,
    /// The session, by the beginning of its id [default: the newest]
    #[arg(long, value_name = "ID-PREFIX")]
    session: Option<String>,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace what looks like a key, a token or a password by [redacted:KIND]
    #[arg(long)]
    redact: bool,
    /// Write nothing if --redact would replace something; exit with 1
    #[arg(long)]
    fail_on_secret: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ExportFormat {
    /// OpenTelemetry spans with GenAI names, OTLP/JSON
    Otel,
    /// One self-contained page
    Html,
    /// One record a line, everything the log has
    Jsonl,
}

impl ExportFormat {
    fn is_json(self) -> bool {
        matches!(self, ExportFormat::Otel | ExportFormat::Jsonl)
    }
}

/// Exports a session. Exits with 1 if there is none, or if it contains secrets and `--fail-on-secret` is set.
pub(crate) fn export_session(arguments: &ExportArguments) -> ExitCode {
    let project = Project::find_upwards_from_current_dir();
    if let Err(error) =
        catch_up::record_missing_turns_of_all_sessions(&project, CaptureLimits::FOR_USER_COMMAND_OR_RUN)
    {
        print_warning(&format!("not everything could be read from the transcripts: {error}"));
    }
    let Some(log) = find_log_by_prefix_or_newest(&project, arguments.session.as_deref()) else {
        return fail(no_session_message(&project, arguments.session.as_deref()));
    };
    match write_export_or_return_forbidden_secrets(&project, &log, arguments) {
        Ok(locations) if locations.is_empty() => ExitCode::SUCCESS,
        Ok(locations) => print_secret_locations_and_fail(&locations),
        Err(error) => fail(format!("{error}\nhint: {}", error.hint())),
    }
}

fn find_log_by_prefix_or_newest(project: &Project, id_prefix: Option<&str>) -> Option<TurnLog> {
    match id_prefix {
        Some(id_prefix) => turns::find_log_by_id_prefix(project, id_prefix),
        None => TurnLog::one_per_session_oldest_modified_first(project).pop(),
    }
}

fn no_session_message(project: &Project, id_prefix: Option<&str>) -> String {
    let folder = project.turn_logs_folder();
    match id_prefix {
        Some(id_prefix) => format!("no session begins with `{id_prefix}` in {}", folder.display()),
        None => format!(
            "no session has been recorded in {}\nhint: `plimsoll init` sets up the hooks that record them",
            folder.display()
        ),
    }
}

/// Writes the export and returns an empty list. With `--fail-on-secret`, if there are secrets, writes nothing and returns
/// their locations.
fn write_export_or_return_forbidden_secrets(
    project: &Project,
    log: &TurnLog,
    arguments: &ExportArguments,
) -> Result<Vec<SecretLocation>, StoreError> {
    let mut session = ExportedSession::read_with_window_and_checkpoints(project, log)?;
    if session.unreadable_lines > 0 {
        let lines = plimsoll_domain::text::count_with_noun(session.unreadable_lines, "line");
        print_warning(&format!(
            "left out {lines} of the log that cannot be read\nhint: `plimsoll turns verify` names them"
        ));
    }
    if arguments.redact || arguments.fail_on_secret {
        let mut redactor = Redactor::default();
        let redacted_records = session.records.iter().map(|record| redactor.redact_record(record)).collect();
        if arguments.fail_on_secret && !redactor.secret_locations().is_empty() {
            return Ok(redactor.secret_locations().to_vec());
        }
        if arguments.redact {
            session.records = redacted_records;
        }
    }
    let text = match arguments.format {
        ExportFormat::Otel => otel::render_otlp_json(&session),
        ExportFormat::Html => html::render_session_page(&session),
        ExportFormat::Jsonl => jsonl::render_json_lines(&session),
    };
    match &arguments.output {
        Some(path) => {
            disk::remove_leftover_temporary_files_of(path);
            disk::replace(path, text.as_bytes(), Durability::Lazy)?;
        }
        None if arguments.format.is_json() => console::print_json_escaped_only_on_terminal(&text),
        None => console::print_text_escaped_only_on_terminal(&text),
    }
    Ok(Vec::new())
}

fn print_secret_locations_and_fail(locations: &[SecretLocation]) -> ExitCode {
    for SecretLocation { record, field, kind } in locations {
        print_error(&format!("{record}, {field}: looks like {kind}"));
    }
    let count = plimsoll_domain::text::count_with_noun(locations.len(), "place");
    fail(format!(
        "{count} with what looks like a secret: nothing was written\nhint: --redact replaces them; `plimsoll turns erase` removes a record's content for good"
    ))
}
