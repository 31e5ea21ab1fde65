//! `plimsoll turns show`.

use super::{TurnsError, bring_up_to_date};
use crate::record_json::turn_json;
use clap::Args;
use plimsoll_domain::log_line::RecordKind;
use plimsoll_flows::turns::words::whole;
use plimsoll_flows::turns::{self, Body, Recorded, find};
use plimsoll_store::{Project, TurnLog};
use plimsoll_terminal::console;
use plimsoll_terminal::console::say;
use serde_json::Value;
use std::process::ExitCode;

/// Which turn, and what of it.
#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// SESSION:NUMBER or SESSION/AGENT:NUMBER as `turns list` shows it, only the NUMBER, or record:NUMBER
    turn: String,
    /// The session of a number alone: the beginning of its id [default: the newest]
    #[arg(long)]
    session: Option<String>,
    #[command(flatten)]
    part: Part,
    /// Print one JSON object with the eight fields and `ext`
    #[arg(long)]
    json: bool,
}

/// What of it; else all, shortened.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct Part {
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
    /// What the model was told since the previous turn: prompts, and what the client and hooks added
    #[arg(long)]
    saw: bool,
}

pub(super) fn show(project: &Project, arguments: &ShowArguments) -> Result<ExitCode, TurnsError> {
    bring_up_to_date(project);
    let (log, found) = find(project, &arguments.turn, arguments.session.as_deref())?;
    let part = &arguments.part;
    if arguments.json {
        console::json(turn_json(&found));
    } else if part.saw {
        say(saw(&log, &found)?);
    } else {
        say(words(&found, part)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn words(found: &Recorded, part: &Part) -> Result<String, TurnsError> {
    let turn = match &found.body {
        Body::Turn(turn) => turn,
        Body::Erased => return Ok(format!("{} [erased]", found.name())),
        Body::DecodeError(why) => return Err(TurnsError::Typed(format!("{}: {why}", found.name()))),
        Body::Event(fields) => {
            let fields = serde_json::to_string_pretty(fields).unwrap_or_default();
            return Ok(format!("{} at {}\n{fields}", found.header.kind.word(), found.header.at));
        }
    };
    let pretty = |value: Value| serde_json::to_string_pretty(&value).unwrap_or_default();
    Ok(if part.raw {
        turn.raw_response().iter().map(|block| block.json().to_owned()).collect::<Vec<_>>().join("\n")
    } else if part.program {
        turn.program().unwrap_or_default().to_owned()
    } else if part.prints {
        turn.prints().join("\n")
    } else if part.memory {
        pretty(Value::Object(turn.memory().clone()))
    } else if part.usage {
        pretty(turn.ext().get("usage").cloned().unwrap_or_default())
    } else {
        whole(found, turn)
    })
}

/// What came into the stream between the previous turn and this one.
fn saw(log: &TurnLog, found: &Recorded) -> Result<String, TurnsError> {
    let mut sections = Vec::new();
    for record in turns::backwards(log)? {
        let record = record?;
        let is_ours = record.header.stream == found.header.stream && record.header.seq < found.header.seq;
        if !is_ours {
            continue;
        }
        if record.header.kind == RecordKind::Turn {
            break;
        }
        if let (RecordKind::Prompt | RecordKind::Context | RecordKind::Compaction, Body::Event(fields)) =
            (record.header.kind, &record.body)
        {
            let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let from = Some(text("from")).filter(|from| !from.is_empty());
            let from = from.unwrap_or_else(|| record.header.kind.word().to_owned());
            sections.push(format!("── {from}\n{}", text("text")));
        }
    }
    sections.reverse();
    Ok(sections.join("\n"))
}
