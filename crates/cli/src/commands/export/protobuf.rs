//! OTLP/protobuf: what [`super::otel`] has made, encoded by `plimsoll-otel`. So both formats say the same, and this program links
//! no protobuf.

use crate::console;
use plimsoll_domain::text::{clip, one_line};
use plimsoll_flows::optional_program::{self, NoProgram, OTEL};
use plimsoll_flows::telemetry::command::OtelCommand;
use plimsoll_launcher::Assistance;
use plimsoll_store::{Durability, Project, StoreError, disk};
use std::path::Path;
use std::time::Duration;

/// A session with images has some ten megabytes.
const LONGEST: usize = 1024 * 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(120);

/// Why there is no protobuf.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProtobufError {
    #[error("a terminal cannot show protobuf")]
    Terminal,
    #[error(transparent)]
    NoProgram(#[from] NoProgram),
    #[error("{OTEL} did not encode the session{0}")]
    Failed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot write: {0}")]
    Write(std::io::Error),
}

impl ProtobufError {
    pub(super) fn hint(&self) -> &'static str {
        match self {
            ProtobufError::Terminal => "name a file with -o, or send it on with a pipe",
            ProtobufError::NoProgram(error) => error.hint(),
            ProtobufError::Failed(_) => {
                "install all programs of one build together; `--format otel` needs none"
            }
            ProtobufError::Store(_) | ProtobufError::Write(_) => "check the place and the free space",
        }
    }
}

/// Writes a document in OTLP/JSON as protobuf, to a file or to standard output.
pub(super) fn write(project: &Project, json: &str, file: Option<&Path>) -> Result<(), ProtobufError> {
    if file.is_none() && console::is_terminal() {
        return Err(ProtobufError::Terminal);
    }
    let outcome = plimsoll_launcher::assist(&Assistance {
        program: &optional_program::find(project, OTEL)?,
        arguments: &OtelCommand::Encode.arguments(),
        folder: project.root(),
        input: Some(json.as_bytes()),
        environment: &[],
        deadline: TIMEOUT,
        most_output: LONGEST,
    });
    if !outcome.succeeded() {
        let said = outcome.trouble.unwrap_or_else(|| String::from_utf8_lossy(&outcome.stderr).into_owned());
        let said = clip(&one_line(&said), 200);
        return Err(ProtobufError::Failed(if said.is_empty() { said } else { format!(": {said}") }));
    }
    match file {
        Some(path) => {
            disk::sweep_drafts_of(path);
            Ok(disk::replace(path, &outcome.stdout, Durability::Lazy)?)
        }
        None => console::bytes(&outcome.stdout).map_err(ProtobufError::Write),
    }
}
