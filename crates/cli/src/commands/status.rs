//! `plimsoll status`: the status of the run, on one screen.

pub(crate) mod columns;
mod screen;
#[cfg(test)]
mod tests;
mod view;
mod watch;
mod words;

pub(crate) use words::Standing;

use crate::console::{refused, say};
use crate::{console, foreign_state};
use clap::Args;
use plimsoll_domain::forecast::Outlook;
use plimsoll_domain::{RunState, SessionRecord, Timestamp, text};
use plimsoll_flows::context::forecast;
use plimsoll_flows::context::measure::{Question, measure};
use plimsoll_flows::keeping;
use plimsoll_flows::run::questions;
use plimsoll_flows::run_figures::{FiguresReader, RunSnapshot, read_snapshot};
use plimsoll_flows::workers::pending_items::describe_pending_items;
use plimsoll_policy::run_activity::RunActivity;
use plimsoll_store::{Project, clock, config, disk, environment, sessions};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use view::View;

/// How to show it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArguments {
    /// Print the state file, the session's record, the figures so far, and what the run does
    #[arg(long)]
    json: bool,
    /// Show it on the full screen and keep it up to date until you press q
    #[arg(long, conflicts_with = "json")]
    watch: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll status
  plimsoll status --json    for scripts; null if there is no run";

/// The width of a screen of unknown size, and the width of a line that is still easy to read.
const USUAL_WIDTH: usize = 100;
/// Narrower than this nothing can be said.
const LEAST_WIDTH: usize = 40;

/// Shows it: exit code 0, also where there is no run.
pub(crate) fn status(arguments: &StatusArguments) -> ExitCode {
    let project = Project::of_command();
    if arguments.watch {
        return watch::watch(&project);
    }
    let mut reader = FiguresReader::default();
    // Before the snapshot, so that a state that was written in between is newer there.
    let document = if arguments.json { state_document(&project) } else { Value::Null };
    let snapshot = match read_snapshot(&project, None, &mut reader) {
        Ok(snapshot) => snapshot,
        Err(error) => return refused(&error),
    };
    match (snapshot, arguments.json) {
        (None, true) => say("null"),
        (None, false) => {
            say(foreign_state::words(&project).unwrap_or_else(|| {
                format!("There is no run in {}. Start one with `plimsoll run`.", project.root().display())
            }));
            recorded(&project).map(|words| format!("Records: {words}.")).iter().for_each(say);
        }
        (Some(snapshot), true) => console::json(json(&project, document, snapshot)),
        (Some(snapshot), false) => {
            let view = View { recorded: recorded(&project), ..view(&project, snapshot) };
            say(view.lines().join("\n"));
        }
    }
    ExitCode::SUCCESS
}

/// What the records take, and what would help.
fn recorded(project: &Project) -> Option<String> {
    let records = keeping::look(project).ok().filter(|records| !records.kept.is_empty())?;
    let old = records.pruning(keeping::A_MONTH).freed;
    let help =
        (old > 0).then(|| format!("; `plimsoll prune --older-than 30d` would free {}", text::bytes(old)));
    Some(format!("{}{}", text::bytes(records.bytes()), help.unwrap_or_default()))
}

fn state_document(project: &Project) -> Value {
    let bytes = disk::read(project.state()).ok().flatten().unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn json(project: &Project, mut document: Value, snapshot: RunSnapshot) -> String {
    let is_older = |document: &Value| document["revision"].as_u64() != Some(snapshot.state.revision);
    if is_older(&document) {
        document = state_document(project);
    }
    let record = session_record(project, &snapshot.state);
    document["session"] = serde_json::to_value(record).unwrap_or_default();
    document["at_work"] = snapshot.is_run_active.into();
    // The file leaves an empty list out.
    let changed_checks = &snapshot.state.outcomes.changed_checks;
    document["changed_checks"] = serde_json::to_value(changed_checks).unwrap_or_default();
    document["figures"] = serde_json::to_value(&snapshot.figures).unwrap_or_default();
    let activity = snapshot.activity.clone();
    let view = view(project, snapshot);
    document["activity"] = json!({
        "state": activity.word(),
        "until": until(&activity),
        "continues_by_itself": activity.continues_by_itself(),
        "summary": words::standing(&view).to_string(),
        "next": words::next(&view),
    });
    document.to_string()
}

fn until(activity: &RunActivity) -> Option<&Timestamp> {
    match activity {
        RunActivity::Waiting { until } | RunActivity::Unattended { until } => until.as_ref(),
        _ => None,
    }
}

/// The status of a run, and why, in one sentence.
pub(crate) fn standing(project: &Project, snapshot: &RunSnapshot) -> Standing {
    words::standing(&view(project, snapshot.clone()))
}

fn session_record(project: &Project, state: &RunState) -> Option<SessionRecord> {
    state.session_id.as_ref().map(|id| sessions::load(project, id))
}

fn view(project: &Project, snapshot: RunSnapshot) -> View {
    let RunSnapshot { mut state, figures, activity, stop_reason, .. } = snapshot;
    questions::refresh(project, &mut state);
    let record = session_record(project, &state);
    let running = record.as_ref().filter(|_| figures.sessions_running > 0);
    View {
        percent: record.as_ref().and_then(|record| record.usage.percent),
        checkpoint_in: running.and_then(|record| checkpoint_in(project, record)),
        pending_items: describe_pending_items(project, &state).unwrap_or_default(),
        journal: project.relative(&project.journal()),
        // Not at each refresh of `--watch`: that would look at every file of ours again.
        recorded: None,
        now: clock::now(),
        width: width(),
        state,
        figures,
        activity,
        stop_reason,
    }
}

/// When the current session's checkpoint is due.
fn checkpoint_in(project: &Project, record: &SessionRecord) -> Option<Outlook> {
    let (settings, _) = config::load(project);
    let transcript = record.start.transcript_path.as_ref().map(PathBuf::from);
    let transcript = transcript.as_deref();
    let measurement = measure(&Question { project, settings: &settings, record, transcript, calls: &[] });
    forecast::of_session(transcript, &measurement).forecast?.l2
}

/// As the user says, else as the terminal is, else as usual.
pub fn width() -> usize {
    let said = environment::number("COLUMNS").filter(|columns| *columns >= 1.0);
    let width = said.map_or_else(
        || console::columns().unwrap_or(USUAL_WIDTH).min(USUAL_WIDTH),
        |columns| columns as usize,
    );
    width.max(LEAST_WIDTH)
}
