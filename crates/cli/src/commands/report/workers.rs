//! Reads the workers of a parallel run from its journal and from the journals of its items' runs.

use super::contents::{MarkKind, MergeEvent, MergeOutcome, RunSession, UtcTime, WorkPeriod, Worker};
use super::entry::RunEntry;
use super::window_usage::{WindowUsageBuilder, read_turn_logs_into_sessions_and_usage};
use super::{chart_marks, run_sessions};
use plimsoll_domain::journal::{JournalEntry, JournalEvent, WorkerEnded, WorkerStarted};
use plimsoll_domain::text::count_with_noun;
use plimsoll_domain::{RunId, RunState};
use plimsoll_flows::workers::project_in_item_worktree;
use plimsoll_store::{Project, StoreError, journal, records, state_file};

/// A work period of a worker, with the id of its item's run if it was recorded.
struct RecordedPeriod {
    worker_number: usize,
    period: WorkPeriod,
    item_run_id: Option<RunId>,
}

/// Returns the workers in order, each with its sessions and their load lines.
pub(super) fn load_workers_with_sessions(
    project: &Project,
    state: &RunState,
    entries: &[RunEntry<'_>],
    usage_builder: &mut WindowUsageBuilder,
) -> Result<Vec<Worker>, StoreError> {
    let recorded_periods = work_periods(entries);
    let mut workers: Vec<Worker> = Vec::new();
    for index in 0..recorded_periods.len() {
        let mut period = recorded_periods[index].period.clone();
        if let Some(records) =
            find_records_in_item_worktree_or_archive(project, state, &recorded_periods, index)?
        {
            load_sessions_and_checkpoints_during_period(&mut period, &records, usage_builder)?;
        }
        let worker_number = recorded_periods[index].worker_number;
        match workers.iter_mut().find(|worker| worker.number == worker_number) {
            Some(worker) => worker.work_periods.push(period),
            None => workers.push(Worker { number: worker_number, work_periods: vec![period] }),
        }
    }
    workers.sort_by_key(|worker| worker.number);
    Ok(workers)
}

/// The recorded data about the sessions of a work period: the project with their turn logs, and the journal entries of their run.
struct SessionRecords {
    project: Project,
    entries: Vec<JournalEntry>,
    run_id: RunId,
}

/// Finds the recorded data about the sessions of a work period. While the item's worktree exists, it contains the journal
/// of all attempts at the item. Its removal moves the journal next to the output of the last attempt. Returns `None` if
/// nothing was recorded.
fn find_records_in_item_worktree_or_archive(
    project: &Project,
    state: &RunState,
    recorded_periods: &[RecordedPeriod],
    period_index: usize,
) -> Result<Option<SessionRecords>, StoreError> {
    let recorded_period = &recorded_periods[period_index];
    if let Some(item_project) = project_in_item_worktree(project, state, recorded_period.period.item_number) {
        let current_run_id =
            || state_file::load_state(&item_project, None).ok().flatten().map(|state| state.run_id);
        let Some(run_id) = recorded_period.item_run_id.clone().or_else(current_run_id) else {
            return Ok(None);
        };
        return Ok(Some(SessionRecords {
            entries: journal::read_entries(&item_project)?,
            run_id,
            project: item_project,
        }));
    }
    let Some(run_id) = recorded_period.item_run_id.clone() else { return Ok(None) };
    let archived_ids = records::runs_with_output_or_cache(project);
    let same_item_periods = recorded_periods
        .iter()
        .filter(|candidate| candidate.period.item_number == recorded_period.period.item_number);
    for archived_run_id in same_item_periods
        .filter_map(|same_item_period| same_item_period.item_run_id.as_ref())
        .filter(|id| archived_ids.contains(id))
    {
        let entries = journal::read_entries_of_removed_worktree(project, archived_run_id)?;
        if entries.iter().any(|entry| entry.run_id.as_ref() == Some(&run_id)) {
            return Ok(Some(SessionRecords { project: project.clone(), entries, run_id }));
        }
    }
    Ok(None)
}

/// Returns the work periods in the run's journal, in order.
fn work_periods(entries: &[RunEntry<'_>]) -> Vec<RecordedPeriod> {
    let mut recorded_periods: Vec<RecordedPeriod> = Vec::new();
    for entry in entries {
        match entry.event() {
            JournalEvent::WorkerBegan(worker_started) => {
                // If the worker was killed together with the run, its last period has no end in the journal.
                if let Some(open_period) =
                    last_period_of_worker_if_open(&mut recorded_periods, worker_started.worker_number)
                {
                    open_period.period.ended_at = Some(entry.recorded_at);
                    open_period.period.ending_text = entry.redact("was cut short");
                }
                recorded_periods.push(new_open_period(entry, worker_started));
            }
            JournalEvent::WorkerEnded(worker_ended) => {
                end_open_period_of_worker(&mut recorded_periods, entry, worker_ended);
            }
            _ => {}
        }
    }
    recorded_periods
}

fn new_open_period(entry: &RunEntry<'_>, worker_started: &WorkerStarted) -> RecordedPeriod {
    let period = WorkPeriod {
        item: entry.redact(&worker_started.item),
        item_number: worker_started.item_number,
        attempt: worker_started.attempt_number,
        started_at: entry.recorded_at,
        ..WorkPeriod::default()
    };
    RecordedPeriod { worker_number: worker_started.worker_number, period, item_run_id: None }
}

fn end_open_period_of_worker(
    recorded_periods: &mut [RecordedPeriod],
    entry: &RunEntry<'_>,
    worker_ended: &WorkerEnded,
) {
    let Some(open_period) = last_period_of_worker_if_open(recorded_periods, worker_ended.worker_number)
    else {
        return;
    };
    open_period.period.ended_at = Some(entry.recorded_at);
    open_period.period.ending_text = entry.redact(&worker_ended.outcome_text);
    open_period.item_run_id.clone_from(&worker_ended.item_run_id);
}

fn last_period_of_worker_if_open(
    recorded_periods: &mut [RecordedPeriod],
    worker_number: usize,
) -> Option<&mut RecordedPeriod> {
    recorded_periods
        .iter_mut()
        .rfind(|recorded| recorded.worker_number == worker_number)
        .filter(|recorded| recorded.period.ended_at.is_none())
}

/// Sets the period's sessions and checkpoints to those that began in it. A paused item run may have more, in later periods.
fn load_sessions_and_checkpoints_during_period(
    period: &mut WorkPeriod,
    records: &SessionRecords,
    usage_builder: &mut WindowUsageBuilder,
) -> Result<(), StoreError> {
    let entries = RunEntry::for_run(&records.entries, &records.run_id);
    let is_during_period =
        |time: UtcTime| period.started_at <= time && period.ended_at.is_none_or(|ended_at| time <= ended_at);
    let mut sessions = run_sessions::started_sessions(&entries);
    sessions.retain(|session: &RunSession| session.started_at.is_some_and(is_during_period));
    let mut marks = chart_marks::chart_marks_of_entries(&entries);
    marks.retain(|mark| is_during_period(mark.occurred_at) && mark.kind == MarkKind::Checkpoint);
    period.checkpoint_times = marks.iter().map(|mark| mark.occurred_at).collect();
    read_turn_logs_into_sessions_and_usage(&records.project, &mut sessions, &mut marks, usage_builder)?;
    period.sessions = sessions;
    Ok(())
}

/// Returns the events of the merge queue: items that were merged, sent back or set aside.
pub(super) fn merge_queue_events(entries: &[RunEntry<'_>]) -> Vec<MergeEvent> {
    let to_merge_event = |entry: &RunEntry<'_>| {
        let (outcome, text) = match entry.event() {
            JournalEvent::ItemsMerged(items_merged) => {
                let quoted_items =
                    items_merged.items.iter().map(|item| format!("“{item}”")).collect::<Vec<_>>();
                let heading = match quoted_items.len() {
                    1 => "merged".to_owned(),
                    count => format!("{} merged together", count_with_noun(count, "item")),
                };
                (MergeOutcome::Merged, format!("{heading}: {}", quoted_items.join(", ")))
            }
            JournalEvent::ItemReturned(item_returned) if item_returned.is_set_aside => (
                MergeOutcome::SetAside,
                format!("“{}” was set aside: {}", item_returned.item, item_returned.reason),
            ),
            JournalEvent::ItemReturned(item_returned) => (
                MergeOutcome::Returned,
                format!("“{}” was sent back: {}", item_returned.item, item_returned.reason),
            ),
            _ => return None,
        };
        Some(MergeEvent { occurred_at: entry.recorded_at, outcome, description: entry.redact(&text) })
    };
    entries.iter().filter_map(to_merge_event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn journal_entry(second: u32, event: &str, fields: &Value) -> JournalEntry {
        let mut line = json!({"at": format!("2026-01-06T22:00:{second:02}Z"), "event": event, "run_id": "r1", "iteration": 0});
        line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(line).unwrap()
    }

    #[test]
    fn the_period_of_a_killed_worker_ends_where_its_next_one_begins() {
        let worker_began = |second, worker: u32, item: &str| {
            journal_entry(
                second,
                "worker_began",
                &json!({"worker": worker, "item": item, "number": 1, "attempt": 1}),
            )
        };
        let worker_ended = |second, worker: u32| {
            let fields = json!({"worker": worker, "item": "a", "how": "is done", "item_run_id": "c1"});
            journal_entry(second, "worker_ended", &fields)
        };
        let journal = [
            worker_began(1, 1, "a"),
            worker_began(2, 2, "b"),
            worker_ended(3, 1),
            worker_ended(4, 1),
            worker_began(5, 2, "b"),
        ];
        let recorded_periods = work_periods(&RunEntry::for_run(&journal, &"r1".into()));
        let periods: Vec<_> = recorded_periods
            .iter()
            .map(|recorded| {
                let seconds =
                    recorded.period.ended_at.map(|to| (to - recorded.period.started_at).num_seconds());
                (
                    recorded.worker_number,
                    recorded.period.ending_text.text(),
                    seconds,
                    recorded.item_run_id.is_some(),
                )
            })
            .collect();
        assert_eq!(
            periods,
            [(1, "is done", Some(2), true), (2, "was cut short", Some(3), false), (2, "", None, false)]
        );
    }
}
