//! `plimsoll turns export`: a session as others read it. Everything comes from our own log, so it works when the
//! client's transcript is gone.

mod exported;
mod html;
mod jsonl;
mod otel;
mod redact;

use clap::{Args, ValueEnum};
use exported::Exported;
use plimsoll_flows::turns;
use plimsoll_flows::turns::capture::CaptureLimits;
use plimsoll_flows::turns::catch_up;
use plimsoll_store::{Durability, Project, StoreError, TurnLog, disk};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, say_error};
pub(crate) use redact::{Redactor, SecretPlace};
use std::path::PathBuf;
use std::process::ExitCode;

/// What to export, and how.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The format
    #[arg(long, value_enum)]
    format: Format,
    /// The session, by the beginning of its id [default: the newest]
    #[arg(long, value_name = "ID-PREFIX")]
    session: Option<String>,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace what looks like a key, a token or a password by [redacted:KIND]
    #[arg(long)]
    redact: bool,
    /// If --redact would replace something: write nothing, name each place, exit with 1
    #[arg(long)]
    fail_on_secret: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// OpenTelemetry spans with GenAI names, OTLP/JSON
    Otel,
    /// One self-contained page
    Html,
    /// One record a line, everything the log has
    Jsonl,
}

impl Format {
    fn is_json(self) -> bool {
        matches!(self, Format::Otel | Format::Jsonl)
    }
}

/// Exports a session; exit code 1 where there is none, or a secret that must not be.
pub(crate) fn run(arguments: &Export) -> ExitCode {
    let project = Project::of_command();
    if let Err(error) = catch_up::sync(&project, CaptureLimits::USER) {
        say_error(&format!("not everything could be read from the transcripts: {error}"));
    }
    let Some(log) = chosen(&project, arguments.session.as_deref()) else {
        return fail(no_session(&project, arguments.session.as_deref()));
    };
    match export(&project, &log, arguments) {
        Ok(places) if places.is_empty() => ExitCode::SUCCESS,
        Ok(places) => found(&places),
        Err(error) => fail(format!("{error}\nhint: {}", error.hint())),
    }
}

fn chosen(project: &Project, beginning: Option<&str>) -> Option<TurnLog> {
    match beginning {
        Some(beginning) => turns::log_of(project, beginning),
        None => TurnLog::all(project).pop(),
    }
}

fn no_session(project: &Project, beginning: Option<&str>) -> String {
    let folder = project.turns();
    match beginning {
        Some(beginning) => format!("no session begins with `{beginning}` in {}", folder.display()),
        None => format!(
            "no session has been recorded in {}\nhint: `plimsoll init` sets up the hooks that record them",
            folder.display()
        ),
    }
}

/// Answers the places of secrets that forbid it.
fn export(project: &Project, log: &TurnLog, arguments: &Export) -> Result<Vec<SecretPlace>, StoreError> {
    let mut exported = Exported::load(project, log)?;
    if exported.unread > 0 {
        let lines = plimsoll_domain::text::counted(exported.unread, "line");
        say_error(&format!(
            "{lines} of the log cannot be read and are left out: `plimsoll turns verify` names them"
        ));
    }
    if arguments.redact || arguments.fail_on_secret {
        let mut redactor = Redactor::default();
        let cleaned = exported.records.iter().map(|record| redactor.record(record)).collect();
        if arguments.fail_on_secret && !redactor.places().is_empty() {
            return Ok(redactor.places().to_vec());
        }
        if arguments.redact {
            exported.records = cleaned;
        }
    }
    let text = match arguments.format {
        Format::Otel => otel::render(&exported),
        Format::Html => html::render(&exported),
        Format::Jsonl => jsonl::render(&exported),
    };
    match &arguments.output {
        Some(path) => {
            disk::sweep_drafts_of(path);
            disk::replace(path, text.as_bytes(), Durability::Lazy)?;
        }
        None if arguments.format.is_json() => console::json_data(&text),
        None => console::data(&text),
    }
    Ok(Vec::new())
}

fn found(places: &[SecretPlace]) -> ExitCode {
    for SecretPlace { record, field, kind } in places {
        say_error(&format!("{record}, {field}: looks like {kind}"));
    }
    let count = plimsoll_domain::text::counted(places.len(), "place");
    fail(format!(
        "{count} with what looks like a secret: nothing was written\nhint: --redact replaces them; `plimsoll turns erase` removes a record's content for good"
    ))
}
