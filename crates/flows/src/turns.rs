//! Reading the turn logs of a project: records with their turns put together again.

pub mod capture;
pub mod catch_up;
mod find;
mod selection;
pub mod words;

pub use find::find;
pub use selection::{Selection, files, places};

use plimsoll_domain::log_line::{Header, LogLine, MAIN, RecordKind};
use plimsoll_domain::turn::record::{DecodeError, decode, decode_fields};
use plimsoll_domain::{SessionId, Turn};
use plimsoll_store::turn_log::RawLine;
use plimsoll_store::{Project, StoreError, TurnLog};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// One record of a session's log.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The session.
    pub session_id: SessionId,
    /// What is known without the content.
    pub header: Header,
    /// The content.
    pub body: Body,
}

/// The content of a record.
#[derive(Debug, Clone)]
pub enum Body {
    /// A turn.
    Turn(Box<Turn>),
    /// Anything else.
    Event(Map<String, Value>),
    /// It was erased for good.
    Erased,
    /// It cannot be read; why.
    DecodeError(String),
}

impl Recorded {
    /// The turn, if it is a sound one.
    pub fn turn(&self) -> Option<&Turn> {
        match &self.body {
            Body::Turn(turn) => Some(turn),
            _ => None,
        }
    }

    /// As people type it: `SESSION:NUMBER`, `SESSION/AGENT:NUMBER`; for what is no turn `SESSION#RECORD`.
    pub fn name(&self) -> String {
        let session: String = self.session_id.chars().take(8).collect();
        let stream: String = self.header.stream.chars().take(6).collect();
        match self.header.number {
            Some(number) if self.header.stream == MAIN => format!("{session}:{number}"),
            Some(number) => format!("{session}/{stream}:{number}"),
            None => format!("{session}#{}", self.header.seq),
        }
    }

    /// True for a record of a turn, sound or not.
    pub fn is_turn(&self) -> bool {
        self.header.kind == RecordKind::Turn
    }
}

/// What a line's header says; none if it is no record.
pub fn header(line: &RawLine) -> Option<Header> {
    parsed(line).map(|parsed| parsed.header)
}

/// A line that was written to its end.
fn parsed(line: &RawLine) -> Option<LogLine<'_>> {
    if line.is_ended { LogLine::parse(&line.bytes) } else { None }
}

/// Puts a line together. None if it is no record; `verify` names those.
pub fn recorded(log: &TurnLog, line: &RawLine) -> Option<Recorded> {
    let parsed = parsed(line)?;
    let fetch = |hash: &str| log.blob(hash);
    let body = if parsed.is_erased() {
        Ok(Body::Erased)
    } else if parsed.header.kind == RecordKind::Turn {
        let (number, success) = (parsed.header.number.unwrap_or(0), parsed.header.success.unwrap_or(false));
        decode(number, success, parsed.content, &fetch).map(|turn| Body::Turn(Box::new(turn)))
    } else {
        decode_fields(parsed.content, &fetch).map(Body::Event)
    };
    let body = body.unwrap_or_else(|unsound| match unsound {
        DecodeError::Erased => Body::Erased,
        unsound => Body::DecodeError(unsound.to_string()),
    });
    Some(Recorded { session_id: log.session_id().to_owned(), header: parsed.header, body })
}

/// The records of a log from its beginning; lines that are none are left out.
pub fn forwards(log: &TurnLog) -> Result<impl Iterator<Item = Result<Recorded, StoreError>>, StoreError> {
    let lines = log.forwards()?;
    Ok(lines.filter_map(|line| line.map(|line| recorded(log, &line)).transpose()))
}

/// The records of a log from its end.
pub fn backwards(log: &TurnLog) -> Result<impl Iterator<Item = Result<Recorded, StoreError>>, StoreError> {
    let lines = log.backwards()?;
    Ok(lines.filter_map(|line| line.map(|line| recorded(log, &line)).transpose()))
}

/// The log of the session whose id begins so; of several the one that was written last.
pub fn log_of(project: &Project, beginning: &str) -> Option<TurnLog> {
    TurnLog::all(project).into_iter().rfind(|log| log.session_id().starts_with(beginning))
}

/// Why it could not be done.
#[derive(Debug, thiserror::Error)]
pub enum TurnsError {
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no log.
    #[error(
        "no turn has been recorded in {0} yet: install the hooks with `plimsoll init`, or read a transcript with `plimsoll turns sync FILE`"
    )]
    NoLog(PathBuf),
    /// There is no such session.
    #[error("no session here begins with \"{0}\": see `plimsoll turns list`")]
    NoSession(String),
    /// There is no such turn.
    #[error("there is no turn {0}: name it as `plimsoll turns list` does, SESSION:NUMBER")]
    NoTurn(String),
    /// Something that was typed.
    #[error("{0}")]
    Typed(String),
}
