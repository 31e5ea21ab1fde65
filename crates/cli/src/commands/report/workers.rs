//! The workers of a parallel run, from its journal and the journals of its items' own runs.

use super::contents::{MarkKind, MergeEvent, MergeOutcome, RunSession, UtcTime, WorkPeriod, Worker};
use super::entry::RunEntry;
use super::window_usage::{WindowUsageBuilder, read_turn_logs};
use super::{load_line_marks, run_sessions};
use plimsoll_domain::journal::{JournalEntry, JournalEvent, WorkerEnded, WorkerStarted};
use plimsoll_domain::text::count_with_noun;
use plimsoll_domain::{RunId, RunState};
use plimsoll_flows::workers::project_in_item_worktree;
use plimsoll_store::{Project, StoreError, journal, records, state_file};

/// A work period of a worker, with the id of its item's own run if that was recorded.
struct RecordedPeriod {
    worker: usize,
    period: WorkPeriod,
    item_run_id: Option<RunId>,
}

/// Returns the workers in order, each with its sessions and their load lines.
pub(super) fn workers(
    project: &Project,
    state: &RunState,
    entries: &[RunEntry<'_>],
    usage_builder: &mut WindowUsageBuilder,
) -> Result<Vec<Worker>, StoreError> {
    let recorded_periods = work_periods(entries);
    let mut workers: Vec<Worker> = Vec::new();
    for index in 0..recorded_periods.len() {
        let mut period = recorded_periods[index].period.clone();
        if let Some(records) = find_session_records(project, state, &recorded_periods, index)? {
            add_sessions_during_period(&mut period, &records, usage_builder)?;
        }
        let number = recorded_periods[index].worker;
        match workers.iter_mut().find(|worker| worker.number == number) {
            Some(worker) => worker.work_periods.push(period),
            None => workers.push(Worker { number, work_periods: vec![period] }),
        }
    }
    workers.sort_by_key(|worker| worker.number);
    Ok(workers)
}

/// The records about the sessions of a work period: the project that has their turns, and the journal with their run's entries.
struct SessionRecords {
    project: Project,
    entries: Vec<JournalEntry>,
    run_id: RunId,
}

/// Finds the records about the sessions of a work period. While the item's worktree exists, it has the journal of all attempts at the
/// item. After that, the journal was moved next to the output of the last attempt. Returns `None` if nothing was recorded.
fn find_session_records(
    project: &Project,
    state: &RunState,
    recorded_periods: &[RecordedPeriod],
    index: usize,
) -> Result<Option<SessionRecords>, StoreError> {
    let recorded = &recorded_periods[index];
    if let Some(item_project) = project_in_item_worktree(project, state, recorded.period.item_number) {
        let current_run_id =
            || state_file::load_state(&item_project, None).ok().flatten().map(|state| state.run_id);
        let Some(run_id) = recorded.item_run_id.clone().or_else(current_run_id) else { return Ok(None) };
        return Ok(Some(SessionRecords {
            entries: journal::read_entries(&item_project)?,
            run_id,
            project: item_project,
        }));
    }
    let Some(run_id) = recorded.item_run_id.clone() else { return Ok(None) };
    let archived_runs = records::runs_with_output_or_cache(project);
    let same_item_periods = recorded_periods
        .iter()
        .filter(|candidate| candidate.period.item_number == recorded.period.item_number);
    for archived_run_id in same_item_periods
        .filter_map(|other| other.item_run_id.as_ref())
        .filter(|id| archived_runs.contains(id))
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
            JournalEvent::WorkerBegan(started) => {
                // If the worker was killed together with the run, its last period has no end in the journal.
                if let Some(open_period) = open_period_of_worker(&mut recorded_periods, started.worker_number)
                {
                    open_period.period.ended_at = Some(entry.at);
                    open_period.period.ending_text = entry.redact("was cut short");
                }
                recorded_periods.push(start_period(entry, started));
            }
            JournalEvent::WorkerEnded(ended) => end_period(&mut recorded_periods, entry, ended),
            _ => {}
        }
    }
    recorded_periods
}

fn start_period(entry: &RunEntry<'_>, started: &WorkerStarted) -> RecordedPeriod {
    let period = WorkPeriod {
        item: entry.redact(&started.item),
        item_number: started.item_number,
        attempt: started.attempt_number,
        started_at: entry.at,
        ..WorkPeriod::default()
    };
    RecordedPeriod { worker: started.worker_number, period, item_run_id: None }
}

fn end_period(recorded_periods: &mut [RecordedPeriod], entry: &RunEntry<'_>, ended: &WorkerEnded) {
    let Some(open_period) = open_period_of_worker(recorded_periods, ended.worker_number) else { return };
    open_period.period.ended_at = Some(entry.at);
    open_period.period.ending_text = entry.redact(&ended.outcome_text);
    open_period.item_run_id.clone_from(&ended.item_run_id);
}

fn open_period_of_worker(
    recorded_periods: &mut [RecordedPeriod],
    worker: usize,
) -> Option<&mut RecordedPeriod> {
    recorded_periods
        .iter_mut()
        .rfind(|recorded| recorded.worker == worker)
        .filter(|told| told.period.ended_at.is_none())
}

/// Adds the sessions of an item's run that began during this work period. A paused item run continues in another period.
fn add_sessions_during_period(
    period: &mut WorkPeriod,
    records: &SessionRecords,
    usage_builder: &mut WindowUsageBuilder,
) -> Result<(), StoreError> {
    let entries = RunEntry::for_run(&records.entries, &records.run_id);
    let is_during_period = |at: UtcTime| period.started_at <= at && period.ended_at.is_none_or(|to| at <= to);
    let mut sessions = run_sessions::run_sessions(&entries);
    sessions.retain(|session: &RunSession| session.started_at.is_some_and(is_during_period));
    let mut marks = load_line_marks::load_line_marks(&entries);
    marks.retain(|moment| is_during_period(moment.at) && moment.kind == MarkKind::Checkpoint);
    period.checkpoint_times = marks.iter().map(|moment| moment.at).collect();
    read_turn_logs(&records.project, &mut sessions, &mut marks, usage_builder)?;
    period.sessions = sessions;
    Ok(())
}

/// Returns the events of the merge queue.
pub(super) fn merge_events(entries: &[RunEntry<'_>]) -> Vec<MergeEvent> {
    let to_merge_event = |entry: &RunEntry<'_>| {
        let (outcome, text) = match entry.event() {
            JournalEvent::ItemsMerged(merged) => {
                let items = merged.items.iter().map(|item| format!("“{item}”")).collect::<Vec<_>>();
                let heading = match items.len() {
                    1 => "merged".to_owned(),
                    count => format!("{} merged together", count_with_noun(count, "item")),
                };
                (MergeOutcome::Merged, format!("{heading}: {}", items.join(", ")))
            }
            JournalEvent::ItemReturned(returned) if returned.is_set_aside => {
                (MergeOutcome::SetAside, format!("“{}” was set aside: {}", returned.item, returned.reason))
            }
            JournalEvent::ItemReturned(returned) => {
                (MergeOutcome::Returned, format!("“{}” was sent back: {}", returned.item, returned.reason))
            }
            _ => return None,
        };
        Some(MergeEvent { at: entry.at, outcome, description: entry.redact(&text) })
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
                (recorded.worker, recorded.period.ending_text.text(), seconds, recorded.item_run_id.is_some())
            })
            .collect();
        assert_eq!(
            periods,
            [(1, "is done", Some(2), true), (2, "was cut short", Some(3), false), (2, "", None, false)]
        );
    }
}
