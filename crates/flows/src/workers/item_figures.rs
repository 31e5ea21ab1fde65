//! What the runs of items say of themselves beside the record of the parallel run.

use crate::context::running_sessions::FiguresReader;
use crate::workers::{child, project_of_item};
use plimsoll_domain::RunState;
use plimsoll_domain::workers::{Used, Work, Workers};
use plimsoll_launcher::process::{Identity, is_alive};
use plimsoll_policy::run_figures::ItemRunFacts;
use plimsoll_store::{Project, lock, sessions};

/// Reads what the runs of all items say that have a process, or had one. An entry for each item.
pub(crate) fn read_items(
    reader: &mut FiguresReader,
    project: &Project,
    run: &RunState,
    record: &Workers,
) -> Vec<ItemRunFacts> {
    let mut facts = Vec::new();
    for (item, work) in record.works.iter().enumerate() {
        let is_ours = work.pid.is_some() || record.is_held_here(item);
        let folder = if is_ours { project_of_item(project, run, item + 1) } else { None };
        facts.push(folder.map(|folder| read_item(reader, &folder, work)).unwrap_or_default());
    }
    reader.forget_ended_sessions();
    facts
}

fn read_item(reader: &mut FiguresReader, project: &Project, work: &Work) -> ItemRunFacts {
    let known = work.pid.map(|pid| Identity { pid, started: work.process_started });
    // A kill may have come before the process was written down; it holds the lock of its worktree.
    let is_alive = known.is_some_and(is_alive) || known.is_none() && lock::is_run_held(project);
    if known.is_none() && !is_alive {
        return ItemRunFacts::default();
    }
    let Some(state) = child::present(project, &work.earlier_run) else {
        return ItemRunFacts { pid: work.pid, is_alive, ..ItemRunFacts::default() };
    };
    let session = reader.read_running_session(project, &state);
    let mut used = child::used_by(&state);
    if let Some(session) = &session {
        used += Used { sessions: 0, ..session.used };
    }
    ItemRunFacts {
        pid: work.pid,
        is_alive,
        used: Some(used),
        is_session_running: session.is_some_and(|session| session.is_alive),
        api_trouble: session.and_then(|_| state.iteration_record.api_trouble.clone()),
        percent: session.and_then(|_| sessions::load(project, state.session_id.as_ref()?).usage.percent),
    }
}
