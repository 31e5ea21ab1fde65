//! Packing: at Stop, may the session continue with the next item? With `--pack` it may while the load line leaves room for what
//! the item will probably take; where it does not, the checkpoint comes before the item is begun. Without, trivial neighbours
//! share a session. An item that gets another model has a session of its own.

use crate::checkpoint::facts;
use crate::checkpoint::{self, Request};
use crate::context::item_cost;
use crate::context::item_cost::MeasuredSession;
use crate::context::measure;
use crate::context::measure::Measurement;
use crate::hook_invocation::HookInvocation;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, Room};
use plimsoll_domain::level::Level;
use plimsoll_domain::record::Continuation;
use plimsoll_domain::state::Cause;
use plimsoll_domain::{RunState, SessionRecord, Thresholds, TodoList};
use plimsoll_policy::item_in_hand::item_in_hand;
use plimsoll_policy::pack::{Estimate, estimate, fits, may_share};
use plimsoll_policy::{bounds, models, words};
use plimsoll_protocol::event::Stop;
use plimsoll_store::{Durability, StoreError, clock, environment, journal, sessions, state_file};
use std::time::{Duration, Instant};

/// How often the transcript is looked at while waiting.
const NAP: Duration = Duration::from_millis(10);
const TIMEOUT: Duration = Duration::from_secs(3);
/// The client (2.1.329) lets a Stop hook continue a session this many times in a row, and overrides it the next time. The
/// hook's input does not say so.
const CLIENTS_CAP: u32 = 8;
const CAP_VARIABLE: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";

/// Records what the items took that were ticked since the session last continued, and decides whether it may take the next
/// one. Returns the message for the model if it may.
pub(crate) fn next_item(
    call: &HookInvocation,
    run: &RunState,
    stop: &Stop,
) -> Result<Option<String>, StoreError> {
    let record = sessions::load(&call.project, &call.session_id);
    let Some(todo) = facts::todo(&call.project, run) else { return Ok(None) };
    wait_for_writer(call, stop);
    let measurement = measure::of_call(call, &record);
    let fresh = item_cost::fresh(run, &todo);
    if fresh.is_empty() {
        return Ok(None);
    }
    // Written whether or not the session goes on: `reckoned` keeps an item from being counted at every Stop.
    let session = MeasuredSession { project: &call.project, record: &record, transcript: call.transcript() };
    let run = state_file::update(&call.project, Some(&run.run_id), Durability::Lazy, |state| {
        state.take_items(&todo);
        item_cost::record_costs(state, &session, &todo, false);
        state.clone()
    })?;
    let is_meant =
        |run: &RunState| (run.options.pack || shares(run, &record, &fresh)) && has_its_model(call, run);
    match run.filter(|run| is_meant(run) && may_go_on(call, run, &record, stop)) {
        Some(run) => offer(call, &run, &record, &measurement, &todo),
        None => Ok(None),
    }
}

/// True if the next item is a trivial neighbour of trivial ones.
fn shares(run: &RunState, record: &SessionRecord, fresh: &[String]) -> bool {
    let next = item_in_hand(run).filter(|next| !run.items.set_aside.contains(next));
    let continuations = record.continuation.as_ref().map_or(0, |last| last.count);
    next.is_some_and(|next| may_share(fresh, next, continuations))
}

/// True if the next item gets the model with which this session was started.
fn has_its_model(call: &HookInvocation, run: &RunState) -> bool {
    let (_, given) = models::without_option(&run.options.client_arguments, models::OPTION);
    let model = |item: Option<&String>| {
        let item = item.map_or("", String::as_str);
        models::choose(item, &call.settings.models, given.as_deref()).model.map(str::to_owned)
    };
    model(run.iteration_record.item.as_ref()) == model(item_in_hand(run))
}

/// The last message is mostly not in the transcript yet, and it says how full the window is now.
fn wait_for_writer(call: &HookInvocation, stop: &Stop) {
    let (Some(path), Some(words)) = (call.transcript(), &stop.last_assistant_message) else { return };
    let started = Instant::now();
    let limit = Duration::from_millis(call.settings.freshness_wait_ms);
    // On 2.1.329 only 2 of 18 Stop hooks found the last message in the transcript at once.
    while facts::last_message(path).as_ref() != Some(words) && started.elapsed() < limit {
        std::thread::sleep(NAP);
    }
}

fn may_go_on(call: &HookInvocation, run: &RunState, record: &SessionRecord, stop: &Stop) -> bool {
    let cap = environment::variable(CAP_VARIABLE).and_then(|cap| cap.parse().ok()).unwrap_or(CLIENTS_CAP);
    let continuations = record.continuation.as_ref().map_or(0, |last| last.count);
    // Stop also fires while background tasks run; when one is done the client takes another turn, and Stop comes again.
    let is_busy = stop.background_tasks.iter().any(|task| task.status.as_deref() != Some("completed"));
    let has_time = bounds::passed(run, &clock::stamp(clock::now())).is_none();
    let is_going_on = !run.lifecycle.is_over() && !record.end.cancelled && !call.hook.in_subagent();
    // 0 is the client's word for no cap. Each item uses tools, which starts the client's count again; ours does
    // not, so that it can never be met.
    let below_cap = cap == 0 || continuations + 1 < cap.max(2);
    is_going_on
        && !is_busy
        && stop.session_crons == 0
        && has_time
        && below_cap
        && record.announced.level < Level::L2
        && !record.commits.told
}

fn offer(
    call: &HookInvocation,
    run: &RunState,
    record: &SessionRecord,
    measurement: &Measurement,
    todo: &TodoList,
) -> Result<Option<String>, StoreError> {
    let Some(item) = item_in_hand(run) else { return Ok(None) };
    let Some((reading, thresholds)) = measurement.reading.as_ref().zip(measurement.thresholds) else {
        return Ok(None);
    };
    let lines = item_cost::lines_named(&call.project, item);
    let estimate = estimate(item, lines, &run.items.growth, thresholds.window);
    let fill = reading.projected();
    let room = thresholds.l2.saturating_sub(fill);
    // Without `--pack` the session ends here anyway.
    if !run.options.pack && !fits(&estimate, fill, thresholds.l2) {
        return Ok(None);
    }
    note(call, run, item, &estimate, room, fits(&estimate, fill, thresholds.l2))?;
    // The checkpoint now, while no item is half done: the next session begins this one in a fresh window.
    if !fits(&estimate, fill, thresholds.l2) {
        checkpoint_before(call, run, record, reading, thresholds)?;
        return Ok(None);
    }
    let count = record.continuation.as_ref().map_or(0, |last| last.count) + 1;
    sessions::update(&call.project, &call.session_id, TIMEOUT, |record| {
        record.continuation = Some(Continuation {
            item: item.clone(),
            done: todo.done().len(),
            tokens: fill,
            count,
            open: true,
            at: clock::fine_stamp(clock::now()),
        });
    })?;
    let answers = facts::noted(&call.project, run).answers(&run.nonce);
    let words = words::next_item(
        item,
        run.items.todo_items.len(),
        &run.options.completion_promise,
        &run.nonce,
        run.items.set_aside.contains(item),
    );
    Ok(Some(if answers.is_empty() { words } else { format!("{words}\n\n{answers}") }))
}

/// The next session begins the item that would not have fitted here.
fn checkpoint_before(
    call: &HookInvocation,
    run: &RunState,
    record: &SessionRecord,
    reading: &plimsoll_domain::Reading,
    thresholds: Thresholds,
) -> Result<(), StoreError> {
    checkpoint::write(&Request {
        project: &call.project,
        settings: &call.settings,
        session_id: &call.session_id,
        transcript: call.transcript().map(Into::into),
        run: Some(run),
        cause: Cause::Budget,
        // The last answer may have reached a threshold that no batch of tools came after to announce.
        level: thresholds.level(reading.projected()).max(record.announced.level),
        reading: Some(reading),
        thresholds: Some(&thresholds),
        waited: None,
        calls: &[],
        notes: plimsoll_domain::handoff::Notes { progress: "not begun".to_owned(), ..Default::default() },
    })
    .map(|_| ())
}

fn note(
    call: &HookInvocation,
    run: &RunState,
    item: &str,
    estimate: &Estimate,
    room: u64,
    fits: bool,
) -> Result<(), StoreError> {
    let room = Room {
        item: Some(item.to_owned()),
        estimate_tokens: Some(estimate.tokens),
        estimate_source: Some(estimate.source.words()),
        room_tokens: Some(room),
    };
    let event = if fits { JournalEvent::Packed(room) } else { JournalEvent::NotPacked(room) };
    journal::note(&call.project, JournalEntry::of_run(run, event).session(Some(&call.session_id)))
}
