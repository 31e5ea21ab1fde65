//! Decides at Stop whether the session continues with the next item. With `--pack`, it continues while the item's
//! estimate fits in the context window; otherwise it writes a checkpoint, and the next session starts the item. Without
//! `--pack`, only trivial neighboring items share a session. An item that needs a different model gets a new session.

use crate::checkpoint::facts;
use crate::checkpoint::{self, CheckpointRequest};
use crate::context::item_cost;
use crate::context::item_cost::MeasuredSession;
use crate::context::measure;
use crate::context::measure::Measurement;
use crate::hook_invocation::HookInvocation;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, NextStepSizeEstimate};
use plimsoll_domain::level::Level;
use plimsoll_domain::record::ContinuationNotice;
use plimsoll_domain::state::CheckpointCause;
use plimsoll_domain::{RunState, SessionRecord, Thresholds, TodoList};
use plimsoll_policy::current_item::current_unparked_item;
use plimsoll_policy::pack::{
    Estimate, estimate_item_tokens_by_percentile, fits_below_l2, may_share_session_if_all_trivial,
};
use plimsoll_policy::{bounds, messages, models};
use plimsoll_protocol::event::Stop;
use plimsoll_store::{Durability, StoreError, clock, environment, journal, sessions, state_file};
use std::time::{Duration, Instant};

const TRANSCRIPT_POLL_INTERVAL: Duration = Duration::from_millis(10);
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// The client (2.1.329) lets a Stop hook continue a session this many times in a row and then ends the turn anyway. The
/// hook's input does not contain the limit.
const DEFAULT_CLIENT_BLOCK_LIMIT: u32 = 8;
const BLOCK_LIMIT_VARIABLE: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";

/// Records the cost of the items ticked since the session last continued, and decides whether the session continues with
/// the next item. Returns the message for the model if it does.
pub(crate) fn record_item_costs_and_offer_next_item(
    invocation: &HookInvocation,
    run: &RunState,
    stop: &Stop,
) -> Result<Option<String>, StoreError> {
    let record = sessions::load_session_record(&invocation.project, &invocation.session_id);
    let Some(plan) = facts::load_plan(&invocation.project, run) else { return Ok(None) };
    wait_for_last_message_in_transcript(invocation, stop);
    let measurement = measure::measure_hook_session_waiting_near_threshold(invocation, &record);
    let ticked_items = item_cost::ticked_items_without_recorded_cost(run, &plan);
    if ticked_items.is_empty() {
        return Ok(None);
    }
    // The state is written even if the session does not continue: `measured_items` prevents an item from being counted
    // again at the next Stop.
    let measured_session = MeasuredSession {
        project: &invocation.project,
        record: &record,
        transcript_path: invocation.transcript_path(),
    };
    let run = state_file::update_state(&invocation.project, Some(&run.run_id), Durability::Lazy, |state| {
        state.update_items_and_questions_from_plan(&plan);
        item_cost::charge_growth_to_items_at_tick_or_session_end(state, &measured_session, &plan, false);
        state.clone()
    })?;
    let may_continue_in_same_session = |run: &RunState| {
        (run.options.allows_several_items_per_session
            || are_ticked_and_next_item_trivial(run, &record, &ticked_items))
            && next_item_has_same_model(invocation, run)
    };
    match run.filter(|run| {
        may_continue_in_same_session(run)
            && is_session_idle_and_below_all_limits(invocation, run, &record, stop)
    }) {
        Some(run) => {
            offer_next_item_or_checkpoint_if_too_large(invocation, &run, &record, &measurement, &plan)
        }
        None => Ok(None),
    }
}

/// Returns true if the ticked items and the next item are trivial enough to share a session.
fn are_ticked_and_next_item_trivial(run: &RunState, record: &SessionRecord, ticked_items: &[String]) -> bool {
    let next_item = current_unparked_item(run).filter(|next| !run.plan_items.set_aside_items.contains(next));
    let continuation_count = record.continuation.as_ref().map_or(0, |continuation| continuation.sent_count);
    next_item.is_some_and(|next| may_share_session_if_all_trivial(ticked_items, next, continuation_count))
}

/// Returns true if the next item uses the model with which this session was started.
fn next_item_has_same_model(invocation: &HookInvocation, run: &RunState) -> bool {
    let (_, model_argument) = models::split_off_option(&run.options.client_arguments, models::MODEL_OPTION);
    let model_of = |item: Option<&String>| {
        let item = item.map_or("", String::as_str);
        models::choose_model_by_item_then_size_then_argument(
            item,
            &invocation.settings.models,
            model_argument.as_deref(),
        )
        .model
        .map(str::to_owned)
    };
    model_of(run.iteration_record.item.as_ref()) == model_of(current_unparked_item(run))
}

/// Waits until the transcript ends with the last message, at most `freshness_wait_ms`. The usage is read from that message.
fn wait_for_last_message_in_transcript(invocation: &HookInvocation, stop: &Stop) {
    let (Some(path), Some(last_message)) = (invocation.transcript_path(), &stop.last_assistant_message)
    else {
        return;
    };
    let started_at = Instant::now();
    let timeout = Duration::from_millis(invocation.settings.freshness_wait_ms);
    // On 2.1.329, the transcript already contained the last message in only 2 of 18 Stop hooks.
    while facts::last_message_text_unless_tool_call(path).as_ref() != Some(last_message)
        && started_at.elapsed() < timeout
    {
        std::thread::sleep(TRANSCRIPT_POLL_INTERVAL);
    }
}

fn is_session_idle_and_below_all_limits(
    invocation: &HookInvocation,
    run: &RunState,
    record: &SessionRecord,
    stop: &Stop,
) -> bool {
    let block_limit = environment::variable(BLOCK_LIMIT_VARIABLE)
        .and_then(|limit| limit.parse().ok())
        .unwrap_or(DEFAULT_CLIENT_BLOCK_LIMIT);
    let continuation_count = record.continuation.as_ref().map_or(0, |continuation| continuation.sent_count);
    // Stop also fires while background tasks run. When a task finishes, the client starts another turn, and Stop fires
    // again.
    let has_unfinished_tasks =
        stop.background_tasks.iter().any(|task| task.status.as_deref() != Some("completed"));
    let is_within_run_limits = bounds::passed_deadline(run, &clock::to_timestamp(clock::now())).is_none();
    let is_session_open =
        !run.lifecycle.has_ended() && !record.end.is_canceled && !invocation.payload.is_in_subagent();
    // For the client, a limit of 0 means no limit. The client resets its count of blocks whenever tools are used, and
    // `continuation_count` is never reset, so continuations stay below a limit of 2 or more.
    let is_below_block_limit = block_limit == 0 || continuation_count + 1 < block_limit.max(2);
    is_session_open
        && !has_unfinished_tasks
        && stop.session_cron_count == 0
        && is_within_run_limits
        && is_below_block_limit
        && record.highest_announcement.level < Level::L2
        && !record.own_commits.was_asked_to_end
}

fn offer_next_item_or_checkpoint_if_too_large(
    invocation: &HookInvocation,
    run: &RunState,
    record: &SessionRecord,
    measurement: &Measurement,
    plan: &TodoList,
) -> Result<Option<String>, StoreError> {
    let Some(item) = current_unparked_item(run) else { return Ok(None) };
    let Some((reading, thresholds)) = measurement.reading.as_ref().zip(measurement.thresholds) else {
        return Ok(None);
    };
    let line_count = item_cost::count_lines_of_named_files(&invocation.project, item);
    let estimate =
        estimate_item_tokens_by_percentile(item, line_count, &run.plan_items.item_costs, thresholds.window);
    let used_tokens = reading.projected_tokens();
    let free_tokens = thresholds.l2.saturating_sub(used_tokens);
    // Without `--pack`, the session ends after this item anyway, and no checkpoint is needed.
    if !run.options.allows_several_items_per_session && !fits_below_l2(&estimate, used_tokens, thresholds.l2)
    {
        return Ok(None);
    }
    append_packing_decision_to_journal(
        invocation,
        run,
        item,
        &estimate,
        free_tokens,
        fits_below_l2(&estimate, used_tokens, thresholds.l2),
    )?;
    // The checkpoint is written now, before the item is started; the next session starts the item with an empty window.
    if !fits_below_l2(&estimate, used_tokens, thresholds.l2) {
        write_checkpoint_before_next_item(invocation, run, record, reading, thresholds)?;
        return Ok(None);
    }
    let sent_count = record.continuation.as_ref().map_or(0, |continuation| continuation.sent_count) + 1;
    sessions::update_session_record(&invocation.project, &invocation.session_id, LOCK_TIMEOUT, |record| {
        record.continuation = Some(ContinuationNotice {
            item: item.clone(),
            done_count: plan.ticked_items().len(),
            usage_tokens: used_tokens,
            sent_count,
            is_open: true,
            sent_at: clock::to_millis_timestamp(clock::now()),
        });
    })?;
    let answers_section =
        facts::load_item_notes(&invocation.project, run).render_answers_section(&run.promise_code);
    let message = messages::render_continue_with_next_item_instructions(
        item,
        run.plan_items.todo_items.len(),
        &run.options.completion_promise,
        &run.promise_code,
        run.plan_items.set_aside_items.contains(item),
    );
    Ok(Some(if answers_section.is_empty() { message } else { format!("{message}\n\n{answers_section}") }))
}

/// Writes a checkpoint that leaves the next item, which does not fit here, to the next session.
fn write_checkpoint_before_next_item(
    invocation: &HookInvocation,
    run: &RunState,
    record: &SessionRecord,
    reading: &plimsoll_domain::UsageReading,
    thresholds: Thresholds,
) -> Result<(), StoreError> {
    checkpoint::write_checkpoint(&CheckpointRequest {
        project: &invocation.project,
        settings: &invocation.settings,
        session_id: &invocation.session_id,
        transcript_path: invocation.transcript_path().map(Into::into),
        run: Some(run),
        cause: CheckpointCause::Budget,
        // The last response may have reached a threshold that was not announced, because no tool batch followed.
        level: thresholds.level_at(reading.projected_tokens()).max(record.highest_announcement.level),
        reading: Some(reading),
        thresholds: Some(&thresholds),
        transcript_wait: None,
        pending_calls: &[],
        notes: plimsoll_domain::handoff::HandoffNotes {
            progress: "not begun".to_owned(),
            ..Default::default()
        },
    })
    .map(|_| ())
}

fn append_packing_decision_to_journal(
    invocation: &HookInvocation,
    run: &RunState,
    item: &str,
    estimate: &Estimate,
    free_tokens: u64,
    item_fits: bool,
) -> Result<(), StoreError> {
    let size_estimate = NextStepSizeEstimate {
        item: Some(item.to_owned()),
        estimate_tokens: Some(estimate.tokens),
        estimate_source: Some(estimate.source.describe()),
        free_tokens: Some(free_tokens),
    };
    let event = if item_fits {
        JournalEvent::ContinuedWithNextItem(size_estimate)
    } else {
        JournalEvent::NextItemDoesNotFit(size_estimate)
    };
    journal::append_entry(
        &invocation.project,
        JournalEntry::for_run(run, event).with_session(Some(&invocation.session_id)),
    )
}
