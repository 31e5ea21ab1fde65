//! How a parallel run stands, in lines.

use crate::workers::shared::is_leased_by;
use crate::workers::slot::{Slot, Stage};
use crate::workers::table;
use plimsoll_domain::RunState;
use plimsoll_domain::board::{Aside, Stage as BoardStage};
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::workers::Workers;
use plimsoll_launcher::process::{Identity, is_alive};
use plimsoll_store::{Project, StoreError, disk};

/// How much of an item and of a reason stands on a line.
const ITEM: usize = 50;
const REASON: usize = 200;

/// While the run's process looks itself: a line for each worker, and one for the whole.
pub(super) fn live(slots: &[Option<Slot<'_>>], now: &Workers, is_merging: bool) -> Vec<String> {
    let line = |slot: &Slot<'_>| {
        let doing = match &slot.stage {
            Stage::Preparing(_) => "preparing its worktree".to_owned(),
            Stage::Waiting => "waiting".to_owned(),
            Stage::AtWork(_) => at_work(now, slot.claim.item, slot.percent),
        };
        format!("worker {}  {}  {doing}", slot.worker, item(now, slot.claim.item))
    };
    slots.iter().flatten().map(line).chain([whole(now, is_merging)]).collect()
}

/// For everybody else: the same by what is written down, with what waits to be merged and what is set aside. Empty for a run
/// without workers.
pub fn standing(project: &Project, run: &RunState) -> Result<Vec<String>, StoreError> {
    let Some(now) = table::load(project, &run.run_id)? else { return Ok(Vec::new()) };
    let line = |(place, row): (usize, &plimsoll_domain::board::BoardItem)| {
        let name = item(&now, place);
        let work = &now.works[place];
        match &row.stage {
            BoardStage::Leased { .. } if now.member.is_some() && is_leased_by(&now, place).is_none() => {
                Some(format!("elsewhere: {name}"))
            }
            BoardStage::Leased { .. } => {
                let known = work.pid.map(|pid| Identity { pid, started: work.process_started });
                let doing = match known.is_some_and(is_alive) {
                    true => at_work(&now, place, None),
                    false => "not at work".to_owned(),
                };
                Some(format!("worker {}: {name}: {doing}", work.worker))
            }
            BoardStage::Offered { .. } => Some(format!("waits to be merged: {name}")),
            BoardStage::Aside { reason: Aside::Tries } => {
                Some(format!("set aside: {name}: {}", clip(&row.note, REASON)))
            }
            BoardStage::Aside { reason: Aside::Ended(why) } => {
                Some(format!("set aside: {name}: {}", clip(why, REASON)))
            }
            BoardStage::Aside { reason: Aside::Question(_) } | BoardStage::Open | BoardStage::Merged => None,
        }
    };
    let lines = now.board.items.iter().enumerate().filter_map(line);
    let trees = super::tree::folder(project, &run.run_id).filter(|folder| disk::exists(folder));
    let trees = trees.map(|folder| format!("worktrees: {}", folder.display()));
    Ok(lines.chain(trees).collect())
}

fn item(now: &Workers, place: usize) -> String {
    format!("{} \"{}\"", place + 1, clip(&one_line(&now.board.items[place].text), ITEM))
}

fn at_work(now: &Workers, place: usize, percent: Option<u64>) -> String {
    let used = now.works[place].now;
    let percent = percent.map_or(String::new(), |percent| format!(", {percent}%"));
    format!("session {}{percent}, {}", used.sessions.max(1), used.cost_basis.format_usd(used.cost_usd))
}

fn whole(now: &Workers, is_merging: bool) -> String {
    let count =
        |is_it: &dyn Fn(&BoardStage) -> bool| now.board.items.iter().filter(|row| is_it(&row.stage)).count();
    let merged = count(&|stage| *stage == BoardStage::Merged);
    let offered = count(&|stage| matches!(stage, BoardStage::Offered { .. }));
    let aside = count(&|stage| matches!(stage, BoardStage::Aside { .. }));
    let queue = match (is_merging, offered) {
        (true, many) => format!(", merging {}", counted(many, "item")),
        (false, 0) => String::new(),
        (false, many) => format!(", {many} to merge"),
    };
    let aside = if aside > 0 { format!(", {aside} set aside") } else { String::new() };
    let used = now.used();
    format!(
        "{merged}/{} items merged{queue}{aside}  {}  {}",
        now.board.items.len(),
        counted(used.sessions as usize, "session"),
        used.cost_basis.format_usd(used.cost_usd)
    )
}
