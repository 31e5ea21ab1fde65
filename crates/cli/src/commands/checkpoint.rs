//! `plimsoll checkpoint`: writes a handoff now, without forcing a new session.

use crate::reported_session::{ReportError, ReportedSession};
use crate::target_session::TargetSession;
use clap::{Args, ValueEnum};
use plimsoll_domain::handoff::HandoffNotes;
use plimsoll_domain::state::CheckpointCause;
use plimsoll_domain::text::count_with_noun;
use plimsoll_domain::{Marker, RunState, UsageReading};
use plimsoll_flows::checkpoint::{CheckpointRequest, write_checkpoint};
use plimsoll_flows::compaction::{
    EXCHANGE_TOKENS, Replacement, read_conversation_unless_empty, render_replacement_message,
    wait_for_end_and_return_missing_prompt, write_checkpoint_before_replacement,
};
use plimsoll_flows::context::measure::{MeasureInput, measure_usage_waiting_near_threshold};
use plimsoll_flows::handoffs::continue_slash_command_or_prompt;
use plimsoll_policy::messages::MOVED_INTO_PROJECT_NOTICE;
use plimsoll_protocol::client_report::SCHEMA_VERSION;
use plimsoll_protocol::handoff_message::HandoffMessageKind;
use plimsoll_store::{
    Project, StoreError, WritableProject, config, copy_data_folder_into_project_if_unwritable,
};
use plimsoll_terminal::console::{self, fail, print_json, print_text};
use plimsoll_terminal::value_parsers;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Arguments of `plimsoll checkpoint`.
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
    /// Print the message that replaces the conversation, as JSON
    #[arg(long, requires = "cause", requires = "client")]
    json: bool,
    /// Why the conversation is replaced
    #[arg(long, value_enum, requires = "json")]
    cause: Option<ReplacementCause>,
    /// Claude Code's figures of the session, as JSON or `-`
    #[arg(long, value_name = "JSON", requires = "json")]
    client: Option<String>,
    /// The size of the quoted end of the conversation, for measurements
    #[arg(long, value_name = "TOKENS", requires = "json", hide = true, default_value_t = EXCHANGE_TOKENS, value_parser = value_parsers::whole_number::<usize>)]
    exchange_tokens: usize,
}

/// Why a conversation is replaced by a handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReplacementCause {
    /// Claude Code compacts it
    Compact,
    /// A fresh conversation continues the work
    Clear,
}

impl ReplacementCause {
    fn checkpoint_cause(self) -> CheckpointCause {
        match self {
            ReplacementCause::Compact => CheckpointCause::Compact,
            ReplacementCause::Clear => CheckpointCause::Clear,
        }
    }

    fn message_kind(self) -> HandoffMessageKind {
        match self {
            ReplacementCause::Compact => HandoffMessageKind::Compaction,
            ReplacementCause::Clear => HandoffMessageKind::FreshConversation,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  plimsoll checkpoint
  plimsoll checkpoint --summary 'The parser reads dates.' \\
    --progress 'tests missing' --next 'tests/dates.rs'";

/// Writes a checkpoint for the current session or run, and prints a report with the path of its handoff.
pub(crate) fn write_and_print_checkpoint(arguments: &CheckpointArguments) -> ExitCode {
    if let (Some(cause), Some(client)) = (arguments.cause, &arguments.client) {
        return match write_checkpoint_and_build_replacement_json(cause, client, arguments.exchange_tokens) {
            Ok(document) => {
                print_json(document);
                ExitCode::SUCCESS
            }
            Err(error) => fail(error),
        };
    }
    let WritableProject { project, was_moved } =
        match copy_data_folder_into_project_if_unwritable(Project::find_upwards_from_current_dir()) {
            Ok(writable) => writable,
            Err(error) => return fail(error),
        };
    match TargetSession::find_current_or_run_or_latest(&project) {
        Ok(Some(target_session)) => {
            match write_manual_checkpoint_and_render_report(&project, &target_session, arguments) {
                Ok(text) => {
                    let moved_note =
                        if was_moved { format!("\n\n{MOVED_INTO_PROJECT_NOTICE}") } else { String::new() };
                    print_text(format!("{text}{moved_note}"));
                    ExitCode::SUCCESS
                }
                Err(error) => fail(error),
            }
        }
        Ok(None) => fail(
            "no session has been recorded here: run this inside a session with Plimsoll's hooks, or during a run",
        ),
        Err(error) => fail(error),
    }
}

/// Writes the checkpoint before a conversation is replaced, and returns the message that takes its place.
fn write_checkpoint_and_build_replacement_json(
    cause: ReplacementCause,
    client: &str,
    exchange_tokens: usize,
) -> Result<Value, ReportError> {
    let session = ReportedSession::load_from_argument_or_stdin(client)?;
    if let Some(reason) = session.reason_for_silence() {
        return Err(ReportError::Silent(reason));
    }
    let transcript_path = session.transcript_path.as_deref().ok_or(ReportError::NoTranscript)?;
    // The client asks before its transcript is complete.
    let missing_prompt = wait_for_end_and_return_missing_prompt(transcript_path, &session.report)?;
    let conversation = read_conversation_unless_empty(transcript_path).ok_or(ReportError::EmptyTranscript)?;
    if conversation.ends_with_unanswered_handoff() {
        return Err(ReportError::UnansweredHandoff);
    }
    let run = session.open_run()?;
    let measurement = session.measure_usage();
    let replacement = Replacement {
        project: &session.project,
        settings: &session.settings,
        session_id: &session.session_id,
        transcript_path: Some(transcript_path.to_owned()),
        run: run.as_ref(),
        measurement: &measurement,
    };
    let handoff = write_checkpoint_before_replacement(&replacement, cause.checkpoint_cause())?;
    let text = render_replacement_message(
        conversation,
        cause.message_kind(),
        &handoff,
        missing_prompt,
        exchange_tokens,
    );
    Ok(json!({
        "schema_version": SCHEMA_VERSION,
        "session": session.session_id,
        "cause": cause.checkpoint_cause(),
        "level": measurement.projected_level().unwrap_or_default(),
        "path": handoff.file,
        "text": text,
    }))
}

fn write_manual_checkpoint_and_render_report(
    project: &Project,
    target_session: &TargetSession,
    arguments: &CheckpointArguments,
) -> Result<String, StoreError> {
    let (settings, _) = config::load_settings(project);
    let transcript = target_session.transcript_path();
    let input = MeasureInput {
        project,
        settings: &settings,
        record: &target_session.record,
        transcript_path: transcript.as_deref(),
        pending_calls: &[],
    };
    let measurement = measure_usage_waiting_near_threshold(&input);
    let level = measurement.projected_level().unwrap_or_default();
    let handoff = write_checkpoint(&CheckpointRequest {
        project,
        settings: &settings,
        session_id: &target_session.record.session_id,
        transcript_path: transcript.clone(),
        run: target_session.run.as_ref(),
        cause: CheckpointCause::Manual,
        level,
        reading: measurement.reading.as_ref(),
        thresholds: measurement.thresholds.as_ref(),
        transcript_wait: None,
        pending_calls: &[],
        notes: HandoffNotes {
            summary: arguments.summary.clone(),
            progress: arguments.progress.clone(),
            next_step: arguments.next.clone(),
        },
    })?
    .file;
    let percent = measurement.reading.as_ref().and_then(UsageReading::projected_percent);
    let marker = Marker::Checkpoint { level, percent, handoff: handoff.clone() };
    let next_command = continue_slash_command_or_prompt(project, &handoff);
    let report = render_checkpoint_report(target_session.run.as_ref(), percent, &handoff, &next_command);
    // The report says the same as the marker, so on a terminal it stands alone.
    Ok(if console::is_terminal() { report } else { format!("{marker}\n\n{report}") })
}

/// Renders the Markdown report of a written checkpoint.
fn render_checkpoint_report(
    run: Option<&RunState>,
    percent: Option<u64>,
    handoff: &str,
    next_command: &str,
) -> String {
    let percent_text = percent.map_or("?".to_owned(), |percent| format!("{percent}%"));
    let context_and_handoff_lines = format!("**Context**: {percent_text}\n**Handoff**: {handoff}\n");
    let Some(run) = run else {
        return format!(
            "## Checkpoint Created\n\n{context_and_handoff_lines}\nThis session continues. To continue in a fresh one: /clear, then: {next_command}"
        );
    };
    let open_items_text = count_with_noun(run.plan_items.todo_items.len(), "open item");
    format!(
        "## Ralph Checkpoint Created\n\n**Session**: {} of {}\n{context_and_handoff_lines}\nThe next session of \"{}\" ({open_items_text}) resumes from this point. This one continues: a checkpoint on demand ends nothing.",
        run.iteration,
        run.options.max_iterations,
        plimsoll_domain::text::to_safe_single_line(&run.options.task_name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::{PlanItems, RunOptions};

    #[test]
    fn the_report_names_the_next_step_with_and_without_a_run() {
        let run = RunState {
            iteration: 5,
            options: RunOptions { task_name: "Dates".into(), max_iterations: 50, ..RunOptions::default() },
            plan_items: PlanItems { todo_items: vec!["one".into()], ..PlanItems::default() },
            ..RunState::default()
        };
        assert_eq!(
            render_checkpoint_report(Some(&run), Some(72), ".claude/handoffs/a.md", ""),
            "## Ralph Checkpoint Created\n\n**Session**: 5 of 50\n**Context**: 72%\n**Handoff**: .claude/handoffs/a.md\n\nThe next session of \"Dates\" (1 open item) resumes from this point. This one continues: a checkpoint on demand ends nothing."
        );
        let without_run = render_checkpoint_report(None, None, "a.md", "/handoff continue");
        assert!(
            without_run.starts_with("## Checkpoint Created\n\n**Context**: ?\n**Handoff**: a.md\n"),
            "{without_run}"
        );
        assert!(
            !without_run.contains("**Session**") && without_run.ends_with("/clear, then: /handoff continue"),
            "{without_run}"
        );
    }
}
