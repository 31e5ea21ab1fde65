//! Reads the turn logs of a project, and decodes the records with their complete turns.

pub mod capture;
pub mod catch_up;
pub mod rendering;
mod selection;
mod turn_lookup;

pub use selection::{TurnSelection, file_paths_in_calls, labeled_texts};
pub use turn_lookup::find_turn_or_record_by_name;

use plimsoll_domain::log_line::{LogLine, MAIN_STREAM, RecordHeader, RecordKind};
use plimsoll_domain::turn::record::{DecodeError, decode_fields, decode_turn};
use plimsoll_domain::{SessionId, Turn};
use plimsoll_store::turn_log::RawLine;
use plimsoll_store::{Project, StoreError, TurnLog};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// One decoded record of a session's log.
#[derive(Debug, Clone)]
pub struct LoggedRecord {
    pub session_id: SessionId,
    /// The metadata that is readable without decoding the content.
    pub header: RecordHeader,
    pub body: RecordBody,
}

/// The content of a record.
#[derive(Debug, Clone)]
pub enum RecordBody {
    Turn(Box<Turn>),
    /// An event that is not a turn.
    Event(Map<String, Value>),
    /// The content was permanently erased.
    Erased,
    /// The content cannot be decoded, with the reason.
    DecodeError(String),
}

impl LoggedRecord {
    /// Returns the turn; `None` for other records, and if the turn is erased or damaged.
    pub fn turn(&self) -> Option<&Turn> {
        match &self.body {
            RecordBody::Turn(turn) => Some(turn),
            _ => None,
        }
    }

    /// Returns the name that users type: `SESSION:NUMBER` or `SESSION/AGENT:NUMBER` for a turn, else
    /// `SESSION#RECORD`.
    pub fn short_session_id_and_number(&self) -> String {
        let session: String = self.session_id.chars().take(8).collect();
        let stream: String = self.header.stream.chars().take(6).collect();
        match self.header.turn_number {
            Some(number) if self.header.stream == MAIN_STREAM => format!("{session}:{number}"),
            Some(number) => format!("{session}/{stream}:{number}"),
            None => format!("{session}#{}", self.header.sequence_number),
        }
    }

    /// Returns true for a record of a turn, even if it is erased or damaged.
    pub fn is_turn_record(&self) -> bool {
        self.header.kind == RecordKind::Turn
    }
}

/// Returns the header of a line; `None` if the line is not a record.
pub fn record_header(line: &RawLine) -> Option<RecordHeader> {
    parse_complete_line(line).map(|log_line| log_line.header)
}

/// Parses a line that was written completely.
fn parse_complete_line(line: &RawLine) -> Option<LogLine<'_>> {
    if line.has_newline { LogLine::parse(&line.bytes) } else { None }
}

/// Decodes the record of a line and reads its blobs from the log. Returns `None` if the line is not a record;
/// `verify` reports such lines.
pub fn decode_record_keeping_error_in_body(log: &TurnLog, line: &RawLine) -> Option<LoggedRecord> {
    let log_line = parse_complete_line(line)?;
    let read_blob = |hash: &str| log.read_blob(hash);
    let body = if log_line.is_erased() {
        Ok(RecordBody::Erased)
    } else if log_line.header.kind == RecordKind::Turn {
        let (number, succeeded) =
            (log_line.header.turn_number.unwrap_or(0), log_line.header.succeeded.unwrap_or(false));
        decode_turn(number, succeeded, log_line.content, &read_blob)
            .map(|turn| RecordBody::Turn(Box::new(turn)))
    } else {
        decode_fields(log_line.content, &read_blob).map(RecordBody::Event)
    };
    let body = body.unwrap_or_else(|error| match error {
        DecodeError::Erased => RecordBody::Erased,
        error => RecordBody::DecodeError(error.to_string()),
    });
    Some(LoggedRecord { session_id: log.session_id().to_owned(), header: log_line.header, body })
}

/// Returns the records of a log from its beginning. Skips lines that are not records.
pub fn records_from_start(
    log: &TurnLog,
) -> Result<impl Iterator<Item = Result<LoggedRecord, StoreError>>, StoreError> {
    let lines = log.forward_lines()?;
    Ok(lines.filter_map(|line| line.map(|line| decode_record_keeping_error_in_body(log, &line)).transpose()))
}

/// Returns the records of a log from its end. Skips lines that are not records.
pub fn records_from_end(
    log: &TurnLog,
) -> Result<impl Iterator<Item = Result<LoggedRecord, StoreError>>, StoreError> {
    let lines = log.backward_lines()?;
    Ok(lines.filter_map(|line| line.map(|line| decode_record_keeping_error_in_body(log, &line)).transpose()))
}

/// Returns the log of the session whose id starts with this prefix; the most recently written log if several match.
pub fn find_log_by_id_prefix(project: &Project, id_prefix: &str) -> Option<TurnLog> {
    TurnLog::one_per_session_oldest_modified_first(project)
        .into_iter()
        .rfind(|log| log.session_id().starts_with(id_prefix))
}

/// Why turns could not be read or shown.
#[derive(Debug, thiserror::Error)]
pub enum TurnsError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "no turn has been recorded in {0} yet: install the hooks with `plimsoll init`, or read a transcript with `plimsoll turns sync FILE`"
    )]
    NoLog(PathBuf),
    #[error("no session here starts with \"{0}\": see `plimsoll turns list`")]
    NoSession(String),
    #[error("there is no turn {0}: name it as `plimsoll turns list` does, SESSION:NUMBER")]
    NoTurn(String),
    /// The user's input is invalid; contains the complete message.
    #[error("{0}")]
    InvalidInput(String),
}
