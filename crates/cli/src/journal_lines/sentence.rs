//! Describes each event of the journal in a sentence.

use super::phrase::{LineStyle, shorten_to_single_line};
use super::verdict::describe_verdict;
use plimsoll_domain::journal::{
    BreakerOpened, CheckpointWritten, EventSeverity, JournalEntry, JournalEvent, LevelReached,
    NextStepSizeEstimate, RunStartDetails, TicksReverted, VerdictReached, VerifyCommandsRan, VerifyResult,
    WipCommit,
};
use plimsoll_domain::reverted_ticks;
use plimsoll_domain::review::ReviewOutcome;
use plimsoll_domain::state::CheckpointCause;
use plimsoll_domain::text::{count_with_noun, format_tokens, to_safe_single_line, truncate_end};
use plimsoll_protocol::event::SessionSource;
use plimsoll_terminal::worker_event_text;

/// The description of a journal entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventSentence {
    /// A sentence and its style.
    Shown(String, LineStyle),
    /// No sentence, because another line describes the event.
    Omitted,
}

pub(super) fn describe_event(entry: &JournalEntry) -> EventSentence {
    let shown =
        |text: String| EventSentence::Shown(text, line_style_for_severity(entry.event.traits().severity));
    match &entry.event {
        // `SessionStart` shows that a session has started; the final verdict follows the provisional one.
        JournalEvent::Planned(_)
        | JournalEvent::ClientStarted { .. }
        | JournalEvent::ProvisionalVerdict { .. } => EventSentence::Omitted,
        // In a run, `IterationClosed` shows the end and the peak: the last response is measured only at that point.
        JournalEvent::SessionEnd(_) if entry.run_id.is_some() => EventSentence::Omitted,
        JournalEvent::IterationClosed(iteration_end) => {
            shown(describe_session_end(Some(iteration_end.peak_percent), None))
        }
        JournalEvent::SessionEnd(session_end) => {
            shown(describe_session_end(session_end.peak_percent, session_end.reason.as_deref()))
        }
        JournalEvent::RunStarted(run) => shown(describe_run_start(run)),
        JournalEvent::RunResumed(run) => shown(describe_run_resume(run)),
        JournalEvent::ClientAdopted { pid } => shown(describe_client_adoption(*pid)),
        JournalEvent::Cancelled => shown("run canceled with `plimsoll stop`".to_owned()),
        JournalEvent::SessionStart { source } => shown(describe_session_start(*source)),
        JournalEvent::Warning(level_reached) => {
            shown(format!("warning {} at {}%", level_reached.level, level_reached.percent))
        }
        JournalEvent::Checkpoint(checkpoint) => shown(describe_checkpoint(checkpoint)),
        JournalEvent::SessionEndRequested(level_reached) => {
            shown(describe_session_end_by_plimsoll(level_reached))
        }
        JournalEvent::ClientEnded { reason } => shown(describe_client_end(reason)),
        JournalEvent::WipCommit(wip_commit) => describe_wip_commit(wip_commit),
        JournalEvent::Verdict(verdict) => describe_verdict_event(verdict),
        JournalEvent::SetAside { item } => shown(describe_set_aside_item(item)),
        JournalEvent::Parked { item, question } => shown(describe_parked_item(item, question)),
        JournalEvent::TicksReverted(reverted) => shown(describe_reverted_ticks(reverted)),
        JournalEvent::Reviewed(review_outcome) => describe_review(review_outcome),
        JournalEvent::VerifyCommandsRan(verified) => shown(describe_verify_before_session(verified)),
        JournalEvent::BreakerOpened(breaker) => shown(describe_breaker_trip(breaker)),
        JournalEvent::ContinuedWithNextItem(estimate) => shown(describe_continuation_with_item(estimate)),
        JournalEvent::NextItemDoesNotFit(estimate) => shown(describe_item_without_room(estimate)),
        JournalEvent::NoRoomForStep(estimate) => shown(describe_no_room_for_step(estimate)),
        JournalEvent::CutOffByClient { item, .. } => shown(describe_cut_off_turn(item)),
        JournalEvent::Notified { reason, program, error } => {
            describe_notification(reason, program, error.as_deref())
        }
        JournalEvent::LinearDelivered(note) => {
            shown(format!("Linear notified: {}", shorten_to_single_line(&note.issue)))
        }
        JournalEvent::LinearFailed { error, .. } => shown(describe_linear_failure(error)),
        JournalEvent::TelemetryLost { span_count, log_count, last_error } => {
            shown(describe_lost_telemetry(*span_count, *log_count, last_error))
        }
        JournalEvent::HooksDidNotRun { client_version } => shown(describe_missing_hooks(client_version)),
        JournalEvent::ProcessesLeftBehind { processes } => shown(describe_leftover_processes(processes)),
        JournalEvent::Fault { error, action_taken, .. } => {
            shown(format!("{}; {}", shorten_to_single_line(error), shorten_to_single_line(action_taken)))
        }
        JournalEvent::PromptRestored { old_file } => shown(describe_prompt_repair(old_file)),
        JournalEvent::PlanRestored { plan_path } => shown(describe_plan_repair(plan_path)),
        JournalEvent::WorkerBegan(_)
        | JournalEvent::WorkerEnded(_)
        | JournalEvent::ItemsMerged(_)
        | JournalEvent::ItemReturned(_) => {
            shown(worker_event_text::render_parallel_run_or_note_event(&entry.event).unwrap_or_default())
        }
        JournalEvent::StateRepaired { repaired_part } => {
            shown(format!("state repaired: {}", shorten_to_single_line(repaired_part)))
        }
        // Shown with all their fields.
        JournalEvent::Note { .. } | JournalEvent::Unknown(_) => shown(render_name_and_fields(&entry.event)),
    }
}

fn line_style_for_severity(severity: EventSeverity) -> LineStyle {
    match severity {
        EventSeverity::Routine | EventSeverity::Notice => LineStyle::Plain,
        EventSeverity::Milestone => LineStyle::Bold,
        EventSeverity::Problem | EventSeverity::Alarm => LineStyle::Bad,
    }
}

fn plain_sentence(text: String) -> EventSentence {
    EventSentence::Shown(text, LineStyle::Plain)
}

fn bad_sentence(text: String) -> EventSentence {
    EventSentence::Shown(text, LineStyle::Bad)
}

/// Renders the event's name, and all its fields as `name=value`.
fn render_name_and_fields(event: &JournalEvent) -> String {
    let render_value = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => shorten_to_single_line(text),
        other => shorten_to_single_line(&other.to_string()),
    };
    let fields = event.fields_without_name();
    let field_texts =
        fields.iter().map(|(name, field_value)| format!(" {name}={}", render_value(field_value)));
    to_safe_single_line(event.name()) + &field_texts.collect::<String>()
}

fn describe_run_start(run: &RunStartDetails) -> String {
    let verify_commands: Vec<String> =
        run.verify_commands.iter().flatten().map(|command| shorten_to_single_line(command)).collect();
    let verify_text = if verify_commands.is_empty() {
        String::new()
    } else {
        format!(", verify: {}", verify_commands.join("; "))
    };
    let max_sessions = run.max_iterations.map_or("? sessions".to_owned(), |max_iterations| {
        count_with_noun(max_iterations as usize, "session")
    });
    let branch = run
        .branch
        .as_ref()
        .map_or(String::new(), |branch| format!(", on the branch {}", shorten_to_single_line(branch)));
    format!(
        "run \"{}\" started: {}, at most {max_sessions}{branch}{verify_text}",
        truncate_end(&shorten_or_question_mark(run.task_name.as_deref()), 60),
        shorten_or_question_mark(run.item_count_text.as_deref()),
    )
}

fn describe_run_resume(run: &RunStartDetails) -> String {
    let breaker = if run.is_breaker_reset == Some(true) { ", and the circuit breaker reset" } else { "" };
    format!("run resumed{breaker}")
}

fn describe_client_adoption(pid: u32) -> String {
    format!("run resumed; its client (process {pid}) was still running")
}

fn describe_session_start(source: SessionSource) -> String {
    match source {
        SessionSource::Startup => "session began".to_owned(),
        SessionSource::Compact => "session continues after a compaction".to_owned(),
        SessionSource::Resume => "session began (resume)".to_owned(),
        SessionSource::Fork => "session began (fork)".to_owned(),
        SessionSource::Clear => "session began (clear)".to_owned(),
    }
}

/// The reason `other` is omitted: the client uses it for every end of a headless session.
fn describe_session_end(peak_percent: Option<u64>, reason: Option<&str>) -> String {
    let peak = peak_percent.filter(|peak| *peak > 0);
    let peak_text = peak.map(|peak| format!(", peak {peak}%")).unwrap_or_default();
    let reason = reason.filter(|reason| !matches!(*reason, "" | "other"));
    format!(
        "session ended{peak_text}{}",
        reason.map(|reason| format!(" ({})", shorten_to_single_line(reason))).unwrap_or_default()
    )
}

fn describe_checkpoint(checkpoint: &CheckpointWritten) -> String {
    let kind = match checkpoint.cause {
        None | Some(CheckpointCause::Level) => checkpoint.level.to_string(),
        Some(CheckpointCause::Budget) => "before the next item".to_owned(),
        Some(CheckpointCause::Compact) => "before a compaction".to_owned(),
        Some(CheckpointCause::Clear) => "before a fresh conversation".to_owned(),
        Some(CheckpointCause::Step) => "after a commit".to_owned(),
        Some(CheckpointCause::Crash) => "after a session that was cut short".to_owned(),
        Some(CheckpointCause::Unfinished) => "after a session that left its item open".to_owned(),
        Some(CheckpointCause::Manual) => "on demand".to_owned(),
    };
    let at_percent = checkpoint.percent.map(|percent| format!(" at {percent}%")).unwrap_or_default();
    let item =
        checkpoint.item.as_ref().map(|item| format!(" (item {})", quote_item(item))).unwrap_or_default();
    format!(
        "checkpoint {kind}{at_percent}{}{item}",
        colon_and_shortened_text_or_empty(Some(&checkpoint.handoff_path))
    )
}

fn describe_session_end_by_plimsoll(level_reached: &LevelReached) -> String {
    format!(
        "session ended by Plimsoll at {}%{}",
        level_reached.percent,
        colon_and_shortened_text_or_empty(level_reached.session_message.as_deref())
    )
}

fn describe_client_end(reason: &str) -> String {
    format!("client ended by Plimsoll{}", colon_and_shortened_text_or_empty(Some(reason)))
}

fn describe_wip_commit(wip_commit: &WipCommit) -> EventSentence {
    match &wip_commit.error {
        None => plain_sentence(describe_successful_wip_commit(wip_commit)),
        Some(error) => bad_sentence(format!(
            "the uncommitted work could not be committed: {}",
            shorten_to_single_line(error)
        )),
    }
}

fn describe_successful_wip_commit(wip_commit: &WipCommit) -> String {
    let file_count_text = wip_commit
        .file_count
        .map(|files| format!(" ({})", count_with_noun(files, "file")))
        .unwrap_or_default();
    let omitted_files: Vec<String> =
        wip_commit.omitted_files.iter().flatten().map(|file| shorten_to_single_line(file)).collect();
    let omitted_files_text = if omitted_files.is_empty() {
        String::new()
    } else {
        format!(", but not {}", omitted_files.join(", "))
    };
    format!(
        "uncommitted work committed as {}{file_count_text}{omitted_files_text}{}",
        truncate_end(&shorten_or_question_mark(wip_commit.commit.as_deref()), 13),
        colon_and_shortened_text_or_empty(wip_commit.message.as_deref())
    )
}

fn describe_set_aside_item(item: &str) -> String {
    format!("set aside: {}, no session made progress on it", quote_item(item))
}

fn describe_parked_item(item: &str, question: &str) -> String {
    format!("{} waits for your answer: {}", quote_item(item), shorten_or_question_mark(Some(question)))
}

fn describe_verdict_event(verdict: &VerdictReached) -> EventSentence {
    let (text, style) = describe_verdict(verdict);
    EventSentence::Shown(text, style)
}

fn describe_reverted_ticks(reverted: &TicksReverted) -> String {
    let failed_commands = reverted.failed_commands.iter().map(String::as_str);
    reverted_ticks::describe_reverted_ticks(
        &reverted.items,
        failed_commands,
        reverted.review_findings.len(),
        &reverted.protected_file_changes,
    )
}

fn describe_review(review_outcome: &ReviewOutcome) -> EventSentence {
    let is_clean = review_outcome.failure.is_none() && review_outcome.findings.is_empty();
    if is_clean { plain_sentence(review_outcome.describe()) } else { bad_sentence(review_outcome.describe()) }
}

fn describe_verify_before_session(verified: &VerifyCommandsRan) -> String {
    let result_text = |result: &VerifyResult| {
        let pass_or_fail = if result.passed { "passes" } else { "fails" };
        format!("`{}` {pass_or_fail}", shorten_to_single_line(&result.command))
    };
    let result_texts: Vec<String> = verified.results.iter().map(result_text).collect();
    let seconds: u64 = verified.results.iter().filter_map(|result| result.seconds).sum();
    format!("before the session: {} ({seconds} s)", result_texts.join(", "))
}

fn describe_breaker_trip(breaker: &BreakerOpened) -> String {
    format!(
        "circuit breaker opened: {}{}",
        breaker.cause.as_str(),
        colon_and_shortened_text_or_empty(Some(&breaker.evidence))
    )
}

fn describe_continuation_with_item(estimate: &NextStepSizeEstimate) -> String {
    format!("continues in the same session with {}", item_with_token_estimate(estimate))
}

fn describe_no_room_for_step(estimate: &NextStepSizeEstimate) -> String {
    format!("no room in this session for its next step{}", estimated_and_free_tokens_note(estimate))
}

fn describe_cut_off_turn(item: &str) -> String {
    format!("Claude Code ended the turn before {} was begun", quote_item(item))
}

fn describe_notification(notified_event: &str, program: &[String], failure: Option<&str>) -> EventSentence {
    let program = truncate_end(&shorten_to_single_line(&program.join(" ")), 60);
    match failure {
        None if notified_event == "question" => {
            plain_sentence(format!("`{program}` was notified of a question"))
        }
        None => plain_sentence(format!(
            "`{program}` was notified that the run has {}",
            shorten_to_single_line(notified_event)
        )),
        Some(failure) => {
            bad_sentence(format!("`{program}` was not notified: it {}", shorten_to_single_line(failure)))
        }
    }
}

fn describe_linear_failure(error: &str) -> String {
    format!("Linear was not notified: {}", shorten_to_single_line(error))
}

fn describe_item_without_room(estimate: &NextStepSizeEstimate) -> String {
    format!("no room in this session for {}", item_with_token_estimate(estimate))
}

fn describe_lost_telemetry(span_count: u64, log_count: u64, error: &str) -> String {
    let count_text =
        |count: u64, singular| count_with_noun(usize::try_from(count).unwrap_or(usize::MAX), singular);
    let lost = format!("{} and {}", count_text(span_count, "span"), count_text(log_count, "log"));
    format!("telemetry: {lost} did not reach the collector: {}", shorten_to_single_line(error))
}

fn describe_missing_hooks(client_version: &str) -> String {
    format!("our hooks did not run in this session (client {})", shorten_to_single_line(client_version))
}

fn describe_leftover_processes(processes: &[String]) -> String {
    let processes: Vec<String> = processes.iter().map(|process| shorten_to_single_line(process)).collect();
    format!("the session left processes running: {}", processes.join("; "))
}

fn describe_prompt_repair(old_file: &str) -> String {
    format!(
        "PROMPT.md had lost the task; it was restored, and the old file is {}",
        shorten_to_single_line(old_file)
    )
}

fn describe_plan_repair(file: &str) -> String {
    format!("{} was missing and has been restored", shorten_to_single_line(file))
}

fn item_with_token_estimate(estimate: &NextStepSizeEstimate) -> String {
    format!(
        "{}{}",
        quote_item(estimate.item.as_deref().unwrap_or("?")),
        estimated_and_free_tokens_note(estimate)
    )
}

/// Renders ` (it takes about 40k tokens, 300k are free; from 3 items)`.
fn estimated_and_free_tokens_note(estimate: &NextStepSizeEstimate) -> String {
    let token_text = |number: Option<u64>| number.map_or("?".to_owned(), format_tokens);
    let source =
        estimate.estimate_source.as_ref().map(|source| format!("; {}", shorten_to_single_line(source)));
    format!(
        " (it takes about {} tokens, {} are free{})",
        token_text(estimate.estimate_tokens),
        token_text(estimate.free_tokens),
        source.unwrap_or_default()
    )
}

fn quote_item(item: &str) -> String {
    format!("\"{}\"", truncate_end(&to_safe_single_line(item), 80))
}

/// Renders `: reason`; empty if there is no text.
fn colon_and_shortened_text_or_empty(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty())
        .map(|text| format!(": {}", shorten_to_single_line(text)))
        .unwrap_or_default()
}

/// Returns the shortened text, or `?` if the journal has none.
fn shorten_or_question_mark(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).map_or("?".to_owned(), shorten_to_single_line)
}
