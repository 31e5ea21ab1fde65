//! What is seen of an item's run while it is at work.

use crate::our_files::is_ours;
use crate::workers::slot::{Slot, Stage};
use plimsoll_domain::board::Stage as BoardStage;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::workers::{Work, Workers};
use plimsoll_launcher::client::Client;
use plimsoll_launcher::git;
use plimsoll_launcher::process::{Identity, identity, is_alive};
use plimsoll_launcher::wip::{Repository, Wip, commit_wip};
use plimsoll_store::{Project, lock, sessions, state_file};

/// How much of an item stands on its worker's line.
const ITEM: usize = 60;

/// The item's run, if it lives: the process that was written down, or whoever holds the lock of its worktree, where a kill came
/// before that.
pub(super) fn living(project: &Project, work: &Work) -> Option<Client> {
    let known = work.pid.map(|pid| Identity { pid, started: work.process_started });
    let known = known.filter(|known| is_alive(*known));
    let holder =
        || lock::is_run_held(project).then(|| lock::run_holder(project).and_then(identity)).flatten();
    known.or_else(holder).map(Client::Adopted)
}

/// How full the session is that works on an item.
pub(super) fn percent(project: &Project) -> Option<u64> {
    let state = state_file::load_without_history(project, None).ok().flatten()?;
    sessions::load(project, state.session_id.as_ref()?).usage.percent
}

/// Commits what a run that failed has left, and answers with the end of its work; none if there is no worktree.
pub(super) fn keep_work(project: &Project) -> Option<String> {
    let message = "plimsoll: what an attempt that failed has left";
    match commit_wip(project.root(), message, &is_ours, Repository::MadeSince) {
        Wip::Committed { id, .. } => Some(id),
        Wip::Nothing | Wip::Refused { .. } => git::head(project.root()),
    }
}

/// A line for each worker, and one for what waits to be merged.
pub(super) fn lines(slots: &[Option<Slot<'_>>], now: &Workers, is_merging: bool) -> Vec<String> {
    let mut lines: Vec<String> = slots.iter().flatten().map(|slot| line(slot, now)).collect();
    let count =
        |is_it: &dyn Fn(&BoardStage) -> bool| now.board.items.iter().filter(|row| is_it(&row.stage)).count();
    let merged = count(&|stage| *stage == BoardStage::Merged);
    let offered = count(&|stage| matches!(stage, BoardStage::Offered { .. }));
    let aside = count(&|stage| matches!(stage, BoardStage::Aside { .. }));
    let queue = if is_merging {
        format!("merging {}", counted(offered, "item"))
    } else {
        format!("{offered} to merge")
    };
    let used = now.used();
    lines.push(format!(
        "{merged}/{} items merged, {queue}, {aside} set aside   {}   ${:.2}",
        now.board.items.len(),
        counted(used.sessions as usize, "session"),
        used.cost_usd
    ));
    lines
}

fn line(slot: &Slot<'_>, now: &Workers) -> String {
    let (row, work) = (&now.board.items[slot.claim.item], &now.works[slot.claim.item]);
    let state = match &slot.stage {
        Stage::Preparing(_) => "preparing".to_owned(),
        Stage::Waiting => "waiting".to_owned(),
        Stage::AtWork(_) => {
            let percent = slot.percent.map_or(String::new(), |percent| format!(" {percent}%"));
            format!("session {}{percent}  ${:.2}", work.now.sessions, work.now.cost_usd)
        }
    };
    format!("worker {}  {}  {state}", slot.worker, clip(&one_line(&row.text), ITEM))
}
