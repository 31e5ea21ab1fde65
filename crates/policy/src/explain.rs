//! Explains a journal entry: renders the recorded numbers and reasons as sentences.

use plimsoll_domain::journal::{
    BreakerOpened, CheckpointWritten, JournalEntry, JournalEvent, LevelReached, NextStepSizeEstimate,
    TicksReverted, VerdictReached, VerifyCommandsRan, VerifyResult,
};
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::reading::UsageSource;
use plimsoll_domain::reverted_ticks;
use plimsoll_domain::review::ReviewOutcome;
use plimsoll_domain::text::{count_with_noun, format_tokens, to_safe_single_line, truncate_end};
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Marker, SessionEnding, UsageReading};

/// Explains an entry of the journal, one sentence per line. `related_entries` are entries of the same session
/// that belong to it, such as a trip of the circuit breaker.
pub fn explain_entry(entry: &JournalEntry, related_entries: &[JournalEntry]) -> Vec<String> {
    match &entry.event {
        JournalEvent::Warning(level_reached) | JournalEvent::SessionEndRequested(level_reached) => {
            explain_reached_level(level_reached)
        }
        JournalEvent::Checkpoint(checkpoint_written) => explain_checkpoint(checkpoint_written),
        JournalEvent::Verdict(verdict_reached) => explain_verdict(verdict_reached, related_entries),
        JournalEvent::ProvisionalVerdict { marker } => explain_provisional_verdict(marker),
        JournalEvent::VerifyCommandsRan(VerifyCommandsRan { results: verify }) => {
            verify.iter().map(explain_verify_result).collect()
        }
        JournalEvent::Reviewed(reviewed) => explain_review_model_findings_and_cost(reviewed),
        JournalEvent::ContinuedWithNextItem(estimate) => {
            vec![explain_whether_next_step_fits(estimate, "item", true)]
        }
        JournalEvent::NextItemDoesNotFit(estimate) => {
            vec![explain_whether_next_step_fits(estimate, "item", false)]
        }
        JournalEvent::NoRoomForStep(estimate) => {
            vec![explain_whether_next_step_fits(estimate, "step (from one commit to the next)", false)]
        }
        // For the other events the recorded fields are the whole explanation.
        event => render_event_fields(event),
    }
}

fn explain_reached_level(level_reached: &LevelReached) -> Vec<String> {
    let LevelReached { level, reading, thresholds, waited_ms, session_message: reason, .. } = level_reached;
    let mut lines =
        explain_usage_thresholds_and_wait(*level, reading.as_ref(), thresholds.as_ref(), *waited_ms);
    let reason = reason.as_deref().and_then(non_empty_line);
    lines.extend(reason.map(|reason| format!("The reason given to the session: {reason}.")));
    lines
}

fn explain_checkpoint(checkpoint_written: &CheckpointWritten) -> Vec<String> {
    let CheckpointWritten { level, reading, thresholds, waited_ms, .. } = checkpoint_written;
    let mut lines =
        explain_usage_thresholds_and_wait(*level, reading.as_ref(), thresholds.as_ref(), *waited_ms);
    lines.extend(explain_handoff_and_files(checkpoint_written));
    lines
}

fn explain_usage_thresholds_and_wait(
    level: Level,
    reading: Option<&UsageReading>,
    thresholds: Option<&Thresholds>,
    waited_ms: Option<u64>,
) -> Vec<String> {
    let mut lines: Vec<String> = reading.map(explain_reading).unwrap_or_default();
    lines.extend(thresholds.map(|thresholds| explain_thresholds(level, thresholds)));
    lines.extend(waited_ms.map(|milliseconds| {
        format!(
            "The hook waited {milliseconds} ms for Claude Code to write its answer, because a threshold was near."
        )
    }));
    lines
}

fn explain_reading(reading: &UsageReading) -> Vec<String> {
    let window = reading.window.as_ref();
    let window_suffix =
        window.map_or(String::new(), |window| format!(" of {}", format_tokens(window.tokens)));
    let percent = reading.projected_percent().map_or("?".to_owned(), |percent| percent.to_string());
    let estimated_parts = match reading.usage_source {
        UsageSource::Compaction => "system prompt, tools and tool results not sent yet",
        _ => "tool results not sent yet",
    };
    let mut lines = vec![format!(
        "The next request would have held about {}{window_suffix} tokens ({percent}%): {} input, {} output, {} estimated for {estimated_parts}.",
        format_tokens(reading.projected_tokens()),
        format_tokens(reading.used_tokens),
        format_tokens(reading.output_tokens),
        format_tokens(reading.estimated_added_tokens),
    )];
    if let Some(percent) = reading.percent_shown_by_client() {
        lines.push(format!("Claude Code showed {percent}%: it counts input tokens only."));
    }
    let time_suffix =
        reading.responded_at.as_ref().map(|responded_at| format!(" of {responded_at}")).unwrap_or_default();
    let delay_note = if reading.is_one_request_behind {
        "; the current answer was not written yet, so the figure is one request old"
    } else {
        ""
    };
    lines
        .push(format!("Source of the figure: {}{time_suffix}{delay_note}.", reading.usage_source.describe()));
    if let Some(window) = window {
        let model = reading.model.as_deref().unwrap_or("an unnamed model");
        lines.push(format!(
            "The window of {model}: {} tokens ({}).",
            format_tokens(window.tokens),
            window.source.describe()
        ));
    }
    lines
}

fn explain_thresholds(level: Level, thresholds: &Thresholds) -> String {
    let render_threshold = |name: &str, threshold_tokens: u64| {
        format!(
            "{name} at {} ({}%)",
            format_tokens(threshold_tokens),
            thresholds.percent_of_window(threshold_tokens)
        )
    };
    let reached_threshold = match level {
        Level::L0 => None,
        Level::L1 => Some(thresholds.l1),
        Level::L2 => Some(thresholds.l2),
        Level::L3 => Some(thresholds.l3),
    };
    let reached_text = reached_threshold.map(|threshold_tokens| {
        format!(
            "{level} begins at {} ({}%). ",
            format_tokens(threshold_tokens),
            thresholds.percent_of_window(threshold_tokens)
        )
    });
    let action = thresholds.auto_compact.action.describe();
    let clamped_note =
        if thresholds.is_clamped { "; thresholds were lowered to come before that" } else { "" };
    format!(
        "{}All thresholds: {}, {}, {}; {action} {}{clamped_note}.",
        reached_text.unwrap_or_default(),
        render_threshold("L1", thresholds.l1),
        render_threshold("L2", thresholds.l2),
        render_threshold("L3", thresholds.l3),
        render_threshold("", thresholds.auto_compact.tokens).trim_start(),
    )
}

fn explain_handoff_and_files(checkpoint_written: &CheckpointWritten) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(handoff) = non_empty_line(&checkpoint_written.handoff_path) {
        let item = checkpoint_written.item.as_deref().and_then(non_empty_line);
        let item_suffix = item.map(|item| format!(", for the item \"{item}\"")).unwrap_or_default();
        lines.push(format!("The handoff {handoff} was written{item_suffix}."));
    }
    let files = truncate_each_to_one_line(checkpoint_written.files.iter().flatten());
    if !files.is_empty() {
        lines.push(format!("Files in progress: {}.", files.join(", ")));
    }
    let error = checkpoint_written.state_write_error.as_deref().and_then(non_empty_line);
    lines.extend(error.map(|error| format!("The state could not be written: {error}.")));
    lines
}

fn explain_verdict(verdict_reached: &VerdictReached, related_entries: &[JournalEntry]) -> Vec<String> {
    let mut lines = vec![explain_verdict_marker(&verdict_reached.marker)];
    lines.extend(verdict_reached.ending.as_ref().map(explain_ending));
    lines.extend(explain_item_counts_and_ticks(verdict_reached));
    lines.extend(verdict_reached.verify_results.iter().flatten().map(explain_verify_result));
    lines.extend(explain_progress_error_and_cost(verdict_reached));
    lines.extend(related_entries.iter().filter_map(explain_related_entry));
    lines
}

fn explain_provisional_verdict(marker: &Marker) -> Vec<String> {
    let provisional_note = "This is the Stop hook's provisional verdict, before the verify commands have run; the final one follows when the session is over.";
    vec![explain_verdict_marker(marker), provisional_note.to_owned()]
}

fn explain_verify_result(result: &VerifyResult) -> String {
    let VerifyResult { command, passed, output_tail: output, seconds } = result;
    let command = non_empty_line(command).unwrap_or_default();
    let duration_text = seconds.filter(|seconds| *seconds > 0).map(|seconds| format!(" after {seconds} s"));
    let duration_text = duration_text.unwrap_or_default();
    if *passed {
        return format!("Verify `{command}` passed{duration_text}.");
    }
    let output_suffix = non_empty_line(output).map(|text| format!(": {text}")).unwrap_or_default();
    format!("Verify `{command}` did not pass{duration_text}{output_suffix}.")
}

fn explain_review_model_findings_and_cost(reviewed: &ReviewOutcome) -> Vec<String> {
    let model_line = reviewed
        .model
        .as_deref()
        .and_then(non_empty_line)
        .map(|model| format!("The reviewing model: {model}."));
    let finding_texts = reviewed.findings.iter().filter_map(|finding| non_empty_line(&finding.text));
    let finding_lines = finding_texts.map(|text| format!("It found: {text}."));
    let cost_line = format!("It took {} s and {} tokens.", reviewed.seconds, format_tokens(reviewed.tokens));
    model_line.into_iter().chain(finding_lines).chain([cost_line]).collect()
}

/// Explains an entry that was recorded together with a verdict; `None` for events that do not belong to one.
fn explain_related_entry(entry: &JournalEntry) -> Option<String> {
    match &entry.event {
        JournalEvent::BreakerOpened(BreakerOpened { cause, failure_count: count, evidence }) => {
            Some(format!(
                "The circuit breaker opened: {}, {count} in a row: {}.",
                cause.as_str(),
                non_empty_line(evidence).unwrap_or_default()
            ))
        }
        JournalEvent::SetAside { item } => Some(format!(
            "The item \"{}\" was set aside, because no session made progress on it.",
            non_empty_line(item).unwrap_or_default()
        )),
        JournalEvent::TicksReverted(TicksReverted {
            items,
            failed_commands: failed,
            review_findings: findings,
            protected_file_changes: protected,
        }) => {
            let failed = failed.iter().map(String::as_str);
            let sentence = reverted_ticks::describe_reverted_ticks(items, failed, findings.len(), protected);
            non_empty_line(&sentence).map(|sentence| format!("Then {sentence}."))
        }
        JournalEvent::Reviewed(reviewed) => {
            non_empty_line(&reviewed.describe()).map(|text| format!("Before the verdict, {text}."))
        }
        JournalEvent::Parked { item, question } => Some(format!(
            "The item \"{}\" waits for the user's answer: {}",
            non_empty_line(item).unwrap_or_default(),
            non_empty_line(question).unwrap_or_default()
        )),
        _ => None,
    }
}

/// Explains a verdict's marker in one sentence.
fn explain_verdict_marker(marker: &Marker) -> String {
    let because_clause =
        |text: &str| non_empty_line(text).map(|reason| format!(", because: {reason}")).unwrap_or_default();
    match marker {
        Marker::Stop { status, reason } => {
            format!("The gate ended the run as {status}{}.", because_clause(reason))
        }
        Marker::Pause { until: None, reason } => {
            format!("The gate paused the run{}.", because_clause(reason))
        }
        Marker::Pause { until: Some(until), reason } => {
            format!(
                "The gate paused the run until {}{}.",
                to_safe_single_line(until.as_str()),
                because_clause(reason)
            )
        }
        Marker::Continue { kind: ContinueKind::RefusedPromise, reason } => {
            format!("The gate refused the promise{}; a fresh session continues.", because_clause(reason))
        }
        Marker::Continue { kind: ContinueKind::Checkpoint, reason } => {
            format!(
                "The run continues with a fresh session that resumes from {}.",
                non_empty_line(reason).unwrap_or_default()
            )
        }
        Marker::Continue { kind: ContinueKind::NextItem, reason } => {
            format!("The run continues with a fresh session{}.", because_clause(reason))
        }
        // The gate never returns these markers.
        Marker::Warning { .. } | Marker::Checkpoint { .. } => {
            format!("The decision: {}.", marker.describe(|time| to_safe_single_line(time.as_str())))
        }
    }
}

fn explain_ending(ending: &SessionEnding) -> String {
    let description = ending.category_and_description().description;
    let detail_suffix = ending
        .detail_text()
        .and_then(non_empty_line)
        .map(|detail| format!(" ({detail})"))
        .unwrap_or_default();
    format!("The session: {description}{detail_suffix}.")
}

fn explain_item_counts_and_ticks(verdict_reached: &VerdictReached) -> Option<String> {
    let (open_count, done_count) = (verdict_reached.open_count?, verdict_reached.done_count?);
    let ticked = truncate_each_to_one_line(verdict_reached.ticked_items.iter().flatten());
    let ticked_text = match ticked.as_slice() {
        [] => "nothing was ticked in this session".to_owned(),
        ticked => format!("ticked in this session: {}", ticked.join(", ")),
    };
    Some(format!("Items: {done_count} done, {open_count} open; {ticked_text}."))
}

fn explain_progress_error_and_cost(verdict_reached: &VerdictReached) -> Vec<String> {
    let no_progress_session_count = verdict_reached.no_progress_count.unwrap_or(0).max(1) as usize;
    let progress = verdict_reached.progress.as_ref().map(|progress| {
        match truncate_each_to_one_line(progress.iter()).as_slice() {
            [] => format!("No progress, {} in a row.", count_with_noun(no_progress_session_count, "session")),
            changes => format!("Progress: {}.", changes.join(", ")),
        }
    });
    let repeat_count = verdict_reached.same_error_count.filter(|count| *count > 1);
    let repeat_note = repeat_count.map(|count| format!(", the same {count} times")).unwrap_or_default();
    let error_line = verdict_reached
        .error
        .as_deref()
        .and_then(non_empty_line)
        .map(|error| format!("Its error{repeat_note}: {error}."));
    let cost_line = verdict_reached.cost_usd.map(|cost| {
        let tokens_suffix =
            verdict_reached.tokens.map(|number| format!(", {} tokens", format_tokens(number)));
        let cost_text = verdict_reached.cost_basis.format_usd(cost);
        format!("So far: {cost_text}{}.", tokens_suffix.unwrap_or_default())
    });
    progress.into_iter().chain(error_line).chain(cost_line).collect()
}

fn explain_whether_next_step_fits(estimate: &NextStepSizeEstimate, unit: &str, fits: bool) -> String {
    let format_tokens_if_known = |number: Option<u64>| number.map_or("?".to_owned(), format_tokens);
    let source = estimate.estimate_source.as_deref().and_then(non_empty_line);
    format!(
        "The next {unit} takes about {} tokens{}, and {} are free below L2: {}.",
        format_tokens_if_known(estimate.estimate_tokens),
        source.map(|source| format!(" ({source})")).unwrap_or_default(),
        format_tokens_if_known(estimate.free_tokens),
        if fits { "it fits" } else { "it does not fit" }
    )
}

/// Lists the fields of an event, one per line.
fn render_event_fields(event: &JournalEvent) -> Vec<String> {
    let value_text = |value: &serde_json::Value| match value {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => non_empty_line(text),
        value => non_empty_line(&value.to_string()),
    };
    event
        .fields_without_name()
        .iter()
        .filter_map(|(name, value)| Some(format!("{name}: {}", value_text(value)?)))
        .collect()
}

/// Shortens a text to one line without a final full stop; `None` if it is empty.
fn non_empty_line(text: &str) -> Option<String> {
    let line = truncate_end(&to_safe_single_line(text), 400);
    let line = line.trim_end_matches('.').to_owned();
    (!line.is_empty()).then_some(line)
}

fn truncate_each_to_one_line<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    texts.map(|item| truncate_end(&to_safe_single_line(item), 100)).collect()
}

#[cfg(test)]
mod tests;
