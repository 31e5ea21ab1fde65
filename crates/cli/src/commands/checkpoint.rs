//! `plimsoll checkpoint`: writes a handoff now. It never forces a new session.

use crate::target_session::TargetSession;
use clap::Args;
use plimsoll_domain::handoff::Notes;
use plimsoll_domain::state::Cause;
use plimsoll_domain::text::counted;
use plimsoll_domain::{Marker, Reading, RunState};
use plimsoll_flows::checkpoint::{Request, write};
use plimsoll_flows::context::measure::{Question, measure};
use plimsoll_flows::handoffs::continue_command;
use plimsoll_policy::words::MOVED_INTO_PROJECT;
use plimsoll_store::{Project, StoreError, WritableProject, config, writable_project};
use plimsoll_terminal::console::{fail, say};
use std::process::ExitCode;

/// What to say in it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
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

const EXAMPLES: &str = "\
Examples:
  plimsoll checkpoint
  plimsoll checkpoint --summary 'The parser reads dates.' \\
    --progress 'tests missing' --next 'tests/dates.rs'";

/// Writes it and names it.
pub(crate) fn checkpoint(arguments: &CheckpointArguments) -> ExitCode {
    let WritableProject { project, has_moved } = match writable_project(Project::of_command()) {
        Ok(writable) => writable,
        Err(error) => return fail(error),
    };
    match TargetSession::find(&project) {
        Ok(Some(whose)) => match take(&project, &whose, arguments) {
            Ok(text) => {
                let moved = if has_moved { format!("\n\n{MOVED_INTO_PROJECT}") } else { String::new() };
                say(format!("{text}{moved}"));
                ExitCode::SUCCESS
            }
            Err(error) => fail(error),
        },
        Ok(None) => fail(
            "no session has been recorded here: run this inside a session with Plimsoll's hooks, or during a run",
        ),
        Err(error) => fail(error),
    }
}

fn take(
    project: &Project,
    whose: &TargetSession,
    arguments: &CheckpointArguments,
) -> Result<String, StoreError> {
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
        thresholds: measurement.thresholds.as_ref(),
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
    let next = continue_command(project, &handoff);
    Ok(format!("{marker}\n\n{}", report(whose.run.as_ref(), percent, &handoff, &next)))
}

/// What the user sees of it, in Markdown.
fn report(run: Option<&RunState>, percent: Option<u64>, handoff: &str, next: &str) -> String {
    let percent = percent.map_or("?".to_owned(), |percent| format!("{percent}%"));
    let facts = format!("**Context**: {percent}\n**Handoff**: {handoff}\n");
    let Some(run) = run else {
        return format!(
            "## Checkpoint Created\n\n{facts}\nThis session continues. To go on in a fresh one: /clear, then: {next}"
        );
    };
    let open = counted(run.items.todo_items.len(), "open item");
    format!(
        "## Ralph Checkpoint Created\n\n**Iteration**: {} of {}\n{facts}\nThe next session of \"{}\" ({open}) resumes from this point. This one continues: a checkpoint on demand ends nothing.",
        run.iteration,
        run.options.max_iterations,
        plimsoll_domain::text::one_line(&run.options.task_name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::{Items, RunOptions};

    #[test]
    fn it_says_what_follows_and_promises_nothing_more() {
        let run = RunState {
            iteration: 5,
            options: RunOptions { task_name: "Dates".into(), max_iterations: 50, ..RunOptions::default() },
            items: Items { todo_items: vec!["one".into()], ..Items::default() },
            ..RunState::default()
        };
        assert_eq!(
            report(Some(&run), Some(72), ".claude/handoffs/a.md", ""),
            "## Ralph Checkpoint Created\n\n**Iteration**: 5 of 50\n**Context**: 72%\n**Handoff**: .claude/handoffs/a.md\n\nThe next session of \"Dates\" (1 open item) resumes from this point. This one continues: a checkpoint on demand ends nothing."
        );
        let alone = report(None, None, "a.md", "/handoff continue");
        assert!(alone.starts_with("## Checkpoint Created\n\n**Context**: ?\n**Handoff**: a.md\n"), "{alone}");
        assert!(
            !alone.contains("Iteration") && alone.ends_with("/clear, then: /handoff continue"),
            "{alone}"
        );
    }
}
