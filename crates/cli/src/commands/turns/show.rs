//! `plimsoll turns show`.

use super::{TurnsError, record_missing_turns_or_print_warning};
use crate::record_json::turn_json;
use clap::Args;
use plimsoll_domain::log_line::RecordKind;
use plimsoll_flows::turns::rendering::render_turn;
use plimsoll_flows::turns::{self, LoggedRecord, RecordBody, find_turn_or_record_by_name};
use plimsoll_store::{Project, TurnLog};
use plimsoll_terminal::console;
use plimsoll_terminal::console::print_text;
use serde_json::Value;
use std::process::ExitCode;

/// Which turn to show, and which part of it.
#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// A name that `turns list` shows, its NUMBER alone, or record:NUMBER
    turn: String,
    /// The session of a NUMBER, by the beginning of its id [default: the newest]
    #[arg(long)]
    session: Option<String>,
    #[command(flatten)]
    part: TurnPart,
    /// Print one JSON object with the eight fields and `ext`
    #[arg(long)]
    json: bool,
}

/// The part of the turn to show; without one, the whole turn is shown in short form.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct TurnPart {
    /// The response as it came: one block a line, byte for byte
    #[arg(long)]
    raw: bool,
    /// The calls as a program
    #[arg(long)]
    program: bool,
    /// The complete output of the calls
    #[arg(long)]
    prints: bool,
    /// The working memory after the turn
    #[arg(long)]
    memory: bool,
    /// Its tokens, as reported by the API
    #[arg(long)]
    usage: bool,
    /// What the model was sent since the previous turn
    #[arg(long)]
    saw: bool,
}

pub(super) fn show_turn(project: &Project, arguments: &ShowArguments) -> Result<ExitCode, TurnsError> {
    record_missing_turns_or_print_warning(project);
    let (log, record) = find_turn_or_record_by_name(project, &arguments.turn, arguments.session.as_deref())?;
    let part = &arguments.part;
    if arguments.json {
        console::print_json(turn_json(&record));
    } else if part.saw {
        print_text(prompts_and_context_since_previous_turn(&log, &record)?);
    } else {
        print_text(render_turn_part_or_event(&record, part)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn render_turn_part_or_event(record: &LoggedRecord, part: &TurnPart) -> Result<String, TurnsError> {
    let turn = match &record.body {
        RecordBody::Turn(turn) => turn,
        RecordBody::Erased => return Ok(format!("{} [erased]", record.short_session_id_and_number())),
        RecordBody::DecodeError(reason) => {
            return Err(TurnsError::InvalidInput(format!(
                "{}: {reason}",
                record.short_session_id_and_number()
            )));
        }
        RecordBody::Event(fields) => {
            let fields = serde_json::to_string_pretty(fields).unwrap_or_default();
            return Ok(format!(
                "{} at {}\n{fields}",
                record.header.kind.display_name(),
                record.header.recorded_at
            ));
        }
    };
    let to_pretty_json = |value: Value| serde_json::to_string_pretty(&value).unwrap_or_default();
    Ok(if part.raw {
        turn.raw_response().iter().map(|block| block.json().to_owned()).collect::<Vec<_>>().join("\n")
    } else if part.program {
        turn.program().unwrap_or_default().to_owned()
    } else if part.prints {
        turn.prints().join("\n")
    } else if part.memory {
        to_pretty_json(Value::Object(turn.memory().clone()))
    } else if part.usage {
        to_pretty_json(turn.ext().get("usage").cloned().unwrap_or_default())
    } else {
        render_turn(record, turn)
    })
}

/// Returns the prompts, context and compactions of the stream between the previous turn and this one.
fn prompts_and_context_since_previous_turn(
    log: &TurnLog,
    turn_record: &LoggedRecord,
) -> Result<String, TurnsError> {
    let mut sections = Vec::new();
    for record_result in turns::records_from_end(log)? {
        let earlier_record = record_result?;
        let is_earlier_in_stream = earlier_record.header.stream == turn_record.header.stream
            && earlier_record.header.sequence_number < turn_record.header.sequence_number;
        if !is_earlier_in_stream {
            continue;
        }
        if earlier_record.header.kind == RecordKind::Turn {
            break;
        }
        if let (
            RecordKind::Prompt | RecordKind::Context | RecordKind::Compaction,
            RecordBody::Event(fields),
        ) = (earlier_record.header.kind, &earlier_record.body)
        {
            let string_field =
                |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let origin = Some(string_field("from")).filter(|from| !from.is_empty());
            let origin = origin.unwrap_or_else(|| earlier_record.header.kind.display_name().to_owned());
            sections.push(format!("── {origin}\n{}", string_field("text")));
        }
    }
    sections.reverse();
    Ok(sections.join("\n"))
}
