//! `plimsoll checkpoint`: writes a handoff now. It never forces a new session.

use crate::whose::Whose;
use crate::{fail, say};
use clap::Args;
use flows::checkpoint::{Request, write};
use flows::measure::{Question, measure};
use session::handoff::Notes;
use session::state::Cause;
use session::text::counted;
use session::{Marker, Reading};
use std::process::ExitCode;
use store::{Project, StoreError, config};

/// What to say in it.
#[derive(Debug, Args)]
pub(crate) struct CheckpointArguments {
    /// What was being done, for the handoff's notes
    #[arg(long, default_value = "", hide_default_value = true)]
    summary: String,
    /// How far the item is
    #[arg(long, default_value = "", hide_default_value = true)]
    progress: String,
    /// What comes next
    #[arg(long, default_value = "", hide_default_value = true)]
    next: String,
}

/// Writes it and names it.
pub(crate) fn checkpoint(arguments: &CheckpointArguments) -> ExitCode {
    let project = Project::of_command();
    match Whose::find(&project) {
        Ok(Some(whose)) => match take(&project, &whose, arguments) {
            Ok(text) => {
                say(text);
                ExitCode::SUCCESS
            }
            Err(error) => fail(error, 1),
        },
        Ok(None) => fail(
            "no session is known here: run this inside a session with Plimsoll's hooks, or during a run",
            1,
        ),
        Err(error) => fail(error, 1),
    }
}

fn take(project: &Project, whose: &Whose, arguments: &CheckpointArguments) -> Result<String, StoreError> {
    let (settings, _) = config::load(project);
    let transcript = whose.transcript();
    let question = Question {
        project,
        settings: &settings,
        record: &whose.record,
        transcript: transcript.as_deref(),
        calls: &[],
    };
    let measurement = measure(&question);
    let level = measurement.level().unwrap_or_default();
    let handoff = write(&Request {
        project,
        settings: &settings,
        session_id: &whose.record.session_id,
        transcript: transcript.clone(),
        run: whose.run.as_ref(),
        cause: Cause::Manual,
        level,
        reading: measurement.reading.as_ref(),
        marks: measurement.marks.as_ref(),
        waited: None,
        calls: &[],
        notes: Notes {
            summary: arguments.summary.clone(),
            progress: arguments.progress.clone(),
            next: arguments.next.clone(),
        },
    })?;
    let percent = measurement.reading.as_ref().and_then(Reading::percent);
    let marker = Marker::Checkpoint { level, percent, handoff: handoff.clone() };
    let run = whose.run.as_ref().map(|run| {
        format!(
            "\nIteration {} of \"{}\", {}. The next session resumes from here; this one goes on.",
            run.iteration,
            run.task_name,
            counted(run.todo_items.len(), "open item")
        )
    });
    Ok(format!("{marker}\nHandoff: {handoff}{}", run.unwrap_or_default()))
}
