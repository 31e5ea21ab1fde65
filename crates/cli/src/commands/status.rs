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
use plimsoll_domain::state::Phase;
use plimsoll_domain::{RunState, SessionRecord, text};
use plimsoll_flows::context::forecast;
use plimsoll_flows::context::measure::{Question, measure};
use plimsoll_flows::keeping;
use plimsoll_flows::run::questions;
use plimsoll_flows::workers::standing;
use plimsoll_launcher::process::{Identity, is_alive};
use plimsoll_store::{Project, clock, config, disk, environment, lock, sessions, state_file};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use view::View;

/// How to show it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArguments {
    /// Print the state file, the session's record, and whether a `plimsoll run` is active
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
    let mut state = match state_file::load(&project, None) {
        Ok(state) => state,
        Err(error) => return refused(&error),
    };
    if let Some(state) = &mut state {
        questions::refresh(&project, state);
    }
    let record =
        state.as_ref().and_then(|state| state.session_id.as_ref()).map(|id| sessions::load(&project, id));
    match (state, arguments.json) {
        (None, true) => say("null"),
        (None, false) => {
            say(foreign_state::words(&project).unwrap_or_else(|| {
                format!("There is no run in {}. Start one with `plimsoll run`.", project.root().display())
            }));
            recorded(&project).map(|words| format!("Records: {words}.")).iter().for_each(say);
        }
        (Some(_), true) => console::json(json(&project, record.as_ref())),
        (Some(state), false) => {
            let view = View { recorded: recorded(&project), ..view(&project, state, record.as_ref()) };
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

fn json(project: &Project, record: Option<&SessionRecord>) -> String {
    let bytes = disk::read(project.state()).ok().flatten().unwrap_or_default();
    let mut document: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    document["session"] = serde_json::to_value(record).unwrap_or_default();
    document["at_work"] = lock::is_run_held(project).into();
    document.to_string()
}

/// The status of a run, and why, in one sentence.
pub(crate) fn standing(project: &Project, state: &RunState) -> Standing {
    words::standing(&view(project, state.clone(), None))
}

fn view(project: &Project, state: RunState, record: Option<&SessionRecord>) -> View {
    let client = living_client(&state);
    View {
        percent: record.and_then(|record| record.usage.percent),
        checkpoint_in: client.and(record).and_then(|record| checkpoint_in(project, record)),
        present_tokens: record.and_then(|record| present_tokens(&state, record)),
        workers: standing::standing(project, &state).unwrap_or_default(),
        at_work: lock::is_run_held(project),
        client,
        journal: project.relative(&project.journal()),
        // Not at each refresh of `--watch`: that would look at every file of ours again.
        recorded: None,
        now: clock::now(),
        width: width(),
        state,
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

/// What the current session has used so far; none if there is no session, or no answer yet.
fn present_tokens(state: &RunState, record: &SessionRecord) -> Option<u64> {
    if state.lifecycle.is_over() || state.iteration_record.phase != Phase::Spawned {
        return None;
    }
    let transcript = record.start.transcript_path.as_ref()?;
    plimsoll_store::tail::spent(Path::new(transcript)).ok().filter(|tokens| *tokens > 0)
}

/// The client of the current session, where it lives: also one whose `plimsoll run` has died.
pub(crate) fn living_client(state: &RunState) -> Option<u32> {
    let record = &state.iteration_record;
    let known = record.pid.zip(record.process_started).map(|(pid, started)| Identity { pid, started });
    known.filter(|known| is_alive(*known)).map(|known| known.pid)
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
