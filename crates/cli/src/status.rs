//! `plimsoll status`: where the run stands, on one screen.

use crate::{fail, say};
use clap::Args;
use session::text::{clip, counted};
use session::{RunState, SessionRecord, Status};
use std::process::ExitCode;
use store::{Project, disk, sessions, state_file};

/// How to show it.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Print the state as it stands in the file, with the session's record beside it
    #[arg(long)]
    json: bool,
}

/// So many items and iterations are named.
const NAMED: usize = 10;

/// Shows it: exit code 0, also where there is no run.
pub(crate) fn status(arguments: &StatusArguments) -> ExitCode {
    let project = Project::of_command();
    let state = match state_file::load(&project, None) {
        Ok(state) => state,
        Err(error) => return fail(format!("{error}\nhint: {}", error.hint()), 1),
    };
    let record =
        state.as_ref().and_then(|state| state.session_id.as_ref()).map(|id| sessions::load(&project, id));
    match (&state, arguments.json) {
        (None, true) => say("null"),
        (None, false) => {
            say(format!("There is no run in {}. Start one with `plimsoll run`.", project.root().display()));
        }
        (Some(_), true) => say(json(&project, record.as_ref())),
        (Some(state), false) => say(screen(&project, state, record.as_ref())),
    }
    ExitCode::SUCCESS
}

fn json(project: &Project, record: Option<&SessionRecord>) -> String {
    let bytes = disk::read(project.state()).ok().flatten().unwrap_or_default();
    let mut document: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    document["session"] = serde_json::to_value(record).unwrap_or_default();
    document.to_string()
}

fn screen(project: &Project, state: &RunState, record: Option<&SessionRecord>) -> String {
    let total = state.todo_items.len() + state.completed_items.len();
    let mut lines = vec![
        format!("{} ({})", state.task_name, state.run_id),
        format!("Status      {}{}", state.status, reason(state)),
        format!("Iteration   {} of {}", state.iteration, state.max_iterations),
        format!("Items       {} of {total} done", state.completed_items.len()),
        format!(
            "Started     {}{}",
            state.started_at,
            state.ended_at.as_ref().map(|at| format!(", ended {at}")).unwrap_or_default()
        ),
        format!("Cost        ${:.2}", state.cost_usd),
    ];
    if let Some(percent) = record.and_then(|record| record.percent) {
        lines.push(format!("Context     {percent}% in the present session"));
    }
    lines.extend(checkpoint(state));
    lines.extend(peaks(state));
    lines.extend(items("Done", 'x', &state.completed_items));
    lines.extend(items("Open", ' ', &state.todo_items));
    lines.extend(
        state
            .refusals
            .iter()
            .map(|reason| format!("Refused     {}", clip(reason.lines().next().unwrap_or_default(), 160))),
    );
    lines.push(format!("Next        {}", next(state)));
    lines.push(format!("Journal     {}", project.relative(&project.journal())));
    lines.join("\n")
}

fn reason(state: &RunState) -> String {
    let words = state.last_verdict.as_ref().map(|verdict| verdict.marker().to_string());
    words.map(|words| format!("  {words}")).unwrap_or_default()
}

fn checkpoint(state: &RunState) -> Option<String> {
    let checkpoint = &state.context_checkpoint;
    (!checkpoint.handoff_file.is_empty()).then(|| {
        let percent =
            checkpoint.percent_at_checkpoint.map_or("?".to_owned(), |percent| format!("{percent}%"));
        format!(
            "Checkpoint  {} ({}, {} at {percent}, iteration {})",
            checkpoint.handoff_file,
            checkpoint.cause.word(),
            checkpoint.level,
            checkpoint.iteration
        )
    })
}

fn peaks(state: &RunState) -> Option<String> {
    let skipped = state.context_history.len().saturating_sub(NAMED);
    let shown = state.context_history.iter().skip(skipped);
    let peaks: Vec<String> = shown
        .map(|entry| {
            format!("{}:{}%{}", entry.iteration, entry.peak_percent, if entry.checkpoint { "*" } else { "" })
        })
        .collect();
    (!peaks.is_empty()).then(|| format!("Peaks       {}  (* ended at a checkpoint)", peaks.join(" ")))
}

fn items(title: &str, mark: char, items: &[String]) -> Vec<String> {
    if items.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![format!("{title}        {}", counted(items.len(), "item"))];
    lines.extend(items.iter().take(NAMED).map(|item| format!("  [{mark}] {}", clip(item, 90))));
    if items.len() > NAMED {
        lines.push(format!("  … and {} more", items.len() - NAMED));
    }
    lines
}

fn next(state: &RunState) -> &'static str {
    match state.status {
        Status::Running => "if no `plimsoll run` is at work: plimsoll run --resume",
        Status::Paused => "plimsoll run --resume",
        Status::Completed => "nothing: it is done",
        Status::Blocked => "answer what blocks it, then: plimsoll run --resume",
        Status::MaxIterations => "plimsoll run --resume --max-iterations N, with a larger N",
        Status::Budget | Status::Deadline | Status::CircuitBreaker => {
            "look at the journal, then: plimsoll run --resume"
        }
        Status::FatalError => "mend the cause, then: plimsoll run --resume",
        Status::Cancelled => "start a new run with: plimsoll run",
    }
}
