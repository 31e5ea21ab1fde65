//! From the journals of a parallel run and of its items' own runs to the rows of its workers.

use super::contents::{At, Mark, Merge, MergeOutcome, RunSession, Stint, Worker};
use super::entry::RunLine;
use super::filling::{Fill, read_turns};
use super::{moments, run_sessions};
use plimsoll_domain::journal::{JournalEntry, JournalEvent, WorkerBegan, WorkerEnded};
use plimsoll_domain::text::counted;
use plimsoll_domain::{RunId, RunState};
use plimsoll_flows::workers::project_of_item;
use plimsoll_store::{Project, StoreError, journal, records, state_file};

/// A stint, and the run that its sessions belong to, where that is written down.
struct Told {
    worker: usize,
    stint: Stint,
    run_id: Option<RunId>,
}

/// The workers in their order, each with its sessions and their load lines.
pub(super) fn workers(
    project: &Project,
    state: &RunState,
    entries: &[RunLine<'_>],
    fill: &mut Fill,
) -> Result<Vec<Worker>, StoreError> {
    let told = stints(entries);
    let mut workers: Vec<Worker> = Vec::new();
    for place in 0..told.len() {
        let mut stint = told[place].stint.clone();
        if let Some(source) = source(project, state, &told, place)? {
            add_sessions(&mut stint, &source, fill)?;
        }
        let number = told[place].worker;
        match workers.iter_mut().find(|worker| worker.number == number) {
            Some(worker) => worker.stints.push(stint),
            None => workers.push(Worker { number, stints: vec![stint] }),
        }
    }
    workers.sort_by_key(|worker| worker.number);
    Ok(workers)
}

/// Where the sessions of a stint are recorded: the project that has their turns, and the journal with their run's entries.
struct Source {
    project: Project,
    entries: Vec<JournalEntry>,
    run_id: RunId,
}

/// A worktree that is there has the journal of all attempts at its item; else it was moved, once, beside the last one's output.
fn source(
    project: &Project,
    state: &RunState,
    told: &[Told],
    place: usize,
) -> Result<Option<Source>, StoreError> {
    let own = &told[place];
    if let Some(tree) = project_of_item(project, state, own.stint.item_number) {
        let present = || state_file::load(&tree, None).ok().flatten().map(|state| state.run_id);
        let Some(run_id) = own.run_id.clone().or_else(present) else { return Ok(None) };
        return Ok(Some(Source { entries: journal::read(&tree)?, run_id, project: tree }));
    }
    let Some(run_id) = own.run_id.clone() else { return Ok(None) };
    let kept = records::runs(project);
    let of_item = told.iter().filter(|other| other.stint.item_number == own.stint.item_number);
    for other in of_item.filter_map(|other| other.run_id.as_ref()).filter(|id| kept.contains(id)) {
        let entries = journal::read_moved(project, other)?;
        if entries.iter().any(|entry| entry.run_id.as_ref() == Some(&run_id)) {
            return Ok(Some(Source { project: project.clone(), entries, run_id }));
        }
    }
    Ok(None)
}

/// The stints in the run's journal, in its order.
fn stints(entries: &[RunLine<'_>]) -> Vec<Told> {
    let mut told: Vec<Told> = Vec::new();
    for entry in entries {
        match entry.event() {
            JournalEvent::WorkerBegan(began) => {
                // Killed with everything, it wrote no end.
                if let Some(open) = open_of(&mut told, began.worker) {
                    open.stint.to = Some(entry.at);
                    open.stint.how = entry.words("was cut short");
                }
                told.push(begun(entry, began));
            }
            JournalEvent::WorkerEnded(ended) => end(&mut told, entry, ended),
            _ => {}
        }
    }
    told
}

fn begun(entry: &RunLine<'_>, began: &WorkerBegan) -> Told {
    let stint = Stint {
        item: entry.words(&began.item),
        item_number: began.number,
        attempt: began.attempt,
        from: entry.at,
        ..Stint::default()
    };
    Told { worker: began.worker, stint, run_id: None }
}

fn end(told: &mut [Told], entry: &RunLine<'_>, ended: &WorkerEnded) {
    let Some(open) = open_of(told, ended.worker) else { return };
    open.stint.to = Some(entry.at);
    open.stint.how = entry.words(&ended.how);
    open.run_id.clone_from(&ended.item_run_id);
}

fn open_of(told: &mut [Told], worker: usize) -> Option<&mut Told> {
    told.iter_mut().rfind(|told| told.worker == worker).filter(|told| told.stint.to.is_none())
}

/// The sessions of an item's run that began during a stint: a run that was paused goes on in another one.
fn add_sessions(stint: &mut Stint, source: &Source, fill: &mut Fill) -> Result<(), StoreError> {
    let entries = RunLine::of_run(&source.entries, &source.run_id);
    let is_within = |at: At| stint.from <= at && stint.to.is_none_or(|to| at <= to);
    let mut sessions = run_sessions::sessions(&entries);
    sessions.retain(|session: &RunSession| session.began.is_some_and(is_within));
    let mut moments = moments::moments(&entries);
    moments.retain(|moment| is_within(moment.at) && moment.what == Mark::Checkpoint);
    stint.checkpoints = moments.iter().map(|moment| moment.at).collect();
    read_turns(&source.project, &mut sessions, &mut moments, fill)?;
    stint.sessions = sessions;
    Ok(())
}

/// What became of items where results come together.
pub(super) fn merges(entries: &[RunLine<'_>]) -> Vec<Merge> {
    let merge = |entry: &RunLine<'_>| {
        let (outcome, words) = match entry.event() {
            JournalEvent::Landed(landed) => {
                let items = landed.items.iter().map(|item| format!("“{item}”")).collect::<Vec<_>>();
                let together = match items.len() {
                    1 => "merged".to_owned(),
                    count => format!("{} merged together", counted(count, "item")),
                };
                (MergeOutcome::Merged, format!("{together}: {}", items.join(", ")))
            }
            JournalEvent::SentBack(back) if back.is_set_aside => {
                (MergeOutcome::SetAside, format!("“{}” was set aside: {}", back.item, back.reason))
            }
            JournalEvent::SentBack(back) => {
                (MergeOutcome::SentBack, format!("“{}” was sent back: {}", back.item, back.reason))
            }
            _ => return None,
        };
        Some(Merge { at: entry.at, outcome, words: entry.words(&words) })
    };
    entries.iter().filter_map(merge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn line(second: u32, event: &str, facts: &Value) -> JournalEntry {
        let mut line = json!({"at": format!("2026-01-06T22:00:{second:02}Z"), "event": event, "run_id": "r1", "iteration": 0});
        line.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
        serde_json::from_value(line).unwrap()
    }

    #[test]
    fn a_worker_that_was_killed_with_everything_ends_where_it_begins_again() {
        let began = |second, worker: u32, item: &str| {
            line(second, "worker_began", &json!({"worker": worker, "item": item, "number": 1, "attempt": 1}))
        };
        let ended = |second, worker: u32| {
            let facts = json!({"worker": worker, "item": "a", "how": "is done", "item_run_id": "c1"});
            line(second, "worker_ended", &facts)
        };
        let journal = [began(1, 1, "a"), began(2, 2, "b"), ended(3, 1), ended(4, 1), began(5, 2, "b")];
        let told = stints(&RunLine::of_run(&journal, &"r1".into()));
        let seen: Vec<_> = told
            .iter()
            .map(|told| {
                let lasted = told.stint.to.map(|to| (to - told.stint.from).num_seconds());
                (told.worker, told.stint.how.text(), lasted, told.run_id.is_some())
            })
            .collect();
        assert_eq!(
            seen,
            [(1, "is done", Some(2), true), (2, "was cut short", Some(3), false), (2, "", None, false)]
        );
    }
}
