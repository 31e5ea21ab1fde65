//! Describes each event of the journal in a sentence.

use super::phrase::{Tone, shorten_fact};
use super::verdict::describe_verdict;
use plimsoll_domain::journal::{
    BreakerOpened, CheckpointWritten, EventSeverity, FitEstimate, JournalEntry, JournalEvent, LevelReached,
    RunStartFacts, TicksReverted, VerdictReached, VerifyCommandsRan, VerifyResult, WipCommit,
};
use plimsoll_domain::reverted_ticks;
use plimsoll_domain::review::ReviewOutcome;
use plimsoll_domain::state::CheckpointCause;
use plimsoll_domain::text::{count_with_noun, format_tokens, to_single_line, truncate_end};
use plimsoll_protocol::event::SessionSource;
use plimsoll_terminal::worker_event_text;

/// The description of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventSentence {
    /// A sentence, and its tone.
    Shown(String, Tone),
    /// No sentence: another line has the facts.
    Omitted,
}

/// Describes an entry.
pub(super) fn describe_event(entry: &JournalEntry) -> EventSentence {
    let shown_sentence =
        |text: String| EventSentence::Shown(text, severity_tone(entry.event.traits().severity));
    match &entry.event {
        // `SessionStart` shows that a session begins; the final verdict follows the provisional one.
        JournalEvent::Planned(_)
        | JournalEvent::ClientStarted { .. }
        | JournalEvent::ProvisionalVerdict { .. } => EventSentence::Omitted,
        // In a run, `IterationClosed` shows the end and the peak: the last response is measured only then.
        JournalEvent::SessionEnd(_) if entry.run_id.is_some() => EventSentence::Omitted,
        JournalEvent::IterationClosed(closed) => {
            shown_sentence(describe_session_end(Some(closed.peak_percent), None))
        }
        JournalEvent::SessionEnd(ended) => {
            shown_sentence(describe_session_end(ended.peak_percent, ended.reason.as_deref()))
        }
        JournalEvent::RunStarted(run) => shown_sentence(describe_run_start(run)),
        JournalEvent::RunResumed(run) => shown_sentence(describe_run_resume(run)),
        JournalEvent::ClientAdopted { pid } => shown_sentence(describe_client_adoption(*pid)),
        JournalEvent::Cancelled => shown_sentence("run cancelled with `plimsoll stop`".to_owned()),
        JournalEvent::SessionStart { source } => shown_sentence(describe_session_start(*source)),
        JournalEvent::Warning(reached) => {
            shown_sentence(format!("warning {} at {}%", reached.level, reached.percent))
        }
        JournalEvent::Checkpoint(written) => shown_sentence(describe_checkpoint(written)),
        JournalEvent::SessionEndRequested(reached) => shown_sentence(describe_end_by_plimsoll(reached)),
        JournalEvent::ClientEnded { reason } => shown_sentence(describe_client_end(reason)),
        JournalEvent::WipCommit(wip_commit) => describe_wip_commit(wip_commit),
        JournalEvent::Verdict(reached) => describe_verdict_event(reached),
        JournalEvent::SetAside { item } => shown_sentence(describe_set_aside_item(item)),
        JournalEvent::Parked { item, question } => shown_sentence(describe_parked_item(item, question)),
        JournalEvent::TicksReverted(taken) => shown_sentence(describe_reverted_ticks(taken)),
        JournalEvent::Reviewed(reviewed) => describe_review(reviewed),
        JournalEvent::VerifyCommandsRan(verified) => shown_sentence(describe_verify_before_session(verified)),
        JournalEvent::BreakerOpened(opened) => shown_sentence(describe_breaker_trip(opened)),
        JournalEvent::ContinuedWithNextItem(fit) => shown_sentence(describe_packed_item(fit)),
        JournalEvent::NextItemDoesNotFit(fit) => shown_sentence(describe_unpacked_item(fit)),
        JournalEvent::NoRoomForStep(fit) => shown_sentence(describe_no_room_for_step(fit)),
        JournalEvent::CutOffByClient { item, .. } => shown_sentence(describe_cut_off_turn(item)),
        JournalEvent::Notified { reason, program, error } => {
            describe_notification(reason, program, error.as_deref())
        }
        JournalEvent::LinearDelivered(note) => {
            shown_sentence(format!("Linear notified: {}", shorten_fact(&note.issue)))
        }
        JournalEvent::LinearFailed { error: trouble, .. } => shown_sentence(describe_linear_failure(trouble)),
        JournalEvent::TelemetryLost { span_count: spans, log_count: logs, last_error: trouble } => {
            shown_sentence(describe_lost_telemetry(*spans, *logs, trouble))
        }
        JournalEvent::HooksDidNotRun { client_version } => {
            shown_sentence(describe_missing_hooks(client_version))
        }
        JournalEvent::ProcessesLeftBehind { processes } => {
            shown_sentence(describe_leftover_processes(processes))
        }
        JournalEvent::Fault { error, action_taken: then, .. } => {
            shown_sentence(format!("{}; {}", shorten_fact(error), shorten_fact(then)))
        }
        JournalEvent::PromptRestored { old_file } => shown_sentence(describe_prompt_repair(old_file)),
        JournalEvent::PlanRestored { plan_path: file } => shown_sentence(describe_plan_repair(file)),
        JournalEvent::WorkerBegan(_)
        | JournalEvent::WorkerEnded(_)
        | JournalEvent::ItemsMerged(_)
        | JournalEvent::ItemReturned(_) => {
            shown_sentence(worker_event_text::render_worker_event(&entry.event).unwrap_or_default())
        }
        JournalEvent::StateRepaired { repaired_part: what } => {
            shown_sentence(format!("state repaired: {}", shorten_fact(what)))
        }
        // Shown with all their facts.
        JournalEvent::Note { .. } | JournalEvent::Unknown(_) => {
            shown_sentence(render_name_and_facts(&entry.event))
        }
    }
}

fn severity_tone(severity: EventSeverity) -> Tone {
    match severity {
        EventSeverity::Routine | EventSeverity::Notice => Tone::Plain,
        EventSeverity::Milestone => Tone::Bold,
        EventSeverity::Problem | EventSeverity::Alarm => Tone::Bad,
    }
}

fn plain_sentence(text: String) -> EventSentence {
    EventSentence::Shown(text, Tone::Plain)
}

fn bad_sentence(text: String) -> EventSentence {
    EventSentence::Shown(text, Tone::Bad)
}

/// Returns the event's name, and all its facts as `name=value`.
fn render_name_and_facts(event: &JournalEvent) -> String {
    let value = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => shorten_fact(text),
        other => shorten_fact(&other.to_string()),
    };
    let facts = event.facts();
    let facts = facts.iter().map(|(name, fact)| format!(" {name}={}", value(fact)));
    to_single_line(event.name()) + &facts.collect::<String>()
}

fn describe_run_start(run: &RunStartFacts) -> String {
    let verify: Vec<String> =
        run.verify_commands.iter().flatten().map(|command| shorten_fact(command)).collect();
    let verify = if verify.is_empty() { String::new() } else { format!(", verify: {}", verify.join("; ")) };
    let max_sessions = run.max_iterations.map_or("? sessions".to_owned(), |max_iterations| {
        count_with_noun(max_iterations as usize, "session")
    });
    let branch = run
        .branch
        .as_ref()
        .map_or(String::new(), |branch| format!(", on the branch {}", shorten_fact(branch)));
    format!(
        "run \"{}\" started: {}, at most {max_sessions}{branch}{verify}",
        truncate_end(&shorten_or_question_mark(run.task_name.as_deref()), 60),
        shorten_or_question_mark(run.item_count_text.as_deref()),
    )
}

fn describe_run_resume(run: &RunStartFacts) -> String {
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
    let peak = peak.map(|peak| format!(", peak {peak}%")).unwrap_or_default();
    let reason = reason.filter(|reason| !matches!(*reason, "" | "other"));
    format!(
        "session ended{peak}{}",
        reason.map(|reason| format!(" ({})", shorten_fact(reason))).unwrap_or_default()
    )
}

fn describe_checkpoint(written: &CheckpointWritten) -> String {
    let kind = match written.cause {
        None | Some(CheckpointCause::Level) => written.level.to_string(),
        Some(CheckpointCause::Budget) => "before the next item".to_owned(),
        Some(CheckpointCause::Compact) => "before a compaction".to_owned(),
        Some(CheckpointCause::Step) => "after a commit".to_owned(),
        Some(CheckpointCause::Crash) => "after a session that was cut short".to_owned(),
        Some(CheckpointCause::Unfinished) => "after a session that left its item open".to_owned(),
        Some(CheckpointCause::Manual) => "on demand".to_owned(),
    };
    let at_percent = written.percent.map(|percent| format!(" at {percent}%")).unwrap_or_default();
    let item = written.item.as_ref().map(|item| format!(" (item {})", quote_item(item))).unwrap_or_default();
    format!("checkpoint {kind}{at_percent}{}{item}", prefix_with_colon(Some(&written.handoff_path)))
}

fn describe_end_by_plimsoll(level_reached: &LevelReached) -> String {
    format!(
        "session ended by Plimsoll at {}%{}",
        level_reached.percent,
        prefix_with_colon(level_reached.session_message.as_deref())
    )
}

fn describe_client_end(reason: &str) -> String {
    format!("client ended by Plimsoll{}", prefix_with_colon(Some(reason)))
}

fn describe_wip_commit(wip_commit: &WipCommit) -> EventSentence {
    match &wip_commit.error {
        None => plain_sentence(describe_committed_work(wip_commit)),
        Some(error) => {
            bad_sentence(format!("the uncommitted work could not be committed: {}", shorten_fact(error)))
        }
    }
}

fn describe_committed_work(wip_commit: &WipCommit) -> String {
    let files = wip_commit
        .file_count
        .map(|files| format!(" ({})", count_with_noun(files, "file")))
        .unwrap_or_default();
    let left_out: Vec<String> =
        wip_commit.omitted_files.iter().flatten().map(|file| shorten_fact(file)).collect();
    let left_out =
        if left_out.is_empty() { String::new() } else { format!(", but not {}", left_out.join(", ")) };
    format!(
        "uncommitted work committed as {}{files}{left_out}{}",
        truncate_end(&shorten_or_question_mark(wip_commit.commit.as_deref()), 13),
        prefix_with_colon(wip_commit.message.as_deref())
    )
}

fn describe_set_aside_item(item: &str) -> String {
    format!("set aside: {}, no session made progress on it", quote_item(item))
}

fn describe_parked_item(item: &str, question: &str) -> String {
    format!("{} waits for your answer: {}", quote_item(item), shorten_or_question_mark(Some(question)))
}

fn describe_verdict_event(reached: &VerdictReached) -> EventSentence {
    let (text, tone) = describe_verdict(reached);
    EventSentence::Shown(text, tone)
}

fn describe_reverted_ticks(reverted: &TicksReverted) -> String {
    let failed = reverted.failed_commands.iter().map(String::as_str);
    reverted_ticks::describe_reverted_ticks(
        &reverted.items,
        failed,
        reverted.review_findings.len(),
        &reverted.protected_file_changes,
    )
}

fn describe_review(reviewed: &ReviewOutcome) -> EventSentence {
    let is_clean = reviewed.failure.is_none() && reviewed.findings.is_empty();
    if is_clean { plain_sentence(reviewed.describe()) } else { bad_sentence(reviewed.describe()) }
}

fn describe_verify_before_session(verified: &VerifyCommandsRan) -> String {
    let outcome_text = |outcome: &VerifyResult| {
        let verdict = if outcome.passed { "passes" } else { "fails" };
        format!("`{}` {verdict}", shorten_fact(&outcome.command))
    };
    let outcome_texts: Vec<String> = verified.results.iter().map(outcome_text).collect();
    let seconds: u64 = verified.results.iter().filter_map(|outcome| outcome.seconds).sum();
    format!("before the session: {} ({seconds} s)", outcome_texts.join(", "))
}

fn describe_breaker_trip(opened: &BreakerOpened) -> String {
    format!("circuit breaker opened: {}{}", opened.cause.as_str(), prefix_with_colon(Some(&opened.evidence)))
}

fn describe_packed_item(fit: &FitEstimate) -> String {
    format!("continues in the same session with {}", item_and_free_tokens(fit))
}

fn describe_no_room_for_step(fit: &FitEstimate) -> String {
    format!("no room in this session for its next step{}", free_tokens_note(fit))
}

fn describe_cut_off_turn(item: &str) -> String {
    format!("the client ended the turn before {} was begun", quote_item(item))
}

fn describe_notification(notified_event: &str, program: &[String], failure: Option<&str>) -> EventSentence {
    let program = truncate_end(&shorten_fact(&program.join(" ")), 60);
    match failure {
        None if notified_event == "question" => {
            plain_sentence(format!("`{program}` was notified of a question"))
        }
        None => plain_sentence(format!(
            "`{program}` was notified that the run has {}",
            shorten_fact(notified_event)
        )),
        Some(failure) => bad_sentence(format!("`{program}` was not notified: it {}", shorten_fact(failure))),
    }
}

fn describe_linear_failure(trouble: &str) -> String {
    format!("Linear was not notified: {}", shorten_fact(trouble))
}

fn describe_unpacked_item(fit: &FitEstimate) -> String {
    format!("no room in this session for {}", item_and_free_tokens(fit))
}

fn describe_lost_telemetry(spans: u64, logs: u64, trouble: &str) -> String {
    let counted = |count: u64, what| count_with_noun(usize::try_from(count).unwrap_or(usize::MAX), what);
    let lost = format!("{} and {}", counted(spans, "span"), counted(logs, "log"));
    format!("telemetry: {lost} did not reach the collector: {}", shorten_fact(trouble))
}

fn describe_missing_hooks(client_version: &str) -> String {
    format!("our hooks did not run in this session (client {})", shorten_fact(client_version))
}

fn describe_leftover_processes(processes: &[String]) -> String {
    let processes: Vec<String> = processes.iter().map(|process| shorten_fact(process)).collect();
    format!("the session left processes running: {}", processes.join("; "))
}

fn describe_prompt_repair(old_file: &str) -> String {
    format!("PROMPT.md had lost the task; it was restored, and the old file is {}", shorten_fact(old_file))
}

fn describe_plan_repair(file: &str) -> String {
    format!("{} was missing and has been restored", shorten_fact(file))
}

fn item_and_free_tokens(fit: &FitEstimate) -> String {
    format!("{}{}", quote_item(fit.item.as_deref().unwrap_or("?")), free_tokens_note(fit))
}

/// ` (it takes about 40k tokens, 300k are free; from 3 items)`
fn free_tokens_note(estimate: &FitEstimate) -> String {
    let amount = |number: Option<u64>| number.map_or("?".to_owned(), format_tokens);
    let source = estimate.estimate_source.as_ref().map(|source| format!("; {}", shorten_fact(source)));
    format!(
        " (it takes about {} tokens, {} are free{})",
        amount(estimate.estimate_tokens),
        amount(estimate.free_tokens),
        source.unwrap_or_default()
    )
}

fn quote_item(item: &str) -> String {
    format!("\"{}\"", truncate_end(&to_single_line(item), 80))
}

/// `: reason`
fn prefix_with_colon(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).map(|words| format!(": {}", shorten_fact(words))).unwrap_or_default()
}

/// Returns the shortened text, or `?` if the journal has none.
fn shorten_or_question_mark(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).map_or("?".to_owned(), shorten_fact)
}
