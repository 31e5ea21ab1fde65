//! `plimsoll handoffs`: when, by which session, what was asked first, and whether a session has read it.

use super::status::columns::clip;
use super::status::width;
use crate::console;
use clap::Args;
use plimsoll_flows::handoffs::{KnownHandoff, all};
use plimsoll_policy::words::continue_from;
use plimsoll_store::{Project, clock};
use serde_json::{Value, json};
use std::process::ExitCode;

/// How to show them.
#[derive(Debug, Args)]
pub(crate) struct HandoffsArguments {
    /// Print one JSON array: file, written_at, session_id, run, first_request, read
    #[arg(long)]
    json: bool,
}

/// So many letters of a session's id are enough to tell it from others.
const ID: usize = 8;

/// Lists them, the newest first.
pub(crate) fn handoffs(arguments: &HandoffsArguments) -> ExitCode {
    let project = Project::of_command();
    let known = all(&project);
    if arguments.json {
        console::json(Value::Array(known.iter().map(|handoff| as_json(&project, handoff)).collect()));
    } else if known.is_empty() {
        return console::nothing_to_show(format!("There are no handoffs in {}.", project.root().display()));
    } else {
        console::say(table(&project, &known, width()));
    }
    ExitCode::SUCCESS
}

fn as_json(project: &Project, handoff: &KnownHandoff) -> Value {
    let summary = &handoff.summary;
    json!({
        "file": project.relative(&handoff.path),
        "written_at": summary.written_at,
        "session_id": summary.session_id,
        "run": summary.run,
        "first_request": summary.first_request,
        // A run's is read by the run.
        "read": summary.run.is_none().then_some(!handoff.is_unread),
    })
}

fn table(project: &Project, known: &[KnownHandoff], width: usize) -> String {
    let name =
        |handoff: &KnownHandoff| handoff.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let longest = known.iter().map(|handoff| name(handoff).chars().count()).max().unwrap_or(0);
    let line = |when: &str, session: &str, read: &str, file: &str, asked: &str| {
        let start = format!("{when:<16} {session:<ID$}  {read:<4}  {file:<longest$}  ");
        let room = width.saturating_sub(start.chars().count()).max(20);
        format!("{}\n", format!("{start}{}", clip(asked, room)).trim_end())
    };
    let row = |handoff: &KnownHandoff| {
        let summary = &handoff.summary;
        let when = clock::moment(&summary.written_at).map(clock::for_people).unwrap_or_default();
        let session: String = summary.session_id.chars().take(ID).collect();
        let (read, asked) = match (&summary.run, handoff.is_unread) {
            (Some(run), _) => ("run", run.clone()),
            (None, true) => ("no", summary.first_request.clone().unwrap_or_default()),
            (None, false) => ("yes", summary.first_request.clone().unwrap_or_default()),
        };
        line(&when, &session, read, &name(handoff), &asked)
    };
    let heading = line("WHEN", "SESSION", "READ", "FILE", "FIRST REQUEST");
    let rows: String = known.iter().map(row).collect();
    let next = known.iter().find(|handoff| handoff.is_unread).or(known.first());
    let next = next.map(|handoff| continue_from(&project.relative(&handoff.path))).unwrap_or_default();
    format!("{heading}{rows}\nTo continue from one, start `claude` and type: {next}")
}
